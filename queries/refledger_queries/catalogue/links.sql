-- What does the log know of what led to what? A row an edge of the backtrack: from a later node back to an earlier one.
-- A node is (kind, run, id): a call or a message of a run, or an artifact, whose run is ''. `grade` says how well it is known.
CREATE VIEW links AS
WITH minted AS MATERIALIZED (
    SELECT
        log_id,
        scope,
        position,
        run_id,
        call_id,
        ref,
        list_transform(parents, lambda parent: parent.ref) AS parents
    FROM mints
),
mintings AS (
    SELECT
        log_id,
        scope,
        position,
        'artifact' AS from_kind,
        '' AS from_run,
        ref AS from_id,
        'call' AS to_kind,
        run_id AS to_run,
        call_id AS to_id,
        CAST(NULL AS VARCHAR) AS argument,
        'declared' AS grade
    FROM minted
),
parents AS (
    SELECT
        log_id,
        scope,
        position,
        'artifact' AS from_kind,
        '' AS from_run,
        ref AS from_id,
        'artifact' AS to_kind,
        '' AS to_run,
        unnest(parents) AS to_id,
        CAST(NULL AS VARCHAR) AS argument,
        'declared' AS grade
    FROM minted
),
deliveries AS (
    SELECT
        log_id,
        scope,
        position,
        'call' AS from_kind,
        run_id AS from_run,
        call_id AS from_id,
        'artifact' AS to_kind,
        '' AS to_run,
        ref AS to_id,
        argument,
        CASE WHEN verified THEN 'delivered' ELSE 'delivered-unverified' END AS grade
    FROM resolutions
),
readings AS (
    SELECT
        log_id,
        scope,
        position,
        'call' AS from_kind,
        run_id AS from_run,
        call_id AS from_id,
        'artifact' AS to_kind,
        '' AS to_run,
        ref AS to_id,
        CAST(NULL AS VARCHAR) AS argument,
        CASE
            WHEN via = 'head' THEN 'described'
            WHEN verified THEN 'delivered'
            ELSE 'delivered-unverified'
        END AS grade
    FROM reads
),
showings AS (
    SELECT
        log_id,
        scope,
        position,
        'call' AS from_kind,
        run_id AS from_run,
        call_id AS from_id,
        'artifact' AS to_kind,
        '' AS to_run,
        ref AS to_id,
        CAST(NULL AS VARCHAR) AS argument,
        'described' AS grade
    FROM presentations
),
resemblances AS (
    SELECT
        log_id,
        scope,
        position,
        from_kind,
        CASE from_kind WHEN 'answer' THEN '' ELSE run_id END AS from_run,
        from_id,
        source AS to_kind,
        CASE source WHEN 'artifact' THEN '' ELSE run_id END AS to_run,
        id AS to_id,
        argument,
        'inferred' AS grade
    FROM matches
),
every AS (
    SELECT log_id, scope, position, from_kind, from_run, from_id, to_kind, to_run, to_id, argument, grade FROM mintings
    UNION ALL
    SELECT log_id, scope, position, from_kind, from_run, from_id, to_kind, to_run, to_id, argument, grade FROM parents
    UNION ALL
    SELECT log_id, scope, position, from_kind, from_run, from_id, to_kind, to_run, to_id, argument, grade FROM deliveries
    UNION ALL
    SELECT log_id, scope, position, from_kind, from_run, from_id, to_kind, to_run, to_id, argument, grade FROM readings
    UNION ALL
    SELECT log_id, scope, position, from_kind, from_run, from_id, to_kind, to_run, to_id, argument, grade FROM showings
    UNION ALL
    SELECT log_id, scope, position, from_kind, from_run, from_id, to_kind, to_run, to_id, argument, grade FROM resemblances
)
SELECT
    log_id,
    scope,
    position,
    from_kind,
    from_run,
    from_id,
    to_kind,
    to_run,
    to_id,
    argument,
    grade
FROM every
WHERE
    from_run IS NOT NULL
    AND from_id IS NOT NULL
    AND to_run IS NOT NULL
    AND to_id IS NOT NULL
    AND (to_kind <> 'artifact' OR regexp_full_match(to_id, 'art_[0-9A-Za-z]{22}'));
