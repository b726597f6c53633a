"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Integer = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("answer_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("given", Integer, nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("judged", Integer, nullable=True),
        sa.PrimaryKeyConstraint("answer_id", name="pk_answers"),
        sqlite_strict=True,
    )
    op.create_index("ix_answers_given", "answers", ["given"], unique=False)
    op.create_table(
        "artifacts",
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("shape", sa.Text(), nullable=False),
        sa.Column("bytes", Integer, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("expires_us", Integer, nullable=True),
        sa.Column("minted_us", Integer, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("tool", sa.Text(), nullable=True),
        sa.Column("minted", Integer, nullable=False),
        sa.Column("used", Integer, nullable=False),
        sa.Column("corrupt", Integer, nullable=True),
        sa.Column("gone", Integer, nullable=True),
        sa.Column("gone_cause", sa.Text(), nullable=True),
        sa.Column("gone_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("ref", name="pk_artifacts"),
        sqlite_strict=True,
    )
    op.create_index("ix_artifacts_digest", "artifacts", ["scope", "digest"], unique=False)
    op.create_index(
        "ix_artifacts_expiry",
        "artifacts",
        ["scope", "expires_us"],
        unique=False,
        sqlite_where=sa.text("gone IS NULL AND expires_us IS NOT NULL"),
        postgresql_where=sa.text("gone IS NULL AND expires_us IS NOT NULL"),
    )
    op.create_index(
        "ix_artifacts_kind_expiry",
        "artifacts",
        ["scope", "kind", "expires_us"],
        unique=False,
        sqlite_where=sa.text("gone IS NULL AND corrupt IS NULL AND expires_us IS NOT NULL"),
        postgresql_where=sa.text("gone IS NULL AND corrupt IS NULL AND expires_us IS NOT NULL"),
    )
    op.create_index(
        "ix_artifacts_listed",
        "artifacts",
        ["scope", "minted"],
        unique=False,
        sqlite_where=sa.text("gone IS NULL"),
        postgresql_where=sa.text("gone IS NULL"),
    )
    op.create_index(
        "ix_artifacts_live",
        "artifacts",
        ["scope", "kind", "minted"],
        unique=False,
        sqlite_where=sa.text("gone IS NULL AND corrupt IS NULL"),
        postgresql_where=sa.text("gone IS NULL AND corrupt IS NULL"),
    )
    op.create_index(
        "ix_artifacts_used",
        "artifacts",
        ["scope", "used"],
        unique=False,
        sqlite_where=sa.text("gone IS NULL"),
        postgresql_where=sa.text("gone IS NULL"),
    )
    op.create_table(
        "content",
        sa.Column("id", Integer, nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_content"),
        sqlite_strict=True,
    )
    op.create_index("uq_content_scope_digest", "content", ["scope", "digest"], unique=True)
    op.create_table(
        "edges",
        sa.Column("child", sa.Text(), nullable=False),
        sa.Column("ordinal", Integer, nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("position", Integer, nullable=False),
        sa.PrimaryKeyConstraint("child", "ordinal", name="pk_edges"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_index("ix_edges_parent", "edges", ["parent"], unique=False)
    op.create_table(
        "events",
        sa.Column("position", Integer, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("version", Integer, nullable=False),
        sa.Column("recorded_us", Integer, nullable=False),
        sa.Column("occurred_us", Integer, nullable=True),
        sa.Column("scope", sa.Text(), nullable=True),
        sa.Column("scope_seq", Integer, nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("dispatch", Integer, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("private", sa.LargeBinary(), nullable=False),
        sa.Column("texts", sa.Text(), nullable=True),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("leaf_hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_events"),
        sqlite_strict=True,
    )
    op.create_index("uq_events_event_id", "events", ["event_id"], unique=True)
    op.create_index("uq_events_scope_scope_seq", "events", ["scope", "scope_seq"], unique=True)
    op.create_table(
        "head",
        sa.Column("id", Integer, nullable=False),
        sa.Column("position", Integer, nullable=False),
        sa.Column("recorded_us", Integer, nullable=False),
        sa.Column("frontier", sa.LargeBinary(), nullable=False),
        sa.Column("configuration", sa.Text(), nullable=True),
        sa.CheckConstraint("id = 1", name=op.f("ck_head_one_row")),
        sa.PrimaryKeyConstraint("id", name="pk_head"),
        sqlite_strict=True,
    )
    op.create_table(
        "kind_counts",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("live", Integer, nullable=False),
        sa.PrimaryKeyConstraint("scope", "kind", name="pk_kind_counts"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "log",
        sa.Column("id", Integer, nullable=False),
        sa.Column("log_id", sa.Text(), nullable=False),
        sa.Column("created_us", Integer, nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_log_one_row")),
        sa.PrimaryKeyConstraint("id", name="pk_log"),
        sqlite_strict=True,
    )
    op.create_table(
        "payload_chunks",
        sa.Column("id", Integer, nullable=False),
        sa.Column("upload", sa.Text(), nullable=False),
        sa.Column("chunk", Integer, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_payload_chunks"),
        sqlite_strict=True,
    )
    op.create_index("uq_payload_chunks_upload_chunk", "payload_chunks", ["upload", "chunk"], unique=True)
    op.create_table(
        "payloads",
        sa.Column("id", Integer, nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", Integer, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.Column("upload", sa.Text(), nullable=True),
        sa.Column("file", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_payloads"),
        sqlite_strict=True,
    )
    op.create_index("uq_payloads_scope_digest", "payloads", ["scope", "digest"], unique=True)
    op.create_table(
        "receipts",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("position", Integer, nullable=False),
        sa.PrimaryKeyConstraint("scope", "operation", "key", name="pk_receipts"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_holders",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "session", name="pk_run_holders"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("parent_run", sa.Text(), nullable=True),
        sa.Column("parent_call", sa.Text(), nullable=True),
        sa.Column("started", Integer, nullable=False),
        sa.Column("ended", Integer, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
        sqlite_strict=True,
    )
    op.create_index("ix_runs_started", "runs", ["started"], unique=False)
    op.create_table(
        "scopes",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("events", Integer, nullable=False),
        sa.Column("live_count", Integer, nullable=False),
        sa.Column("live_bytes", Integer, nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_scopes"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
