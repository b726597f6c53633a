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
-- This session holds the run open.
INSERT INTO run_holders (run_id, session) VALUES (:run_id, :session)
ON CONFLICT (run_id) DO UPDATE SET session = excluded.session;

-- name: release_run
-- Nobody holds the run any more.
DELETE FROM run_holders WHERE run_id = :run_id;

-- name: held_runs
-- Which runs are held, by whom, and when were they last heard of?
SELECT h.run_id, h.session, r.scope, r.ended
FROM run_holders AS h
LEFT JOIN runs AS r ON r.run_id = h.run_id
ORDER BY h.run_id;

-- name: last_of_run
-- When was the run last heard of?
SELECT MAX(recorded_us) FROM events WHERE scope = :scope AND run_id = :run_id;
