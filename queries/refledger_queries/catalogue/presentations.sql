-- Which artifacts were handed to the screen, and as what? A row a presentation; `snapshot` is the ticket as it was shown.
CREATE VIEW presentations AS
WITH presented AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        salt IS NULL AS erased,
        from_json(body, '{"ref": "VARCHAR", "via": "VARCHAR", "door": "VARCHAR"}') AS body,
        from_json(texts, '{"shown_as": "VARCHAR", "snapshot": "MAP(VARCHAR, VARCHAR)"}') AS texts
    FROM log_events
    WHERE type = 'artifact.presented'
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    call_id,
    body.ref,
    body.via,
    body.door,
    texts.shown_as,
    texts.snapshot,
    erased
FROM presented;
