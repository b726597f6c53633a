-- Which artifacts were checked in, when did each live, and what became of it? A row an artifact.
-- It lived from position `minted` until position `gone` (NULL: still there); `state` is `live`, or how it left.
-- `gone_by` is the ref whose put forced it out; `corrupt` the position since which its bytes are known to be wrong.
CREATE VIEW artifacts AS
WITH departures AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        from_json(
            body,
            '{"ref": "VARCHAR", "cause": "VARCHAR", "forced_by": "VARCHAR", "stated_us": "BIGINT", "observed_us": "BIGINT"}'
        ) AS body,
        from_json(texts, '{"by": "VARCHAR", "why": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'artifact.gone'
),
first_departures AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        body.ref AS ref,
        body,
        texts
    FROM departures
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, body.ref ORDER BY position) = 1
)
SELECT
    mints.log_id,
    mints.scope,
    mints.ref,
    mints.kind,
    mints.media_type,
    mints.shape,
    mints.bytes,
    mints.digest,
    mints.label,
    list_transform(mints.parents, lambda parent: parent.ref) AS parents,
    mints.run_id,
    mints.call_id,
    mints.tool,
    mints.position AS minted,
    mints.recorded_us AS minted_us,
    make_timestamptz(mints.recorded_us) AS minted_at,
    mints.expires_us,
    make_timestamptz(mints.expires_us) AS expires_at,
    coalesce(first_departures.body.cause, 'live') AS state,
    first_departures.position AS gone,
    first_departures.recorded_us AS gone_us,
    make_timestamptz(first_departures.recorded_us) AS gone_at,
    first_departures.body.forced_by AS gone_by,
    first_departures.body.stated_us,
    first_departures.body.observed_us,
    first_departures.texts.by AS removed_by,
    first_departures.texts.why AS removed_why,
    corruptions.position AS corrupt,
    mints.erased
FROM mints
LEFT JOIN first_departures USING (log_id, scope, ref)
LEFT JOIN corruptions USING (log_id, scope, ref);
