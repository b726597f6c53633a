"""The front door: a ledger is an open log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, get_args

from refledger import __version__
from refledger.contract import ArtifactMeta, Page, StoredArtifact
from refledger.placement import check_place_above
from refledger.recorder import Place, Recorder
from refledger.redaction import Redact, name_of, redact_secrets
from refledger.run import Run
from refledger.scoped import checked_id, valid
from refledger.streams import ArtifactReader
from refledger.verbs import Put, Verbs
from refledger_schema.envelope import Recorded, Row, recorded
from refledger_schema.errors import InvalidConfiguration, InvalidScope, LogCorrupt, RunRefused, UnknownAnswer
from refledger_schema.events import AnswerJudged, RunStarted, Verdict
from refledger_schema.refs import mint_run_id
from refledger_schema.scopes import Scope, scope_of
from refledger_store.append import Decision, Locked
from refledger_store.payloads import sound
from refledger_store.reads import FROM_THE_END, AnswerState, Artifact, Reads, RunState, walk
from refledger_store.retention import Retention
from refledger_store.sqlite import Durability
from refledger_store.store import Configuration, ObservationsMode, PayloadHome, Store

if TYPE_CHECKING:
    from refledger.importers import ImportedRun
    from refledger.verify import Report
    from refledger_queries.backtrack import Backtrack
    from refledger_queries.sql import Result

LOCK_TIMEOUT = 5.0
"""How many seconds an append waits for the lock, unless told otherwise."""


def system_clock() -> int:
    """Microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000


