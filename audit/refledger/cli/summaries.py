"""An event in a few words, from the event alone."""

from __future__ import annotations

from refledger.cli.console import short_digest
from refledger_schema import events
from refledger_schema.events import Event


def summary(event: Event) -> str:
    """What happened, for a line of a listing."""
    return " ".join(word for word in _words(event) if word)


def _words(event: Event) -> list[str]:
    match event:
        case events.LogOpened():
            content = "texts kept" if event.record_content else "texts not kept"
            return [f"by {event.software}, durability {event.durability}, observations {event.observations}, {content}", *_retention(event)]
        case events.LogGap():
            return [f"{'unknown many' if event.count is None else event.count} observations lost: {event.why}"]
        case events.RunStarted():
            return [f"agent {event.agent or '?'}, model {event.model or '?'}", *_parent_run(event)]
        case events.RunEnded():
            return [event.outcome, *_named("", event.error_class)]
        case events.MessageNoted():
            return [f"{event.role}, message {event.index}, {_bytes(event.size)}"]
        case events.CallStarted():
            return [", ".join([event.tool, f"step {event.step}", *_named("turn", event.turn)])]
        case events.CallEnded():
            return [event.status, *_named("", event.error_class), *([] if event.size is None else [_bytes(event.size)])]
        case events.ArtifactMinted():
            return [event.ref, event.kind, short_digest(event.digest), _bytes(event.bytes), *_quoted(event.label)]
        case events.ArtifactRead():
            return [event.ref, f"{event.via} by a {event.door}, {'verified' if event.verified else 'not verified'}"]
        case events.ArtifactPresented():
            return [event.ref, f"by a {event.door}", *_named("as", event.shown_as)]
        case events.ArtifactGone():
            return [event.ref, event.cause, *_named("for", event.forced_by), *_named("by", event.by)]
        case events.ArtifactRefused():
            return [event.op, *_named("", event.ref), f"{event.reason} ({event.cause})"]
        case events.DispatchResolved():
            return [f"{event.tool}:", ", ".join(f"{argument.argument}={argument.ref}" for argument in event.arguments) or "nothing spoken"]
        case events.DispatchRefused():
            refused = [f"{argument.argument} {argument.reason} ({argument.cause})" for argument in event.arguments if argument.reason]
            offered = [f"{len(offers.refs)} of {offers.total} {offers.kind} offered" for offers in event.offers]
            return [f"{event.tool}:", "; ".join(refused + offered)]
        case events.CoverageDeclared():
            lists = (("checked", event.checked), ("not checked", event.not_checked), ("out of reach", event.cannot_cover))
            return [event.kind, ", ".join(f"{len(items)} {what}" for what, items in lists if items), *_quoted(event.looked_for)]
        case events.DeclarationRefused():
            return [event.helper or "?", *_named("at", event.at), *_named("key", event.key), *_named("meant", event.meant)]
        case events.ContextComposed():
            held = [
                f"{len(held or ())} {what}" for what, held in (("messages", event.messages), ("calls", event.calls), ("refs", event.refs))
            ]
            return [f"window of {', '.join(held)}"]
        case events.AnswerGiven():
            return [event.answer_id, _bytes(event.size), *_listed("cites", event.cited), *_listed("names", event.found)]
        case events.AnswerJudged():
            return [event.answer_id, event.verdict, *_named("by", event.by), *_quoted(event.note)]
        case events.ImportNoted():
            return [f"from {event.format}", short_digest(event.source)]
        case _:
            return []


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size:,} bytes"


def _retention(event: events.LogOpened) -> list[str]:
    bounds = (("ttl_us", event.ttl_us), ("max_bytes", event.max_bytes), ("max_count", event.max_count))
    return [f"{name} {bound}" for name, bound in bounds if bound is not None]


def _parent_run(event: events.RunStarted) -> list[str]:
    return _named("called by", event.parent_run) + _named("in", event.parent_call)


def _named(word: str, value: object | None) -> list[str]:
    return [] if value is None else [f"{word} {value}".strip()]


def _quoted(text: str | None) -> list[str]:
    return [] if not text else [f"'{text}'"]


def _listed(word: str, refs: tuple[str, ...] | None) -> list[str]:
    return [f"{word} {', '.join(refs)}"] if refs else []
