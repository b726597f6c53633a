-- Which live refs did a refusal show the model? A row a ref shown; `rank` 1 stands first, `label` is the label as shown,
-- `total` is how many of the kind were live in all.
CREATE VIEW offers AS
WITH shown AS (
    SELECT
        log_id,
        position,
        event_id,
        recorded_us,
        recorded_at,
        scope,
        run_id,
        call_id,
        dispatch,
        tool,
        kind,
        total,
        labels,
        erased,
        generate_subscripts(refs, 1) AS rank,
        unnest(refs) AS offered
    FROM offered_kinds
)
SELECT
    log_id,
    position,
    event_id,
    recorded_us,
    recorded_at,
    scope,
    run_id,
    call_id,
    dispatch,
    tool,
    kind,
    rank,
    offered.ref,
    offered.bytes,
    labels[offered.ref] AS label,
    total,
    erased
FROM shown;
