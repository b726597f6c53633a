"""Checking a log against itself. Each question gets a verdict of its own, and what was not asked is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from refledger_schema.envelope import Row, event_of, leaf_bytes, private_hash
from refledger_schema.errors import LogCorrupt, RefledgerError
from refledger_schema.merkle import Frontier, leaf_hash
from refledger_schema.scopes import scope_of
from refledger_schema.tables import PROJECTIONS, Table
from refledger_store.append import look_head
from refledger_store.payloads import Payloads, sound
from refledger_store.reads import Artifact, Reads, walk
from refledger_store.rebuild import rebuild
from refledger_store.store import Store

SHOWN = 20
"""How many problems of one verdict are spelled out; all are counted."""

NOT_CHECKED = (
    "whether the end of the log was cut off: without a checkpoint kept elsewhere that cannot be seen",
    "whether whoever holds the file rewrote it whole",
    "whether the runtime reported every call: what was never recorded cannot be proven",
    "whether the times that writers claim are true",
)
"""What a log cannot say of itself."""


@dataclass(slots=True)
class Verdict:
    """One question's answer."""

    name: str
    question: str
    checked: int = 0
    """How many things were looked at."""
    skipped: int = 0
    """How many could not be checked, such as private parts whose texts were erased."""
    found: int = 0
    """How many problems there are in all."""
    problems: list[str] = field(default_factory=list)
    """The first problems, each naming its position or ref."""

    @property
    def ok(self) -> bool:
        return self.found == 0

    def complain(self, problem: str) -> None:
        self.found += 1
        if len(self.problems) < SHOWN:
            self.problems.append(problem)


@dataclass(frozen=True, slots=True)
class Report:
    """What `verify` found."""

    log_id: str
    events: int
    root: str
    """The Merkle root over the stored leaf hashes, in hexadecimal."""
    verdicts: tuple[Verdict, ...]
    not_checked: tuple[str, ...] = NOT_CHECKED

    @property
    def ok(self) -> bool:
        return all(verdict.ok for verdict in self.verdicts)

    def __getitem__(self, name: str) -> Verdict:
        return next(verdict for verdict in self.verdicts if verdict.name == name)


def verify(store: Store, progress: Callable[[int, int], None] | None = None) -> Report:
    """Ask every question. Streams; memory does not grow with the log."""
    with store.reading() as reads, closing(_Counts()) as counts:
        events = _Events(store.log_id, counts)
        total = reads.size()
        for row in walk(reads.events_after, lambda row: row.position):
            events.check(row)
            if progress is not None and row.position % 1_000 == 0:
                progress(row.position, total)
        first = reads.first()
        if first is not None and first < 1:
            events.order.complain(f"position {first}: an event stands in front of the first")
        tree = events.tree_verdict(reads)
        payloads = (*_payloads(reads), _content(reads))
        projections = _projections(reads)
    if progress is not None:
        progress(total, total)
    verdicts = (events.order, events.leaves, events.private, events.scopes, tree, *payloads, projections)
    return Report(store.log_id, events.count, events.frontier.root().hex(), verdicts)


