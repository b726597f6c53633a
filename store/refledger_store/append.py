"""The append: under the lock, look, decide, place, insert, project, commit. One transaction for a fact and its effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from refledger_schema.envelope import Draft, Prepared, Row, placed, prepare
from refledger_schema.errors import LogCorrupt
from refledger_schema.events import ArtifactGone, LogOpened
from refledger_schema.merkle import Frontier
from refledger_schema.refs import mint_event_id
from refledger_schema.scopes import Scope
from refledger_store.folder import Folder
from refledger_store.payloads import Bytes, Payloads
from refledger_store.projections import Projection
from refledger_store.reads import Connection, Reads
from refledger_store.statements import statements

SWEEP = 256
"""How many expired artifacts of its scope a write sweeps at most."""

_SQL = statements("append")
_ROW_FIELDS = tuple(Row.__dataclass_fields__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Head:
    """Where the log ends: its last position and recorded time, the Merkle frontier, and the last recorded configuration."""

    position: int
    recorded_us: int
    frontier: Frontier
    configuration: str | None


class Locked(Reads):
    """The state that a decision looks at: every read, under the append lock, at one instant.

    `now_us` is the `recorded_us` of whatever is decided.
    """

    def __init__(self, connection: Connection, folder: Folder | None, head: Head, now_us: int) -> None:
        super().__init__(connection, folder)
        self.head = head
        self.now_us = now_us


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """What a decision wants recorded, the bytes that go with it, and what the caller is told.

    Without drafts nothing is written, not even a sweep.
    """

    result: T
    drafts: Sequence[Draft | Prepared] = ()
    payloads: Sequence[Bytes] = ()
    """Payloads by the scope and digest that the drafts name."""
    content: Mapping[tuple[str, str], bytes] = field(default_factory=dict)
    """Texts by (scope key, digest)."""
    holds: str | None = None
    """The run that this session holds from here on."""
    releases: str | None = None
    """The run that nobody holds any more."""


Decide = Callable[[Locked], Decision[T]]


@dataclass(frozen=True, slots=True)
class Appended(Generic[T]):
    """What a decision came to: its result, and its rows in the log's order (sweeps and buffered observations before them)."""

    result: T
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around every append of one open log."""

    log_id: str
    clock: Callable[[], int]
    session: str
    opening: Callable[[], LogOpened | None]
    """The configuration to record before the first event, until it was."""
    folder: Folder | None = None
    """Where payloads in files are."""


@dataclass(frozen=True, slots=True)
class Written:
    """What an append leaves to do after its commit."""

    size: int = 0
    """Roughly how many bytes it wrote."""
    orphaned: Sequence[str] = ()
    """Payload files that nothing names any more."""


def append(connection: Connection, frame: Frame, decide: Decide[T], before: Sequence[Prepared] = ()) -> tuple[Appended[T], Written]:
    """Append what `decide` decides, behind the observations in `before`. Returns with it what is left to do after the commit.

    The caller holds the lock and the transaction, commits, and only then tells anybody.
    """
    state = Locked(connection, frame.folder, look_head(connection), frame.clock())
    # What waited stands in front of what is decided, so the decision looks at a state that holds it.
    observed = _record(state, frame, before)
    decision = decide(state)
    decided = _record(state, frame, [*_swept(state, decision), *decision.drafts])
    _hold(connection, decision, frame.session)
    rows = [*observed, *decided]
    if not rows:
        return Appended(decision.result, ()), Written()
    written = _keep(connection, decision, rows)
    move_head(connection, state.head)
    return Appended(decision.result, tuple(row for row, _ in rows)), written


def look_head(connection: Connection) -> Head:
    """Read the head. Raises `LogCorrupt` when there is none."""
    found = connection.execute(_SQL["head"]).fetchall()
    if not found:
        raise LogCorrupt(None, "expected the log's head; it is missing. Run `refledger verify`; `Ledger.rebuild` makes the head anew.")
    position, recorded_us, frontier, configuration = found[0]
    try:
        return Head(position, recorded_us, Frontier.from_bytes(position, frontier), configuration)
    except ValueError:
        raise LogCorrupt(
            position, "expected the log's head to agree with itself; its frontier is of another size. Run `refledger verify`, then rebuild."
        ) from None


def _record(state: Locked, frame: Frame, drafts: Sequence[Draft | Prepared]) -> list[tuple[Row, Prepared]]:
    """Place, insert and project; the state's head moves along."""
    if not drafts:
        return []
    prepared = [_prepared(draft) for draft in (*_opening(state, frame), *drafts)]
    rows = _place(state, frame.log_id, prepared)
    state.connection.executemany(_SQL["insert_event"], [_values(row) for row, _ in rows])
    _project(state.connection, rows)
    state.head = _moved(state.head, rows)
    return rows


