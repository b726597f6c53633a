-- Why did a tool not run, what was the model told, and what did it do next? A row a refused argument.
-- `offered` counts the refs shown of the wanted kind, `total` those that were live. `effect` is what the next dispatch did with
-- the argument: `followed` (spoke an offered ref), `ignored`, `elsewhere` (nothing was offered), `dropped` (left it out);
-- `abandoned` when no dispatch came next, `unknown` when the log cannot tell. `next_outcome` is how that dispatch went for it.
CREATE VIEW refusals AS
WITH offered AS (
    SELECT
        log_id,
        position,
        kind,
        flatten(list(list_transform(refs, lambda shown: shown.ref))) AS refs,
        max(total) AS total
    FROM offered_kinds
    GROUP BY log_id, position, kind
)
SELECT
    judgements.log_id,
    judgements.position,
    judgements.event_id,
    judgements.recorded_us,
    make_timestamptz(judgements.recorded_us) AS recorded_at,
    judgements.scope,
    judgements.run_id,
    judgements.call_id,
    judgements.dispatch,
    judgements.tool,
    judgements.wording,
    judgements.sentence,
    judgements.rank,
    judgements.argument,
    judgements.wanted,
    judgements.reason,
    judgements.cause,
    judgements.spoken,
    judgements.spoken_as,
    judgements.spoken_length,
    judgements.ref,
    judgements.digest,
    judgements.bytes,
    judgements.actual,
    judgements.meant,
    judgements.gone_by,
    coalesce(len(offered.refs), 0) AS offered,
    coalesce(offered.total, 0) AS total,
    CASE
        WHEN nexts.next_position IS NULL AND nexts.turn IS NULL AND nexts.later > 0 THEN 'unknown'
        WHEN nexts.next_position IS NULL THEN 'abandoned'
        WHEN coalesce(following.outcome, 'absent') = 'absent' THEN 'dropped'
        WHEN following.unreadable THEN 'unknown'
        WHEN list_contains(offered.refs, following.spoke) THEN 'followed'
        WHEN len(offered.refs) > 0 THEN 'ignored'
        ELSE 'elsewhere'
    END AS effect,
    nexts.next_position,
    nexts.next_call_id,
    nexts.next_dispatch,
    CASE WHEN nexts.next_position IS NOT NULL THEN coalesce(following.outcome, 'absent') END AS next_outcome,
    judgements.erased
FROM judgements
JOIN next_dispatches AS nexts
    ON nexts.log_id = judgements.log_id
    AND nexts.position = judgements.position
LEFT JOIN spoken_arguments AS following
    ON following.log_id = nexts.log_id
    AND following.position = nexts.next_position
    AND following.argument = judgements.argument
LEFT JOIN offered
    ON offered.log_id = judgements.log_id
    AND offered.position = judgements.position
    AND offered.kind = judgements.wanted
WHERE judgements.outcome = 'refused';
