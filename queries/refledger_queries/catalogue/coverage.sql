-- How far do results reach, by what their tools said? A row a declaration; a list is NULL where it was left out, or where the
-- texts were erased.
CREATE VIEW coverage AS
WITH declared AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        salt IS NULL AS erased,
        from_json(body, '{"kind": "VARCHAR"}') AS body,
        from_json(
            texts,
            '{
                "checked": [{"what": "VARCHAR", "why": "VARCHAR"}], "not_checked": [{"what": "VARCHAR", "why": "VARCHAR"}],
                "cannot_cover": [{"what": "VARCHAR", "why": "VARCHAR"}], "looked_for": "VARCHAR"
            }'
        ) AS texts
    FROM log_events
    WHERE type = 'coverage.declared'
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
    body.kind,
    texts.checked,
    texts.not_checked,
    texts.cannot_cover,
    texts.looked_for,
    erased
FROM declared;
