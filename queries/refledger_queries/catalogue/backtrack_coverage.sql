-- What can the backtrack of this answer not know? A row a kind of hole, also where there is none.
CREATE MACRO backtrack_coverage(answer) AS TABLE
WITH found AS MATERIALIZED (
    SELECT
        nodes.log_id,
        nodes.scope,
        nodes.part,
        nodes.depth,
        nodes.position,
        nodes.kind,
        nodes.run,
        nodes.id,
        nodes.node_id,
        nodes.via_id,
        nodes.argument,
        nodes.grade,
        nodes.note,
        nodes.state,
        nodes.status,
        nodes.leads_on
    FROM backtrack_nodes(answer) AS nodes
)
SELECT
    coverage.what,
    coverage.count,
    coverage.note
FROM coverage_of('found') AS coverage;
