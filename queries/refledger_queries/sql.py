"""An analyst's question: one SELECT over the catalogue, read-only, with nothing but the log to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from refledger_queries.catalogue import connect
from refledger_queries.sources import Scanned, Source, table_of
from refledger_schema.errors import InvalidConfiguration, QueryRefused

if TYPE_CHECKING:
    import duckdb

Parameters = Sequence[Any] | Mapping[str, Any]

_MAX_HINT = 400
"""How much of DuckDB's complaint about a statement is repeated, in characters."""


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a question, and what was read for them."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """DuckDB's names of the columns' types."""
    rows: tuple[tuple[Any, ...], ...]
    """Python values: a BLOB is bytes, a TIMESTAMP WITH TIME ZONE an aware datetime in UTC."""
    truncated: bool
    """Whether there were more rows than the limit."""
    scanned: Scanned


def select(source: Source, sql: str, parameters: Parameters | None = None, limit: int | None = None) -> Result:
    """Run one SELECT over the whole log: its views, its macros, or `log_events` itself.

    Values go in as parameters (`?` or `$name`), never into the text. Raises `QueryRefused` for anything but one statement that
    only reads, and for what DuckDB cannot run; the message never quotes a value out of the log.
    """
    import duckdb

    from refledger_schema.arrow import LOG_SCHEMA

    if limit is not None and limit < 1:
        raise InvalidConfiguration("limit", f"expected a limit of at least 1 row, or none; found {limit}.")
    connection = connect(LOG_SCHEMA.empty_table())
    try:
        statement = _one_select(connection, sql)
        given = _named(parameters)
        _check_parameters(statement, given)
        log = table_of(source.events(None), source.log_id)
        connection.register("log_events", log)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        # A SELECT may hold an INSERT in a CTE, and DuckDB still calls it a SELECT.
        connection.execute("BEGIN TRANSACTION READ ONLY")
        connection.execute(statement, given)
        described = connection.description or []
        rows = connection.fetchall() if limit is None else connection.fetchmany(limit + 1)
    except duckdb.Error as error:
        # Without a cause: DuckDB's message may quote what stands in the log.
        raise QueryRefused(_complaint(error)) from None
    finally:
        connection.close()
    return Result(
        columns=tuple(column[0] for column in described),
        types=tuple(str(column[1]) for column in described),
        rows=tuple(rows[:limit]),
        truncated=limit is not None and len(rows) > limit,
        scanned=Scanned(log.num_rows, (source.log_id,)),
    )


def _one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryRefused(f"expected one SELECT; found {len(statements)} statements. Ask one question at a time.")
    (statement,) = statements
    if statement.type != duckdb.StatementType.SELECT:
        raise QueryRefused(f"expected a SELECT; found {statement.type.name}. A log is only read here: ask with SELECT, DESCRIBE or FROM.")
    return statement


def _named(parameters: Parameters | None) -> dict[str, Any]:
    """By name; those that are given in order have the names 1, 2, 3, …"""
    if parameters is None:
        return {}
    if isinstance(parameters, Mapping):
        return dict(parameters)
    return {str(place): value for place, value in enumerate(parameters, start=1)}


def _check_parameters(statement: duckdb.Statement, given: Mapping[str, Any]) -> None:
    wanted = set(statement.named_parameters)
    if wanted != set(given):
        raise QueryRefused(
            f"expected a value for each parameter of the statement ({_listed(wanted)}); found values for {_listed(given)}. "
            "Pass a sequence for ?, a mapping for $name."
        )


def _listed(names: Mapping[str, Any] | set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _complaint(error: duckdb.Error) -> str:
    """What DuckDB said of the statement, which is the analyst's own; of what it met in the log, only which kind of trouble."""
    import duckdb

    if isinstance(error, duckdb.ParserException | duckdb.BinderException | duckdb.CatalogException):
        said = str(error).partition("\n\nLINE ")[0].partition(": ")[2].partition("Candidate functions:")[0]
        return (
            f"{' '.join(said.split())[:_MAX_HINT]} -- correct the statement; `SHOW TABLES` lists the views, `DESCRIBE <view>` its columns."
        )
    if isinstance(error, duckdb.PermissionException):
        return "expected a question about the log alone; files, other databases and settings are closed here. Leave them out."
    if isinstance(error, duckdb.ConversionException):
        return "expected values that fit the type they are cast to; the log holds others. Use TRY_CAST, which gives NULL for those."
    if isinstance(error, duckdb.OutOfRangeException):
        return "expected a number within its type's range; the result left it. Cast to HUGEINT or DOUBLE before calculating."
    if isinstance(error, duckdb.OutOfMemoryException):
        return "expected a question that fits in memory; this one does not. Select fewer rows or columns, or aggregate them."
    # Of the log's own values DuckDB may quote any in what is left, so none of it is repeated.
    return f"expected a statement that runs over this log; DuckDB stopped it ({type(error).__name__}). Simplify it until it runs."
