-- What did a refusal show of each wanted kind? A row a kind of a refusal; `total` is how many were live in all.
CREATE VIEW offered_kinds AS
WITH refused AS (
    SELECT
        log_id,
        position,
        event_id,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        salt IS NULL AS erased,
        from_json(
            body,
            '{
                "tool": "VARCHAR",
                "offers": [{"kind": "VARCHAR", "total": "BIGINT", "refs": [{"ref": "VARCHAR", "bytes": "BIGINT"}]}]
            }'
        ) AS body,
        from_json(texts, '{"labels": "MAP(VARCHAR, VARCHAR)"}') AS texts
    FROM log_events
    WHERE type = 'dispatch.refused'
),
kinds AS (
    SELECT
        log_id,
        position,
        event_id,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        erased,
        body.tool AS tool,
        texts.labels AS labels,
        unnest(body.offers) AS offer
    FROM refused
)
SELECT
    log_id,
    position,
    event_id,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    call_id,
    dispatch,
    tool,
    offer.kind,
    offer.total,
    coalesce(offer.refs, []) AS refs,
    labels,
    erased
FROM kinds;
