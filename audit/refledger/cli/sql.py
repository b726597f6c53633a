"""`refledger sql`: one SELECT over the log."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from refledger.cli.console import note, plain, print_table, say_json
from refledger.cli.options import JsonDocument, LogPath, opened


def sql(
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="One SELECT in DuckDB's SQL, or - to read it from stdin.")],
    log: LogPath = None,
    as_json: JsonDocument = False,
) -> None:
    """Ask one SELECT over the views and macros of the catalogue. `Ledger.sql` in Python.

    `SHOW TABLES` lists the views, `DESCRIBE <view>` the columns of one.
    """
    text = sys.stdin.read() if statement == "-" else statement
    with opened(log) as ledger:
        result = ledger.sql(text)
    if as_json:
        say_json(asdict(result))
        return
    print_table(result.columns, ([_cell(value) for value in row] for row in result.rows))
    rows = "1 row" if len(result.rows) == 1 else f"{len(result.rows):,} rows"
    note(f"{rows}; {result.scanned.rows:,} events read of log {', '.join(result.scanned.sources)}.")


def _cell(value: object) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    return Text(value.hex() if isinstance(value, bytes) else plain(str(value)))
