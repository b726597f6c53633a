"""One open log, as the floors above use it: append, observe, read, payloads, rebuild, close."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from refledger_schema.envelope import Draft, prepare
from refledger_schema.errors import LogCorrupt, StoreFault
from refledger_schema.events import LogGap, LogOpened
from refledger_schema.refs import mint_event_id
from refledger_schema.scopes import Scope, scope_of
from refledger_store.append import Appended, Decide, Decision, Frame, Locked, append
from refledger_store.observations import Observations
from refledger_store.payloads import INLINE, Bytes, Payloads, mint_upload
from refledger_store.reads import Reads
from refledger_store.retention import Retention
from refledger_store.sessions import Sessions
from refledger_store.sqlite import Durability, SqliteEngine
from refledger_store.statements import statements

ObservationsMode = Literal["buffered", "durable"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a log is opened for writing; recorded as `log.opened` when it differs from the last one."""

    software: str
    durability: Durability = "full"
    observations: ObservationsMode = "buffered"
    record_content: bool = True
    retention: Retention = Retention()

    def event(self) -> LogOpened:
        return LogOpened(
            software=self.software,
            durability=self.durability,
            observations=self.observations,
            record_content=self.record_content,
            ttl_us=self.retention.ttl_us,
            max_bytes=self.retention.max_bytes,
            max_count=self.retention.max_count,
        )


class Store:
    """The store of one log. Thread-safe. Reading writes nothing; the first append records the configuration if it is new."""

    def __init__(self, engine: SqliteEngine, configuration: Configuration, clock: Callable[[], int]) -> None:
        self.configuration = configuration
        self.clock = clock
        self._engine = engine
        self._observations = Observations()
        self._sessions = Sessions(engine.path)
        self._first = threading.Lock()
        self._appended_before = False
        with engine.reading() as connection:
            found = connection.execute(statements("reads")["log"]).fetchall()
        if not found:
            raise LogCorrupt(None, "expected the log's id; it is missing. Restore the log from a backup.")
        self.log_id: str = found[0][0]
        self._frame = Frame(self.log_id, clock, self._sessions.mine, self._opening)

    @classmethod
    def open(cls, path: Path, *, configuration: Configuration, clock: Callable[[], int], create: bool, lock_timeout: float) -> Store:
        """The store of an existing log, or of a new one where there is no file and `create` allows it."""
        engine = SqliteEngine.open(
            path, create=create, durability=configuration.durability, lock_timeout=lock_timeout, log_id=mint_event_id(), created_us=clock()
        )
        try:
            return cls(engine, configuration, clock)
        except BaseException:
            engine.close()
            raise

    # --- writing -----------------------------------------------------------------------------------------------------------

    def append(self, decide: Decide[T], *, key: str | None = None) -> Appended[T]:
        """Append what `decide` decides, behind what waits under `key`. Returns once it is as durable as configured.

        Closed: when this raises, nothing of the decision was kept, and what waited waits on.
        """
        self._tell_of_the_dead()
        taken = None if key is None else self._observations.take(key)
        try:
            with self._engine.writing() as connection:
                before = [*taken.gap(), *taken.drafts] if taken is not None else []
                content = taken.content if taken is not None else {}
                appended, written = append(connection, self._frame, _with_content(decide, content), before)
                self._engine.appended(written)
        except BaseException:
            if taken is not None and key is not None:
                self._observations.give_back(key, taken)
            raise
        if appended.rows:
            self._appended_before = True
        return appended

    def observe(self, key: str, draft: Draft, content: Mapping[tuple[str, str], bytes] | None = None) -> None:
        """Record an observation, best effort: in memory until the next append under `key`, or at once when so configured.

        A failing store never raises here; what it costs becomes a `log.gap`.
        """
        prepared = prepare(replace(draft, occurred_us=draft.occurred_us or self.clock()), mint_event_id())
        full = self._observations.add(key, prepared, content or {})
        if full or self.configuration.observations == "durable":
            with contextlib.suppress(StoreFault):
                self.flush(key)

    def flush(self, key: str | None = None) -> None:
        """Commit what waits, under one key or all. Raises `StoreFault` when the store fails; then it waits on."""
        for waiting in [key] if key is not None else self._observations.keys():
            self.append(lambda state: Decision(None), key=waiting)

    def upload(self, chunks: Iterable[bytes]) -> str:
        """Write a large payload, a transaction a chunk, none of them long; the append links it. Says the upload's name."""
        upload = mint_upload()
        with self._engine.writing() as connection:
            Payloads(connection).sweep_uploads(self.clock())
        for number, data in enumerate(chunks):
            with self._engine.writing() as connection:
                Payloads(connection).keep_chunk(upload, number, data)
            self._engine.appended(len(data))
        return upload

    def bytes_for(self, scope: str, digest: str, data: bytes) -> Bytes:
        """A payload ready for an append: inline, or uploaded where it is large."""
        if len(data) <= INLINE:
            return Bytes(scope, digest, len(data), data)
        upload = self.upload(data[start : start + INLINE] for start in range(0, len(data), INLINE))
        return Bytes(scope, digest, len(data), None, upload)

    def hold_run(self) -> None:
        """Show that this session is alive before it holds a run."""
        self._sessions.begin()

    def rebuild(self) -> int:
        """Make the projections anew from the events; says how many events there were."""
        # Here, since it brings the tables' declarations and with them SQLModel, which nothing else needs at run time.
        from refledger_store.rebuild import rebuild

        with self._engine.writing() as connection:
            return rebuild(connection)

    def close(self) -> None:
        """Commit what waits, and close. Closing again does nothing. Raises `StoreFault` when what waits could not be kept."""
        try:
            self.flush()
        finally:
            self._sessions.end()
            self._engine.close()

    # --- reading -----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reads]:
        """Every question over one snapshot. Keep the block short."""
        with self._engine.reading() as connection:
            yield Reads(connection)

    @contextlib.contextmanager
    def bytes(self) -> Iterator[Payloads]:
        """Payloads and content over one snapshot."""
        with self._engine.reading() as connection:
            yield Payloads(connection)

    # --- the first append --------------------------------------------------------------------------------------------------

    def _opening(self) -> LogOpened | None:
        return None if self._appended_before else self.configuration.event()

    def _tell_of_the_dead(self) -> None:
        """Before the first append: for each run that a dead session held, a gap, since its observations died with it."""
        if self._appended_before or not self._first.acquire(blocking=False):
            return
        try:
            with self._engine.writing() as connection:
                held = connection.execute(statements("append")["held_runs"]).fetchall()
            for run_id, session, scope, ended in held:
                if self._sessions.dead(session):
                    self._bury(run_id, None if scope is None or ended is not None else scope_of(scope))
        finally:
            self._first.release()

    def _bury(self, run_id: str, scope: Scope | None) -> None:
        def decide(state: Locked) -> Decision[None]:
            if scope is None:
                return Decision(None)
            heard = state.connection.execute(statements("append")["last_of_run"], {"scope": scope.key, "run_id": run_id}).fetchall()
            return Decision(None, [Draft(LogGap(first_us=heard[0][0], why="crash"), scope, run_id=run_id)], releases=run_id)

        with self._engine.writing() as connection:
            append(connection, self._frame, decide)
            connection.execute(statements("append")["release_run"], {"run_id": run_id})


def _with_content(decide: Decide[T], content: Mapping[tuple[str, str], bytes]) -> Decide[T]:
    """The same decision, with the texts of the observations before it."""
    if not content:
        return decide

    def decided(state: Locked) -> Decision[T]:
        decision = decide(state)
        return replace(decision, content={**content, **decision.content})

    return decided
