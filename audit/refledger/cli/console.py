"""How commands print: results to stdout, the rest to stderr, and whatever an agent wrote as nothing but text.

People get tables: on a terminal as wide as it is, elsewhere as wide as they need to be, so that a row is a line. Programs get
JSON in ASCII, a document or an object a line.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NoReturn

import typer
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column, Table
from rich.text import Text

from refledger.cli.exits import READER_LEFT

_PAGE = 500
"""How many rows are laid out together, so that a long table starts at once and is never held whole."""
_INDENT = "    "
_AS_WIDE_AS_NEEDED = 100_000
_MINTED = re.compile(r"\b((?:run|call|ans|art)_[0-9A-Za-z]{6})[0-9A-Za-z]{16}\b")
_DIGEST = re.compile(r"sha-256:[0-9a-f]{64}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def plain(text: str) -> str:
    """A text that an agent may have written, as one line: no control character reaches a terminal."""
    return "".join(char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in text)


def say(text: str = "") -> None:
    """A line of a result. It is printed as it stands: no markup, no line broken by us."""
    stdout().print(Text(plain(text)), soft_wrap=True)


def say_indented(text: str) -> None:
    """A text that somebody else wrote, set off: a line, broken where the terminal ends."""
    console = stdout()
    for line in Text(plain(text)).wrap(console, console.width - len(_INDENT)):
        say(_INDENT + line.plain.rstrip())


def say_json(value: object) -> None:
    """A JSON document or line. What JSON lacks (times, decimals, bytes in hexadecimal, NaN) stands in it as text."""
    try:
        sys.stdout.write(json.dumps(_in_json(value), allow_nan=False) + "\n")
    except BrokenPipeError:
        reader_left()


def note(text: str) -> None:
    """Something beside the result, for people."""
    stderr().print(Text(plain(text)), soft_wrap=True)


def complain(text: str) -> None:
    """The one line of an error."""
    note(f"refledger: {text}")


def identity(header: str) -> Column:
    """A column of ids: they are never broken, however narrow the terminal, so that they can be copied."""
    return Column(header, no_wrap=True)


def number(header: str) -> Column:
    return Column(header, justify="right", no_wrap=True)


def print_table(columns: Sequence[str | Column], rows: Iterable[Sequence[str | Text]]) -> int:
    """Print rows under their headers; says how many there were. Cells are text, whatever they look like."""
    cells = ([cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row] for row in rows)
    count = 0
    while page := list(islice(cells, _PAGE)):
        headers = [_column(column, [row[index] for row in page]) for index, column in enumerate(columns)]
        table = Table(*headers, box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=count == 0, header_style="bold")
        for row in page:
            table.add_row(*row)
        console = stdout()
        # A terminal too narrow for the ids gets longer lines rather than broken ids.
        console.width = max(console.width, Measurement.get(console, console.options.update(max_width=_AS_WIDE_AS_NEEDED), table).minimum)
        console.print(table)
        count += len(page)
    return count


@contextmanager
def progress(what: str, *, lines_show_it: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, where that is a terminal; it is told how many of how many are done.

    With `lines_show_it` there is none where results appear line by line on a terminal, which shows as much.
    """
    console = stderr()
    hidden = not console.is_terminal or (lines_show_it and sys.stdout.isatty())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=hidden, redirect_stdout=False, redirect_stderr=False) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def when(us: int) -> str:
    """An instant for people, in UTC."""
    try:
        return (_EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return f"{us} us"


def short_id(given: str) -> str:
    """An id or ref for a crowded line: one that we minted by its start, any other as it is."""
    return _MINTED.sub(r"\1…", given)


def shortened(text: str) -> str:
    """A text with its digests cut short."""
    return _DIGEST.sub(lambda found: short_digest(found[0]), text)


def short_digest(digest: str) -> str:
    """The start of a digest, enough to tell it from others."""
    return digest[: len("sha-256:") + 8] + "…"


def reader_left() -> NoReturn:
    """Nobody reads on. What Python still flushes at its end must go nowhere, quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(READER_LEFT)


def _column(column: str | Column, cells: Sequence[Text]) -> Column:
    fresh = Column(column) if isinstance(column, str) else column.copy()
    header = Text(plain(str(fresh.header)))
    needed = max(text.cell_len for text in (header, *cells)) if fresh.no_wrap else None
    return replace(fresh, header=header, overflow="fold", min_width=needed if fresh.min_width is None else fresh.min_width)


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
