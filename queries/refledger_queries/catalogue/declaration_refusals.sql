-- Which declarations of limits were refused, and over which key? A row a `declaration.refused`: a limit that did not reach the
-- model as its author meant it.
CREATE VIEW declaration_refusals AS
WITH refused AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        salt IS NULL AS erased,
        from_json(body, '{"helper": "VARCHAR", "at": "VARCHAR", "meant": "VARCHAR", "known": ["VARCHAR"]}') AS body,
        from_json(texts, '{"key": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'declaration.refused'
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    call_id,
    body.helper,
    body."at",
    texts."key",
    body.meant,
    body.known,
    erased
FROM refused;
