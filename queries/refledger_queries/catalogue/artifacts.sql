-- Which artifacts were checked in, when did each live, and what became of it? A row an artifact.
-- It lived from position `minted` until position `gone` (NULL: still there); `state` is `live`, or how it left.
-- `gone_by` is the ref whose put forced it out; `corrupt` the position since which its bytes are known to be wrong.
CREATE VIEW artifacts AS
WITH mints AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        salt IS NULL AS erased,
        from_json(
            body,
            '{
                "ref": "VARCHAR", "kind": "VARCHAR", "media_type": "VARCHAR", "shape": "VARCHAR", "bytes": "BIGINT",
                "digest": "VARCHAR", "expires_us": "BIGINT", "parents": [{"ref": "VARCHAR"}], "tool": "VARCHAR"
            }'
        ) AS body,
        from_json(texts, '{"label": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'artifact.minted'
),
first_mints AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        call_id,
        erased,
        body.ref AS ref,
        body,
        texts
    FROM mints
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, body.ref ORDER BY position) = 1
),
departures AS (
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
    first_mints.log_id,
    first_mints.scope,
    first_mints.ref,
    first_mints.body.kind,
    first_mints.body.media_type,
    first_mints.body.shape,
    first_mints.body.bytes,
    first_mints.body.digest,
    first_mints.texts.label,
    coalesce(list_transform(first_mints.body.parents, lambda parent: parent.ref), []) AS parents,
    first_mints.run_id,
    first_mints.call_id,
    first_mints.body.tool,
    first_mints.position AS minted,
    first_mints.recorded_us AS minted_us,
    make_timestamptz(first_mints.recorded_us) AS minted_at,
    first_mints.body.expires_us,
    make_timestamptz(first_mints.body.expires_us) AS expires_at,
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
    first_mints.erased
FROM first_mints
LEFT JOIN first_departures USING (log_id, scope, ref)
LEFT JOIN corruptions USING (log_id, scope, ref);
