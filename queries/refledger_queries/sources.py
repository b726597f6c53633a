"""Where events come from: anything that can give the rows of a log, or of one scope of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from refledger_schema.envelope import Row
from refledger_schema.errors import LogCorrupt

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 65_536


class Source(Protocol):
    """What a question needs of a log."""

    @property
    def log_id(self) -> str: ...

    def scope_of_answer(self, answer_id: str) -> str | None:
        """The key of the scope that an answer was given in; None when the log holds no such answer."""
        ...

    def events(self, scope: str | None) -> Iterable[Row]:
        """The rows of one scope by its key, or with None of the whole log, by position."""
        ...


@dataclass(frozen=True, slots=True)
class Scanned:
    """What was read to answer a question."""

    rows: int
    sources: tuple[str, ...]
    """Logs by their id."""


def table_of(rows: Iterable[Row], log_id: str) -> pa.Table:
    """The rows as an Arrow table of LOG_SCHEMA. Rows are taken in batches, so an iterator is never held as a list."""
    import pyarrow as pa

    from refledger_schema.arrow import LOG_SCHEMA

    columns_of = attrgetter(*(field.name for field in LOG_SCHEMA if field.name != "log_id"))
    fields = list(LOG_SCHEMA)[1:]
    batches = []
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        columns = zip(*map(columns_of, batch), strict=True)
        try:
            arrays = [pa.array(column, type=field.type) for field, column in zip(fields, columns, strict=True)]
            batches.append(pa.record_batch([pa.repeat(log_id, len(batch)), *arrays], schema=LOG_SCHEMA))
        except (pa.ArrowException, OverflowError, UnicodeError):
            # Without a cause: Arrow's message may quote what stands in the row.
            raise _unreadable(batch) from None
    return pa.Table.from_batches(batches, schema=LOG_SCHEMA)


def _unreadable(batch: list[Row]) -> LogCorrupt:
    first, last = batch[0].position, batch[-1].position
    return LogCorrupt(
        None,
        f"positions {first} to {last}: expected columns of the log's types; found a value that is none. "
        "Run `refledger verify` for all damage, and restore the log from a backup.",
    )
