"""`refledger runs`: the runs, newest first."""

from __future__ import annotations

from dataclasses import asdict

from refledger.cli.console import identity, note, number, print_table, say_json
from refledger.cli.options import JsonLines, Limit, LogPath, opened

_COLUMNS = (identity("run"), "scope", "agent", "model", number("started at"), number("ended at"), "outcome")


def runs(log: LogPath = None, limit: Limit = 50, as_json: JsonLines = False) -> None:
    """List the runs, newest first. `Ledger.runs` in Python, `runs` in SQL."""
    with opened(log) as ledger:
        found = ledger.runs(limit=limit)
    if as_json:
        for run in found:
            say_json(asdict(run))
    elif not print_table(
        _COLUMNS,
        (
            (
                run.run_id,
                run.scope,
                run.agent or "",
                run.model or "",
                str(run.started),
                "" if run.ended is None else str(run.ended),
                run.outcome or "unfinished",
            )
            for run in found
        ),
    ):
        note("No run in this log yet.")
