-- What was said in the conversation? A row a message noted; its text is content, found by the digest in `content`.
CREATE VIEW messages AS
WITH notes AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        salt IS NULL AS erased,
        from_json(body, '{"role": "VARCHAR", "index": "BIGINT", "turn": "BIGINT", "size": "BIGINT"}') AS body,
        from_json(texts, '{"content": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'message.noted'
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    body."index" AS index,
    body.turn,
    body.role,
    texts.content,
    body.size,
    erased
FROM notes;
