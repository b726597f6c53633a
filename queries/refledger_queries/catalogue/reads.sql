-- Which tickets were shown or redeemed outside dispatch? A row a read that was recorded.
CREATE VIEW reads AS
WITH taken AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        from_json(body, '{"ref": "VARCHAR", "via": "VARCHAR", "door": "VARCHAR", "verified": "BOOLEAN"}') AS body
    FROM log_events
    WHERE type = 'artifact.read'
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
    body.verified
FROM taken;
