"""The tables of one log, as they are now. The migrations in `refledger_schema/migrations` lead here, and a test proves it.

Types are TEXT, INTEGER and BLOB only, STRICT on SQLite. The models declare the schema; they are not used to write, since an
instance costs twice the insert. A column that holds a position is named for what happened there.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, MetaData, Text, text
from sqlalchemy import Integer as SqlInteger
from sqlmodel import Field, SQLModel

NAMING = {
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}
Integer = BigInteger().with_variant(SqlInteger(), "sqlite")
"""64 bits on every engine; on SQLite an INTEGER primary key is the rowid."""

STRICT = {"sqlite_strict": True}
BY_KEY = {"sqlite_strict": True, "sqlite_with_rowid": False}
"""For tables of small rows that are only ever found by their primary key."""


class Table(SQLModel):
    """The base of our tables, with a registry of their own beside the host application's models."""

    metadata = MetaData(naming_convention=NAMING)


def _key(sa_type: Any) -> Any:
    return Field(sa_type=sa_type, primary_key=True)


def _column(sa_type: Any) -> Any:
    return Field(sa_type=sa_type, nullable=False)


def _optional(sa_type: Any) -> Any:
    return Field(default=None, sa_type=sa_type, nullable=True)


def _partial(name: str, *columns: str, where: str) -> Index:
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


# --- the log -------------------------------------------------------------------------------------------------------------


class Log(Table, table=True):
    """Who this log is. One row."""

    __tablename__ = "log"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"), STRICT)

    id: int = _key(Integer)
    log_id: str = _column(Text)
    created_us: int = _column(Integer)


class EventRow(Table, table=True):
    """The events themselves; see `refledger_schema.envelope`."""

    __tablename__ = "events"
    __table_args__ = (
        Index("uq_events_event_id", "event_id", unique=True),
        # Serves: the events of one scope in their order (a backtrack, a proof); and no scope_seq twice.
        Index("uq_events_scope_scope_seq", "scope", "scope_seq", unique=True),
        STRICT,
    )

    position: int = _key(Integer)
    event_id: str = _column(Text)
    type: str = _column(Text)
    version: int = _column(Integer)
    recorded_us: int = _column(Integer)
    occurred_us: int | None = _optional(Integer)
    scope: str | None = _optional(Text)
    scope_seq: int | None = _optional(Integer)
    run_id: str | None = _optional(Text)
    call_id: str | None = _optional(Text)
    dispatch: int | None = _optional(Integer)
    body: str = _column(Text)
    private: bytes = _column(LargeBinary)
    texts: str | None = _optional(Text)
    salt: bytes | None = _optional(LargeBinary)
    leaf_hash: bytes = _column(LargeBinary)


# --- projections: functions of the events, rebuilt by `rebuild` -----------------------------------------------------------


class Head(Table, table=True):
    """The last position, and the Merkle frontier over all leaves. One row."""

    __tablename__ = "head"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"), STRICT)

    id: int = _key(Integer)
    position: int = _column(Integer)
    recorded_us: int = _column(Integer)
    frontier: bytes = _column(LargeBinary)
    configuration: str | None = _optional(Text)


class ScopeRow(Table, table=True):
    """What a scope holds now: its events, its live artifacts and their bytes."""

    __tablename__ = "scopes"
    __table_args__ = (BY_KEY,)

    scope: str = _key(Text)
    events: int = _column(Integer)
    live_count: int = _column(Integer)
    live_bytes: int = _column(Integer)


class KindCount(Table, table=True):
    """How many artifacts of a kind a refusal may offer, the expired but unswept still counted."""

    __tablename__ = "kind_counts"
    __table_args__ = (BY_KEY,)

    scope: str = _key(Text)
    kind: str = _key(Text)
    live: int = _column(Integer)


class ArtifactRow(Table, table=True):
    """Every artifact ever minted, and what became of it."""

    __tablename__ = "artifacts"
    __table_args__ = (
        # Serves: the newest live refs of a kind, which a refusal offers and a listing by kind walks.
        _partial("ix_artifacts_live", "scope", "kind", "minted", where="gone IS NULL AND corrupt IS NULL"),
        # Serves: a listing of every kind.
        _partial("ix_artifacts_listed", "scope", "minted", where="gone IS NULL"),
        # Serves: the least recently used artifact, which retention evicts first.
        _partial("ix_artifacts_used", "scope", "used", where="gone IS NULL"),
        # Serves: the sweep of what has expired.
        _partial("ix_artifacts_expiry", "scope", "expires_us", where="gone IS NULL AND expires_us IS NOT NULL"),
        # Serves: how many of a kind have expired and are not swept yet.
        _partial(
            "ix_artifacts_kind_expiry",
            "scope",
            "kind",
            "expires_us",
            where="gone IS NULL AND corrupt IS NULL AND expires_us IS NOT NULL",
        ),
        # Serves: whether a payload is still needed, and who else holds these bytes.
        Index("ix_artifacts_digest", "scope", "digest"),
        STRICT,
    )

    ref: str = _key(Text)
    scope: str = _column(Text)
    kind: str = _column(Text)
    media_type: str = _column(Text)
    shape: str = _column(Text)
    bytes: int = _column(Integer)
    digest: str = _column(Text)
    label: str | None = _optional(Text)
    expires_us: int | None = _optional(Integer)
    minted_us: int = _column(Integer)
    run_id: str | None = _optional(Text)
    call_id: str | None = _optional(Text)
    tool: str | None = _optional(Text)
    minted: int = _column(Integer)
    used: int = _column(Integer)
    corrupt: int | None = _optional(Integer)
    gone: int | None = _optional(Integer)
    gone_cause: str | None = _optional(Text)
    gone_by: str | None = _optional(Text)


