-- When was a call asked for, and with what? A row a `call.started`: a call that was dispatched again has more than one.
CREATE VIEW call_starts AS
WITH starts AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        salt IS NULL AS erased,
        from_json(body, '{"tool": "VARCHAR", "step": "BIGINT", "turn": "BIGINT", "message": "BIGINT", "size": "BIGINT"}') AS body,
        from_json(texts, '{"arguments": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'call.started'
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    call_id,
    dispatch,
    body.tool,
    body.step,
    body.turn,
    body.message,
    texts.arguments,
    body.size,
    erased
FROM starts;
