-- Which artifact was made from which? A row a parent that a mint names; `how` is `declared` by the put, or `call`: resolved in it.
CREATE VIEW edges AS
WITH mints AS (
    SELECT
        log_id,
        position,
        scope,
        from_json(body, '{"ref": "VARCHAR", "parents": [{"ref": "VARCHAR", "how": "VARCHAR"}]}') AS body
    FROM log_events
    WHERE type = 'artifact.minted'
),
parents AS (
    SELECT
        log_id,
        position,
        scope,
        body.ref AS child,
        unnest(body.parents) AS parent
    FROM mints
)
SELECT
    log_id,
    scope,
    child,
    parent.ref AS parent,
    parent.how AS how,
    position
FROM parents;
