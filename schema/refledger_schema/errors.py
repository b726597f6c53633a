"""What can go wrong, as a tree: one class for each thing a caller can act on.

    RefledgerError
    ├── InvalidArtifact          a put, or an argument of a verb, that the contract refuses
    │   ├── UnknownParentRef     a parent that does not resolve in this scope
    │   └── OverBudget           a payload that the scope's retention cannot hold
    ├── InvalidScope             a scope field that is not text
    ├── InvalidDeclaration       a wants declaration, or a helper's keys, that cannot be honoured
    │   └── DeclarationRefused   a result helper refused what it was given; the model reads it
    ├── NotCanonical             a value that JSON cannot carry exactly, with its path
    ├── TooLarge                 a field, an event or a payload past its stated bound
    ├── ArtifactIntegrity        stored bytes that do not match their digest
    ├── RunRefused               a run id of another scope, or of a run that has ended
    ├── UnknownAnswer            an answer id that this log does not hold
    ├── IdempotencyConflict      a key that was used before, for another request
    ├── InvalidConfiguration     an option whose value the ledger cannot use
    ├── StoreFault               the database failed; nothing was appended
    │   ├── LockTimeout          the append lock was not free before the deadline
    │   ├── StoreFull            the disk has no room
    │   ├── StoreReadOnly        the file or its folder cannot be written
    │   └── AppendUnknown        the connection broke in the commit: it may have happened
    ├── LedgerClosed             the ledger was closed, or crossed a fork
    ├── NoLog                    there is no log at that path
    ├── NotOurSchema             the file is not a Refledger log
    ├── NewerSchema              the log was written by a newer Refledger
    ├── OlderSchema              the log needs `refledger migrate` first
    ├── LogCorrupt               the log contradicts itself
    ├── QueryRefused             SQL that is not one readable SELECT, or that DuckDB refuses
    └── ImportRefused            a trace file that is not what its format says

Every message says what was expected, what was found and what to do next. The same facts are attributes. None quotes a
payload, a tenant or a principal.
"""

from __future__ import annotations

from collections.abc import Sequence


class RefledgerError(Exception):
    """The base of every error that Refledger raises on purpose."""


class InvalidArtifact(RefledgerError):
    """A put, or an argument of a verb, breaks the contract; nothing was stored."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class UnknownParentRef(InvalidArtifact):
    """At least one declared parent is not live in this scope; nothing was stored."""

    def __init__(self, unresolved: Sequence[str]) -> None:
        super().__init__(
            "parents",
            f"expected every parent to be live in this scope; {len(unresolved)} did not resolve. "
            "Pass refs that this scope still holds (list them with `list`), or leave them out.",
        )
        self.unresolved = tuple(unresolved)


class OverBudget(InvalidArtifact):
    """The payload does not fit the scope's retention, so nothing was stored and nothing evicted."""


class InvalidScope(RefledgerError):
    """A scope field is not text."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidDeclaration(RefledgerError):
    """A declaration cannot be honoured; it is refused where it is made, not at the first dispatch."""

    def __init__(self, message: str, *, tool: str | None = None, argument: str | None = None) -> None:
        super().__init__(message)
        self.tool = tool
        self.argument = argument


class DeclarationRefused(InvalidDeclaration):
    """A result helper refused its input. The text begins with the refusal prefix, since a model reads it."""

    def __init__(
        self,
        message: str,
        *,
        helper: str | None = None,
        at: str | None = None,
        key: str | None = None,
        meant: str | None = None,
        known: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.helper = helper
        self.at = at
        self.key = key
        self.meant = meant
        self.known = tuple(known)


class NotCanonical(RefledgerError):
    """A value has no exact canonical form. `path` is a JSONPath such as `$.rows[3].price`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class TooLarge(RefledgerError):
    """Something is past its bound; `limit` and `found` are in the unit that `what` names."""

    def __init__(self, what: str, limit: int, found: int) -> None:
        super().__init__(f"{what}: at most {limit:,} allowed, {found:,} found. Shorten or split it.")
        self.what = what
        self.limit = limit
        self.found = found


class ArtifactIntegrity(RefledgerError):
    """The stored bytes of `ref` are not the bytes that were checked in."""

    def __init__(self, ref: str, expected: str, actual: str | None) -> None:
        found = "they are missing" if actual is None else f"found {actual}"
        super().__init__(
            f"{ref}: expected bytes of digest {expected}; {found}. "
            "The payload is damaged: restore it from a backup, or check the data in again. `refledger verify` lists all damage."
        )
        self.ref = ref
        self.expected = expected
        self.actual = actual


class RunRefused(RefledgerError):
    """A run cannot be opened under this id."""

    def __init__(self, run_id: str, message: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class UnknownAnswer(RefledgerError):
    """The log holds no such answer."""

    def __init__(self, answer_id: str) -> None:
        super().__init__("expected the id of an answer in this log; found none by that id. `refledger answers` lists them.")
        self.answer_id = answer_id


class IdempotencyConflict(RefledgerError):
    """The key was used before in this scope, for another request; nothing was appended."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"expected a key that is new to {operation} in this scope, or the same request again; the key's first request was another "
            "one. Use a new key for a new request."
        )
        self.operation = operation


class InvalidConfiguration(RefledgerError):
    """An option has a value that the ledger cannot use."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(message)
        self.option = option


class StoreFault(RefledgerError):
    """The database failed. Nothing of this append was kept."""


class LockTimeout(StoreFault):
    """The append lock stayed taken until the deadline; nothing was appended, so the call may be repeated."""

    def __init__(self, waited_seconds: float | None = None) -> None:
        deadline = "in time" if waited_seconds is None else f"within {waited_seconds:g} s"
        super().__init__(
            f"expected the append lock {deadline}; another writer still holds it. "
            "Try again, raise `lock_timeout`, or look for a process that stands still in a transaction."
        )
        self.waited_seconds = waited_seconds
        """None where SQLite gave up by itself and did not say after how long."""


class StoreFull(StoreFault):
    """There is no room; nothing was appended. The ledger works again when there is."""


class StoreReadOnly(StoreFault):
    """The file, or its folder, cannot be written."""


class AppendUnknown(StoreFault):
    """The commit's answer was lost: the append may or may not have happened. Repeat it with its idempotency key."""


class LedgerClosed(RefledgerError):
    """The handle is closed, or was opened before a fork and belongs to the parent process."""


class NoLog(RefledgerError):
    """There is no log at the path, and the call was not allowed to make one."""


class NotOurSchema(RefledgerError):
    """The file exists and is not a Refledger log; it was left as it is."""


class NewerSchema(RefledgerError):
    """The log's schema is newer than this software."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"expected a log of schema {known} or older; this one is {found}, written by a newer Refledger. "
            "Install that version or a newer one."
        )
        self.found = found
        self.known = known


class OlderSchema(RefledgerError):
    """The log's schema is older than this software writes; it is migrated only when asked."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(f"expected a log of schema {known}; this one is {found}. Run `refledger migrate` on it, after a backup.")
        self.found = found
        self.known = known


class LogCorrupt(RefledgerError):
    """The log contradicts itself at `position`."""

    def __init__(self, position: int | None, message: str) -> None:
        super().__init__(message)
        self.position = position


class QueryRefused(RefledgerError):
    """The SQL was not run, or DuckDB refused it."""


class ImportRefused(RefledgerError):
    """The trace cannot be read as the format it was given as; nothing was imported."""
