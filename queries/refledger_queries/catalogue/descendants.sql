-- What was made from this artifact, and what was made from those? A row a descendant, the nearest first.
-- `made_from` is the parent through which it was reached, and `how`.
CREATE MACRO descendants(ref) AS TABLE
WITH RECURSIVE walk(log_id, scope, node, depth) USING KEY (log_id, scope, node) AS (
    SELECT DISTINCT
        edges.log_id,
        edges.scope,
        edges.parent AS node,
        0 AS depth
    FROM edges
    WHERE edges.parent = ref
    UNION
    SELECT
        edges.log_id,
        edges.scope,
        edges.child AS node,
        min(walk.depth) + 1 AS depth
    FROM walk
    JOIN edges
        ON edges.log_id = walk.log_id
        AND edges.scope = walk.scope
        AND edges.parent = walk.node
    ANTI JOIN recurring.walk AS seen
        ON seen.log_id = edges.log_id
        AND seen.scope = edges.scope
        AND seen.node = edges.child
    GROUP BY
        edges.log_id,
        edges.scope,
        edges.child
),
nearest AS (
    SELECT
        below.log_id,
        below.scope,
        below.node,
        below.depth,
        edges.parent AS made_from,
        edges.how
    FROM walk AS below
    JOIN edges
        ON edges.log_id = below.log_id
        AND edges.scope = below.scope
        AND edges.child = below.node
    JOIN walk AS above
        ON above.log_id = edges.log_id
        AND above.scope = edges.scope
        AND above.node = edges.parent
        AND above.depth = below.depth - 1
    QUALIFY row_number() OVER (
        PARTITION BY below.log_id, below.scope, below.node
        ORDER BY edges.position, edges.parent, edges.how
    ) = 1
)
SELECT
    nearest.log_id,
    nearest.scope,
    nearest.depth,
    nearest.node AS ref,
    nearest.made_from,
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
