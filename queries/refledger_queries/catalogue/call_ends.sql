-- How did a call end, and what did the model read of it? A row a `call.ended`.
CREATE VIEW call_ends AS
WITH ends AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        salt IS NULL AS erased,
        from_json(
            body,
            '{"status": "VARCHAR", "message": "BIGINT", "size": "BIGINT", "placed": "VARCHAR", "error_class": "VARCHAR"}'
        ) AS body,
        from_json(texts, '{"result": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'call.ended'
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
    body.status,
    body.message,
    texts.result,
    body.size,
    body.placed,
    body.error_class,
    erased
FROM ends;
