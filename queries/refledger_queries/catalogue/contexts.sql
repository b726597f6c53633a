-- What did the window of a model call hold? A row a `context.composed`; `dropped` are the calls whose results had to go.
CREATE VIEW contexts AS
WITH composed AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        salt IS NULL AS erased,
        from_json(
            body,
            '{"model": "VARCHAR", "messages": ["BIGINT"], "calls": ["VARCHAR"], "refs": ["VARCHAR"], "dropped": ["VARCHAR"]}'
        ) AS body,
        from_json(texts, '{"parameters": "MAP(VARCHAR, VARCHAR)", "system": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'context.composed'
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    body.model,
    texts.parameters,
    texts.system,
    coalesce(body.messages, []) AS messages,
    coalesce(body.calls, []) AS calls,
    coalesce(body.refs, []) AS refs,
    coalesce(body.dropped, []) AS dropped,
    erased
FROM composed;