class Ledger:
    """An open log. Thread-safe; not for use across a fork. Close it, or use it as a context manager.

    with Ledger.open("agent.db") as ledger:
        with ledger.run(Scope(conversation="c-17")) as run:
            ...
    """

    def __init__(self, store: Store, *, redact: Redact | None = redact_secrets, place_above: int | None = None) -> None:
        self._store = store
        self._recorder = Recorder(store, redact)
        self._verbs = Verbs(self._recorder)
        self._place_above = place_above

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        retention: Retention | None = None,
        clock: Callable[[], int] = system_clock,
        durability: Durability = "full",
        observations: ObservationsMode = "buffered",
        record_content: bool = True,
        redact: Redact | None = redact_secrets,
        payloads: PayloadHome = "database",
        place_above: int | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> Ledger:
        """Open the log in a SQLite file, and make one where there is none (unless `create` is false).

        `clock` gives microseconds since 1970-01-01 UTC. `durability="process"` survives the process but not a power cut.
        `observations="durable"` commits each observation by itself. `record_content=False` keeps digests of texts, not texts.
        `redact` sees every text before it is written (see `refledger.redaction`); None writes them as they are.
        `payloads="folder"` keeps large payloads as files in a folder beside the log. Results of more than `place_above`
        characters are checked in, and the model is handed their ticket. `lock_timeout` is in seconds.
        Raises `NoLog`, `NotOurSchema`, `NewerSchema`, `OlderSchema`, `StoreReadOnly`, `InvalidConfiguration`.
        """
        _choose("durability", durability, get_args(Durability))
        _choose("observations", observations, get_args(ObservationsMode))
        _choose("payloads", payloads, get_args(PayloadHome))
        location = _file(path)
        limit = check_place_above(place_above)
        configuration = Configuration(
            software=__version__,
            durability=durability,
            observations=observations,
            record_content=record_content,
            retention=retention or Retention(),
            payloads=payloads,
            redaction=name_of(redact),
        )
        return cls(
            Store.open(location, configuration=configuration, clock=clock, create=create, lock_timeout=lock_timeout),
            redact=redact,
            place_above=limit,
        )

    @property
    def log_id(self) -> str:
        return self._store.log_id

    @property
    def store(self) -> LedgerStore:
        """The bare store: the five verbs with the scope first, outside any run."""
        return LedgerStore(self._verbs)

    # --- recording ---------------------------------------------------------------------------------------------------------

    def run(
        self,
        scope: Scope,
        *,
        agent: str | None = None,
        model: str | None = None,
        run_id: str | None = None,
        parent_run: str | None = None,
        parent_call: str | None = None,
        attributes: Mapping[str, str] | None = None,
        keep_open: bool = False,
    ) -> Run:
        """Open a run, or join the open run of that id in the same scope, from any process.

        With `keep_open` the run outlives its block, to be joined again. Raises `RunRefused` for the id of an ended run, or of
        another scope's.
        """
        if not isinstance(scope, Scope):
            raise InvalidScope("scope", f"expected a Scope; found {type(scope).__name__}. Pass Scope(conversation=…).")
        wanted = mint_run_id() if run_id is None else checked_id("run_id", run_id)
        place = Place(scope, run_id=wanted, door="run")
        event = valid(
            RunStarted,
            agent=agent,
            model=model,
            parent_run=parent_run,
            parent_call=parent_call,
            attributes=None if attributes is None else dict(attributes),
        )
        self._store.hold_run()

        def decide(state: Locked) -> Decision[Mapping[str, int] | None]:
            known = state.run(wanted)
            if known is None:
                return Decision(None, [self._recorder.draft(place, event)], holds=wanted)
            _check_joinable(known, scope)
            return Decision(state.dispatches(scope.key, wanted), holds=wanted)

        calls = self._recorder.append(decide)
        return Run(
            self._verbs,
            place,
            joined=calls is not None,
            keep_open=keep_open,
            calls=calls or {},
            place_above=self._place_above,
        )

    def judge(self, answer_id: str, verdict: Verdict, *, by: str | None = None, note: str | None = None) -> None:
        """Record a verdict on an answer; the newest stands. Raises `UnknownAnswer`."""
        _choose("verdict", verdict, get_args(Verdict))
        event = valid(AnswerJudged, answer_id=answer_id, verdict=verdict, by=by, note=note)

        def decide(state: Locked) -> Decision[None]:
            answer = state.answer(answer_id)
            if answer is None:
                raise UnknownAnswer(answer_id)
            place = Place(scope_of(answer.scope), run_id=answer.run_id)
            return Decision(None, [self._recorder.draft(place, event)])

        self._recorder.append(decide)

    def record(self, imported: ImportedRun) -> bool:
        """Record an imported run in one transaction; False, and nothing changes, when the log has it already."""
        scope = imported.scope.key
        payloads = [self._store.receive(scope, (data,)) for data in imported.payloads.values()]
        content = {(scope, digest): data for digest, data in imported.content.items()} if self._store.configuration.record_content else {}

        def decide(state: Locked) -> Decision[bool]:
            if state.run(imported.run_id) is not None:
                return Decision(False)
            return Decision(True, imported.drafts, payloads=payloads, content=content)

        return self._recorder.append(decide)

    def flush(self) -> None:
        """Commit every observation that waits in memory. Raises `StoreFault` when the store fails."""
        self._store.flush()

    # --- asking ------------------------------------------------------------------------------------------------------------

    def backtrack(self, answer_id: str) -> Backtrack:
        """Walk back from an answer to what shaped it. Raises `UnknownAnswer`."""
        from refledger_queries.backtrack import backtrack

        self.flush()
        return backtrack(LedgerSource(self._store), answer_id)

    def sql(self, statement: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Result:
        """Ask one SELECT in DuckDB's SQL over the views and macros of the catalogue. Raises `QueryRefused`."""
        from refledger_queries.sql import select

        self.flush()
        return select(LedgerSource(self._store), statement, parameters)

    def events(self, *, after: int = 0, scope: Scope | None = None) -> Iterator[Recorded]:
        """The events in their order, from behind a position (within one scope: from behind a scope_seq)."""
        source = LedgerSource(self._store)
        rows = source.walk(after) if scope is None else source.walk_scope(scope.key, after)
        return (recorded(row, self.log_id) for row in rows)

    def runs(self, *, limit: int = 50, before: int = FROM_THE_END) -> list[RunState]:
        """The runs, newest first; `before` the position that one started at, to page on."""
        with self._store.reading() as reads:
            return reads.runs(limit=limit, before=before)

    def answers(self, *, limit: int = 50, before: int = FROM_THE_END) -> list[AnswerState]:
        """The answers, newest first, with their verdicts; `before` the position that one was given at, to page on."""
        with self._store.reading() as reads:
            return reads.answers(limit=limit, before=before)

    def artifacts(
        self, scope: Scope | None = None, *, kind: str | None = None, limit: int = 50, before: int = FROM_THE_END
    ) -> list[Artifact]:
        """Artifacts, newest first: of one scope (and of a kind, where one is given) the live ones, else of all scopes, gone ones too.

        `before` the position that one was minted at, to page on.
        """
        if kind is not None and scope is None:
            raise InvalidConfiguration("kind", "expected a scope with `kind`, since kinds are listed by scope. Give both, or ask `sql`.")
        with self._store.reading() as reads:
            if scope is not None:
                return reads.live(scope.key, kind, now_us=self._store.clock(), limit=limit, before=before)
            return reads.artifacts(limit=limit, before=before)

    def content(self, scope: Scope, digest: str) -> str | None:
        """A recorded text by its digest; None when it was not recorded, or is erased. Raises `LogCorrupt` when it does not match."""
        with self._store.bytes() as payloads:
            data = payloads.content(scope.key, digest)
        if data is not None and not sound(data, digest):
            raise LogCorrupt(None, "expected a recorded text to match its digest; it was changed. `refledger verify` lists all damage.")
        return None if data is None else data.decode()

    # --- checking ------------------------------------------------------------------------------------------------------------

    def verify(self, progress: Callable[[int, int], None] | None = None) -> Report:
        """Check the log against itself: leaves, private parts, order, tree, payloads, projections; each verdict apart.

        `progress` is told how many events of how many are checked.
        """
        from refledger.verify import verify

        self._store.flush_quietly()
        return verify(self._store, progress)

    def rebuild(self) -> int:
        """Make the projections anew from the events; says how many events there were."""
        return self._store.rebuild()

    # --- closing -------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Commit what waits, and close. Closing again does nothing. Raises `StoreFault` when what waits could not be kept."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class LedgerStore:
    """The bare store: an `ArtifactStore` whose every act is recorded, outside any run."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs

    def put(
        self,
        scope: Scope,
        data: Any,
        *,
        kind: str,
        media_type: str | None = None,
        label: str | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        parents: Sequence[str] = (),
        key: str | None = None,
    ) -> ArtifactMeta:
        """Check a payload in; see `ArtifactStore.put`."""
        return self._verbs.put(Place(scope), data, Put(kind, media_type, label, expires_at, ttl, parents, key))

    def put_stream(
        self,
        scope: Scope,
        source: BinaryIO | Iterable[bytes],
        *,
        kind: str,
        media_type: str | None = None,
        label: str | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        parents: Sequence[str] = (),
        key: str | None = None,
    ) -> ArtifactMeta:
        """Check in the bytes of a binary file or an iterable, of any size, a piece at a time."""
        return self._verbs.put_stream(Place(scope), source, Put(kind, media_type, label, expires_at, ttl, parents, key))

    def head(self, scope: Scope, ref: str) -> ArtifactMeta | None:
        """The ticket alone; see `ArtifactStore.head`."""
        return self._verbs.head(Place(scope), ref)

    def get(self, scope: Scope, ref: str) -> StoredArtifact | None:
        """The ticket and its payload; see `ArtifactStore.get`."""
        return self._verbs.get(Place(scope), ref)

    def get_stream(self, scope: Scope, ref: str) -> ArtifactReader | None:
        """The payload's bytes a piece at a time, its digest checked at the end."""
        return self._verbs.get_stream(Place(scope), ref)

    def delete(self, scope: Scope, ref: str) -> None:
        """Gone after this; see `ArtifactStore.delete`."""
        self._verbs.delete(Place(scope), ref)

    def list(self, scope: Scope, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """Live artifacts, newest first; see `ArtifactStore.list`."""
        return self._verbs.list(Place(scope), kind=kind, limit=limit, cursor=cursor)


class LedgerSource:
    """The log as the queries read it: through this process's own connection, a page at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def log_id(self) -> str:
        return self._store.log_id

    def scope_of_answer(self, answer_id: str) -> str | None:
        """The scope key of an answer, found by index."""
        with self._store.reading() as reads:
            answer = reads.answer(answer_id)
        return None if answer is None else answer.scope

    def events(self, scope: str | None) -> Iterator[Row]:
        """One scope's events in their order, or all; over one snapshot a page."""
        return self.walk() if scope is None else self.walk_scope(scope)

    def walk(self, after: int = 0) -> Iterator[Row]:
        return walk(self._page(lambda reads, start: reads.events_after(start)), lambda row: row.position, after)

    def walk_scope(self, scope: str, after: int = 0) -> Iterator[Row]:
        return walk(self._page(lambda reads, start: reads.events_of_scope(scope, start)), lambda row: row.scope_seq or 0, after)

    def _page(self, read: Callable[[Reads, int], list[Row]]) -> Callable[[int], list[Row]]:
        def page(start: int) -> list[Row]:
            with self._store.reading() as reads:
                return read(reads, start)

        return page


def _check_joinable(known: RunState, scope: Scope) -> None:
    if known.scope != scope.key:
        raise RunRefused(
            known.run_id, "expected a run of this scope; that id belongs to another. Give another id, or none to have one minted."
        )
    if known.ended is not None:
        raise RunRefused(known.run_id, "expected a run that is open; that one has ended. Give another id, or none to have one minted.")


def _choose(option: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidConfiguration(option, f"expected `{option}` to be one of {', '.join(map(repr, choices))}. Give one of them.")


def _file(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if "://" in text:
        raise InvalidConfiguration(
            "path", "expected the path of a SQLite file; found a URL. Databases behind URLs are not supported by this version."
        )
    if not text:
        raise InvalidConfiguration("path", "expected the path of a SQLite file; found an empty one. Name a file, for example `agent.db`.")
    return Path(text)
