-- What shaped this answer? A row a node: the answer, its cone, and what is attached to it. docs/backtrack.md has the rules.
CREATE MACRO backtrack(answer) AS TABLE
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
    backtracked.depth,
    backtracked.position,
    backtracked.node_kind,
    backtracked.node_id,
    backtracked.via_id,
    backtracked.argument,
    backtracked.grade,
    backtracked.note
FROM rows_of('found') AS backtracked;
