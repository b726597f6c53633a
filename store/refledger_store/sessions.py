"""Who is at work: a session is one open log in one process, and holds runs. It is alive while it holds the lock of its own file.

When it dies with runs in hand, their buffered observations died with it; the next writer says so in the log.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from refledger_schema.refs import mint_event_id

try:
    import fcntl
except ImportError:  # pragma: no cover - without flock no session can be told to be dead, so none is.
    fcntl = None  # type: ignore[assignment]


class Sessions:
    """The sessions beside one log file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.mine = mint_event_id()
        self._file: int | None = None
        self._pid = os.getpid()
        self._beginning = threading.Lock()

    def begin(self) -> None:
        """Show that this session is alive, from here until it ends or its process does."""
        # Two threads would open the file twice, and the second wait for the first one's lock for ever.
        with self._beginning:
            if self._file is not None or fcntl is None:
                return
            self._file = os.open(self._file_of(self.mine), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def end(self) -> None:
        if self._file is None or os.getpid() != self._pid:
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._file_of(self.mine))
        os.close(self._file)
        self._file = None

    def dead(self, session: str) -> bool:
        """Whether the session's process is gone. Its file is cleared away when it is."""
        if session == self.mine or fcntl is None:
            return False
        try:
            file = os.open(self._file_of(session), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        except OSError:
            # Another user's, perhaps. Who cannot be told to be dead is not.
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            with contextlib.suppress(OSError):
                os.unlink(self._file_of(session))
            return True
        finally:
            os.close(file)

    def _file_of(self, session: str) -> str:
        return f"{self._path}.session-{session}"
