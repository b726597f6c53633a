-- What was made from this artifact, and what was made from those? A row a descendant, the nearest first.
-- `made_from` is the parent through which it was reached, and `how`.
CREATE MACRO descendants(of_ref) AS TABLE
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
        known.parent AS node,
        0 AS depth
    FROM known
    WHERE known.parent = of_ref
    UNION
    SELECT
        known.log_id,
        known.scope,
        known.child AS node,
        walk.depth + 1 AS depth
    FROM walk
    JOIN known
        ON known.log_id = walk.log_id
        AND known.scope = walk.scope
        AND known.parent = walk.node
),
nearest AS (
    SELECT
        below.log_id,
        below.scope,
        below.node,
        below.depth,
        known.parent AS made_from,
        known.how
    FROM walk AS below
    JOIN known
        ON known.log_id = below.log_id
        AND known.scope = below.scope
        AND known.child = below.node
    JOIN walk AS above
        ON above.log_id = known.log_id
        AND above.scope = known.scope
        AND above.node = known.parent
        AND above.depth = below.depth - 1
    QUALIFY row_number() OVER (
        PARTITION BY below.log_id, below.scope, below.node
        ORDER BY known.position, known.parent, known.how
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
