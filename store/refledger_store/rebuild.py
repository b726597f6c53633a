"""Rebuilding the projections from the events, in one transaction."""

from __future__ import annotations

from refledger_schema.envelope import event_of
from refledger_schema.errors import LogCorrupt
from refledger_schema.events import LogOpened
from refledger_schema.merkle import Frontier
from refledger_schema.tables import PROJECTIONS
from refledger_store.append import Head, move_head
from refledger_store.projections import Projection
from refledger_store.reads import Connection, Reads, walk


def rebuild(connection: Connection, *, upto: int | None = None) -> int:
    """Make the projections anew from the events (up to a position, or all); says how many events there were.

    Raises `LogCorrupt` at the first position that is missing or cannot be read; the caller's transaction then changes nothing.
    """
    for table in PROJECTIONS:
        connection.execute(f"DELETE FROM {table}")
    connection.execute("INSERT INTO head (id, position, recorded_us, frontier, configuration) VALUES (1, 0, 0, :none, NULL)", {"none": b""})
    projection = Projection(connection)
    frontier, configuration, position, recorded_us = Frontier(), None, 0, 0
    for row in walk(Reads(connection).events_after, lambda row: row.position):
        if upto is not None and row.position > upto:
            break
        if row.position != position + 1:
            raise LogCorrupt(position + 1, f"expected an event at position {position + 1}; found none. Restore the log from a backup.")
        event = event_of(row)
        if row.scope is not None and row.scope_seq is not None:
            projection.count(row.scope, row.scope_seq)
        projection.apply(row, event)
        frontier = frontier.append(row.leaf_hash)
        configuration = row.body if isinstance(event, LogOpened) else configuration
        position, recorded_us = row.position, row.recorded_us
    move_head(connection, Head(position, recorded_us, frontier, configuration))
    return position
