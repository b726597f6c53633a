-- What was said of an answer, by whom? A row a verdict; the newest of an answer stands.
CREATE VIEW verdicts AS
WITH judged AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        salt IS NULL AS erased,
        from_json(body, '{"answer_id": "VARCHAR", "verdict": "VARCHAR"}') AS body,
        from_json(texts, '{"by": "VARCHAR", "note": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'answer.judged'
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    body.answer_id,
    body.verdict,
    texts.by AS judged_by,
    texts.note,
    erased
FROM judged;