def _prepared(draft: Draft | Prepared) -> Prepared:
    return draft if isinstance(draft, Prepared) else prepare(draft, mint_event_id())


def _opening(state: Locked, frame: Frame) -> list[Draft]:
    """The configuration, where it differs from the last one recorded."""
    opened = frame.opening()
    if opened is None:
        return []
    draft = prepare(Draft(opened), mint_event_id())
    return [] if draft.body == state.head.configuration else [Draft(opened)]


def _swept(state: Locked, decision: Decision[Any]) -> list[Draft]:
    """The expired artifacts of the scopes that the decision writes to, up to a bound, as departures."""
    scopes = {key: scope for draft in decision.drafts if (scope := _scope(draft)) is not None for key in (scope.key,)}
    leaving = {event.ref for draft in decision.drafts if isinstance(event := _event(draft), ArtifactGone)}
    return [
        Draft(ArtifactGone(ref=ref, cause="expired", stated_us=expires_us, observed_us=state.now_us), scope)
        for key, scope in scopes.items()
        for ref, expires_us, _ in state.expired(key, now_us=state.now_us, limit=SWEEP)
        if ref not in leaving
    ]


def _place(state: Locked, log_id: str, drafts: Sequence[Prepared]) -> list[tuple[Row, Prepared]]:
    """Give every draft its position, and its sequence number within its scope."""
    sequence: dict[str, int] = {}
    rows = []
    for position, prepared in enumerate(drafts, start=state.head.position + 1):
        scope = prepared.draft.scope
        key = None if scope is None else scope.key
        seq = None
        if key is not None:
            seq = sequence[key] = (sequence[key] if key in sequence else state.totals(key).events) + 1
        row = placed(prepared, log_id=log_id, position=position, recorded_us=state.now_us, scope_key=key, scope_seq=seq)
        rows.append((row, prepared))
    return rows


def _project(connection: Connection, rows: Sequence[tuple[Row, Prepared]]) -> None:
    projection = Projection(connection)
    counts = {row.scope: row.scope_seq for row, _ in rows if row.scope is not None}
    for scope, events in counts.items():
        assert events is not None
        projection.count(scope, events)
    for row, prepared in rows:
        projection.apply(row, prepared.draft.event)


def _keep(connection: Connection, decision: Decision[Any], rows: Sequence[tuple[Row, Prepared]]) -> Written:
    """Link the payloads and texts, and free the payloads of what left."""
    payloads = Payloads(connection)
    for kept in decision.payloads:
        payloads.keep(kept)
    for (scope, digest), data in decision.content.items():
        payloads.keep_content(scope, digest, data)
    for row, prepared in rows:
        if isinstance(prepared.draft.event, ArtifactGone) and row.scope is not None:
            payloads.free(row.scope, prepared.draft.event.ref)
    written = sum(len(row.body) + len(row.texts or "") + 600 for row, _ in rows)
    written += sum(len(kept.data or b"") for kept in decision.payloads) + sum(map(len, decision.content.values()))
    return Written(written, payloads.orphaned)


def _hold(connection: Connection, decision: Decision[Any], session: str) -> None:
    if decision.holds is not None:
        connection.execute(_SQL["hold_run"], {"run_id": decision.holds, "session": session})
    if decision.releases is not None:
        connection.execute(_SQL["release_run"], {"run_id": decision.releases})


def _moved(head: Head, rows: Sequence[tuple[Row, Prepared]]) -> Head:
    """The head behind `rows`."""
    frontier, configuration = head.frontier, head.configuration
    for row, prepared in rows:
        frontier = frontier.append(row.leaf_hash)
        if isinstance(prepared.draft.event, LogOpened):
            configuration = row.body
    return Head(rows[-1][0].position, rows[-1][0].recorded_us, frontier, configuration)


def move_head(connection: Connection, head: Head) -> None:
    """Write where the log ends."""
    connection.execute(
        _SQL["move_head"],
        {
            "position": head.position,
            "recorded_us": head.recorded_us,
            "frontier": head.frontier.to_bytes(),
            "configuration": head.configuration,
        },
    )


def _values(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _ROW_FIELDS}


def _scope(draft: Draft | Prepared) -> Scope | None:
    return draft.draft.scope if isinstance(draft, Prepared) else draft.scope


def _event(draft: Draft | Prepared) -> Any:
    return draft.draft.event if isinstance(draft, Prepared) else draft.event
