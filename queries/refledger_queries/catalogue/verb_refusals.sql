-- Which verb was refused outside dispatch, and why? A row an `artifact.refused`; `offered` are the refs that its sentence showed,
-- newest first, and `total` how many were live in all: both NULL where no sentence offered any.
CREATE VIEW verb_refusals AS
WITH refused AS (
    SELECT
        log_id,
        position,
        event_id,
        recorded_us,
        scope,
        run_id,
        call_id,
        salt IS NULL AS erased,
        from_json(
            body,
            '{
                "op": "VARCHAR", "reason": "VARCHAR", "cause": "VARCHAR", "ref": "VARCHAR", "spoken_length": "BIGINT",
                "wording": "BIGINT", "sentence": "VARCHAR", "offered": [{"ref": "VARCHAR"}], "total": "BIGINT"
            }'
        ) AS body,
        from_json(texts, '{"spoken": "VARCHAR", "spoken_digest": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'artifact.refused'
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
    body.op,
    body.reason,
    body.cause,
    body.ref,
    texts.spoken,
    body.spoken_length,
    texts.spoken_digest,
    body.wording,
    body.sentence,
    list_transform(body.offered, lambda shown: shown.ref) AS offered,
    body.total,
    erased
FROM refused;
