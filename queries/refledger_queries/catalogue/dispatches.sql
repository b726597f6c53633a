-- When was a call dispatched, and did its arguments resolve? A row a `dispatch.resolved` or `dispatch.refused`.
-- `started`, `turn` and `ended` are of the same dispatch's first start and last end, as positions.
CREATE VIEW dispatches AS
WITH judged AS (
    SELECT
        log_id,
        position,
        event_id,
        recorded_us,
        scope,
        run_id,
        call_id,
        dispatch,
        CASE type WHEN 'dispatch.resolved' THEN 'resolved' ELSE 'refused' END AS outcome,
        body ->> '$.tool' AS tool
    FROM log_events
    WHERE type IN ('dispatch.resolved', 'dispatch.refused')
),
first_starts AS (
    SELECT
        log_id,
        scope,
        run_id,
        call_id,
        dispatch,
        min(position) AS started,
        arg_min_null(turn, position) AS turn
    FROM call_starts
    GROUP BY log_id, scope, run_id, call_id, dispatch
),
last_ends AS (
    SELECT
        log_id,
        scope,
        run_id,
        call_id,
        dispatch,
        max(position) AS ended
    FROM call_ends
    GROUP BY log_id, scope, run_id, call_id, dispatch
)
SELECT
    judged.log_id,
    judged.position,
    judged.event_id,
    judged.recorded_us,
    make_timestamptz(judged.recorded_us) AS recorded_at,
    judged.scope,
    judged.run_id,
    judged.call_id,
    judged.dispatch,
    judged.tool,
    judged.outcome,
    first_starts.turn,
    first_starts.started,
    last_ends.ended
FROM judged
LEFT JOIN first_starts
    ON first_starts.log_id = judged.log_id
    AND first_starts.scope = judged.scope
    AND first_starts.run_id = judged.run_id
    AND first_starts.call_id = judged.call_id
    AND first_starts.dispatch IS NOT DISTINCT FROM judged.dispatch
LEFT JOIN last_ends
    ON last_ends.log_id = judged.log_id
    AND last_ends.scope = judged.scope
    AND last_ends.run_id = judged.run_id
    AND last_ends.call_id = judged.call_id
    AND last_ends.dispatch IS NOT DISTINCT FROM judged.dispatch;
