"""One log in one SQLite file: WAL, an append lock beside the file, and SQLite's own lock as the truth.

What is worth knowing (SQLite documentation, and `docs/storage.md`):

- Every write takes a `flock` on `<file>.lock` first, then `BEGIN IMMEDIATE`. The sidecar makes waiting fair and keeps
  checkpoints from overlapping commits, which SQLite before 3.51.3 can turn into a corrupt file. The busy lock stays the truth.
- The live file is never opened by anything but this process's one SQLite: closing a second handle drops POSIX locks.
- Python's driver is told to leave transactions alone (`isolation_level=None`).
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from refledger_schema.errors import (
    InvalidConfiguration,
    LedgerClosed,
    LockTimeout,
    LogCorrupt,
    NewerSchema,
    NoLog,
    NotOurSchema,
    OlderSchema,
    RefledgerError,
    StoreFault,
    StoreFull,
    StoreReadOnly,
)
from refledger_schema.migrate import HEAD_REVISION, KNOWN_REVISIONS

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; SQLite's own lock still orders the writers.
    fcntl = None  # type: ignore[assignment]

Durability = Literal["full", "process"]
MINIMUM = (3, 37, 0)
"""The first SQLite with STRICT tables."""
CHECKPOINT_BYTES = 4 * 1024 * 1024
"""How much may be appended to the write-ahead log before it is folded into the file."""
_SYNCHRONOUS = {"full": "FULL", "process": "NORMAL"}


class SqliteEngine:
    """The connections and the append lock of one file. Threads may share it; a fork may not.

    `writing()` holds the append lock and an open transaction; `reading()` a snapshot. Both translate what the driver raises.
    """

    def __init__(self, path: Path, *, durability: Durability, lock_timeout: float) -> None:
        self.path = path
        self.durability: Durability = durability
        self._lock_timeout = lock_timeout
        self._pid = os.getpid()
        self._writers = threading.Lock()
        self._readers: list[sqlite3.Connection] = []
        self._all: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._closed = False
        self._unfolded = 0
        self._busy_timeout = -1
        self._lock_file: int | None = None
        try:
            with translated(path):
                self._writer = self._connect()
        except BaseException:
            for connection in self._all:
                connection.close()
            raise

    # --- opening ---------------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, *, create: bool, durability: Durability, lock_timeout: float, log_id: str, created_us: int) -> SqliteEngine:
        """The engine of an existing log, or of a new one (`log_id`) where there is no file and `create` allows it."""
        if sqlite3.sqlite_version_info < MINIMUM:
            raise InvalidConfiguration("sqlite", f"expected SQLite 3.37 or newer; found {sqlite3.sqlite_version}. Use a newer Python.")
        # One file has one lock and one set of sessions beside it, whatever links lead to it, and wherever the process goes later.
        path = Path(os.path.realpath(path))
        if path.is_dir():
            raise NotOurSchema("expected a Refledger log; the path is a folder. Name the file in it, for example `agent.db`.")
        if not path.exists() or path.stat().st_size == 0:
            if not create:
                raise NoLog("expected a Refledger log; there is none at that path. Check the path, or record a run there first.")
            _create(path, lock_timeout, log_id, created_us)
        else:
            with translated(path):
                if create and _is_blank(path):
                    _create(path, lock_timeout, log_id, created_us)
                _check_schema(path)
        return cls(path, durability=durability, lock_timeout=lock_timeout)

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self.path, self._lock_timeout)
        self._all.append(connection)
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self.durability]}")
        if self.durability == "full":
            connection.execute("PRAGMA fullfsync = ON")
        return connection

    # --- using -----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, undone: Callable[[], None] | None = None) -> Iterator[sqlite3.Connection]:
        """Hold the append lock and a write transaction; commit at the end of the block, or roll back what it raised from.

        After a roll-back `undone` is called, before anybody else can write.
        """
        deadline = time.monotonic() + self._lock_timeout
        if not self._writers.acquire(timeout=self._lock_timeout):
            raise LockTimeout(self._lock_timeout)
        try:
            self._check_open()
            with translated(self.path), self._flocked(deadline):
                connection = self._writer
                committed = False
                try:
                    self._begin_immediate(deadline)
                    yield connection
                    connection.execute("COMMIT")
                    committed = True
                finally:
                    if not committed:
                        # SQLite has already rolled back after some faults (a full disk), and says so.
                        if connection.in_transaction:
                            connection.execute("ROLLBACK")
                        if undone is not None:
                            undone()
                self._fold()
        finally:
            self._writers.release()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection with a snapshot of the log. Exhaust every cursor inside the block: an open one keeps the WAL growing."""
        self._check_open()
        with translated(self.path):
            with self._readers_lock:
                connection = self._readers.pop() if self._readers else self._connect()
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            finally:
                with self._readers_lock:
                    self._readers.append(connection)

    def appended(self, size: int) -> None:
        """Note that about `size` bytes were appended, so that the write-ahead log is folded in time."""
        self._unfolded += size

    def close(self) -> None:
        """Close every connection under the append lock, since the last one to close folds the write-ahead log."""
        if self._closed or os.getpid() != self._pid:
            return
        with self._writers:
            self._closed = True
            with contextlib.suppress(StoreFault), translated(self.path), self._flocked(time.monotonic() + self._lock_timeout):
                for connection in self._all:
                    connection.close()
            if self._lock_file is not None:
                os.close(self._lock_file)
                self._lock_file = None

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerClosed("expected an open ledger; this one was closed. Open it again with `Ledger.open`.")
        if os.getpid() != self._pid:
            raise LedgerClosed("expected a ledger opened by this process; this one crossed a fork. Open one after forking.")

    def _begin_immediate(self, deadline: float) -> None:
        """Take SQLite's own lock, in what is left of the time."""
        # Up to a tenth of a second more than is left, so that the driver is told only when waiting has cost something.
        left = max(0, math.ceil((deadline - time.monotonic()) * 10) * 100)
        try:
            if left != self._busy_timeout:
                self._writer.execute(f"PRAGMA busy_timeout = {left}")
                self._busy_timeout = left
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise LockTimeout(self._lock_timeout) from error
            raise

    # --- locks and folding -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _flocked(self, deadline: float) -> Iterator[None]:
        if fcntl is None:  # pragma: no cover
            yield
            return
        if self._lock_file is None:
            self._lock_file = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        _flock(self._lock_file, deadline, self._lock_timeout)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    def _fold(self) -> None:
        """Fold the write-ahead log into the file, while the sidecar keeps every other writer away."""
        if self._unfolded < CHECKPOINT_BYTES:
            return
        self._unfolded = 0
        # The append is committed and acknowledged either way; a full disk is the next append's to report.
        with contextlib.suppress(sqlite3.Error):
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection that leaves transactions to us and checkpoints never by itself."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA recursive_triggers = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path, lock_timeout: float, log_id: str, created_us: int) -> None:
    """Make the schema in a new file, in one transaction; another process may be doing the same."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    from refledger_schema.migrate import upgrade

    with translated(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o644))

        def connection() -> sqlite3.Connection:
            made = connect(path, lock_timeout)
            made.execute("PRAGMA journal_mode = WAL").fetchall()
            return made

        engine = create_engine("sqlite://", creator=connection, poolclass=NullPool, hide_parameters=True)
        event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
        try:
            with engine.begin() as opened:
                tables = opened.exec_driver_sql("SELECT COUNT(*) FROM sqlite_master").scalar_one()
                if tables == 0:
                    upgrade(opened)
                    opened.exec_driver_sql("INSERT INTO log (id, log_id, created_us) VALUES (1, ?, ?)", (log_id, created_us))
                    opened.exec_driver_sql("INSERT INTO head (id, position, recorded_us, frontier) VALUES (1, 0, 0, x'')")
        except DBAPIError as error:
            # What SQLAlchemy wraps is the driver's error, which is translated like any other.
            if isinstance(error.orig, sqlite3.Error):
                raise error.orig from None
            raise
        finally:
            engine.dispose()


def _is_blank(path: Path) -> bool:
    """Whether the file is a SQLite database with nothing in it: one that another process is making just now, or left unmade."""
    with contextlib.closing(connect(path, 5.0)) as connection:
        return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


def _check_schema(path: Path) -> None:
    """Refuse what is not a log that this software writes. Nothing is changed, not even the journal mode."""
    with contextlib.closing(connect(path, 5.0)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
        if not {"alembic_version", "log", "events", "head"} <= names:
            raise NotOurSchema(
                "expected a Refledger log; the file is a SQLite database of something else. It was left as it is: name another file."
            )
        found = [revision for (revision,) in connection.execute("SELECT version_num FROM alembic_version").fetchall()]
        check_revision(found)


def check_revision(found: list[str]) -> None:
    """Refuse a log that is newer or older than what this software writes."""
    revision = found[0] if len(found) == 1 else repr(sorted(found))
    if revision == HEAD_REVISION:
        return
    if revision in KNOWN_REVISIONS:
        raise OlderSchema(revision, HEAD_REVISION)
    raise NewerSchema(revision, HEAD_REVISION)


def _flock(file: int, deadline: float, timeout: float) -> None:
    """Take the sidecar's lock before the deadline."""
    pause = 0.0002
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockTimeout(timeout) from None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.005)


