"""How commands print: results to stdout, the rest to stderr, and whatever an agent wrote as nothing but text.

People get tables: on a terminal as wide as it is, elsewhere as wide as they need to be, so that a row is a line. Programs get
JSON in ASCII, a document or an object a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column, Table
from rich.text import Text

from refledger_schema.wording import one_line

READER_LEFT = 141
"""The exit code of a program whose reader closed the pipe, as the shell has it."""
_PAGE = 500
"""How many rows are laid out together, so that a long table starts at once and is never held whole."""
_AS_WIDE_AS_NEEDED = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class _Stdout(Console):
    def on_broken_pipe(self) -> None:
        reader_left()


def stdout() -> Console:
    """Where results go."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _AS_WIDE_AS_NEEDED
    return _Stdout(width=wide, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def say(text: str | Text = "") -> None:
    """A line of a result. It is printed as it stands: no markup, no line broken by us."""
    stdout().print(text if isinstance(text, Text) else Text(text), soft_wrap=True)


def say_json(value: object) -> None:
    """A JSON document or line. What JSON lacks (times, decimals, bytes in hexadecimal, NaN) stands in it as text."""
    try:
        sys.stdout.write(json.dumps(_in_json(value), allow_nan=False) + "\n")
    except BrokenPipeError:
        reader_left()


def note(text: str) -> None:
    """Something beside the result, for people."""
    stderr().print(Text(one_line(text)), soft_wrap=True)


def complain(text: str) -> None:
    """The one line of an error."""
    note(f"refledger: {text}")


def print_table(columns: Sequence[str | Column], rows: Iterable[Sequence[str | Text]]) -> int:
    """Print rows under their headers; says how many there were. Cells are text, whatever they look like."""
    console, remaining, count = stdout(), iter(rows), 0
    while page := list(islice(remaining, _PAGE)):
        table = Table(
            *(_column(column) for column in columns), box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=not count, header_style="bold"
        )
        for row in page:
            table.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in row))
        console.print(table)
        count += len(page)
    return count


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, where that is a terminal; it is told how many of how many are done."""
    console = stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def when(us: int) -> str:
    """An instant for people, in UTC."""
    try:
        return (_EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return f"{us} us"


def short_digest(digest: str) -> str:
    """The start of a digest, enough to tell it from others."""
    return digest[: len("sha-256:") + 12] + "…"


def reader_left() -> NoReturn:
    """Nobody reads on. What Python still flushes at its end must go nowhere, quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(READER_LEFT)


def _column(column: str | Column) -> Column:
    made = Column(column) if isinstance(column, str) else column
    made.overflow = "fold"
    made.header = Text(one_line(str(made.header)))
    return made


def _in_json(value: object) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {str(key): _in_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_in_json(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
