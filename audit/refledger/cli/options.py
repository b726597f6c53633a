"""What commands share: how the log is named and opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from refledger.ledger import Ledger
from refledger_schema.errors import (
    LogCorrupt,
    NewerSchema,
    NoLog,
    NotOurSchema,
    OlderSchema,
    StoreFault,
    UnknownAnswer,
)

LogPath = Annotated[str | None, typer.Option("--log", metavar="PATH", envvar="REFLEDGER_LOG", help="The log: a SQLite file.")]
JsonLines = Annotated[bool, typer.Option("--json", help="For programs: a JSON object a line.")]
JsonDocument = Annotated[bool, typer.Option("--json", help="For programs: one JSON document.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many at most.")]

LATEST = "latest"
"""The newest answer, where an answer's id is asked for."""


@contextmanager
def opened(log: str | None, *, create: bool = False) -> Iterator[Ledger]:
    """The ledger that a command works on. Errors about the file say which file it is."""
    if log is None:
        raise NoLog("expected a log to work on; none was named. Pass --log PATH, or set REFLEDGER_LOG to the path.")
    try:
        with Ledger.open(log, create=create) as ledger:
            yield ledger
    except (NoLog, NotOurSchema, NewerSchema, OlderSchema, LogCorrupt, StoreFault) as error:
        error.add_note(f"The log is {log}")
        raise


def answer_named(ledger: Ledger, answer_id: str) -> str:
    """An answer's id as it was given, or that of the newest."""
    if answer_id != LATEST:
        return answer_id
    newest = ledger.answers(limit=1)
    if not newest:
        raise UnknownAnswer(answer_id)
    return newest[0].answer_id
