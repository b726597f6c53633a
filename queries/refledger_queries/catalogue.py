"""The catalogue: views and table macros over `log_events`, one object a `.sql` file, named after it.

`log_events` is a table of `refledger_schema.arrow.LOG_SCHEMA`; it may hold several logs, and nothing joins across them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

OBJECTS = (
    "segment_of",
    "strength_of",
    "events",
    "gaps",
    "imports",
    "runs",
    "messages",
    "call_starts",
    "call_ends",
    "calls",
    "corruptions",
    "mints",
    "artifacts",
    "edges",
    "reads",
    "presentations",
    "resolutions",
    "judgements",
    "offered_kinds",
    "offers",
    "spoken_arguments",
    "dispatches",
    "next_dispatches",
    "refusals",
    "verb_refusals",
    "coverage",
    "declaration_refusals",
    "contexts",
    "verdicts",
    "answers",
    "matches",
    "links",
    "lineage",
    "descendants",
    "live_at",
    "backtrack_nodes",
    "rows_of",
    "coverage_of",
    "backtrack",
    "backtrack_coverage",
)
"""Every object, each after those that it reads."""

_CLOSED = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # Else SQL could read the variables of the Python program that asks.
    "python_enable_replacements": False,
}


@dataclass(frozen=True, slots=True)
class Described:
    """One object of the catalogue, for whoever wants to write SQL."""

    name: str
    sort: Literal["view", "macro"]
    question: str
    """What it answers, and what a row is."""
    columns: tuple[tuple[str, str], ...]
    """(name, type) of each column of a view, in order."""
    parameters: tuple[str, ...]
    """The parameters of a macro."""


def connect(log: pa.Table) -> duckdb.DuckDBPyConnection:
    """A DuckDB of your own, in memory, with the catalogue over `log`. Times are shown in UTC."""
    connection = _empty()
    connection.register("log_events", log)
    _create(connection)
    return connection


@contextmanager
def reading(log: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same for a question of our own, at a fraction of the cost: the catalogue is made once a process.

    Only what this connection registers or makes TEMPORARY is its own, so it is not for anybody else's SQL.
    """
    connection = _shared().cursor()
    try:
        connection.register("log_events", log)
        yield connection
    finally:
        connection.close()


def schema_of(connection: duckdb.DuckDBPyConnection) -> tuple[Described, ...]:
    """What can be asked on a connection with the catalogue: its views and macros, in the catalogue's order."""
    columns: dict[str, list[tuple[str, str]]] = {}
    for view, column, data_type in connection.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = 'main' ORDER BY table_name, column_index"
    ).fetchall():
        columns.setdefault(view, []).append((column, data_type))
    parameters: dict[str, list[str]] = dict(
        connection.execute(
            "SELECT function_name, parameters FROM duckdb_functions() WHERE schema_name = 'main' AND function_type LIKE '%macro' AND NOT internal"
        ).fetchall()
    )
    return tuple(
        Described(
            name=name,
            sort="view" if name in columns else "macro",
            question=question_of(name),
            columns=tuple(columns.get(name, ())),
            parameters=tuple(parameters.get(name, ())),
        )
        for name in OBJECTS
    )


def question_of(name: str) -> str:
    """The comment that opens an object's file."""
    lines = []
    for line in statement_of(name).splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    return " ".join(lines)


@cache
def statement_of(name: str) -> str:
    """The statement that creates an object, with the comment in front."""
    return resources.files(__package__).joinpath("catalogue", f"{name}.sql").read_text(encoding="utf-8")


@cache
def _shared() -> duckdb.DuckDBPyConnection:
    """The catalogue of this process, over no log."""
    from refledger_schema.arrow import LOG_SCHEMA

    connection = _empty({"threads": 1})
    connection.register("log_events", LOG_SCHEMA.empty_table())
    _create(connection)
    connection.unregister("log_events")
    return connection


if hasattr(os, "register_at_fork"):
    # A database that is open across a fork keeps the child from exiting: DuckDB waits there for threads of the parent.
    os.register_at_fork(before=_shared.cache_clear)


def _empty(options: dict[str, bool | int] | None = None) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(":memory:", config={**_CLOSED, **(options or {})})
    # Global, or a cursor would show times in the machine's zone.
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    for name in OBJECTS:
        connection.execute(statement_of(name))