# --- faults --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what the driver and the operating system raise into our errors. Theirs go along as the cause."""
    try:
        yield
    except RefledgerError:
        raise
    except sqlite3.Error as error:
        raise _translation(error) from error
    except UnicodeDecodeError:
        # Without a cause: it carries the bytes that could not be read.
        raise _damaged() from None
    except PermissionError as error:
        raise StoreReadOnly(
            "expected to write the log's file and its folder; the permission is missing. Give the user write access to both."
        ) from error
    except FileNotFoundError as error:
        raise NoLog("expected a Refledger log; its folder does not exist. Make the folder, or check the path.") from error
    except OSError as error:
        raise StoreFault(f"expected to use the log's file; the system refused ({error.strerror}). Check the disk and the path.") from error


def _translation(error: sqlite3.Error) -> RefledgerError:
    code = _code(error) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return NotOurSchema("expected a Refledger log; the file is not a SQLite database. It was left as it is: name another file.")
    # A text that is no UTF-8 has no code; a constraint of ours that fails means that the tables contradict the log.
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT) or (code == 0 and isinstance(error, sqlite3.OperationalError)):
        return _damaged()
    if code == sqlite3.SQLITE_FULL:
        return StoreFull("expected room on the disk; there is none. Nothing was appended; the ledger works again when there is.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return StoreReadOnly("expected to write the log's file and its folder; they cannot be written. Give the user write access to both.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LockTimeout()
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreFault(f"expected the log's file to answer; SQLite said {name}. Run `refledger verify`, and check the disk.")


def _damaged() -> LogCorrupt:
    return LogCorrupt(
        None,
        "expected a sound log; its file is damaged. Keep a copy as it is, then restore the log from a backup. `refledger verify` says more.",
    )


def _code(error: Any) -> int:
    return int(getattr(error, "sqlite_errorcode", 0))
