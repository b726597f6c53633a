-- Which tool calls were there, and how did each go? A row a call of a run, however often it was dispatched.
-- Tool, step, turn and arguments are those of its first start; status and result those of its last end.
-- `started` and `ended` are positions; `dispatches` is 0 for a call that only other events name.
CREATE VIEW calls AS
WITH named AS (
    SELECT
        log_id,
        scope,
        run_id,
        call_id,
        min(position) AS first_position,
        max(position) AS last_position,
        count(DISTINCT dispatch) AS dispatches
    FROM log_events
    WHERE run_id IS NOT NULL AND call_id IS NOT NULL
    GROUP BY log_id, scope, run_id, call_id
),
first_starts AS (
    SELECT
        log_id,
        scope,
        run_id,
        call_id,
        position,
        recorded_us,
        tool,
        step,
        turn,
        message,
        arguments,
        size,
        erased
    FROM call_starts
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, run_id, call_id ORDER BY position) = 1
),
last_ends AS (
    SELECT
        log_id,
        scope,
        run_id,
        call_id,
        position,
        recorded_us,
        status,
        result,
        size,
        placed,
        error_class,
        erased
    FROM call_ends
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, run_id, call_id ORDER BY position DESC) = 1
)
SELECT
    named.log_id,
    named.scope,
    named.run_id,
    named.call_id,
    first_starts.tool,
    first_starts.step,
    first_starts.turn,
    first_starts.message,
    named.dispatches,
    coalesce(last_ends.status, 'unfinished') AS status,
    first_starts.arguments,
    first_starts.size AS arguments_size,
    last_ends.result,
    last_ends.size AS result_size,
    last_ends.placed,
    last_ends.error_class,
    named.first_position,
    named.last_position,
    first_starts.position AS started,
    first_starts.recorded_us AS started_us,
    make_timestamptz(first_starts.recorded_us) AS started_at,
    last_ends.position AS ended,
    last_ends.recorded_us AS ended_us,
    make_timestamptz(last_ends.recorded_us) AS ended_at,
    coalesce(first_starts.erased, FALSE) OR coalesce(last_ends.erased, FALSE) AS erased
FROM named
LEFT JOIN first_starts USING (log_id, scope, run_id, call_id)
LEFT JOIN last_ends USING (log_id, scope, run_id, call_id);
