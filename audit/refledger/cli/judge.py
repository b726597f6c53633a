"""`refledger judge`: what a person or a grader says of an answer."""

from __future__ import annotations

from typing import Annotated

import typer

from refledger.cli.console import say, say_json
from refledger.cli.options import JsonDocument, LogPath, answer_named, opened
from refledger_schema.events import Verdict


def judge(
    answer: Annotated[str, typer.Argument(metavar="ANSWER", help="The answer's id, or `latest`.")],
    verdict: Annotated[Verdict, typer.Argument(help="What is to be said of it.")],
    log: LogPath = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who judges.")] = None,
    why: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="What they say of it.")] = None,
    as_json: JsonDocument = False,
) -> None:
    """Record a verdict on an answer; the newest stands. `Ledger.judge` in Python."""
    with opened(log) as ledger:
        answer_id = answer_named(ledger, answer)
        ledger.judge(answer_id, verdict, by=by, note=why)
    if as_json:
        say_json({"answer_id": answer_id, "verdict": verdict})
    else:
        say(f"{answer_id} is judged {verdict}.")
