-- Which runs were there, and how did each end? A row a run that any event names.
-- `started` and `ended` are positions; `outcome` is `unfinished` without an end; `imported` is the format of an imported run.
CREATE VIEW runs AS
WITH named AS (
    SELECT
        log_id,
        scope,
        run_id,
        min(position) AS first_position,
        max(position) AS last_position,
        count(DISTINCT call_id) AS calls
    FROM log_events
    WHERE run_id IS NOT NULL
    GROUP BY log_id, scope, run_id
),
starts AS (
    SELECT
        log_id,
        scope,
        run_id,
        position,
        recorded_us,
        salt IS NULL AS erased,
        from_json(body, '{"agent": "VARCHAR", "model": "VARCHAR", "parent_run": "VARCHAR", "parent_call": "VARCHAR"}') AS body,
        from_json(texts, '{"attributes": "MAP(VARCHAR, VARCHAR)"}') AS texts
    FROM log_events
    WHERE type = 'run.started'
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, run_id ORDER BY position) = 1
),
ends AS (
    SELECT
        log_id,
        scope,
        run_id,
        position,
        recorded_us,
        from_json(body, '{"outcome": "VARCHAR", "error_class": "VARCHAR"}') AS body
    FROM log_events
    WHERE type = 'run.ended'
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, run_id ORDER BY position DESC) = 1
)
SELECT
    named.log_id,
    named.scope,
    segment_of(named.scope, 1) AS tenant,
    segment_of(named.scope, 2) AS principal,
    segment_of(named.scope, 3) AS conversation,
    named.run_id,
    starts.body.agent,
    starts.body.model,
    starts.body.parent_run,
    starts.body.parent_call,
    starts.texts.attributes,
    coalesce(ends.body.outcome, 'unfinished') AS outcome,
    ends.body.error_class,
    imports.format AS imported,
    named.calls,
    named.first_position,
    named.last_position,
    starts.position AS started,
    starts.recorded_us AS started_us,
    make_timestamptz(starts.recorded_us) AS started_at,
    ends.position AS ended,
    ends.recorded_us AS ended_us,
    make_timestamptz(ends.recorded_us) AS ended_at,
    coalesce(starts.erased, FALSE) AS erased
FROM named
LEFT JOIN starts USING (log_id, scope, run_id)
LEFT JOIN ends USING (log_id, scope, run_id)
LEFT JOIN imports USING (log_id, scope, run_id);
