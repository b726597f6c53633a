"""`refledger answers`: the answers, newest first."""

from __future__ import annotations

from dataclasses import asdict

from refledger.cli.console import identity, note, number, print_table, say_json
from refledger.cli.options import JsonLines, Limit, LogPath, opened

_COLUMNS = (identity("answer"), "verdict", "run", "call", "scope", number("given at"), number("judged at"))


def answers(log: LogPath = None, limit: Limit = 50, as_json: JsonLines = False) -> None:
    """List the answers with their newest verdicts, newest first. `Ledger.answers` in Python, `answers` in SQL."""
    with opened(log) as ledger:
        found = ledger.answers(limit=limit)
    if as_json:
        for answer in found:
            say_json(asdict(answer))
    elif not print_table(
        _COLUMNS,
        (
            (
                answer.answer_id,
                answer.verdict or "unjudged",
                answer.run_id or "",
                answer.call_id or "",
                answer.scope,
                str(answer.given),
                "" if answer.judged is None else str(answer.judged),
            )
            for answer in found
        ),
    ):
        note("No answer in this log yet.")
