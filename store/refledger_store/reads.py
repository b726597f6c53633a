"""What can be asked of the store, by a reader or under the append lock: plain rows, frozen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from refledger_schema.envelope import Row
from refledger_store.folder import Folder
from refledger_store.statements import statements

_SQL = statements("reads")
FROM_THE_END = 2**62
"""A position past every log, for walks that go back from the newest."""
PAGE = 1_000
"""How many events a walk fetches at a time, so that no cursor stays open between them."""

_T = TypeVar("_T")


class Cursor(Protocol):
    """What we use of a DB-API cursor."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What we use of a connection; sqlite3's is one."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class Artifact:
    """What the projection holds of one artifact. `minted`, `used`, `corrupt` and `gone` are positions."""

    ref: str
    scope: str
    kind: str
    media_type: str
    shape: str
    bytes: int
    digest: str
    label: str | None
    expires_us: int | None
    minted_us: int
    run_id: str | None
    call_id: str | None
    tool: str | None
    minted: int
    used: int
    corrupt: int | None
    gone: int | None
    gone_cause: str | None
    gone_by: str | None

    def live(self, now_us: int) -> bool:
        """Whether it may be redeemed at that instant. Expiry is inclusive."""
        return self.gone is None and (self.expires_us is None or self.expires_us > now_us)


@dataclass(frozen=True, slots=True)
class RunState:
    """A run as it stands; `started` and `ended` are positions."""

    run_id: str
    scope: str
    agent: str | None
    model: str | None
    parent_run: str | None
    parent_call: str | None
    started: int
    ended: int | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class AnswerState:
    """An answer and its newest verdict; `given` and `judged` are positions."""

    answer_id: str
    scope: str
    run_id: str | None
    call_id: str | None
    given: int
    verdict: str | None
    judged: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """What a scope holds: events ever, and live artifacts with the expired but unswept still counted."""

    events: int = 0
    live_count: int = 0
    live_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ReceiptState:
    """What a key was used for: digest of the request, and position of the event that answered it."""

    request: str
    position: int


