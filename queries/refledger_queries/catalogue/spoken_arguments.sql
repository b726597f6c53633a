-- What did a dispatch speak for each argument? A row an argument of a dispatch, resolved or not.
-- `spoke` is a ref or a text; NULL is anything else. `unreadable`: it was a text, and has been erased.
CREATE VIEW spoken_arguments AS
WITH said AS (
    SELECT
        log_id,
        position,
        scope,
        argument,
        rank,
        'resolved' AS outcome,
        ref AS spoke,
        FALSE AS unreadable
    FROM resolutions
    UNION ALL
    SELECT
        log_id,
        position,
        scope,
        argument,
        rank,
        outcome,
        coalesce(ref, spoken) AS spoke,
        outcome = 'refused'
            AND ref IS NULL
            AND spoken_as = 'text'
            AND coalesce(spoken_length, 0) <= 200
            AND erased AS unreadable
    FROM judgements
)
SELECT
    log_id,
    position,
    scope,
    argument,
    outcome,
    spoke,
    unreadable
FROM said
QUALIFY row_number() OVER (PARTITION BY log_id, position, argument ORDER BY rank) = 1;
