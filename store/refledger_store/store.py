"""One open log, as the floors above use it: append, observe, read, payloads, rebuild, close."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from refledger_schema.envelope import Draft, prepare
from refledger_schema.errors import LogCorrupt, RefledgerError, StoreFault
from refledger_schema.events import LogGap, LogOpened
from refledger_schema.refs import mint_event_id
from refledger_schema.scopes import scope_of
from refledger_store.append import Appended, Decide, Decision, Frame, Locked, append
from refledger_store.folder import ABOVE, Folder
from refledger_store.observations import Observations, Waiting
from refledger_store.payloads import Bytes, Payloads, oldest_fresh, pieces
from refledger_store.reads import Reads
from refledger_store.retention import Retention
from refledger_store.sessions import Sessions
from refledger_store.sqlite import Durability, SqliteEngine, translated
from refledger_store.statements import statements

ObservationsMode = Literal["buffered", "durable"]
PayloadHome = Literal["database", "folder"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Configuration:
    """How a log is opened for writing; recorded as `log.opened` when it differs from the last one."""

    software: str
    durability: Durability = "full"
    observations: ObservationsMode = "buffered"
    record_content: bool = True
    retention: Retention = Retention()
    payloads: PayloadHome = "database"
    redaction: str | None = None
    """The name of the redaction in force."""

    def event(self) -> LogOpened:
        return LogOpened(
            software=self.software,
            durability=self.durability,
            observations=self.observations,
            record_content=self.record_content,
            ttl_us=self.retention.ttl_us,
            max_bytes=self.retention.max_bytes,
            max_count=self.retention.max_count,
            payloads=self.payloads,
            redaction=self.redaction,
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
        beside = Path(f"{engine.path}.payloads")
        self._folder = Folder(beside) if configuration.payloads == "folder" else None
        # What another process put into the folder is found whatever this one does with its own.
        self._swept = False
        self._frame = Frame(self.log_id, clock, self._sessions.mine, self._opening, Folder(beside))
        self._pid = os.getpid()
        self._closed = False
        self._at_exit = _closer(weakref.ref(self))
        atexit.register(self._at_exit)

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
        taken: Waiting | None = None

        def give_back() -> None:
            if taken is not None and key is not None:
                self._observations.give_back(key, taken)

        # Taken and given back under the lock: else another thread's append could overtake what this one holds in its hands.
        with self._engine.writing(undone=give_back) as connection:
            taken = None if key is None else self._observations.take(key)
            before = [*taken.gap(), *taken.drafts] if taken is not None else []
            content = taken.content if taken is not None else {}
            appended, written = append(connection, self._frame, _with_content(decide, content), before)
            self._engine.appended(written.size)
        if appended.rows:
            self._appended_before = True
        self._remove(written.orphaned)
        return appended

    def _remove(self, files: Iterable[str]) -> None:
        """Remove payload files that no row names any more. A crash before this leaves them to the next sweep."""
        if self._folder is not None:
            for file in files:
                with contextlib.suppress(OSError):
                    self._folder.remove(file)

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

    def flush_quietly(self, key: str | None = None) -> None:
        """Commit what waits, if the store lets it; else it waits on."""
        with contextlib.suppress(StoreFault):
            self.flush(key)

    def receive(self, scope: str, chunks: Iterable[bytes]) -> Bytes:
        """Take in a payload of any size, a piece at a time, ready for an append to link.

        The lock is held for one piece at most, and memory holds no more. What is small enough is written by the append itself.
        """
        tally = _Tally()
        source = tally.over(pieces(chunks))
        first = next(source, b"")
        if self._folder is not None:
            return self._receive_file(self._folder, scope, tally, first, source)
        second = next(source, None)
        if second is None:
            return Bytes(scope, tally.digest, tally.size, first)
        upload = self._upload(itertools.chain((first, second), source))
        return Bytes(scope, tally.digest, tally.size, None, upload=upload)

    def discard(self, payload: Bytes) -> None:
        """Drop what was received for an append that did not happen, unless it did. What cannot be dropped now is swept later."""
        if payload.data is not None:
            return
        with contextlib.suppress(StoreFault, OSError), self._engine.writing() as connection:
            payloads = Payloads(connection)
            if payload.upload is not None and not payloads.links_to_upload(payload.upload):
                payloads.drop_upload(payload.upload)
            if payload.file is not None and self._folder is not None and not payloads.links_to_file(payload.file):
                self._folder.discard(payload.file)

    def _receive_file(self, folder: Folder, scope: str, tally: _Tally, first: bytes, rest: Iterator[bytes]) -> Bytes:
        if len(first) <= ABOVE:
            return Bytes(scope, tally.digest, tally.size, first)
        self._sweep_once()
        file = folder.write(itertools.chain((first,), rest))
        return Bytes(scope, tally.digest, tally.size, None, file=file)

    def _upload(self, chunks: Iterable[bytes]) -> str:
        """Write the chunks of a large payload, a transaction each; says the upload's name."""
        self._sweep_once()
        upload = mint_event_id()
        try:
            for number, data in enumerate(chunks):
                with self._engine.writing() as connection:
                    Payloads(connection).keep_chunk(upload, number, data)
                    self._engine.appended(len(data))
        except BaseException:
            self.discard(Bytes("", "", 0, None, upload=upload))
            raise
        return upload

    def _sweep_once(self) -> None:
        """Before a process's first upload: drop what others began long ago and never linked."""
        if self._swept:
            return
        self._swept = True
        with self._engine.writing() as connection:
            payloads = Payloads(connection)
            while payloads.sweep_uploads(self.clock()):
                pass
            if self._folder is not None:
                for file in self._folder.names_before(oldest_fresh(self.clock())):
                    if not payloads.links_to_file(file):
                        self._folder.discard(file)

    def hold_run(self) -> None:
        """Show that this session is alive before it holds a run."""
        with translated(self._engine.path):
            self._sessions.begin()

    def rebuild(self) -> int:
        """Make the projections anew from the events; says how many events there were."""
        # Here, since it brings the tables' declarations and with them SQLModel, which nothing else needs at run time.
        from refledger_store.rebuild import rebuild

        with self._engine.writing() as connection:
            return rebuild(connection)

    def close(self) -> None:
        """Commit what waits, and close. Closing again does nothing. Raises `StoreFault` when what waits could not be kept.

        What waits was observed by the process that opened the log: a fork of it closes nothing.
        """
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        try:
            self.flush()
            self._release_runs()
        finally:
            self._sessions.end()
            self._engine.close()

    def _release_runs(self) -> None:
        """Let go of the runs that are still open: what they observed is committed, so nothing of them can be lost."""
        mine = {"session": self._sessions.mine}
        with self._engine.reading() as connection:
            holds = connection.execute(statements("append")["held_by_session"], mine).fetchall()
        if holds:
            with self._engine.writing() as connection:
                connection.execute(statements("append")["release_session"], mine)

    # --- reading -----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[Reads]:
        """Every question over one snapshot. Keep the block short."""
        with self._engine.reading() as connection:
            yield Reads(connection, self._frame.folder)

    @contextlib.contextmanager
    def bytes(self) -> Iterator[Payloads]:
        """Payloads and content over one snapshot."""
        with self._engine.reading() as connection:
            yield Payloads(connection, self._frame.folder)

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
            for run_id, session in held:
                if self._sessions.dead(session):
                    self._bury(run_id, session)
        finally:
            self._first.release()

    def _bury(self, run_id: str, session: str) -> None:
        """Say that observations of a run died with a session; not when the run has ended, nor when another writer was here first."""

        def decide(state: Locked) -> Decision[None]:
            run = state.run(run_id)
            if run is None or run.ended is not None:
                return Decision(None)
            heard = state.connection.execute(statements("append")["last_of_run"], {"scope": run.scope, "run_id": run_id}).fetchall()
            return Decision(None, [Draft(LogGap(first_us=heard[0][0], why="crash"), scope_of(run.scope), run_id=run_id)])

        with self._engine.writing() as connection:
            if connection.execute(statements("append")["let_go"], {"run_id": run_id, "session": session}).fetchall():
                append(connection, self._frame, decide)


class _Tally:
    """Size and digest of bytes that pass by."""

    def __init__(self) -> None:
        self.size = 0
        self._hashed = hashlib.sha256()

    def over(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.size += len(chunk)
            self._hashed.update(chunk)
            yield chunk

    @property
    def digest(self) -> str:
        return "sha-256:" + self._hashed.hexdigest()


def _closer(store: weakref.ref[Store]) -> Callable[[], None]:
    """What the interpreter's exit does with a log that was left open: commit what waits, if the store lets it."""

    def close() -> None:
        left_open = store()
        if left_open is not None:
            with contextlib.suppress(RefledgerError):
                left_open.close()

    return close


def _with_content(decide: Decide[T], content: Mapping[tuple[str, str], bytes]) -> Decide[T]:
    """The same decision, with the texts of the observations before it."""
    if not content:
        return decide

    def decided(state: Locked) -> Decision[T]:
        decision = decide(state)
        return replace(decision, content={**content, **decision.content})

    return decided
