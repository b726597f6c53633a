-- Where were values of an argument or of an answer seen before? A row a match. Inferred, and never more than that.
-- `from_kind` is `call` or `answer`: what holds the value now; `source` and `id` say what held it before.
CREATE VIEW matches AS
WITH holders AS (
    SELECT
        log_id,
        position,
        scope,
        run_id,
        call_id,
        type,
        from_json(
            body,
            '{"answer_id": "VARCHAR", "matches": [{"argument": "VARCHAR", "source": "VARCHAR", "id": "VARCHAR"}]}'
        ) AS body
    FROM log_events
    WHERE type IN ('call.started', 'answer.given')
),
values_seen AS (
    SELECT
        log_id,
        position,
        scope,
        run_id,
        call_id,
        type,
        body.answer_id AS answer_id,
        unnest(body.matches) AS seen
    FROM holders
)
SELECT
    log_id,
    position,
    scope,
    run_id,
    CASE type WHEN 'call.started' THEN 'call' ELSE 'answer' END AS from_kind,
    CASE type WHEN 'call.started' THEN call_id ELSE answer_id END AS from_id,
    seen.argument,
    seen.source,
    seen.id
FROM values_seen;
