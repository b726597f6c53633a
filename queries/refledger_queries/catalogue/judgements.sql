-- How was each argument of a refused dispatch judged? A row a declared argument, the good ones too.
-- `spoken` is its text where that was short enough to keep and has not been erased.
CREATE VIEW judgements AS
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
                "tool": "VARCHAR", "wording": "BIGINT", "sentence": "VARCHAR",
                "arguments": [{
                    "argument": "VARCHAR", "wanted": "VARCHAR", "outcome": "VARCHAR", "reason": "VARCHAR", "cause": "VARCHAR",
                    "ref": "VARCHAR", "digest": "VARCHAR", "bytes": "BIGINT", "actual": "VARCHAR", "meant": "VARCHAR",
                    "gone_by": "VARCHAR", "spoken_as": "VARCHAR", "spoken_length": "BIGINT"
                }]
            }'
        ) AS body,
        from_json(texts, '{"spoken": "MAP(VARCHAR, VARCHAR)"}') AS texts
    FROM log_events
    WHERE type = 'dispatch.refused'
),
arguments AS (
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
        body.wording AS wording,
        body.sentence AS sentence,
        texts.spoken AS spoken,
        generate_subscripts(body.arguments, 1) AS rank,
        unnest(body.arguments) AS judged
    FROM refused
)
SELECT
    log_id,
    position,
    event_id,
    recorded_us,
    scope,
    run_id,
    call_id,
    dispatch,
    tool,
    wording,
    sentence,
    rank,
    judged.argument,
    judged.wanted,
    judged.outcome,
    judged.reason,
    judged.cause,
    spoken[judged.argument] AS spoken,
    judged.spoken_as,
    judged.spoken_length,
    judged.ref,
    judged.digest,
    judged.bytes,
    judged.actual,
    judged.meant,
    judged.gone_by,
    erased
FROM arguments;
