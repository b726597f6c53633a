"""What the command line's exit codes mean."""

from __future__ import annotations

from refledger_schema.errors import ArtifactIntegrity, LogCorrupt, RefledgerError, StoreFault

OK = 0
DAMAGED = 1
"""The log is damaged: verify found it, or a command came across it."""
REFUSED = 2
"""The request was refused: options, paths, ids, SQL, traces."""
STORE_FAILED = 3
"""The database failed: its lock, its disk, its permissions."""
OUR_FAULT = 70
"""A bug in Refledger (EX_SOFTWARE), with its traceback."""
INTERRUPTED = 130
READER_LEFT = 141
"""Nobody read on, as the shell has it for SIGPIPE."""

SAID = (
    "Exit codes: 0 done; 1 the log is damaged; 2 the request was refused (options, paths, ids, SQL, traces); "
    "3 the store failed (lock, disk, permissions)."
)


def exit_code_of(error: RefledgerError) -> int:
    """The exit code that an error ends a command with."""
    if isinstance(error, LogCorrupt | ArtifactIntegrity):
        return DAMAGED
    return STORE_FAILED if isinstance(error, StoreFault) else REFUSED
