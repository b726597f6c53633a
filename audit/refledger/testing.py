"""For your own tests: a real ledger in a temporary folder, a clock to move, refs to expect literally, faults, and assertions.

    from refledger.testing import assert_refused, temporary_ledger

    def test_a_stale_ref_is_refused():
        with temporary_ledger(seed=1) as ledger:
            my_agent(ledger)
            assert_refused(ledger, tool="summarize", reason="missing-or-expired")

With pytest, the fixture `refledger_ledger` is such a ledger.
"""

from __future__ import annotations

import contextlib
import random
import string
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack
from unittest.mock import patch

from refledger.ledger import Ledger
from refledger_schema import refs
from refledger_schema.envelope import Recorded
from refledger_schema.errors import AppendUnknown, InvalidConfiguration, LockTimeout, RefledgerError, StoreFault
from refledger_schema.events import ArtifactMinted, DispatchRefused, DispatchResolved, Event, JudgedArgument, ResolvedArgument
from refledger_schema.reasons import Cause, Reason
from refledger_schema.scopes import Scope
from refledger_store.append import Appended, Decide, Decision, Locked
from refledger_store.payloads import Payloads
from refledger_store.reads import Reads
from refledger_store.store import Store

Act = Literal["append", "read"]
T = TypeVar("T")
_E = TypeVar("_E", bound=Event)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_MOST_SHOWN = 10


# --- the clock -------------------------------------------------------------------------------------------------------------


class SettableClock:
    """A clock that stands still until it is moved. For `Ledger.open(clock=…)`, and in every `temporary_ledger`."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now_us = _us(now)
        """Microseconds since 1970-01-01 UTC."""

    def __call__(self) -> int:
        return self.now_us

    @property
    def now(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.now_us)

    def advance(self, span: timedelta | float) -> None:
        """Move on by a timedelta, or by seconds. A negative span is a clock that runs back."""
        self.now_us += span // _MICROSECOND if isinstance(span, timedelta) else round(span * 1_000_000)

    def set(self, now: datetime) -> None:
        """Move to an instant, which has a time zone."""
        self.now_us = _us(now)


# --- faults ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fault:
    act: Act
    error: RefledgerError
    kept: bool


class Faults:
    """What will go wrong with a store: each fault is met once, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiting: deque[_Fault] = deque()

    def fail_next(self, act: Act, error: RefledgerError | None = None, *, kept: bool = False) -> None:
        """Let the next append, or the next read, raise `error` (a `StoreFault` unless given).

        The append is rolled back where a real one would be: after its decision, or for `LockTimeout` before it. With `kept`, which
        goes with `AppendUnknown` alone, it is committed, and raises all the same. Where the decision itself refuses, the fault waits on.
        """
        if act not in ("append", "read"):
            raise InvalidConfiguration("act", f"expected 'append' or 'read'; found {act!r}. Say which of them is to fail.")
        raised = StoreFault("expected the store to answer; a test told it to fail.") if error is None else error
        if not isinstance(raised, RefledgerError):
            raise InvalidConfiguration("error", f"expected an error of Refledger's, as a store raises; found {type(raised).__name__}.")
        if kept and not (act == "append" and isinstance(raised, AppendUnknown)):
            raise InvalidConfiguration("kept", "expected `kept` with an append that raises AppendUnknown: any other error means not kept.")
        self._waiting.append(_Fault(act, raised, kept))

    def waiting(self) -> int:
        """How many faults were not met yet."""
        return len(self._waiting)

    def clear(self) -> None:
        self._waiting.clear()

    def stand_before(self, store: Store) -> None:
        """Stand before the store's own methods, on the instance, so that it meets the faults too where it calls itself."""
        append, reading, read_bytes = store.append, store.reading, store.bytes

        def failing_append(decide: Decide[T], *, key: str | None = None) -> Appended[T]:
            fault = self._next("append")
            if fault is None:
                return append(decide, key=key)
            if isinstance(fault.error, LockTimeout):
                raise self._met(fault)
            if fault.kept:
                append(decide, key=key)
                raise self._met(fault)

            def decide_and_fail(state: Locked) -> Decision[T]:
                decide(state)
                raise self._met(fault)

            return append(decide_and_fail, key=key)

        @contextlib.contextmanager
        def failing_reading() -> Iterator[Reads]:
            self._fail_read()
            with reading() as reads:
                yield reads

        @contextlib.contextmanager
        def failing_bytes() -> Iterator[Payloads]:
            self._fail_read()
            with read_bytes() as payloads:
                yield payloads

        for name, method in (("append", failing_append), ("reading", failing_reading), ("bytes", failing_bytes)):
            setattr(store, name, method)

    def _fail_read(self) -> None:
        fault = self._next("read")
        if fault is not None:
            raise self._met(fault)

    def _next(self, act: Act) -> _Fault | None:
        return next((fault for fault in tuple(self._waiting) if fault.act == act), None)

    def _met(self, fault: _Fault) -> RefledgerError:
        with contextlib.suppress(ValueError):  # another thread met it at the same moment
            self._waiting.remove(fault)
        return fault.error


