-- What was this artifact made from, and what were those made from? A row an ancestor, the nearest first.
-- `made` is the child through which it was reached, and `how`; kind, digest, minted and state are NULL where the log has no mint.
CREATE MACRO lineage(ref) AS TABLE
WITH RECURSIVE walk(log_id, scope, node, depth) USING KEY (log_id, scope, node) AS (
    SELECT DISTINCT
        edges.log_id,
        edges.scope,
        edges.child AS node,
        0 AS depth
    FROM edges
    WHERE edges.child = ref
    UNION
    SELECT
        edges.log_id,
        edges.scope,
        edges.parent AS node,
        min(walk.depth) + 1 AS depth
    FROM walk
    JOIN edges
        ON edges.log_id = walk.log_id
        AND edges.scope = walk.scope
        AND edges.child = walk.node
    ANTI JOIN recurring.walk AS seen
        ON seen.log_id = edges.log_id
        AND seen.scope = edges.scope
        AND seen.node = edges.parent
    GROUP BY
        edges.log_id,
        edges.scope,
        edges.parent
),
nearest AS (
    SELECT
        above.log_id,
        above.scope,
        above.node,
        above.depth,
        edges.child AS made,
        edges.how,
        edges.position
    FROM walk AS above
    JOIN edges
        ON edges.log_id = above.log_id
        AND edges.scope = above.scope
        AND edges.parent = above.node
    JOIN walk AS below
        ON below.log_id = edges.log_id
        AND below.scope = edges.scope
        AND below.node = edges.child
        AND below.depth = above.depth - 1
    QUALIFY row_number() OVER (
        PARTITION BY above.log_id, above.scope, above.node
        ORDER BY edges.position, edges.child, edges.how
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
