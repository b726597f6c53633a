-- Which artifacts of a scope were live at a position, and so could be offered? A row an artifact, the newest first, per log.
-- `in_scope` is a scope key; `of_kind` NULL means every kind. `corrupt`: its bytes were known to be wrong by then, so it was not offered.
CREATE MACRO live_at(in_scope, of_kind, at_position) AS TABLE
WITH instants AS (
    SELECT
        log_events.log_id,
        max_by(log_events.recorded_us, log_events.position) AS instant_us
    FROM log_events
    WHERE log_events.position <= at_position
    GROUP BY log_events.log_id
)
SELECT
    artifacts.log_id,
    artifacts.scope,
    artifacts.ref,
    artifacts.kind,
    artifacts.media_type,
    artifacts.bytes,
    artifacts.digest,
    artifacts.label,
    artifacts.minted,
    artifacts.expires_us,
    artifacts.expires_at,
    coalesce(artifacts.corrupt <= at_position, FALSE) AS corrupt
FROM artifacts
JOIN instants ON instants.log_id = artifacts.log_id
WHERE
    artifacts.scope = in_scope
    AND (of_kind IS NULL OR artifacts.kind = of_kind)
    AND artifacts.minted <= at_position
    AND coalesce(artifacts.gone > at_position, TRUE)
    AND coalesce(artifacts.expires_us > instants.instant_us, TRUE)
ORDER BY
    artifacts.log_id,
    artifacts.minted DESC;
