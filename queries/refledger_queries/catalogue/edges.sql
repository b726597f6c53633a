-- Which artifact was made from which? A row a parent that a mint names; `how` is `declared` by the put, or `call`: resolved in it.
CREATE VIEW edges AS
WITH named AS (
    SELECT
        log_id,
        position,
        scope,
        ref AS child,
        unnest(parents) AS parent
    FROM mints
)
SELECT
    log_id,
    scope,
    child,
    parent.ref AS parent,
    parent.how AS how,
    position
FROM named;