class Edge(Table, table=True):
    """What an artifact was made from: many parents a child, in their stated order."""

    __tablename__ = "edges"
    __table_args__ = (
        # Serves: what was made from an artifact.
        Index("ix_edges_parent", "parent"),
        BY_KEY,
    )

    child: str = _key(Text)
    ordinal: int = _key(Integer)
    parent: str = _column(Text)
    how: str = _column(Text)
    position: int = _column(Integer)


class RunRow(Table, table=True):
    """Every run, and how it ended. `ended` is absent while it is unfinished."""

    __tablename__ = "runs"
    __table_args__ = (
        # Serves: the runs in their order, newest first.
        Index("ix_runs_started", "started"),
        STRICT,
    )

    run_id: str = _key(Text)
    scope: str = _column(Text)
    agent: str | None = _optional(Text)
    model: str | None = _optional(Text)
    parent_run: str | None = _optional(Text)
    parent_call: str | None = _optional(Text)
    started: int = _column(Integer)
    ended: int | None = _optional(Integer)
    outcome: str | None = _optional(Text)


class AnswerRow(Table, table=True):
    """Every answer, and its newest verdict."""

    __tablename__ = "answers"
    __table_args__ = (
        # Serves: the answers in their order, newest first.
        Index("ix_answers_given", "given"),
        STRICT,
    )

    answer_id: str = _key(Text)
    scope: str = _column(Text)
    run_id: str | None = _optional(Text)
    call_id: str | None = _optional(Text)
    given: int = _column(Integer)
    verdict: str | None = _optional(Text)
    judged: int | None = _optional(Integer)


class Receipt(Table, table=True):
    """What an idempotency key was used for, and where the event that answered it stands."""

    __tablename__ = "receipts"
    __table_args__ = (BY_KEY,)

    scope: str = _key(Text)
    operation: str = _key(Text)
    key: str = _key(Text)
    request: str = _column(Text)
    position: int = _column(Integer)


# --- not rebuilt: bytes, and who is at work --------------------------------------------------------------------------------


class Payload(Table, table=True):
    """Where the bytes behind artifacts are, once a scope and digest: in the row, in chunks under an upload, or in a file."""

    __tablename__ = "payloads"
    __table_args__ = (Index("uq_payloads_scope_digest", "scope", "digest", unique=True), STRICT)

    id: int = _key(Integer)
    scope: str = _column(Text)
    digest: str = _column(Text)
    size: int = _column(Integer)
    data: bytes | None = _optional(LargeBinary)
    upload: str | None = _optional(Text)
    file: str | None = _optional(Text)


class PayloadChunk(Table, table=True):
    """A piece of an upload. Uploads are named by UUIDv7, so that one that nothing links to can be told to be old."""

    __tablename__ = "payload_chunks"
    __table_args__ = (Index("uq_payload_chunks_upload_chunk", "upload", "chunk", unique=True), STRICT)

    id: int = _key(Integer)
    upload: str = _column(Text)
    chunk: int = _column(Integer)
    data: bytes = _column(LargeBinary)


class Content(Table, table=True):
    """Texts of arguments, results, messages and answers, once a scope and digest."""

    __tablename__ = "content"
    __table_args__ = (Index("uq_content_scope_digest", "scope", "digest", unique=True), STRICT)

    id: int = _key(Integer)
    scope: str = _column(Text)
    digest: str = _column(Text)
    data: bytes = _column(LargeBinary)


class RunHolder(Table, table=True):
    """Which sessions hold a run open. Of a run held by a session that is dead, observations may have been lost."""

    __tablename__ = "run_holders"
    __table_args__ = (BY_KEY,)

    run_id: str = _key(Text)
    session: str = _key(Text)


PROJECTIONS: tuple[str, ...] = ("head", "scopes", "kind_counts", "artifacts", "edges", "runs", "answers", "receipts")
"""The tables that are functions of the events."""
