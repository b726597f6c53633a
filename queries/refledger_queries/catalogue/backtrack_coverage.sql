-- What can the backtrack of this answer not know? A row a kind of hole, also where there is none.
CREATE MACRO backtrack_coverage(answer) AS TABLE
WITH found AS MATERIALIZED (
    FROM backtrack_nodes(answer)
)
SELECT
    coverage.what,
    coverage.count,
    coverage.note
FROM coverage_of('found') AS coverage;
