"""`refledger import`: runs recorded elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import typer

from refledger.cli.console import note, progress, say, say_json
from refledger.cli.options import JsonLines, LogPath, opened
from refledger.importers import FORMATS, Format, ImportedRun
from refledger_schema.canonical import JsonValue
from refledger_schema.events import AnswerGiven, AnswerJudged
from refledger_schema.scopes import Scope

Record = dict[str, JsonValue]


def _known(name: str) -> str:
    if name not in FORMATS:
        raise typer.BadParameter(f"{name!r} is no format. The formats are {', '.join(FORMATS)}.")
    return name


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The trace.")],
    written_as: Annotated[
        str, typer.Option("--format", metavar="FORMAT", callback=_known, help=f"How the trace is written: {', '.join(FORMATS)}.")
    ],
    log: LogPath = None,
    write_tools: Annotated[
        list[str] | None,
        typer.Option("--write-tools", metavar="PATTERN", help="Tools that act, such as 'cancel_*': a wrong act is the answer. Repeatable."),
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant of every run.")] = "",
    principal: Annotated[str, typer.Option("--principal", help="The principal of every run.")] = "",
    conversation: Annotated[str, typer.Option("--conversation", help="One conversation for all; else each run is one of its own.")] = "",
    as_json: JsonLines = False,
) -> None:
    """Record the runs of a trace file; a run that the log has is left as it is. `Ledger.record` in Python.

    The file is read to its end before anything is recorded, so a trace that is refused leaves the log as it was. Then each
    run is a transaction of its own.
    """
    scope = Scope(conversation=conversation, tenant=tenant, principal=principal)
    form = FORMATS[written_as]
    read_runs, total = _checked(form, file)
    fresh = 0
    with opened(log, create=True) as ledger, progress("runs", lines_show_it=True) as told:
        for number, record in enumerate(read_runs(), start=1):
            imported = _imported(form, record, scope, write_tools or ())
            recorded = ledger.record(imported)
            fresh += recorded
            (_say_json if as_json else _say)(imported, recorded)
            told(number, total)
    note(f"{total:,} {'run' if total == 1 else 'runs'}: {fresh:,} imported, {total - fresh:,} already there.")


def _checked(form: Format, file: str) -> tuple[Callable[[], Iterable[Record]], int]:
    """The runs of a file, as often as asked for, and how many they are. What is no regular file is read once, and held."""
    if os.path.isfile(file):
        return lambda: form.read_runs(file), sum(1 for _ in form.read_runs(file))
    held = list(form.read_runs(file))
    return lambda: held, len(held)


def _imported(form: Format, record: Record, scope: Scope, write_tools: Sequence[str]) -> ImportedRun:
    """A run in the scope that was named; without a conversation, in one named after the run."""
    if not scope.conversation:
        run_id = form.imported_run(record).run_id
        scope = Scope(conversation=run_id, tenant=scope.tenant, principal=scope.principal)
    return form.imported_run(record, scope=scope, write_tools=write_tools)


def _say(imported: ImportedRun, recorded: bool) -> None:
    answer_id, verdict = _answer(imported)
    state = "imported" if recorded else "already there"
    # What an imported answer was judged meanwhile is the log's to say.
    say(
        f"{imported.run_id}  {state:<13}  {imported.steps:>4} steps  {answer_id or 'no answer':<26}  {(verdict or '') if recorded else ''}".rstrip()
    )


def _say_json(imported: ImportedRun, recorded: bool) -> None:
    answer_id, verdict = _answer(imported)
    say_json(
        {
            "run_id": imported.run_id,
            "imported": recorded,
            "steps": imported.steps,
            "answer_id": answer_id,
            "verdict": verdict if recorded else None,
            "scope": imported.scope.key,
            "source": imported.source,
        }
    )


def _answer(imported: ImportedRun) -> tuple[str | None, str | None]:
    """(answer's id, verdict), as the trace gives them."""
    events = [draft.event for draft in imported.drafts]
    answer_id = next((event.answer_id for event in events if isinstance(event, AnswerGiven)), None)
    verdict = next((event.verdict for event in events if isinstance(event, AnswerJudged)), None)
    return answer_id, verdict
