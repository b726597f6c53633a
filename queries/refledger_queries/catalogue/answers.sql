-- What did the runs answer, and what was said of it? A row an answer, with its newest verdict.
CREATE VIEW answers AS
WITH given AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        salt IS NULL AS erased,
        from_json(
            body,
            '{"answer_id": "VARCHAR", "size": "BIGINT", "message": "BIGINT", "cited": ["VARCHAR"], "found": ["VARCHAR"]}'
        ) AS body,
        from_json(texts, '{"content": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'answer.given'
),
newest_verdicts AS (
    SELECT
        log_id,
        scope,
        answer_id,
        position,
        verdict,
        judged_by,
        note
    FROM verdicts
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, answer_id ORDER BY position DESC) = 1
)
SELECT
    given.log_id,
    given.position,
    given.recorded_us,
    make_timestamptz(given.recorded_us) AS recorded_at,
    given.scope,
    given.run_id,
    given.call_id,
    given.body.answer_id,
    given.texts.content,
    given.body.size,
    given.body.message,
    coalesce(given.body.cited, []) AS cited,
    coalesce(given.body.found, []) AS found,
    newest_verdicts.verdict,
    newest_verdicts.judged_by,
    newest_verdicts.note,
    newest_verdicts.position AS judged,
    given.erased
FROM given
LEFT JOIN newest_verdicts
    ON newest_verdicts.log_id = given.log_id
    AND newest_verdicts.scope = given.scope
    AND newest_verdicts.answer_id = given.body.answer_id;
