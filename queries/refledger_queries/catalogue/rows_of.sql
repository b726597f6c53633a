-- What does a backtrack say? A row a node, in the order of docs/backtrack.md; `nodes` is the name of a table of `backtrack_nodes`.
CREATE MACRO rows_of(nodes) AS TABLE
SELECT
    nodes.depth,
    nodes.position,
    nodes.kind AS node_kind,
    nodes.node_id,
    nodes.via_id,
    nodes.argument,
    nodes.grade,
    nodes.note
FROM query_table(nodes) AS nodes
ORDER BY
    nodes.depth NULLS LAST,
    nodes.position NULLS LAST,
    nodes.kind,
    nodes.node_id,
    nodes.via_id NULLS LAST,
    nodes.argument NULLS LAST,
    nodes.grade NULLS LAST,
    nodes.note NULLS LAST;
