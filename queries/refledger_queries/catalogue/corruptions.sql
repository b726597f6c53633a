-- Which artifacts are known to be damaged, and since when? A row a ref: the first refusal that found its bytes wrong.
CREATE VIEW corruptions AS
WITH at_dispatch AS (
    SELECT
        log_id,
        position,
        scope,
        unnest(
            from_json(body, '{"arguments": [{"ref": "VARCHAR", "cause": "VARCHAR"}]}').arguments
        ) AS judged
    FROM log_events
    WHERE type = 'dispatch.refused'
),
at_verb AS (
    SELECT
        log_id,
        position,
        scope,
        from_json(body, '{"ref": "VARCHAR", "cause": "VARCHAR"}') AS judged
    FROM log_events
    WHERE type = 'artifact.refused'
),
found AS (
    SELECT log_id, position, scope, judged FROM at_dispatch
    UNION ALL
    SELECT log_id, position, scope, judged FROM at_verb
)
SELECT
    log_id,
    scope,
    judged.ref AS ref,
    min(position) AS position,
    min_by(judged.cause, position) AS cause
FROM found
WHERE judged.ref IS NOT NULL AND judged.cause IN ('corrupt', 'undecodable')
GROUP BY log_id, scope, judged.ref;