class Reads:
    """The questions, over one connection and so over one snapshot."""

    def __init__(self, connection: Connection, folder: Folder | None = None) -> None:
        self.connection = connection
        self.folder = folder
        """Where payloads in files are, for those who load them."""

    def artifact(self, ref: str) -> Artifact | None:
        """The artifact of a ref, in whatever scope: the caller compares scopes."""
        return self._one(Artifact, "artifact", ref=ref)

    def parents(self, ref: str) -> list[tuple[str, str]]:
        """(ref, how) of each parent, in the stated order."""
        return [(parent, how) for parent, how in self._rows("parents", ref=ref)]

    def live(self, scope: str, kind: str | None, *, now_us: int, limit: int, before: int = FROM_THE_END) -> list[Artifact]:
        """The newest live artifacts, minted below the position `before`. With a kind, those known to be corrupt are left out."""
        if kind is None:
            return self._all(Artifact, "live_of_scope", scope=scope, now_us=now_us, before=before, limit=limit)
        return self._all(Artifact, "live_of_kind", scope=scope, kind=kind, now_us=now_us, before=before, limit=limit)

    def live_total(self, scope: str, kind: str, *, now_us: int) -> int:
        """How many artifacts of the kind are live and not known to be corrupt: the counter less the expired but unswept."""
        counted = self._value("kind_count", scope=scope, kind=kind)
        if not counted:
            return 0
        return int(counted) - int(self._value("expired_of_kind", scope=scope, kind=kind, now_us=now_us))

    def offerable(self, scope: str, *, now_us: int, limit: int) -> tuple[list[Artifact], int]:
        """The newest artifacts of any kind that are live and not known to be corrupt, and how many there are in all."""
        newest = self._all(Artifact, "offerable_of_scope", scope=scope, now_us=now_us, limit=limit)
        return newest, int(self._value("offerable_count", scope=scope, now_us=now_us))

    def expired(self, scope: str, *, now_us: int, limit: int) -> list[tuple[str, int, int]]:
        """(ref, expiry, bytes) of what has expired and is not swept yet."""
        return [tuple(row) for row in self._rows("expired_of_scope", scope=scope, now_us=now_us, limit=limit)]

    def least_used(self, scope: str, *, limit: int, offset: int = 0) -> list[tuple[str, int]]:
        """(ref, bytes) of live artifacts, the least recently used first."""
        return [tuple(row) for row in self._rows("least_used", scope=scope, limit=limit, offset=offset)]

    def totals(self, scope: str) -> Totals:
        return self._one(Totals, "scope_totals", scope=scope) or Totals()

    def digest_is_live(self, scope: str, digest: str) -> bool:
        return self._value("digest_is_live", scope=scope, digest=digest) is not None

    def run(self, run_id: str) -> RunState | None:
        return self._one(RunState, "run", run_id=run_id)

    def dispatches(self, scope: str, run_id: str) -> dict[str, int]:
        """By call id: how often the call was dispatched in the run."""
        return {call_id: dispatch or 0 for call_id, dispatch in self._rows("calls_of_run", scope=scope, run_id=run_id)}

    def answer(self, answer_id: str) -> AnswerState | None:
        return self._one(AnswerState, "answer", answer_id=answer_id)

    def receipt(self, scope: str, operation: str, key: str) -> ReceiptState | None:
        return self._one(ReceiptState, "receipt", scope=scope, operation=operation, key=key)

    def event(self, position: int) -> Row | None:
        return self._one(Row, "event", position=position)

    def events_after(self, position: int, limit: int = PAGE) -> list[Row]:
        return self._all(Row, "events_after", after=position, limit=limit)

    def events_of_scope(self, scope: str, after: int = 0, limit: int = PAGE) -> list[Row]:
        return self._all(Row, "events_of_scope", scope=scope, after=after, limit=limit)

    def runs(self, *, limit: int, before: int = FROM_THE_END) -> list[RunState]:
        return self._all(RunState, "runs_newest", limit=limit, before=before)

    def answers(self, *, limit: int, before: int = FROM_THE_END) -> list[AnswerState]:
        return self._all(AnswerState, "answers_newest", limit=limit, before=before)

    def artifacts(self, *, limit: int, before: int = FROM_THE_END) -> list[Artifact]:
        return self._all(Artifact, "artifacts_newest", limit=limit, before=before)

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """(scope key, digest, bytes) of every recorded text."""
        after = 0
        while rows := self._rows("contents_after", after=after, limit=20):
            for _, scope, digest, data in rows:
                yield scope, digest, data
            after = rows[-1][0]

    def first(self) -> int | None:
        """The lowest position there is."""
        found: int | None = self._value("first")
        return found

    def size(self) -> int:
        """The highest position there is."""
        return int(self._value("size") or 0)

    def artifacts_after(self, ref: str, *, limit: int) -> list[Artifact]:
        """Every artifact, by its ref, from behind one: to walk them all."""
        return self._all(Artifact, "artifacts_by_ref", after=ref, limit=limit)

    def _rows(self, name: str, /, **parameters: Any) -> list[Any]:
        return self.connection.execute(_SQL[name], parameters).fetchall()

    def _all(self, make: Callable[..., _T], name: str, /, **parameters: Any) -> list[_T]:
        return [make(*row) for row in self._rows(name, **parameters)]

    def _one(self, make: Callable[..., _T], name: str, /, **parameters: Any) -> _T | None:
        rows = self._rows(name, **parameters)
        return make(*rows[0]) if rows else None

    def _value(self, name: str, /, **parameters: Any) -> Any:
        rows = self._rows(name, **parameters)
        return rows[0][0] if rows else None


def walk(read: Callable[[int], list[Row]], key: Callable[[Row], int], after: int = 0) -> Iterator[Row]:
    """Every row of a paged read, in order, from behind `after`; `key` is what the next page starts behind."""
    while rows := read(after):
        yield from rows
        after = key(rows[-1])
