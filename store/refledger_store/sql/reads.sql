-- What the store is asked. The same statements serve readers and the holder of the append lock.

-- name: log
-- Who is this log?
SELECT log_id, created_us FROM log WHERE id = 1;

-- name: artifact
-- What is known of a ref, in whatever scope?
SELECT
    ref, scope, kind, media_type, shape, bytes, digest, label, expires_us, minted_us,
    run_id, call_id, tool, minted, used, corrupt, gone, gone_cause, gone_by
FROM artifacts
WHERE ref = :ref;

-- name: parents
-- What was an artifact made from, in the stated order?
SELECT parent, how FROM edges WHERE child = :ref ORDER BY ordinal;

-- name: live_of_kind
-- Which are the newest refs of a kind that may be offered?
SELECT
    ref, scope, kind, media_type, shape, bytes, digest, label, expires_us, minted_us,
    run_id, call_id, tool, minted, used, corrupt, gone, gone_cause, gone_by
FROM artifacts
WHERE scope = :scope
    AND kind = :kind
    AND gone IS NULL
    AND corrupt IS NULL
    AND minted < :before
    AND (expires_us IS NULL OR expires_us > :now_us)
ORDER BY minted DESC
LIMIT :limit;

-- name: live_of_scope
-- Which are the newest live refs of any kind?
SELECT
    ref, scope, kind, media_type, shape, bytes, digest, label, expires_us, minted_us,
    run_id, call_id, tool, minted, used, corrupt, gone, gone_cause, gone_by
FROM artifacts
WHERE scope = :scope
    AND gone IS NULL
    AND minted < :before
    AND (expires_us IS NULL OR expires_us > :now_us)
ORDER BY minted DESC
LIMIT :limit;

-- name: offerable_of_scope
-- Which are the newest refs of any kind that may be offered?
SELECT
    ref, scope, kind, media_type, shape, bytes, digest, label, expires_us, minted_us,
    run_id, call_id, tool, minted, used, corrupt, gone, gone_cause, gone_by
FROM artifacts
WHERE scope = :scope
    AND gone IS NULL
    AND corrupt IS NULL
    AND (expires_us IS NULL OR expires_us > :now_us)
ORDER BY minted DESC
LIMIT :limit;

-- name: offerable_count
-- How many of any kind may be offered, the expired but unswept left out?
SELECT
    (SELECT COALESCE(SUM(live), 0) FROM kind_counts WHERE scope = :scope)
    - (
        SELECT COUNT(*)
        FROM artifacts
        WHERE scope = :scope
            AND gone IS NULL
            AND corrupt IS NULL
            AND expires_us IS NOT NULL
            AND expires_us <= :now_us
    );

-- name: kind_count
-- How many of a kind may be offered, the expired but unswept included?
SELECT live FROM kind_counts WHERE scope = :scope AND kind = :kind;

-- name: expired_of_kind
-- How many of those have expired and are not swept yet?
SELECT COUNT(*)
FROM artifacts
WHERE scope = :scope
    AND kind = :kind
    AND gone IS NULL
    AND corrupt IS NULL
    AND expires_us IS NOT NULL
    AND expires_us <= :now_us;

-- name: expired_of_scope
-- What has expired and is not swept yet, first what expired first?
SELECT ref, expires_us, bytes
FROM artifacts
WHERE scope = :scope
    AND gone IS NULL
    AND expires_us IS NOT NULL
    AND expires_us <= :now_us
ORDER BY expires_us, ref
LIMIT :limit;

-- name: scope_totals
-- What does the scope hold?
SELECT events, live_count, live_bytes FROM scopes WHERE scope = :scope;

-- name: least_used
-- What was used least recently?
SELECT ref, bytes FROM artifacts WHERE scope = :scope AND gone IS NULL ORDER BY used LIMIT :limit OFFSET :offset;

-- name: digest_is_live
-- Does a live artifact still need these bytes?
SELECT 1 FROM artifacts WHERE scope = :scope AND digest = :digest AND gone IS NULL LIMIT 1;

-- name: run
-- What is known of a run?
SELECT run_id, scope, agent, model, parent_run, parent_call, started, ended, outcome FROM runs WHERE run_id = :run_id;

-- name: calls_of_run
-- How often was each call of the run dispatched, and how many calls are there?
SELECT call_id, MAX(dispatch)
FROM events
WHERE scope = :scope AND run_id = :run_id AND call_id IS NOT NULL AND type = 'call.started'
GROUP BY call_id;

-- name: answer
-- What is known of an answer?
SELECT answer_id, scope, run_id, call_id, given, verdict, judged FROM answers WHERE answer_id = :answer_id;

-- name: receipt
-- What was the key used for?
SELECT request, position FROM receipts WHERE scope = :scope AND operation = :operation AND key = :key;

-- name: first
-- Where does the log begin? At 1, unless somebody put something in front of it.
SELECT MIN(position) FROM events;

-- name: size
-- How far does the log go?
SELECT MAX(position) FROM events;

-- name: event
-- The event at a position.
SELECT
    position, event_id, type, version, recorded_us, occurred_us, scope, scope_seq,
    run_id, call_id, dispatch, body, private, texts, salt, leaf_hash
FROM events
WHERE position = :position;

-- name: events_after
-- The log in its order, from behind a position.
SELECT
    position, event_id, type, version, recorded_us, occurred_us, scope, scope_seq,
    run_id, call_id, dispatch, body, private, texts, salt, leaf_hash
FROM events
WHERE position > :after
ORDER BY position
LIMIT :limit;

-- name: events_of_scope
-- One scope's events in their order, from behind a sequence number.
SELECT
    position, event_id, type, version, recorded_us, occurred_us, scope, scope_seq,
    run_id, call_id, dispatch, body, private, texts, salt, leaf_hash
FROM events
WHERE scope = :scope AND scope_seq > :after
ORDER BY scope_seq
LIMIT :limit;

-- name: runs_newest
-- The runs, newest first.
SELECT run_id, scope, agent, model, parent_run, parent_call, started, ended, outcome
FROM runs
WHERE started < :before
ORDER BY started DESC
LIMIT :limit;

-- name: answers_newest
-- The answers, newest first.
SELECT answer_id, scope, run_id, call_id, given, verdict, judged
FROM answers
WHERE given < :before
ORDER BY given DESC
LIMIT :limit;

-- name: artifacts_newest
-- The artifacts of every scope, live or gone, newest first.
SELECT
    ref, scope, kind, media_type, shape, bytes, digest, label, expires_us, minted_us,
    run_id, call_id, tool, minted, used, corrupt, gone, gone_cause, gone_by
FROM artifacts
WHERE minted < :before
ORDER BY minted DESC
LIMIT :limit;

-- name: artifacts_by_ref
-- The artifacts by their refs, from behind one: a walk over all of them.
SELECT
    ref, scope, kind, media_type, shape, bytes, digest, label, expires_us, minted_us,
    run_id, call_id, tool, minted, used, corrupt, gone, gone_cause, gone_by
FROM artifacts
WHERE ref > :after
ORDER BY ref
LIMIT :limit;

-- name: contents_after
-- The recorded texts, from behind one: a walk over all of them.
SELECT id, scope, digest, data FROM content WHERE id > :after ORDER BY id LIMIT :limit;