class _Events:
    """The questions that one walk over the events answers."""

    def __init__(self, log_id: str, seqs: _Counts) -> None:
        self.order = Verdict("order", "are the positions 1, 2, 3, … without gaps?")
        self.leaves = Verdict("leaves", "does every event's leaf hash cover its columns as they stand?")
        self.private = Verdict("private parts", "do texts and scope names match what the leaf commits to?")
        self.scopes = Verdict("scopes", "does every scope hold its events 1, 2, 3, … without gaps?")
        self.frontier = Frontier()
        self.count = 0
        self._log_id = log_id
        self._position = 0
        self._seqs = seqs

    def check(self, row: Row) -> None:
        self.count += 1
        self._check_order(row)
        if not _is_typed(row):
            # A damaged page can put anything anywhere. The tree goes on with a hash that no leaf has.
            self.leaves.checked += 1
            self.leaves.complain(f"position {row.position}: a column is not of its type")
            self.frontier = self.frontier.append(bytes(32))
            return
        self._check_leaf(row)
        self._check_private(row)
        self._check_scope(row)

    def tree_verdict(self, reads: Reads) -> Verdict:
        verdict = Verdict("tree", "is the stored Merkle frontier that of these leaves?", checked=1)
        try:
            head = look_head(reads.connection)
        except LogCorrupt as error:
            verdict.complain(str(error))
            return verdict
        if head.position != self.count:
            verdict.complain(f"the head says {head.position:,} events, the log holds {self.count:,}")
        elif head.frontier != self.frontier:
            verdict.complain(f"position {self.count}: the stored frontier is not that of the leaves before it")
        return verdict

    def _check_order(self, row: Row) -> None:
        self.order.checked += 1
        if row.position != self._position + 1:
            self.order.complain(f"position {self._position + 1}: missing; the next event stands at {row.position}")
        self._position = row.position

    def _check_leaf(self, row: Row) -> None:
        self.leaves.checked += 1
        # The tree is made of the stored hashes, so that a changed column fails this verdict and not that of the tree.
        self.frontier = self.frontier.append(row.leaf_hash)
        if not _leaf_holds(row, self._log_id):
            self.leaves.complain(f"position {row.position}: its columns are not what its leaf hash was made of")
            return
        try:
            event_of(row)
        except RefledgerError as error:
            self.leaves.complain(str(error))

    def _check_private(self, row: Row) -> None:
        if row.salt is None:
            self.private.skipped += 1
            if row.texts is not None:
                self.private.complain(f"position {row.position}: it has texts and no salt, so nothing vouches for them")
            return
        self.private.checked += 1
        try:
            scope = None if row.scope is None else scope_of(row.scope)
        except RefledgerError:
            self.private.complain(f"position {row.position}: its scope key cannot be read")
            return
        if private_hash(row.salt, scope, row.texts) != row.private:
            self.private.complain(f"position {row.position}: its texts, salt or scope are not what its leaf commits to")

    def _check_scope(self, row: Row) -> None:
        if row.scope is None:
            if row.scope_seq is not None:
                self.scopes.complain(f"position {row.position}: it has a scope_seq and no scope")
            return
        self.scopes.checked += 1
        expected = self._seqs.next(row.scope)
        if row.scope_seq != expected:
            self.scopes.complain(f"position {row.position}: expected scope_seq {expected} in its scope, found {row.scope_seq}")
            self._seqs.set(row.scope, row.scope_seq)


def _is_typed(row: Row) -> bool:
    texts = (row.event_id, row.type, row.body)
    optional = (row.scope, row.run_id, row.call_id, row.texts)
    numbers = (row.position, row.version, row.recorded_us)
    counts = (row.occurred_us, row.scope_seq, row.dispatch)
    return (
        all(isinstance(value, str) for value in texts)
        and all(value is None or isinstance(value, str) for value in optional)
        and all(isinstance(value, int) for value in numbers)
        and all(value is None or isinstance(value, int) for value in counts)
        and isinstance(row.private, bytes)
        and isinstance(row.leaf_hash, bytes)
        and len(row.leaf_hash) == len(row.private) == 32
        and (row.salt is None or isinstance(row.salt, bytes))
    )


def _leaf_holds(row: Row, log_id: str) -> bool:
    try:
        return leaf_hash(leaf_bytes(row, log_id)) == row.leaf_hash
    except UnicodeError:
        return False


