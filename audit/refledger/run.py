"""A run of an agent, and the calls in it: where the five verbs, dispatch and the answer are recorded."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from refledger.contract import ArtifactMeta, Page, StoredArtifact
from refledger.dispatch import resolve
from refledger.payloads import text_of
from refledger.verbs import Place, invalid
from refledger.wants import Refused, Resolved, Schema, ToolWants
from refledger_schema.digests import digest_of_text
from refledger_schema.errors import InvalidArtifact, RunRefused, StoreFault
from refledger_schema.events import (
    AnswerGiven,
    CallEnded,
    CallStarted,
    ContextComposed,
    Event,
    MessageNoted,
    Outcome,
    RunEnded,
    Status,
)
from refledger_schema.refs import is_ref, mint_answer_id, mint_call_id, refs_in
from refledger_schema.scopes import Scope
from refledger_store.append import Decision

if TYPE_CHECKING:
    from refledger.ledger import Ledger

MAX_ID = 200
"""The longest run, call or answer id, in characters."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the run answered, as it was recorded."""

    answer_id: str
    cited: tuple[str, ...]
    """The refs that the answer is said to rest on."""
    found: tuple[str, ...]
    """The refs found in its text."""


class _Verbs:
    """The five verbs with the scope bound: a tool cannot widen it."""

    _ledger: Ledger
    _place: Place

    def put(
        self,
        data: Any,
        *,
        kind: str,
        media_type: str | None = None,
        label: str | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        parents: Sequence[str] = (),
    ) -> ArtifactMeta:
        """Check a payload in and get its ticket. Text, bytes, or what JSON carries exactly.

        `expires_at` (with a time zone) or `ttl` says when it dies at the latest. Raises `InvalidArtifact`, `UnknownParentRef`
        or `OverBudget`, and then stores nothing.
        """
        return self._ledger._verbs.put(
            self._place,
            data,
            kind=kind,
            media_type=media_type,
            label=label,
            expires_at=expires_at,
            ttl=ttl,
            parents=parents,
            resolved=self._resolved_refs(),
        )

    def head(self, ref: str) -> ArtifactMeta | None:
        """The ticket alone; None for every absence."""
        return self._ledger._verbs.head(self._place, ref)

    def get(self, ref: str) -> StoredArtifact | None:
        """The ticket and its payload, verified; None for every absence. Raises `ArtifactIntegrity`."""
        return self._ledger._verbs.get(self._place, ref)

    def delete(self, ref: str, *, by: str | None = None, why: str | None = None) -> None:
        """The artifact is gone after this, whether or not it was there."""
        self._ledger._verbs.delete(self._place, ref, by=by, why=why)

    def list(self, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """The scope's live artifacts, newest first."""
        return self._ledger._verbs.list(self._place, kind=kind, limit=limit, cursor=cursor)

    def _resolved_refs(self) -> Sequence[str]:
        return ()

    def _observe(self, event: Event, content: str | None = None) -> None:
        self._ledger._observe(self._place, event, content)


class Run(_Verbs):
    """One agent's run. Made by `Ledger.run`; use it as a context manager, from any thread.

    A run that was started here ends with its block; one that was joined goes on, until `end` or its starter ends it.
    """

    def __init__(self, ledger: Ledger, scope: Scope, run_id: str, *, joined: bool, keep_open: bool, calls: Mapping[str, int]) -> None:
        self._ledger = ledger
        self._place = Place(scope, run_id=run_id, door="run")
        self._joined = joined
        self._keep_open = keep_open
        self._lock = threading.Lock()
        self._dispatches = dict(calls)
        self._steps = {call_id: step for step, call_id in enumerate(calls, start=1)}
        self._messages = 0
        self._ended = False

    @property
    def run_id(self) -> str:
        assert self._place.run_id is not None
        return self._place.run_id

    @property
    def scope(self) -> Scope:
        return self._place.scope

    @property
    def joined(self) -> bool:
        """Whether the run was open already."""
        return self._joined

    def call(
        self,
        tool: str,
        *,
        call_id: str | None = None,
        args: Mapping[str, Any] | None = None,
        turn: int | None = None,
        message: int | None = None,
    ) -> Call:
        """A tool call, to be used as a context manager. The same `call_id` again is the same call, dispatched again.

        `turn` says which of the model's turns asked for it: calls of one turn are parallel.
        """
        self._check_open()
        call_id = mint_call_id() if call_id is None else checked_id("call_id", call_id)
        with self._lock:
            dispatch = self._dispatches[call_id] = self._dispatches.get(call_id, 0) + 1
            step = self._steps.setdefault(call_id, len(self._steps) + 1)
        place = replace(self._place, call_id=call_id, dispatch=dispatch, tool=tool, door="call")
        return Call(self._ledger, place, args=args, step=step, turn=turn, message=message)

    def message(self, role: str, content: Any = None, *, index: int | None = None, turn: int | None = None) -> int:
        """Note a message of the conversation; says its index."""
        self._check_open()
        with self._lock:
            self._messages = index = self._messages + 1 if index is None else index
        text = None if content is None else text_of(content)
        event = _valid(
            MessageNoted,
            role=role,
            index=index,
            turn=turn,
            content=None if text is None else digest_of_text(text),
            size=0 if text is None else len(text.encode()),
        )
        self._observe(event, text)
        return index

    def context(
        self,
        *,
        model: str | None = None,
        parameters: Mapping[str, str] | None = None,
        system: str | None = None,
        messages: Sequence[int] | None = None,
        calls: Sequence[str] | None = None,
        refs: Sequence[str] | None = None,
        dropped: Sequence[str] | None = None,
    ) -> None:
        """Note what the window of a model call held, where the runtime knows it."""
        self._check_open()
        event = _valid(
            ContextComposed,
            model=model,
            parameters=None if parameters is None else dict(parameters),
            system=None if system is None else digest_of_text(system),
            messages=None if messages is None else tuple(messages),
            calls=None if calls is None else tuple(calls),
            refs=None if refs is None else tuple(refs),
            dropped=None if dropped is None else tuple(dropped),
        )
        self._observe(event, system)

    def answer(self, content: Any, *, cites: Sequence[str] = (), answer_id: str | None = None, message: int | None = None) -> Answer:
        """Record the run's answer, closed. `cites` names the refs that it rests on; refs in its text are found."""
        self._check_open()
        return self._ledger._answer(self._place, content, cites=cites, answer_id=answer_id, message=message)

    def end(self, outcome: Outcome = "closed", error_class: str | None = None) -> None:
        """End the run, for every process that joined it. Ending it again does nothing."""
        if self._ended:
            return
        self._ended = True
        draft = self._place.draft(RunEnded(outcome=outcome, error_class=error_class))
        try:
            self._ledger._store.append(lambda state: Decision(None, [draft], releases=self.run_id), key=self._place.key)
        except StoreFault:
            # The end is an observation: it waits with the rest, and `Ledger.close` is where a failing store is told of.
            self._ledger._store.observe(self._place.key, draft)

    def flush(self) -> None:
        """Commit what waits in memory. Raises `StoreFault` when the store fails."""
        self._ledger._store.flush(self._place.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._joined or self._keep_open:
            self._ledger._flush_quietly(self._place.key)
        else:
            self.end(*_outcome(kind))

    def _check_open(self) -> None:
        if self._ended:
            raise RunRefused(self.run_id, "expected a run that is open; this one has ended. Open another with `Ledger.run`.")


class Call(_Verbs):
    """One dispatch of a tool call. Made by `Run.call`; use it as a context manager."""

    def __init__(
        self, ledger: Ledger, place: Place, *, args: Mapping[str, Any] | None, step: int, turn: int | None, message: int | None
    ) -> None:
        self._ledger = ledger
        self._place = place
        self._args: dict[str, Any] = dict(args or {})
        self._resolved: list[str] = []
        self._refused = False
        self._ended: CallEnded | None = None
        self._result_text: str | None = None
        text = None if args is None else text_of(self._args)
        self._started = _valid(
            CallStarted,
            tool=place.tool,
            step=step,
            turn=turn,
            message=message,
            arguments=None if text is None else digest_of_text(text),
            size=None if text is None else len(text.encode()),
        )
        self._arguments_text = text

    @property
    def call_id(self) -> str:
        assert self._place.call_id is not None
        return self._place.call_id

    @property
    def dispatch(self) -> int:
        """1 when this call is dispatched for the first time, 2 for the second, …"""
        assert self._place.dispatch is not None
        return self._place.dispatch

    def resolve(self, wants: ToolWants, *, args: Mapping[str, Any] | None = None, input_schema: Schema | None = None) -> Resolved | Refused:
        """Redeem the refs among the arguments, and record it: closed, one event, whether resolved or refused.

        `args` are those that `Run.call` was given, unless given here. On `Refused`, do not run the tool: hand the model
        `refusal`. A store that fails raises `StoreFault`, and then the tool must not run either.
        """
        outcome = resolve(self._ledger._store, self._place, wants, self._args if args is None else args, input_schema)
        if isinstance(outcome, Refused):
            self._refused = True
        else:
            self._resolved += [meta.ref for _, meta in outcome.resolved]
        return outcome

    def result(self, value: Any, *, message: int | None = None) -> Any:
        """Record what the model reads as the call's result, and give it back."""
        if self._ended is not None:
            raise InvalidArtifact("result", "expected one result a dispatch; this one has its result. Dispatch the call again for another.")
        text = text_of(value)
        self._ended = CallEnded(
            status="refused" if self._refused else "ok",
            message=message,
            result=None if text is None else digest_of_text(text),
            size=None if text is None else len(text.encode()),
        )
        self._result_text = text
        return value

    def fail(self, error_class: str | None = None, value: Any = None, *, message: int | None = None) -> None:
        """Record that the tool failed, and what the model reads of it."""
        text = None if value is None else text_of(value)
        self._ended = _valid(
            CallEnded,
            status="error",
            message=message,
            result=None if text is None else digest_of_text(text),
            size=None if text is None else len(text.encode()),
            error_class=error_class,
        )
        self._result_text = text

    def __enter__(self) -> Self:
        self._observe(self._started, self._arguments_text)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._observe(self._closing(kind), self._result_text)

    def _closing(self, kind: type[BaseException] | None) -> CallEnded:
        if kind is not None:
            recorded = self._ended or CallEnded(status="error")
            return recorded.model_copy(update={"status": "error", "error_class": kind.__name__[:200]})
        if self._ended is not None:
            return self._ended
        status: Status = "refused" if self._refused else "no-result"
        return CallEnded(status=status)

    def _resolved_refs(self) -> Sequence[str]:
        return self._resolved


def answer_event(content: Any, cites: Sequence[str], answer_id: str | None, message: int | None) -> tuple[AnswerGiven, str | None]:
    """An answer as its event, and its text where it has one."""
    if isinstance(cites, str) or not all(isinstance(ref, str) and is_ref(ref) for ref in cites):
        raise InvalidArtifact(
            "cites", "expected `cites` to be a list of refs (`art_` and 22 letters or digits). Pass those that were minted."
        )
    text = text_of(content)
    if text is None:
        raise InvalidArtifact("content", "expected an answer that is text, or that JSON carries exactly. Convert it.")
    event = _valid(
        AnswerGiven,
        answer_id=mint_answer_id() if answer_id is None else checked_id("answer_id", answer_id),
        content=digest_of_text(text),
        size=len(text.encode()),
        message=message,
        cited=tuple(dict.fromkeys(cites)) or None,
        found=refs_in(text) or None,
    )
    return event, text


def checked_id(name: str, value: object) -> str:
    """An id from outside, if it can stand in the log."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID or not value.isprintable():
        raise InvalidArtifact(
            name, f"expected `{name}` to be 1 to {MAX_ID} printable characters. Give such an id, or none to have one minted."
        )
    return value


def _valid(kind: Any, **fields: Any) -> Any:
    try:
        return kind(**fields)
    except ValidationError as error:
        raise invalid(error) from None


def _outcome(kind: type[BaseException] | None) -> tuple[Outcome, str | None]:
    if kind is None:
        return "closed", None
    return ("failed" if issubclass(kind, Exception) else "left"), kind.__name__[:200]
