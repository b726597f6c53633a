-- What an event does to the projections. Each statement is a function of the event and of earlier events.

-- name: count_scope_event
-- The scope has one event more; its sequence number is the new count.
INSERT INTO scopes (scope, events, live_count, live_bytes) VALUES (:scope, :events, 0, 0)
ON CONFLICT (scope) DO UPDATE SET events = excluded.events;

-- name: mint
-- A new artifact.
INSERT INTO artifacts (
    ref, scope, kind, media_type, shape, bytes, digest, label, expires_us, minted_us,
    run_id, call_id, tool, minted, used, corrupt, gone, gone_cause, gone_by
) VALUES (
    :ref, :scope, :kind, :media_type, :shape, :bytes, :digest, :label, :expires_us, :minted_us,
    :run_id, :call_id, :tool, :minted, :minted, NULL, NULL, NULL, NULL
);

-- name: count_live
-- The scope holds so much more.
UPDATE scopes SET live_count = live_count + :count, live_bytes = live_bytes + :bytes WHERE scope = :scope;

-- name: count_kind
-- A refusal may offer so many more of the kind.
INSERT INTO kind_counts (scope, kind, live) VALUES (:scope, :kind, :count)
ON CONFLICT (scope, kind) DO UPDATE SET live = kind_counts.live + excluded.live;

-- name: add_edge
-- What the child was made from.
INSERT INTO edges (child, ordinal, parent, how, position) VALUES (:child, :ordinal, :parent, :how, :position);

-- name: leave
-- The artifact is gone from here on.
UPDATE artifacts SET gone = :position, gone_cause = :cause, gone_by = :forced_by WHERE ref = :ref AND gone IS NULL;

-- name: know_corrupt
-- The artifact's payload is known to be damaged from here on.
UPDATE artifacts SET corrupt = :position WHERE ref = :ref AND corrupt IS NULL;

-- name: use
-- The artifact was used here.
UPDATE artifacts SET used = :position WHERE ref = :ref AND scope = :scope AND gone IS NULL;

-- name: start_run
-- A run opened.
INSERT INTO runs (run_id, scope, agent, model, parent_run, parent_call, started, ended, outcome)
VALUES (:run_id, :scope, :agent, :model, :parent_run, :parent_call, :started, NULL, NULL);

-- name: end_run
-- A run ended.
UPDATE runs SET ended = :position, outcome = :outcome WHERE run_id = :run_id AND ended IS NULL;

-- name: give_answer
-- An answer was given.
INSERT INTO answers (answer_id, scope, run_id, call_id, given, verdict, judged)
VALUES (:answer_id, :scope, :run_id, :call_id, :given, NULL, NULL);

-- name: judge_answer
-- The newest verdict stands.
UPDATE answers SET verdict = :verdict, judged = :position WHERE answer_id = :answer_id;

-- name: add_receipt
-- A key was used.
INSERT INTO receipts (scope, operation, key, request, position) VALUES (:scope, :operation, :key, :request, :position);