class _Counts:
    """A counter a scope, in a temporary file, since a log may hold millions of scopes."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("CREATE TABLE counts (scope TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID")
        self._connection.execute("BEGIN")

    def close(self) -> None:
        self._connection.close()

    def next(self, scope: str) -> int:
        found = self._connection.execute(
            "INSERT INTO counts VALUES (?, 1) ON CONFLICT (scope) DO UPDATE SET seq = seq + 1 RETURNING seq", (scope,)
        ).fetchall()
        return int(found[0][0])

    def set(self, scope: str, seq: int | None) -> None:
        self._connection.execute("UPDATE counts SET seq = ? WHERE scope = ?", (seq or 0, scope))


def _payloads(reads: Reads) -> tuple[Verdict, Verdict]:
    present = Verdict("payloads present", "are the bytes of every live artifact there?")
    match = Verdict("payloads match", "are they what the artifact's digest says?")
    payloads = Payloads(reads.connection, reads.folder)
    for artifact in _artifacts(reads):
        if artifact.gone is not None:
            continue
        present.checked += 1
        actual = payloads.digest(artifact.scope, artifact.digest)
        if actual is None:
            present.complain(f"{artifact.ref}: its payload is missing")
            continue
        match.checked += 1
        if actual != artifact.digest:
            match.complain(f"{artifact.ref}: its payload has digest {actual}, minted with {artifact.digest}")
    return present, match


def _content(reads: Reads) -> Verdict:
    verdict = Verdict("content matches", "are the recorded texts what their digests say?")
    for _, digest, data in reads.contents():
        verdict.checked += 1
        if not isinstance(data, bytes) or not sound(data, digest):
            verdict.complain(f"a recorded text of digest {digest} was changed")
    return verdict


def _artifacts(reads: Reads) -> Iterator[Artifact]:
    after = ""
    while page := reads.artifacts_after(after, limit=1_000):
        yield from page
        after = page[-1].ref


def _projections(reads: Reads) -> Verdict:
    """Rebuild the projections from the events in a temporary database, and compare them with the live ones, row by row."""
    verdict = Verdict("projections", "are the projections what the events make of them?")
    with closing(sqlite3.connect("", isolation_level=None)) as replayed:
        _declare_tables(replayed)
        replayed.execute("BEGIN")
        _copy_events(reads, replayed)
        try:
            rebuild(replayed)
        except (RefledgerError, sqlite3.Error) as error:
            verdict.complain(f"the events cannot be replayed: {error if isinstance(error, RefledgerError) else type(error).__name__}")
            return verdict
        for name in PROJECTIONS:
            _compare(verdict, name, reads.connection, replayed)
    return verdict


def _declare_tables(connection: sqlite3.Connection) -> None:
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool, hide_parameters=True)
    Table.metadata.create_all(engine)


def _copy_events(reads: Reads, replayed: sqlite3.Connection) -> None:
    columns = list(Row.__dataclass_fields__)
    insert = f"INSERT INTO events ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    batch: list[tuple[Any, ...]] = []
    for row in walk(reads.events_after, lambda row: row.position):
        batch.append(tuple(getattr(row, name) for name in columns))
        if len(batch) == 1_000:
            replayed.executemany(insert, batch)
            batch.clear()
    replayed.executemany(insert, batch)


def _compare(verdict: Verdict, name: str, live: Any, replayed: Any) -> None:
    table = Table.metadata.tables[name]
    keys = [column.name for column in table.primary_key]
    columns = [column.name for column in table.columns]
    statement = f"SELECT {_listed(columns)} FROM {name} ORDER BY {_listed(keys)}"
    theirs = _rows(live, statement)
    ours = _rows(replayed, statement)
    for found, expected in zip_longest(theirs, ours):
        verdict.checked += 1
        if found != expected:
            verdict.complain(_difference(name, columns, found, expected))
            if (found is None) != (expected is None) or _key(found, columns, keys) != _key(expected, columns, keys):
                return


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _rows(connection: Any, statement: str) -> Iterable[tuple[Any, ...]]:
    cursor = connection.execute(statement)
    while batch := cursor.fetchmany(1_000):
        yield from batch


def _key(row: Sequence[Any], columns: Sequence[str], keys: Sequence[str]) -> list[Any]:
    return [value for name, value in zip(columns, row, strict=True) if name in keys]


def _difference(name: str, columns: Sequence[str], found: Sequence[Any] | None, expected: Sequence[Any] | None) -> str:
    if found is None:
        return f"{name}: a row that the events make is missing"
    if expected is None:
        return f"{name}: a row stands there that no event makes"
    differing = [column for column, left, right in zip(columns, found, expected, strict=True) if left != right]
    return f"{name}: a row differs from what the events make of it, in {', '.join(differing)}. `Ledger.rebuild` makes the projections anew."
