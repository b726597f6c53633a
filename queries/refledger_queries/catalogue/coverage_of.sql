-- What can a backtrack not know? A row a kind of hole, also where there is none; `nodes` is the name of a table of
-- `backtrack_nodes`. docs/backtrack.md has the rules.
CREATE MACRO coverage_of(nodes) AS TABLE
WITH nodes AS MATERIALIZED (
    SELECT
        every.log_id,
        every.scope,
        every.part,
        every.position,
        every.kind,
        every.run,
        every.id,
        every.grade,
        every.state,
        every.status,
        every.leads_on
    FROM query_table(nodes) AS every
),
given AS (
    SELECT
        nodes.log_id,
        nodes.scope,
        nodes.position,
        nodes.run
    FROM nodes
    WHERE nodes.part = 'answer'
),
past_gaps AS (
    SELECT gaps.count
    FROM gaps
    JOIN given
        ON given.log_id = gaps.log_id
        AND given.scope = gaps.scope
        AND given.position >= gaps.position
),
past_imports AS (
    SELECT imports.format
    FROM imports
    JOIN given
        ON given.log_id = imports.log_id
        AND given.scope = imports.scope
        AND given.run = imports.run_id
        AND given.position >= imports.position
),
resting_on AS (
    SELECT log_events.position
    FROM log_events
    JOIN given
        ON given.log_id = log_events.log_id
        AND given.scope = log_events.scope
        AND given.position >= log_events.position
    JOIN nodes
        ON nodes.part = 'cone'
        AND nodes.kind = 'call'
        AND nodes.run = log_events.run_id
        AND nodes.id = log_events.call_id
    UNION
    SELECT nodes.position
    FROM nodes
    WHERE nodes.part IN ('answer', 'refusal') OR (nodes.part = 'cone' AND nodes.kind = 'artifact')
),
erased AS (
    SELECT log_events.position
    FROM log_events
    JOIN given ON given.log_id = log_events.log_id
    JOIN resting_on ON resting_on.position = log_events.position
    WHERE log_events.salt IS NULL
),
holes AS (
    SELECT
        'gaps' AS what,
        count(*) AS count,
        CASE
            WHEN count(*) = 0 THEN NULL
            WHEN count(past_gaps.count) < count(*) THEN 'unknown'
            ELSE CAST(sum(past_gaps.count) AS VARCHAR)
        END AS note
    FROM past_gaps
    UNION ALL
    SELECT 'imported', count(*), any_value(past_imports.format)
    FROM past_imports
    UNION ALL
    SELECT 'inferred edges', count(*), NULL
    FROM nodes
    WHERE nodes.part = 'cone' AND nodes.grade = 'inferred'
    UNION ALL
    SELECT 'missing artifacts', count(*), NULL
    FROM nodes
    WHERE nodes.part = 'cone' AND nodes.kind = 'artifact' AND nodes.state IS NULL
    UNION ALL
    SELECT 'payloads gone', count(*), NULL
    FROM nodes
    WHERE nodes.part = 'cone' AND nodes.kind = 'artifact' AND nodes.state NOT IN ('live', 'erased')
    UNION ALL
    SELECT 'payloads erased', count(*), NULL
    FROM nodes
    WHERE nodes.part = 'cone' AND nodes.kind = 'artifact' AND nodes.state = 'erased'
    UNION ALL
    SELECT 'texts erased', count(*), NULL
    FROM erased
    UNION ALL
    SELECT 'unfinished calls', count(*), NULL
    FROM nodes
    JOIN given ON given.run = nodes.run
    WHERE nodes.kind = 'call' AND nodes.position IS NOT NULL AND nodes.status IS NULL
    UNION ALL
    SELECT 'uninstrumented calls', count(*), NULL
    FROM nodes
    WHERE nodes.part = 'cone' AND nodes.kind = 'call' AND NOT nodes.leads_on
)
SELECT
    holes.what,
    holes.count,
    holes.note
FROM holes
WHERE EXISTS (SELECT 1 FROM given)
ORDER BY holes.what;
