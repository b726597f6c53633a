CREATE TABLE answers (
    answer_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    run_id TEXT,
    call_id TEXT,
    given INTEGER NOT NULL,
    verdict TEXT,
    judged INTEGER,
    CONSTRAINT pk_answers PRIMARY KEY (answer_id)
)
 STRICT;
CREATE INDEX ix_answers_given ON answers (given);
CREATE TABLE artifacts (
    ref TEXT NOT NULL,
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    media_type TEXT NOT NULL,
    shape TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    digest TEXT NOT NULL,
    label TEXT,
    expires_us INTEGER,
    minted_us INTEGER NOT NULL,
    run_id TEXT,
    call_id TEXT,
    tool TEXT,
    minted INTEGER NOT NULL,
    used INTEGER NOT NULL,
    corrupt INTEGER,
    gone INTEGER,
    gone_cause TEXT,
    gone_by TEXT,
    CONSTRAINT pk_artifacts PRIMARY KEY (ref)
)
 STRICT;
CREATE INDEX ix_artifacts_digest ON artifacts (scope, digest);
CREATE INDEX ix_artifacts_expiry ON artifacts (scope, expires_us) WHERE gone IS NULL AND expires_us IS NOT NULL;
CREATE INDEX ix_artifacts_kind_expiry ON artifacts (scope, kind, expires_us) WHERE gone IS NULL AND corrupt IS NULL AND expires_us IS NOT NULL;
CREATE INDEX ix_artifacts_listed ON artifacts (scope, minted) WHERE gone IS NULL;
CREATE INDEX ix_artifacts_live ON artifacts (scope, kind, minted) WHERE gone IS NULL AND corrupt IS NULL;
CREATE INDEX ix_artifacts_used ON artifacts (scope, used) WHERE gone IS NULL;
CREATE TABLE content (
    id INTEGER NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT pk_content PRIMARY KEY (id)
)
 STRICT;
CREATE UNIQUE INDEX uq_content_scope_digest ON content (scope, digest);
CREATE TABLE edges (
    child TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    parent TEXT NOT NULL,
    how TEXT NOT NULL,
    position INTEGER NOT NULL,
    CONSTRAINT pk_edges PRIMARY KEY (child, ordinal)
)
 WITHOUT ROWID,
 STRICT;
CREATE INDEX ix_edges_parent ON edges (parent);
CREATE TABLE events (
    position INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    recorded_us INTEGER NOT NULL,
    occurred_us INTEGER,
    scope TEXT,
    scope_seq INTEGER,
    run_id TEXT,
    call_id TEXT,
    dispatch INTEGER,
    body TEXT NOT NULL,
    private BLOB NOT NULL,
    texts TEXT,
    salt BLOB,
    leaf_hash BLOB NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (position)
)
 STRICT;
CREATE UNIQUE INDEX uq_events_event_id ON events (event_id);
CREATE UNIQUE INDEX uq_events_scope_scope_seq ON events (scope, scope_seq);
CREATE TABLE head (
    id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    recorded_us INTEGER NOT NULL,
    frontier BLOB NOT NULL,
    configuration TEXT,
    CONSTRAINT pk_head PRIMARY KEY (id),
    CONSTRAINT ck_head_one_row CHECK (id = 1)
)
 STRICT;
CREATE TABLE kind_counts (
    scope TEXT NOT NULL,
    kind TEXT NOT NULL,
    live INTEGER NOT NULL,
    CONSTRAINT pk_kind_counts PRIMARY KEY (scope, kind)
)
 WITHOUT ROWID,
 STRICT;
CREATE TABLE log (
    id INTEGER NOT NULL,
    log_id TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    CONSTRAINT pk_log PRIMARY KEY (id),
    CONSTRAINT ck_log_one_row CHECK (id = 1)
)
 STRICT;
CREATE TABLE payload_chunks (
    id INTEGER NOT NULL,
    upload TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT pk_payload_chunks PRIMARY KEY (id)
)
 STRICT;
CREATE UNIQUE INDEX uq_payload_chunks_upload_chunk ON payload_chunks (upload, chunk);
CREATE TABLE payloads (
    id INTEGER NOT NULL,
    scope TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    data BLOB,
    upload TEXT,
    file TEXT,
    CONSTRAINT pk_payloads PRIMARY KEY (id)
)
 STRICT;
CREATE UNIQUE INDEX uq_payloads_scope_digest ON payloads (scope, digest);
CREATE TABLE receipts (
    scope TEXT NOT NULL,
    operation TEXT NOT NULL,
    "key" TEXT NOT NULL,
    request TEXT NOT NULL,
    position INTEGER NOT NULL,
    CONSTRAINT pk_receipts PRIMARY KEY (scope, operation, "key")
)
 WITHOUT ROWID,
 STRICT;
CREATE TABLE run_holders (
    run_id TEXT NOT NULL,
    session TEXT NOT NULL,
    CONSTRAINT pk_run_holders PRIMARY KEY (run_id, session)
)
 WITHOUT ROWID,
 STRICT;
CREATE TABLE runs (
    run_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    agent TEXT,
    model TEXT,
    parent_run TEXT,
    parent_call TEXT,
    started INTEGER NOT NULL,
    ended INTEGER,
    outcome TEXT,
    CONSTRAINT pk_runs PRIMARY KEY (run_id)
)
 STRICT;
CREATE INDEX ix_runs_started ON runs (started);
CREATE TABLE scopes (
    scope TEXT NOT NULL,
    events INTEGER NOT NULL,
    live_count INTEGER NOT NULL,
    live_bytes INTEGER NOT NULL,
    CONSTRAINT pk_scopes PRIMARY KEY (scope)
)
 WITHOUT ROWID,
 STRICT;
