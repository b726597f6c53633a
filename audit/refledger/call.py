"""One dispatch of a tool call: what it was given, what it put, and what the model read of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from refledger.dispatch import resolve
from refledger.limits import Declared, model_view, recognise
from refledger.placement import placed_ticket
from refledger.recorder import Content, Place
from refledger.results import Item
from refledger.scoped import ScopedVerbs, valid
from refledger.verbs import Verbs
from refledger.wants import Refused, Resolved, Schema, ToolWants
from refledger_schema import events
from refledger_schema.errors import DeclarationRefused, InvalidArtifact
from refledger_schema.events import MAX_NAME, CallEnded, CallStarted, CoverageDeclared, CoverageItem, Status


class Call(ScopedVerbs):
    """One dispatch of a tool call. Made by `Run.call`; use it as a context manager.

    Leaving the block without a result is status `no-result` (or `refused`, when dispatch refused); with an exception, `error`.
    """

    def __init__(
        self,
        verbs: Verbs,
        place: Place,
        *,
        args: Mapping[str, Any] | None,
        step: int,
        turn: int | None,
        message: int | None,
        place_above: int | None,
        declared: Callable[[Declared], None],
    ) -> None:
        super().__init__(verbs, place)
        self._declared = declared
        self._args: dict[str, Any] = dict(args or {})
        self._place_above = place_above
        self._resolved: list[str] = []
        self._refused = False
        self._ended: CallEnded | None = None
        self._result: Content | None = None
        self._arguments = None if args is None else self._recorder.content(self._args)
        self._started: CallStarted = valid(
            CallStarted,
            tool=place.tool,
            step=step,
            turn=turn,
            message=message,
            arguments=_digest(self._arguments),
            size=_size(self._arguments),
        )

    @property
    def call_id(self) -> str:
        assert self._place.call_id is not None
        return self._place.call_id

    @property
    def dispatch(self) -> int:
        """1 when this call is dispatched for the first time, 2 for the second, …"""
        assert self._place.dispatch is not None
        return self._place.dispatch

    def resolve(
        self,
        wants: ToolWants,
        *,
        args: Mapping[str, Any] | None = None,
        input_schema: Schema | None = None,
        key: str | None = None,
    ) -> Resolved | Refused:
        """Redeem the refs among the arguments, and record it: closed, one event, whether resolved or refused.

        `args` are those that `Run.call` was given, unless given here. On `Refused`, do not run the tool: hand the model
        `refusal`. A store that fails raises `StoreFault`, and then the tool must not run either. The same idempotency `key`
        with the same request is told the same again, unless what it resolved is gone.
        """
        outcome = resolve(self._recorder, self._place, wants, self._args if args is None else args, input_schema, key)
        if isinstance(outcome, Refused):
            self._refused = True
        else:
            self._resolved += [meta.ref for _, meta in outcome.resolved]
        return outcome

    def result(self, value: Any, *, message: int | None = None) -> Any:
        """Record the call's result, and give back what the model should read.

        That is the value itself; its limits first, where a result helper gave it; or a ticket, where it is too long.
        """
        self._check_no_result()
        given, ref = self._limited(value), None
        if self._place_above is not None and not self._refused:
            given, ref = placed_ticket(self, given, self._place_above)
        self._end("refused" if self._refused else "ok", given, message=message, placed=ref)
        return given

    def fail(self, error_class: str | None = None, value: Any = None, *, message: int | None = None) -> None:
        """Record that the tool failed, and what the model reads of it."""
        self._check_no_result()
        self._end("error", value, message=message, error_class=error_class)

    def __enter__(self) -> Self:
        self._recorder.observe(self._place, self._started, self._arguments)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, DeclarationRefused):
            self._recorder.observe(self._place, _refused_declaration(error))
        self._recorder.observe(self._place, self._closing(kind), self._result)

    @property
    def tool(self) -> str:
        return self._place.tool or "?"

    def _limited(self, value: Any) -> Any:
        """Record the limits that a result declares, and give back the model's view of it; anything else as it is."""
        declared = recognise(value)
        if declared is None:
            return value
        for limits in declared.each():
            event = valid(
                CoverageDeclared,
                kind=limits.kind,
                checked=_items(limits.checked),
                not_checked=_items(limits.not_checked),
                cannot_cover=_items(limits.cannot_cover),
                looked_for=limits.looked_for,
            )
            self._recorder.observe(self._place, event)
        self._declared(declared)
        return model_view(value)

    def _check_no_result(self) -> None:
        if self._ended is not None:
            raise InvalidArtifact("result", "expected one result a dispatch; this one has its result. Dispatch the call again for another.")

    def _end(self, status: Status, value: Any, *, message: int | None, placed: str | None = None, error_class: str | None = None) -> None:
        self._result = None if value is None and status == "error" else self._recorder.content(value)
        self._ended = valid(
            CallEnded,
            status=status,
            message=message,
            result=_digest(self._result),
            size=_size(self._result),
            placed=placed,
            error_class=error_class,
        )

    def _closing(self, kind: type[BaseException] | None) -> CallEnded:
        ended = self._ended or CallEnded(status="refused" if self._refused else "no-result")
        if kind is None:
            return ended
        return ended.model_copy(update={"status": "error", "error_class": kind.__name__[:MAX_NAME]})

    def _resolved_refs(self) -> Sequence[str]:
        return self._resolved


def _items(items: Sequence[Item] | None) -> tuple[CoverageItem, ...] | None:
    return None if items is None else tuple(CoverageItem(what=item.what, why=item.why) for item in items)


def _refused_declaration(error: DeclarationRefused) -> events.DeclarationRefused:
    event: events.DeclarationRefused = valid(
        events.DeclarationRefused,
        helper=error.helper,
        at=error.at,
        key=None if error.key is None else error.key[:MAX_NAME],
        meant=error.meant,
        known=tuple(name[:MAX_NAME] for name in error.known[:100]) or None,
    )
    return event


def _digest(content: Content | None) -> str | None:
    return None if content is None else content.digest


def _size(content: Content | None) -> int | None:
    return None if content is None else content.size
