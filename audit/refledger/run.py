"""A run of an agent: its calls, its messages, and its answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from refledger.call import Call
from refledger.limits import Declared, limits_block
from refledger.recorder import Content, Place, Recorder, idempotency, replayed
from refledger.scoped import ScopedVerbs, checked_id, valid
from refledger.verbs import Verbs
from refledger_schema.envelope import event_of
from refledger_schema.errors import InvalidArtifact, LogCorrupt, RunRefused, StoreFault
from refledger_schema.events import MAX_NAME, AnswerGiven, ContextComposed, Idempotency, MessageNoted, Outcome, RunEnded
from refledger_schema.refs import is_ref, mint_answer_id, mint_call_id, refs_in
from refledger_schema.scopes import Scope
from refledger_store.append import Decision, Locked


@dataclass(frozen=True, slots=True)
class Answer:
    """What the run answered, as it was recorded."""

    answer_id: str
    cited: tuple[str, ...]
    """The refs that the answer is said to rest on."""
    found: tuple[str, ...]
    """The refs found in its text."""
    limits: str = ""
    """What the calls of this run, as far as this process made them, said that they did not cover; to travel with the answer."""


class Run(ScopedVerbs):
    """One agent's run. Made by `Ledger.run`; use it as a context manager, from any thread.

    A run that was started here ends with its block; one that was joined goes on, until `end` or its starter ends it.
    """

    def __init__(
        self,
        verbs: Verbs,
        place: Place,
        *,
        joined: bool,
        keep_open: bool,
        calls: Mapping[str, int],
        place_above: int | None,
    ) -> None:
        super().__init__(verbs, place)
        self._joined = joined
        self._keep_open = keep_open
        self._place_above = place_above
        self._lock = threading.Lock()
        self._dispatches = dict(calls)
        self._steps = {call_id: step for step, call_id in enumerate(calls, start=1)}
        self._messages = 0
        self._limits: list[Declared] = []
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
        return Call(
            self._verbs,
            place,
            args=args,
            step=step,
            turn=turn,
            message=message,
            place_above=self._place_above,
            declared=self._limits.append,
        )

    def message(self, role: str, content: Any = None, *, index: int | None = None, turn: int | None = None) -> int:
        """Note a message of the conversation; says its index."""
        self._check_open()
        with self._lock:
            self._messages = index = self._messages + 1 if index is None else index
        kept = None if content is None else self._recorder.content(content)
        event = valid(
            MessageNoted,
            role=role,
            index=index,
            turn=turn,
            content=None if kept is None else kept.digest,
            size=0 if kept is None else kept.size,
        )
        self._recorder.observe(self._place, event, kept)
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
        prompt = None if system is None else self._recorder.content(system)
        event = valid(
            ContextComposed,
            model=model,
            parameters=None if parameters is None else dict(parameters),
            system=None if prompt is None else prompt.digest,
            messages=None if messages is None else tuple(messages),
            calls=None if calls is None else tuple(calls),
            refs=None if refs is None else tuple(refs),
            dropped=None if dropped is None else tuple(dropped),
        )
        self._recorder.observe(self._place, event, prompt)

    def answer(
        self,
        content: Any,
        *,
        cites: Sequence[str] = (),
        answer_id: str | None = None,
        message: int | None = None,
        key: str | None = None,
    ) -> Answer:
        """Record the run's answer, closed. `cites` names the refs that it rests on; refs in its text are found.

        The same idempotency `key` with the same text gives the first answer again.
        """
        self._check_open()
        answer = give_answer(self._recorder, self._place, content, cites, answer_id, message, key)
        return replace(answer, limits=limits_block(self._limits))

    def end(self, outcome: Outcome = "closed", error_class: str | None = None) -> None:
        """End the run, for every process that joined it. Ending it again does nothing."""
        if self._ended:
            return
        self._ended = True
        draft = self._place.draft(valid(RunEnded, outcome=outcome, error_class=error_class))
        store = self._recorder.store
        try:
            store.append(lambda state: Decision(None, [draft], releases=self.run_id), key=self._place.key)
        except StoreFault:
            # The end is an observation: it waits with the rest, and `Ledger.close` is where a failing store is told of.
            store.observe(self._place.key, draft)

    def flush(self) -> None:
        """Commit what waits in memory. Raises `StoreFault` when the store fails."""
        self._recorder.store.flush(self._place.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._joined or self._keep_open:
            self._recorder.store.flush_quietly(self._place.key)
        else:
            self.end(*_outcome(kind))

    def _check_open(self) -> None:
        if self._ended:
            raise RunRefused(self.run_id, "expected a run that is open; this one has ended. Open another with `Ledger.run`.")


def give_answer(
    recorder: Recorder,
    place: Place,
    content: Any,
    cites: Sequence[str],
    answer_id: str | None,
    message: int | None,
    key: str | None,
) -> Answer:
    """Record an answer, closed."""
    kept = recorder.content(content)
    if kept is None:
        raise InvalidArtifact("content", "expected an answer that is text, or that JSON carries exactly. Convert it.")
    used = idempotency(key, [kept.digest])
    event = _answer_event(kept, cites, answer_id, message, used)

    def decide(state: Locked) -> Decision[Answer]:
        before = replayed(state, place.scope, "answer", used)
        if before is not None:
            return Decision(_answered_at(state, before))
        if answer_id is not None and state.answer(answer_id) is not None:
            raise InvalidArtifact("answer_id", "expected an answer id that is new to this log; it was used before. Give another, or none.")
        return Decision(_answer(event), [place.draft(event)], content=recorder.kept(place, kept))

    return recorder.append(decide, place)


def _answer_event(kept: Content, cites: Sequence[str], answer_id: str | None, message: int | None, used: Idempotency | None) -> AnswerGiven:
    if isinstance(cites, str) or not all(isinstance(ref, str) and is_ref(ref) for ref in cites):
        raise InvalidArtifact(
            "cites", "expected `cites` to be a list of refs (`art_` and 22 letters or digits). Pass those that were minted."
        )
    event: AnswerGiven = valid(
        AnswerGiven,
        answer_id=mint_answer_id() if answer_id is None else checked_id("answer_id", answer_id),
        content=kept.digest,
        size=kept.size,
        message=message,
        cited=tuple(dict.fromkeys(cites)) or None,
        found=refs_in(kept.text) or None,
        idempotency=used,
    )
    return event


def _answer(event: AnswerGiven) -> Answer:
    return Answer(event.answer_id, event.cited or (), event.found or ())


def _answered_at(state: Locked, position: int) -> Answer:
    """The answer that the event at a position gave."""
    row = state.event(position)
    event = None if row is None else event_of(row)
    if not isinstance(event, AnswerGiven):
        raise LogCorrupt(position, f"position {position}: expected the answer that a receipt speaks of. Run `refledger verify`.")
    return _answer(event)


def _outcome(kind: type[BaseException] | None) -> tuple[Outcome, str | None]:
    if kind is None:
        return "closed", None
    return ("failed" if issubclass(kind, Exception) else "left"), kind.__name__[:MAX_NAME]
