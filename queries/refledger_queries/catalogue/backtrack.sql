-- What shaped this answer? A row a node: the answer, its cone, and what is attached to it. docs/backtrack.md has the rules.
CREATE MACRO backtrack(answer) AS TABLE
WITH found AS MATERIALIZED (
    FROM backtrack_nodes(answer)
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
