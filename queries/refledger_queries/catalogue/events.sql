-- What was recorded, as it stands in the log? A row an event.
-- `erased`: its texts and the proof of them were erased or redacted, so absent texts may have been there.
CREATE VIEW events AS
SELECT
    log_id,
    position,
    event_id,
    type,
    version,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    occurred_us,
    make_timestamptz(occurred_us) AS occurred_at,
    scope,
    segment_of(scope, 1) AS tenant,
    segment_of(scope, 2) AS principal,
    segment_of(scope, 3) AS conversation,
    scope_seq,
    run_id,
    call_id,
    dispatch,
    CAST(body AS JSON) AS body,
    CAST(texts AS JSON) AS texts,
    salt IS NULL AS erased
FROM log_events;
