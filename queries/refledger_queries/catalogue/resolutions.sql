-- Which artifacts did dispatch deliver, and into which argument? A row a resolved argument; `rank` is its place in the declaration.
CREATE VIEW resolutions AS
WITH resolved AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        from_json(
            body,
            '{
                "tool": "VARCHAR",
                "arguments": [{
                    "argument": "VARCHAR", "kind": "VARCHAR", "ref": "VARCHAR", "digest": "VARCHAR", "bytes": "BIGINT",
                    "verified": "BOOLEAN"
                }]
            }'
        ) AS body
    FROM log_events
    WHERE type = 'dispatch.resolved'
),
arguments AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        body.tool AS tool,
        generate_subscripts(body.arguments, 1) AS rank,
        unnest(body.arguments) AS resolved
    FROM resolved
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
    tool,
    rank,
    resolved.argument,
    resolved.kind,
    resolved.ref,
    resolved.digest,
    resolved.bytes,
    resolved.verified
FROM arguments;