# --- the ledger ------------------------------------------------------------------------------------------------------------


class TemporaryLedger(Ledger):
    """A ledger with what a test needs beside it. Made by `temporary_ledger`."""

    clock: SettableClock
    path: Path
    """The log's file."""

    def __init__(self, store: Store, **options: Any) -> None:
        super().__init__(store, **options)
        self.faults = Faults()
        """What will go wrong: `ledger.faults.fail_next("append", StoreFull(…))`."""
        self.faults.stand_before(store)


@contextlib.contextmanager
def temporary_ledger(*, seed: int | str | None = None, clock: SettableClock | None = None, **options: Any) -> Iterator[TemporaryLedger]:
    """A ledger over real SQLite, gone with its folder at the end of the block. `options` are those of `Ledger.open`.

    With a `seed` the refs and ids that are minted within the block, in this whole process, depend on it and on their order alone, so
    that a test can spell them out. A fault that was asked for and never met is an error at the end of the block.
    """
    clock = clock or SettableClock()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="refledger-"))
        if seed is not None:
            stack.enter_context(seeded_refs(seed))
        path = Path(folder) / "log.db"
        ledger = TemporaryLedger.open(path, clock=clock, **options)
        assert isinstance(ledger, TemporaryLedger)  # `open` makes what it is called on
        ledger.clock, ledger.path = clock, path
        try:
            yield ledger
            unmet = ledger.faults.waiting()
        finally:
            ledger.faults.clear()
            ledger.close()
        if unmet:
            raise AssertionError(
                f"expected every fault to be met; {unmet} were not. Ask for those alone that the code under test runs into."
            )


@contextlib.contextmanager
def seeded_refs(seed: int | str) -> Iterator[None]:
    """Within the block, in this whole process, every ref, run id, call id and answer id follows from the seed."""
    source = random.Random(seed)
    with patch.object(refs, "_random_base62", lambda: "".join(source.choices(_BASE62, k=22))):
        yield


# --- what happened ---------------------------------------------------------------------------------------------------------


class Where(TypedDict, total=False):
    """Where an event stands: in which scope, run and call."""

    scope: Scope
    run_id: str
    call_id: str


def minted(ledger: Ledger, *, kind: str | None = None, tool: str | None = None, **where: Unpack[Where]) -> tuple[ArtifactMinted, ...]:
    """The artifacts that were checked in, in order."""
    return tuple(event for event in _events(ledger, ArtifactMinted, where) if kind in (None, event.kind) and tool in (None, event.tool))


def resolved(
    ledger: Ledger,
    *,
    tool: str | None = None,
    argument: str | None = None,
    kind: str | None = None,
    ref: str | None = None,
    **where: Unpack[Where],
) -> tuple[DispatchResolved, ...]:
    """The dispatches that resolved, in order: those of the tool, with an argument that is all that was asked for."""

    def fits(one: ResolvedArgument) -> bool:
        return argument in (None, one.argument) and kind in (None, one.kind) and ref in (None, one.ref)

    found = [event for event in _events(ledger, DispatchResolved, where) if tool in (None, event.tool)]
    asked = (argument, kind, ref) != (None, None, None)
    return tuple(event for event in found if not asked or any(map(fits, event.arguments)))


def refused(
    ledger: Ledger,
    *,
    tool: str | None = None,
    argument: str | None = None,
    kind: str | None = None,
    reason: Reason | None = None,
    cause: Cause | None = None,
    **where: Unpack[Where],
) -> tuple[DispatchRefused, ...]:
    """The dispatches that were refused, in order: those of the tool, with a refused argument that is all that was asked for.

    `reason` is what the model was told, `cause` the operator's truth beside it.
    """

    def fits(one: JudgedArgument) -> bool:
        asked_for = ((argument, one.argument), (kind, one.wanted), (reason, one.reason), (cause, one.cause))
        return one.outcome == "refused" and all(asked in (None, found) for asked, found in asked_for)

    found = [event for event in _events(ledger, DispatchRefused, where) if tool in (None, event.tool)]
    return tuple(event for event in found if any(map(fits, event.arguments)))


