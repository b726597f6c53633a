-- What was this artifact made from, and what were those made from? A row an ancestor, the nearest first.
-- `made` is the child through which it was reached, and `how`; kind, digest, minted and state are NULL where the log has no mint.
CREATE MACRO lineage(of_ref) AS TABLE
WITH RECURSIVE known AS MATERIALIZED (
    SELECT
        edges.log_id,
        edges.scope,
        edges.child,
        edges.parent,
        edges.how,
        edges.position
    FROM edges
),
walk(log_id, scope, node, depth) USING KEY (log_id, scope, node, min(depth)) AS (
    SELECT DISTINCT
        known.log_id,
        known.scope,
        known.child AS node,
        0 AS depth
    FROM known
    WHERE known.child = of_ref
    UNION
    SELECT
        known.log_id,
        known.scope,
        known.parent AS node,
        walk.depth + 1 AS depth
    FROM walk
    JOIN known
        ON known.log_id = walk.log_id
        AND known.scope = walk.scope
        AND known.child = walk.node
),
nearest AS (
    SELECT
        above.log_id,
        above.scope,
        above.node,
        above.depth,
        known.child AS made,
        known.how,
        known.position
    FROM walk AS above
    JOIN known
        ON known.log_id = above.log_id
        AND known.scope = above.scope
        AND known.parent = above.node
    JOIN walk AS below
        ON below.log_id = known.log_id
        AND below.scope = known.scope
        AND below.node = known.child
        AND below.depth = above.depth - 1
    QUALIFY row_number() OVER (
        PARTITION BY above.log_id, above.scope, above.node
        ORDER BY known.position, known.child, known.how
    ) = 1
)
SELECT
    nearest.log_id,
    nearest.scope,
    nearest.depth,
    nearest.node AS ref,
    nearest.made,
    nearest.how,
    artifacts.kind,
    artifacts.digest,
    artifacts.minted,
    artifacts.state
FROM nearest
LEFT JOIN artifacts
    ON artifacts.log_id = nearest.log_id
    AND artifacts.scope = nearest.scope
    AND artifacts.ref = nearest.node
ORDER BY
    nearest.log_id,
    nearest.scope,
    nearest.depth,
    nearest.node;
