"""`refledger verify`: the log, checked against itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from refledger.cli.console import number, print_table, progress, say, say_json
from refledger.cli.exits import DAMAGED
from refledger.cli.options import JsonDocument, LogPath, opened

if TYPE_CHECKING:
    from refledger.verify import Report, Verdict

_COLUMNS = ("verdict", "of", number("checked"), number("not checkable"), "question")


def verify(log: LogPath = None, as_json: JsonDocument = False) -> None:
    """Check the log against itself, and say what that cannot show. `Ledger.verify` in Python.

    Exits with 1 where anything is damaged.
    """
    with opened(log) as ledger, progress("events") as told:
        report = ledger.verify(told)
    if as_json:
        say_json({"ok": report.ok, **asdict(report), "verdicts": [{"ok": verdict.ok, **asdict(verdict)} for verdict in report.verdicts]})
    else:
        _say(report)
    if not report.ok:
        raise typer.Exit(DAMAGED)


def _say(report: Report) -> None:
    print_table(_COLUMNS, map(_row, report.verdicts))
    for verdict in report.verdicts:
        for problem in verdict.problems:
            say(f"{verdict.name}: {problem}")
        if verdict.found > len(verdict.problems):
            say(f"{verdict.name}: and {verdict.found - len(verdict.problems):,} more")
    say()
    say("Not checked, since a log cannot say it of itself:")
    for what in report.not_checked:
        say(f"  - {what}")
    say()
    say(f"{'Sound' if report.ok else 'DAMAGED'}: {report.events:,} events of log {report.log_id}, root {report.root}")


def _row(verdict: Verdict) -> tuple[str, ...]:
    return ("ok" if verdict.ok else "DAMAGED", verdict.name, f"{verdict.checked:,}", f"{verdict.skipped:,}", verdict.question)
