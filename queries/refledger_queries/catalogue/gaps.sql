-- Where were observations lost? A row a gap; `count` is NULL where nobody knows how many.
CREATE VIEW gaps AS
WITH noted AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        from_json(body, '{"count": "BIGINT", "first_us": "BIGINT", "last_us": "BIGINT", "why": "VARCHAR"}') AS body
    FROM log_events
    WHERE type = 'log.gap'
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    body.count,
    body.first_us,
    make_timestamptz(body.first_us) AS first_at,
    body.last_us,
    make_timestamptz(body.last_us) AS last_at,
    body.why
FROM noted;