def assert_minted(
    ledger: Ledger, *, times: int | None = None, kind: str | None = None, tool: str | None = None, **where: Unpack[Where]
) -> tuple[ArtifactMinted, ...]:
    """`minted`, and at least one; or as many as `times`."""
    __tracebackhide__ = True
    found = minted(ledger, kind=kind, tool=tool, **where)
    told = [f"{event.ref} of kind {event.kind!r}, put by {_name(event.tool)}" for event in minted(ledger)]
    _assert_times("mint", len(found), times, {"kind": kind, "tool": tool, **where}, told, "Check what the tool puts, and in which scope.")
    return found


def assert_resolved(
    ledger: Ledger,
    *,
    times: int | None = None,
    tool: str | None = None,
    argument: str | None = None,
    kind: str | None = None,
    ref: str | None = None,
    **where: Unpack[Where],
) -> tuple[DispatchResolved, ...]:
    """`resolved`, and at least one; or as many as `times`."""
    __tracebackhide__ = True
    found = resolved(ledger, tool=tool, argument=argument, kind=kind, ref=ref, **where)
    asked = {"tool": tool, "argument": argument, "kind": kind, "ref": ref, **where}
    told = [*map(_told_resolution, resolved(ledger)), *map(_told_refusal, refused(ledger))]
    _assert_times("resolution", len(found), times, asked, told, "Check what the tool declares, and what the model passed.")
    return found


def assert_refused(
    ledger: Ledger,
    *,
    times: int | None = None,
    tool: str | None = None,
    argument: str | None = None,
    kind: str | None = None,
    reason: Reason | None = None,
    cause: Cause | None = None,
    **where: Unpack[Where],
) -> tuple[DispatchRefused, ...]:
    """`refused`, and at least one; or as many as `times`."""
    __tracebackhide__ = True
    found = refused(ledger, tool=tool, argument=argument, kind=kind, reason=reason, cause=cause, **where)
    asked = {"tool": tool, "argument": argument, "kind": kind, "reason": reason, "cause": cause, **where}
    told = [*map(_told_refusal, refused(ledger)), *map(_told_resolution, resolved(ledger))]
    _assert_times("refusal", len(found), times, asked, told, "Check what the tool declares, and what the model passed.")
    return found


def _events(ledger: Ledger, kind: type[_E], where: Where) -> Iterator[_E]:
    for recorded in ledger.events():
        if isinstance(recorded.event, kind) and _stands(recorded, where):
            yield recorded.event


def _stands(recorded: Recorded, where: Where) -> bool:
    return all(getattr(recorded, name) == wanted for name, wanted in where.items())


def _assert_times(what: str, found: int, times: int | None, asked: dict[str, Any], told: Sequence[str], advice: str) -> None:
    __tracebackhide__ = True
    if found == times or (times is None and found):
        return
    # Names of scopes do not stand in texts.
    of = ", ".join(name if name == "scope" else f"{name} {value!r}" for name, value in asked.items() if value is not None)
    expected = f"at least one {what}" if times is None else f"{times} {what}{'' if times == 1 else 's'}"
    lines = [
        f"expected {expected}{f' of {of}' if of else ''}; found {found or 'none'}. The log has{':' if told else ' nothing of the kind.'}"
    ]
    lines += [f"  {line}" for line in told[:_MOST_SHOWN]]
    lines += [f"  … and {len(told) - _MOST_SHOWN} more"] if len(told) > _MOST_SHOWN else []
    raise AssertionError("\n".join([*lines, advice]))


def _told_resolution(event: DispatchResolved) -> str:
    return f"tool {event.tool!r} resolved: " + ", ".join(f"{one.argument} = {one.ref} of kind {one.kind!r}" for one in event.arguments)


def _told_refusal(event: DispatchRefused) -> str:
    refusals = [one for one in event.arguments if one.outcome == "refused"]
    return f"tool {event.tool!r} refused: " + ", ".join(f"{one.argument}, {one.reason} ({one.cause})" for one in refusals)


def _name(tool: str | None) -> str:
    return "no tool" if tool is None else f"tool {tool!r}"


def _us(instant: datetime) -> int:
    if instant.tzinfo is None:
        raise InvalidConfiguration("now", "expected a datetime with a time zone. Add one, such as datetime.UTC.")
    return (instant - _EPOCH) // _MICROSECOND
