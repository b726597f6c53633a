-- Which artifacts were checked in? A row an artifact: its first `artifact.minted`, whatever became of it later.
CREATE VIEW mints AS
WITH noted AS (
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
                "digest": "VARCHAR", "expires_us": "BIGINT", "parents": [{"ref": "VARCHAR", "how": "VARCHAR"}], "tool": "VARCHAR"
            }'
        ) AS body,
        from_json(texts, '{"label": "VARCHAR"}') AS texts
    FROM log_events
    WHERE type = 'artifact.minted'
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
    body.kind,
    body.media_type,
    body.shape,
    body.bytes,
    body.digest,
    texts.label,
    body.expires_us,
    coalesce(body.parents, []) AS parents,
    body.tool,
    erased
FROM noted
QUALIFY row_number() OVER (PARTITION BY log_id, scope, body.ref ORDER BY position) = 1;
