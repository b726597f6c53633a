-- Which runs were read from a trace, and what did that cost? A row an imported run: its first `import.noted`.
CREATE VIEW imports AS
WITH notes AS (
    SELECT
        log_id,
        position,
        recorded_us,
        scope,
        run_id,
        from_json(body, '{"format": "VARCHAR", "source": "VARCHAR", "inferred": ["VARCHAR"], "lost": ["VARCHAR"]}') AS body
    FROM log_events
    WHERE type = 'import.noted'
    QUALIFY row_number() OVER (PARTITION BY log_id, scope, run_id ORDER BY position) = 1
)
SELECT
    log_id,
    position,
    recorded_us,
    make_timestamptz(recorded_us) AS recorded_at,
    scope,
    run_id,
    body.format,
    body.source,
    body.inferred,
    body.lost
FROM notes;
