-- What shaped this answer? A row a node, as `backtrack` gives it, with what it takes to count them: docs/backtrack.md has the rules.
-- `part` is `answer`, `cone`, or what is attached: `refusal`, `shown` (offered or spoken), `earlier`. A node is (kind, run, id); the run
-- of an artifact and of a refusal is ''. `state` is an artifact's and `status` a call's, NULL where there is no mint or no end.
CREATE MACRO backtrack_nodes(answer) AS TABLE
WITH RECURSIVE given AS MATERIALIZED (
    SELECT
        answers.log_id,
        answers.scope,
        answers.position,
        answers.run_id,
        answers.call_id,
        answers.answer_id,
        answers.content,
        answers.size,
        answers.cited,
        answers.found,
        coalesce(answers.verdict, 'unjudged') AS verdict
    FROM answers
    WHERE answers.answer_id = answer AND answers.scope IS NOT NULL
    ORDER BY
        answers.log_id,
        answers.position
    LIMIT 1
),
-- What the scope's log says of calls, artifacts and messages, up to the answer.
past_calls AS MATERIALIZED (
    SELECT
        log_events.run_id,
        log_events.call_id,
        min(log_events.position) AS position
    FROM log_events
    JOIN given
        ON given.log_id = log_events.log_id
        AND given.scope = log_events.scope
        AND given.position >= log_events.position
    WHERE log_events.run_id IS NOT NULL AND log_events.call_id IS NOT NULL
    GROUP BY
        log_events.run_id,
        log_events.call_id
),
past_starts AS MATERIALIZED (
    SELECT
        call_starts.run_id,
        call_starts.call_id,
        min(call_starts.position) AS position,
        min_by(call_starts.tool, call_starts.position) AS tool
    FROM call_starts
    JOIN given
        ON given.log_id = call_starts.log_id
        AND given.scope = call_starts.scope
        AND given.position >= call_starts.position
    GROUP BY
        call_starts.run_id,
        call_starts.call_id
),
past_ends AS MATERIALIZED (
    SELECT
        call_ends.run_id,
        call_ends.call_id,
        call_ends.position,
        call_ends.status,
        call_ends.result
    FROM call_ends
    JOIN given
        ON given.log_id = call_ends.log_id
        AND given.scope = call_ends.scope
        AND given.position >= call_ends.position
    QUALIFY row_number() OVER (PARTITION BY call_ends.run_id, call_ends.call_id ORDER BY call_ends.position DESC) = 1
),
past_artifacts AS MATERIALIZED (
    SELECT
        artifacts.ref,
        artifacts.minted,
        artifacts.kind,
        artifacts.digest,
        artifacts.state
    FROM artifacts
    JOIN given
        ON given.log_id = artifacts.log_id
        AND given.scope = artifacts.scope
        AND given.position >= artifacts.minted
),
past_messages AS (
    SELECT
        messages.run_id,
        CAST(messages.index AS VARCHAR) AS index,
        min(messages.position) AS position,
        min_by(messages.role, messages.position) AS role
    FROM messages
    JOIN given
        ON given.log_id = messages.log_id
        AND given.scope = messages.scope
        AND given.position >= messages.position
    GROUP BY
        messages.run_id,
        messages.index
),
past_links AS MATERIALIZED (
    SELECT
        links.from_kind,
        links.from_run,
        links.from_id,
        links.to_kind,
        links.to_run,
        links.to_id,
        links.argument,
        links.grade
    FROM links
    JOIN given
        ON given.log_id = links.log_id
        AND given.scope = links.scope
        AND given.position >= links.position
),
-- Seeds.
window_held AS (
    SELECT
        contexts.messages,
        contexts.calls,
        contexts.refs
    FROM contexts
    JOIN given
        ON given.log_id = contexts.log_id
        AND given.scope = contexts.scope
        AND given.run_id = contexts.run_id
        AND given.position >= contexts.position
    ORDER BY contexts.position DESC
    LIMIT 1
),
seeds_known AS MATERIALIZED (
    SELECT 'call' AS kind, given.run_id AS run, given.call_id AS id, CAST(NULL AS VARCHAR) AS argument, 'cited' AS grade
    FROM given
    WHERE given.call_id IS NOT NULL AND given.run_id IS NOT NULL
    UNION ALL
    SELECT 'artifact', '', unnest(list_concat(given.cited, given.found)), NULL, 'cited'
    FROM given
    UNION ALL
    SELECT 'artifact', '', unnest(window_held.refs), NULL, 'in-window'
    FROM window_held
    UNION ALL
    SELECT 'call', given.run_id, unnest(window_held.calls), NULL, 'in-window'
    FROM window_held
    CROSS JOIN given
    UNION ALL
    SELECT 'message', given.run_id, CAST(unnest(window_held.messages) AS VARCHAR), NULL, 'in-window'
    FROM window_held
    CROSS JOIN given
    UNION ALL
    SELECT past_links.to_kind, past_links.to_run, past_links.to_id, past_links.argument, past_links.grade
    FROM past_links
    JOIN given ON past_links.from_kind = 'answer' AND past_links.from_id = given.answer_id
    UNION ALL
    SELECT 'call', past_ends.run_id, past_ends.call_id, NULL, 'inferred'
    FROM past_ends
    JOIN given ON given.run_id = past_ends.run_id AND given.content = past_ends.result AND given.size > 0
    UNION ALL
    SELECT 'artifact', '', past_artifacts.ref, NULL, 'inferred'
    FROM past_artifacts
    JOIN given ON given.content = past_artifacts.digest AND given.size > 0
),
last_ended AS (
    SELECT past_ends.run_id, past_ends.call_id
    FROM past_ends
    JOIN given ON given.run_id = past_ends.run_id
    ORDER BY past_ends.position DESC
    LIMIT 1
),
seeds AS MATERIALIZED (
    SELECT seeds_known.kind, seeds_known.run, seeds_known.id, seeds_known.argument, seeds_known.grade
    FROM seeds_known
    UNION ALL
    SELECT 'call', last_ended.run_id, last_ended.call_id, NULL, 'preceded'
    FROM last_ended
    WHERE NOT EXISTS (SELECT 1 FROM seeds_known)
),
-- The cone: first how far each node is, then the best edge that reaches it from one step nearer.
-- UNION goes on only from nodes whose least depth changed, so a cycle ends.
walk(kind, run, id, depth) USING KEY (kind, run, id, min(depth)) AS (
    SELECT DISTINCT seeds.kind, seeds.run, seeds.id, 1 AS depth
    FROM seeds
    UNION
    SELECT
        past_links.to_kind AS kind,
        past_links.to_run AS run,
        past_links.to_id AS id,
        walk.depth + 1 AS depth
    FROM walk
    JOIN past_links
        ON past_links.from_kind = walk.kind
        AND past_links.from_run = walk.run
        AND past_links.from_id = walk.id
),
reached AS MATERIALIZED (
    SELECT
        walk.kind,
        walk.run,
        walk.id,
        walk.depth,
        CASE walk.kind
            WHEN 'call' THEN walk.run || '/' || walk.id
            WHEN 'message' THEN walk.run || '#' || walk.id
            ELSE walk.id
        END AS node_id
    FROM walk
),
arrivals AS (
    SELECT seeds.kind, seeds.run, seeds.id, 1 AS depth, given.answer_id AS via_id, seeds.argument, seeds.grade
    FROM seeds
    CROSS JOIN given
    UNION ALL
    SELECT
        past_links.to_kind,
        past_links.to_run,
        past_links.to_id,
        reached.depth + 1,
        reached.node_id,
        past_links.argument,
        past_links.grade
    FROM reached
    JOIN past_links
        ON past_links.from_kind = reached.kind
        AND past_links.from_run = reached.run
        AND past_links.from_id = reached.id
),
cone AS MATERIALIZED (
    SELECT
        reached.kind,
        reached.run,
        reached.id,
        reached.node_id,
        reached.depth,
        arrivals.via_id,
        arrivals.argument,
        arrivals.grade
    FROM reached
    JOIN arrivals
        ON arrivals.kind = reached.kind
        AND arrivals.run = reached.run
        AND arrivals.id = reached.id
        AND arrivals.depth = reached.depth
    QUALIFY row_number() OVER (
        PARTITION BY reached.kind, reached.run, reached.id
        ORDER BY strength_of(arrivals.grade), arrivals.via_id NULLS LAST, arrivals.argument NULLS LAST
    ) = 1
),
-- Attached, outside the cone.
past_refusals AS MATERIALIZED (
    SELECT
        refusals.event_id,
        refusals.position,
        refusals.run_id,
        refusals.call_id,
        refusals.next_call_id,
        refusals.argument,
        refusals.ref,
        refusals.spoken,
        coalesce(refusals.reason, '?') || ' (' || coalesce(refusals.cause, '?') || '): ' || refusals.effect
            || coalesce(', then ' || refusals.next_outcome, '') AS note
    FROM refusals
    JOIN given
        ON given.log_id = refusals.log_id
        AND given.scope = refusals.scope
        AND given.position >= refusals.position
),
ways_in AS (
    SELECT past_refusals.position, past_refusals.argument, cone.depth, cone.node_id
    FROM past_refusals
    JOIN cone
        ON cone.kind = 'call'
        AND cone.run = past_refusals.run_id
        AND cone.id = past_refusals.call_id
    UNION ALL
    SELECT past_refusals.position, past_refusals.argument, cone.depth, cone.node_id
    FROM past_refusals
    JOIN cone
        ON cone.kind = 'call'
        AND cone.run = past_refusals.run_id
        AND cone.id = past_refusals.next_call_id
),
attached AS MATERIALIZED (
    SELECT
        past_refusals.event_id,
        past_refusals.position,
        ways_in.depth + 1 AS depth,
        ways_in.node_id AS via_id,
        past_refusals.argument,
        past_refusals.ref,
        past_refusals.spoken,
        past_refusals.note
    FROM past_refusals
    JOIN ways_in
        ON ways_in.position = past_refusals.position
        AND ways_in.argument = past_refusals.argument
    QUALIFY row_number() OVER (
        PARTITION BY past_refusals.position, past_refusals.argument
        ORDER BY ways_in.depth, ways_in.node_id
    ) = 1
),
shown_refs AS (
    SELECT offers.ref, attached.event_id AS via_id, attached.depth + 1 AS depth, CAST(NULL AS VARCHAR) AS argument, 'offered' AS grade
    FROM attached
    CROSS JOIN given
    JOIN offers
        ON offers.log_id = given.log_id
        AND offers.position = attached.position
    UNION ALL
    SELECT coalesce(attached.ref, attached.spoken), attached.event_id, attached.depth + 1, attached.argument, 'spoken'
    FROM attached
    WHERE attached.ref IS NOT NULL OR regexp_full_match(attached.spoken, 'art_[0-9A-Za-z]{22}')
),
shown AS (
    SELECT
        shown_refs.ref,
        shown_refs.depth,
        shown_refs.via_id,
        shown_refs.argument,
        shown_refs.grade
    FROM shown_refs
    ANTI JOIN cone
        ON cone.kind = 'artifact'
        AND cone.id = shown_refs.ref
    QUALIFY row_number() OVER (
        PARTITION BY shown_refs.ref
        ORDER BY shown_refs.depth, strength_of(shown_refs.grade), shown_refs.via_id, shown_refs.argument NULLS LAST
    ) = 1
),
earlier AS (
    SELECT past_calls.run_id, past_calls.call_id
    FROM past_calls
    JOIN given ON given.run_id = past_calls.run_id
    ANTI JOIN cone
        ON cone.kind = 'call'
        AND cone.run = past_calls.run_id
        AND cone.id = past_calls.call_id
),
-- All of them, described.
found AS (
    SELECT 'cone' AS part, cone.kind, cone.run, cone.id, cone.node_id, cone.depth, cone.via_id, cone.argument, cone.grade
    FROM cone
    UNION ALL
    SELECT 'shown', 'artifact', '', shown.ref, shown.ref, shown.depth, shown.via_id, shown.argument, shown.grade
    FROM shown
    UNION ALL
    SELECT 'earlier', 'call', earlier.run_id, earlier.call_id, earlier.run_id || '/' || earlier.call_id, NULL, NULL, NULL, 'preceded'
    FROM earlier
),
leads AS (
    SELECT DISTINCT past_links.from_kind, past_links.from_run, past_links.from_id
    FROM past_links
),
described AS (
    SELECT
        found.part,
        found.depth,
        CASE found.kind
            WHEN 'call' THEN coalesce(past_starts.position, past_calls.position)
            WHEN 'artifact' THEN past_artifacts.minted
            ELSE past_messages.position
        END AS position,
        found.kind,
        found.run,
        found.id,
        found.node_id,
        found.via_id,
        found.argument,
        found.grade,
        CASE found.kind
            WHEN 'call' THEN coalesce(past_starts.tool, '?') || ' ' || coalesce(past_ends.status, 'unfinished')
            WHEN 'artifact' THEN coalesce(
                past_artifacts.kind || ' ' || past_artifacts.digest || ' ' || past_artifacts.state,
                'never minted here'
            )
            ELSE coalesce(past_messages.role, 'not recorded')
        END AS note,
        past_artifacts.state,
        past_ends.status,
        leads.from_id IS NOT NULL AS leads_on
    FROM found
    LEFT JOIN past_calls
        ON found.kind = 'call'
        AND past_calls.run_id = found.run
        AND past_calls.call_id = found.id
    LEFT JOIN past_starts
        ON found.kind = 'call'
        AND past_starts.run_id = found.run
        AND past_starts.call_id = found.id
    LEFT JOIN past_ends
        ON found.kind = 'call'
        AND past_ends.run_id = found.run
        AND past_ends.call_id = found.id
    LEFT JOIN past_artifacts
        ON found.kind = 'artifact'
        AND past_artifacts.ref = found.id
    LEFT JOIN past_messages
        ON found.kind = 'message'
        AND past_messages.run_id = found.run
        AND past_messages.index = found.id
    LEFT JOIN leads
        ON leads.from_kind = found.kind
        AND leads.from_run = found.run
        AND leads.from_id = found.id
),
every AS (
    SELECT
        'answer' AS part,
        0 AS depth,
        given.position,
        'answer' AS kind,
        given.run_id AS run,
        given.answer_id AS id,
        given.answer_id AS node_id,
        CAST(NULL AS VARCHAR) AS via_id,
        CAST(NULL AS VARCHAR) AS argument,
        CAST(NULL AS VARCHAR) AS grade,
        given.verdict AS note,
        CAST(NULL AS VARCHAR) AS state,
        CAST(NULL AS VARCHAR) AS status,
        TRUE AS leads_on
    FROM given
    UNION ALL
    SELECT
        described.part,
        described.depth,
        described.position,
        described.kind,
        described.run,
        described.id,
        described.node_id,
        described.via_id,
        described.argument,
        described.grade,
        described.note,
        described.state,
        described.status,
        described.leads_on
    FROM described
    UNION ALL
    SELECT
        'refusal',
        attached.depth,
        attached.position,
        'refusal',
        '',
        attached.event_id,
        attached.event_id,
        attached.via_id,
        attached.argument,
        NULL,
        attached.note,
        NULL,
        NULL,
        FALSE
    FROM attached
)
SELECT
    given.log_id,
    given.scope,
    every.part,
    every.depth,
    every.position,
    every.kind,
    every.run,
    every.id,
    every.node_id,
    every.via_id,
    every.argument,
    every.grade,
    every.note,
    every.state,
    every.status,
    every.leads_on
FROM every
CROSS JOIN given;
