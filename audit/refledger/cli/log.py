"""`refledger log`: the events, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

import typer
from rich.table import Column

from refledger.cli.console import identity, note, number, print_table, say_json, short_id, when
from refledger.cli.options import JsonLines, LogPath, opened
from refledger.cli.summaries import summary
from refledger.ledger import Ledger
from refledger_schema.envelope import Recorded
from refledger_schema.events import KINDS
from refledger_schema.scopes import Scope, scope_of

_COLUMNS = (
    number("position"),
    identity("recorded (UTC)"),
    Column("type", min_width=18, no_wrap=True),
    "scope",
    Column("run", min_width=11, no_wrap=True),
    "call",
    "what",
)
_TYPES = sorted({kind for kind, _ in KINDS})


def _known(types: list[str] | None) -> list[str] | None:
    for kind in types or ():
        if kind not in _TYPES:
            raise typer.BadParameter(f"{kind!r} is no type of event. The types are {', '.join(_TYPES)}.")
    return types


def log(
    log: LogPath = None,
    after: Annotated[int, typer.Option("--after", metavar="POSITION", min=0, help="Only events behind this position.")] = 0,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="How many at most; all, unless given.")] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", callback=_known, help="Only events of this type. Repeatable.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option("--scope", metavar="KEY", help="Only this scope, by its key: tenant/principal/conversation.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only scopes of this tenant.")] = None,
    principal: Annotated[str | None, typer.Option("--principal", help="Only scopes of this principal.")] = None,
    conversation: Annotated[str | None, typer.Option("--conversation", help="Only scopes of this conversation.")] = None,
    as_json: JsonLines = False,
) -> None:
    """List the events in their order. `Ledger.events` in Python, `events` in SQL."""
    within = None if scope is None else scope_of(scope)
    names = {"tenant": tenant, "principal": principal, "conversation": conversation}
    with opened(log) as ledger:
        found = (
            recorded
            for recorded in _behind(ledger, after, within)
            if (not types or recorded.event.type in types) and _has(recorded.scope, names)
        )
        events = islice(found, limit)
        if as_json:
            for recorded in events:
                say_json(_as_json(recorded))
        elif not print_table(_COLUMNS, _rows(events)):
            note("No such event.")


def _behind(ledger: Ledger, after: int, scope: Scope | None) -> Iterator[Recorded]:
    """Events behind a position, also within one scope, where the ledger counts by the scope's own sequence."""
    if scope is None:
        return ledger.events(after=after)
    return (recorded for recorded in ledger.events(scope=scope) if recorded.position > after)


def _has(scope: Scope | None, names: dict[str, str | None]) -> bool:
    return all(wanted is None or (scope is not None and getattr(scope, name) == wanted) for name, wanted in names.items())


def _rows(events: Iterable[Recorded]) -> Iterator[tuple[str, ...]]:
    for recorded in events:
        yield (
            str(recorded.position),
            when(recorded.recorded_us),
            recorded.event.type,
            "" if recorded.scope is None else recorded.scope.key,
            short_id(recorded.run_id or ""),
            short_id(recorded.call_id or ""),
            summary(recorded.event) + (" (texts erased)" if recorded.erased else ""),
        )


def _as_json(recorded: Recorded) -> dict[str, object]:
    body, texts = recorded.event.split()
    return {
        "log_id": recorded.log_id,
        "position": recorded.position,
        "event_id": recorded.event_id,
        "type": recorded.event.type,
        "version": recorded.event.version,
        "recorded_us": recorded.recorded_us,
        "occurred_us": recorded.occurred_us,
        "scope": None if recorded.scope is None else recorded.scope.key,
        "scope_seq": recorded.scope_seq,
        "run_id": recorded.run_id,
        "call_id": recorded.call_id,
        "dispatch": recorded.dispatch,
        "body": body,
        "texts": texts,
        "erased": recorded.erased,
    }
