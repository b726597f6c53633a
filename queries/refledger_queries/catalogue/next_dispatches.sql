-- Which dispatch came next, after the model had read a refusal? A row a refused dispatch.
-- Next is the first later dispatch of the same run and tool that was asked for in a later turn; where the refused one has no
-- turn, the first that started after it ended. `later` counts the later dispatches, next or not.
CREATE VIEW next_dispatches AS
WITH dispatched AS MATERIALIZED (
    SELECT
        log_id,
        position,
        scope,
        run_id,
        call_id,
        dispatch,
        tool,
        outcome,
        turn,
        started,
        ended
    FROM dispatches
),
pairs AS (
    SELECT
        refused.log_id,
        refused.position,
        following.position AS following_position,
        CASE
            WHEN refused.turn IS NOT NULL THEN following.turn > refused.turn
            ELSE following.started > refused.ended
        END AS is_after
    FROM dispatched AS refused
    JOIN dispatched AS following
        ON following.log_id = refused.log_id
        AND following.scope = refused.scope
        AND following.run_id = refused.run_id
        AND following.tool = refused.tool
        AND following.position > refused.position
    WHERE
        refused.outcome = 'refused'
        AND (following.call_id IS DISTINCT FROM refused.call_id OR following.dispatch IS DISTINCT FROM refused.dispatch)
),
firsts AS (
    SELECT
        log_id,
        position,
        min(following_position) FILTER (WHERE is_after) AS next_position,
        count(*) AS later
    FROM pairs
    GROUP BY log_id, position
)
SELECT
    refused.log_id,
    refused.position,
    refused.scope,
    refused.turn,
    coalesce(firsts.later, 0) AS later,
    following.position AS next_position,
    following.call_id AS next_call_id,
    following.dispatch AS next_dispatch
FROM dispatched AS refused
LEFT JOIN firsts
    ON firsts.log_id = refused.log_id
    AND firsts.position = refused.position
LEFT JOIN dispatched AS following
    ON following.log_id = firsts.log_id
    AND following.position = firsts.next_position
WHERE refused.outcome = 'refused';
