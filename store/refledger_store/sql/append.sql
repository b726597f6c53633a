-- Statements of the append. Parameters are named as the columns they meet.

-- name: head
-- Where does the log end, and what are its Merkle frontier and last configuration?
SELECT position, recorded_us, frontier, configuration FROM head WHERE id = 1;

-- name: move_head
-- The log ends here now.
UPDATE head
SET position = :position, recorded_us = :recorded_us, frontier = :frontier, configuration = :configuration
WHERE id = 1;

-- name: insert_event
-- One event, in the order of `Row`.
INSERT INTO events (
    position, event_id, type, version, recorded_us, occurred_us, scope, scope_seq,
    run_id, call_id, dispatch, body, private, texts, salt, leaf_hash
) VALUES (
    :position, :event_id, :type, :version, :recorded_us, :occurred_us, :scope, :scope_seq,
    :run_id, :call_id, :dispatch, :body, :private, :texts, :salt, :leaf_hash
);

-- name: hold_run
-- This session, too, holds the run open.
INSERT INTO run_holders (run_id, session) VALUES (:run_id, :session)
ON CONFLICT (run_id, session) DO NOTHING;

-- name: release_run
-- Nobody holds the run any more.
DELETE FROM run_holders WHERE run_id = :run_id;

-- name: release_session
-- This session holds no run any more.
DELETE FROM run_holders WHERE session = :session;

-- name: held_by_session
-- Does this session hold a run?
SELECT 1 FROM run_holders WHERE session = :session LIMIT 1;

-- name: held_runs
-- Which runs are held, and by whom?
SELECT run_id, session FROM run_holders ORDER BY run_id, session;

-- name: let_go
-- The session holds the run no more. No row says that it did not.
DELETE FROM run_holders WHERE run_id = :run_id AND session = :session RETURNING run_id;

-- name: last_of_run
-- When was the run last heard of?
SELECT MAX(recorded_us) FROM events WHERE scope = :scope AND run_id = :run_id;
