CREATE TABLE answers (
    answer_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    run_id TEXT,
    call_id TEXT,
    given BIGINT NOT NULL,
    verdict TEXT,
    judged BIGINT,
    CONSTRAINT pk_answers PRIMARY KEY (answer_id)
);
CREATE INDEX ix_answers_given ON answers (given);
CREATE TABLE artifacts (
    ref TEXT NOT NULL,
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    media_type TEXT NOT NULL,
    shape TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    digest TEXT NOT NULL,
    label TEXT,
    expires_us BIGINT,
    minted_us BIGINT NOT NULL,
    run_id TEXT,
    call_id TEXT,
    tool TEXT,
    minted BIGINT NOT NULL,
    used BIGINT NOT NULL,
    corrupt BIGINT,
    gone BIGINT,
    gone_cause TEXT,
    gone_by TEXT,
    CONSTRAINT pk_artifacts PRIMARY KEY (ref)
);
CREATE INDEX ix_artifacts_digest ON artifacts (scope, digest);
CREATE INDEX ix_artifacts_expiry ON artifacts (scope, expires_us) WHERE gone IS NULL AND expires_us IS NOT NULL;
CREATE INDEX ix_artifacts_kind_expiry ON artifacts (scope, kind, expires_us) WHERE gone IS NULL AND corrupt IS NULL AND expires_us IS NOT NULL;
CREATE INDEX ix_artifacts_listed ON artifacts (scope, minted) WHERE gone IS NULL;
CREATE INDEX ix_artifacts_live ON artifacts (scope, kind, minted) WHERE gone IS NULL AND corrupt IS NULL;
CREATE INDEX ix_artifacts_used ON artifacts (scope, used) WHERE gone IS NULL;
CREATE TABLE content (
    id BIGSERIAL NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL,
    data BYTEA NOT NULL,
    CONSTRAINT pk_content PRIMARY KEY (id)
);
CREATE UNIQUE INDEX uq_content_scope_digest ON content (scope, digest);
CREATE TABLE edges (
    child TEXT NOT NULL,
    ordinal BIGINT NOT NULL,
    parent TEXT NOT NULL,
    how TEXT NOT NULL,
    position BIGINT NOT NULL,
    CONSTRAINT pk_edges PRIMARY KEY (child, ordinal)
);
CREATE INDEX ix_edges_parent ON edges (parent);
CREATE TABLE events (
    position BIGSERIAL NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    version BIGINT NOT NULL,
    recorded_us BIGINT NOT NULL,
    occurred_us BIGINT,
    scope TEXT,
    scope_seq BIGINT,
    run_id TEXT,
    call_id TEXT,
    dispatch BIGINT,
    body TEXT NOT NULL,
    private BYTEA NOT NULL,
    texts TEXT,
    salt BYTEA,
    leaf_hash BYTEA NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (position)
);
CREATE UNIQUE INDEX uq_events_event_id ON events (event_id);
CREATE UNIQUE INDEX uq_events_scope_scope_seq ON events (scope, scope_seq);
CREATE TABLE head (
    id BIGSERIAL NOT NULL,
    position BIGINT NOT NULL,
    recorded_us BIGINT NOT NULL,
    frontier BYTEA NOT NULL,
    configuration TEXT,
    CONSTRAINT pk_head PRIMARY KEY (id),
    CONSTRAINT ck_head_one_row CHECK (id = 1)
);
CREATE TABLE kind_counts (
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    live BIGINT NOT NULL,
    CONSTRAINT pk_kind_counts PRIMARY KEY (scope, kind)
);
CREATE TABLE log (
    id BIGSERIAL NOT NULL,
    log_id TEXT NOT NULL,
    created_us BIGINT NOT NULL,
    CONSTRAINT pk_log PRIMARY KEY (id),
    CONSTRAINT ck_log_one_row CHECK (id = 1)
);
CREATE TABLE payload_chunks (
    id BIGSERIAL NOT NULL,
    upload TEXT NOT NULL,
    chunk BIGINT NOT NULL,
    data BYTEA NOT NULL,
    CONSTRAINT pk_payload_chunks PRIMARY KEY (id)
);
CREATE UNIQUE INDEX uq_payload_chunks_upload_chunk ON payload_chunks (upload, chunk);
CREATE TABLE payloads (
    id BIGSERIAL NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL,
    size BIGINT NOT NULL,
    data BYTEA,
    upload TEXT,
    file TEXT,
    CONSTRAINT pk_payloads PRIMARY KEY (id)
);
CREATE UNIQUE INDEX uq_payloads_scope_digest ON payloads (scope, digest);
CREATE TABLE receipts (
    scope TEXT NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    position BIGINT NOT NULL,
    CONSTRAINT pk_receipts PRIMARY KEY (scope, operation, key)
);
CREATE TABLE run_holders (
    run_id TEXT NOT NULL,
    session TEXT NOT NULL,
    CONSTRAINT pk_run_holders PRIMARY KEY (run_id, session)
);
CREATE TABLE runs (
    run_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    agent TEXT,
    model TEXT,
    parent_run TEXT,
    parent_call TEXT,
    started BIGINT NOT NULL,
    ended BIGINT,
    outcome TEXT,
    CONSTRAINT pk_runs PRIMARY KEY (run_id)
);
CREATE INDEX ix_runs_started ON runs (started);
CREATE TABLE scopes (
    scope TEXT NOT NULL,
    events BIGINT NOT NULL,
    live_count BIGINT NOT NULL,
    live_bytes BIGINT NOT NULL,
    CONSTRAINT pk_scopes PRIMARY KEY (scope)
);
