"""Projections are functions of the events: made anew from them, they are at every position what they were live.

Histories are drawn through the public API. After each step the live tables are copied; then the events are replayed into an
empty database, and at the position of each copy the tables are compared, and what they say is live with a plain model.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st

from refledger import Ledger
from refledger.call import Call
from refledger.run import Run
from refledger_schema.envelope import Row, event_of
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, RunRefused
from refledger_schema.events import (
    MAX_OFFERED,
    ArtifactGone,
    ArtifactMinted,
    ArtifactRead,
    ArtifactRefused,
    DispatchRefused,
    DispatchResolved,
    Event,
    LogOpened,
    Verdict,
)
from refledger_schema.merkle import Frontier
from refledger_schema.tables import PROJECTIONS, Table
from refledger_store.append import Head, move_head
from refledger_store.projections import Projection
from refledger_store.reads import Reads
from refledger_store.rebuild import rebuild
from refledger_store.retention import Retention
from tests.ledgers import ELSEWHERE, SCOPE, Clock, Rows, ask, change, database, new_log, property_settings

SCOPES = (SCOPE, ELSEWHERE)
KINDS = ("dataset/rows", "report", "text")
PAYLOADS = ("", "small", "small too", "x" * 30, [1, 2, 3], {"total": 3})
Tables = dict[str, Rows]


def projections(path: Path) -> Tables:
    with database(path) as connection:
        return tables_of(connection)


def tables_of(connection: sqlite3.Connection) -> Tables:
    return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in PROJECTIONS}


# --- a history --------------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """A ledger at work in two scopes, and everything that was ever minted in it."""

    path: Path
    retention: Retention | None
    clock: Clock = field(default_factory=Clock)
    refs: list[str] = field(default_factory=lambda: ["art_" + "0" * 22])
    answers: list[str] = field(default_factory=list)
    copies: dict[int, Tables] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger = Ledger.open(self.path, clock=self.clock, retention=self.retention, durability="process")
        self.runs: list[Run] = [self.ledger.run(scope) for scope in SCOPES]
        self.calls: list[Call | None] = [None, None]

    def ref(self, number: int) -> str:
        return self.refs[number % len(self.refs)]

    def copy(self) -> None:
        ((position,),) = ask(self.path, "SELECT position FROM head")
        self.copies[position] = projections(self.path)


Step = Callable[[World], object]
in_either = st.sampled_from((0, 1))
numbers = st.integers(0, 30)


def put(here: int, kind: str, payload: Any, ttl: int | None, parents: Sequence[int], in_call: bool) -> Step:
    def step(world: World) -> None:
        door = world.calls[here] if in_call else None
        span = None if ttl is None else timedelta(seconds=ttl)
        named = [world.ref(number) for number in parents]
        world.refs.append(
            (door or world.runs[here]).put(payload, kind=kind, ttl=span, parents=named, label=f"{kind} {len(world.refs)}").ref
        )

    return step


def resolve(here: int, wants: dict[str, str], args: dict[str, int | str]) -> Step:
    def step(world: World) -> None:
        spoken = {name: world.ref(value) if isinstance(value, int) else value for name, value in args.items()}
        if world.calls[here] is None:
            world.calls[here] = world.runs[here].call("tool", args=spoken).__enter__()
        call = world.calls[here]
        assert call is not None
        call.resolve(wants, args=spoken)

    return step


def end_call(here: int) -> Step:
    def step(world: World) -> None:
        call = world.calls[here]
        if call is not None:
            call.__exit__(None, None, None)
            world.calls[here] = None

    return step


def end_run(here: int) -> Step:
    def step(world: World) -> None:
        end_call(here)(world)
        world.runs[here].end()
        world.runs[here] = world.ledger.run(SCOPES[here], agent="analyst")

    return step


def answer(here: int, cites: Sequence[int]) -> Step:
    def step(world: World) -> None:
        world.answers.append(world.runs[here].answer("so it is", cites=[world.ref(number) for number in cites]).answer_id)

    return step


def judge(number: int, verdict: Verdict) -> Step:
    def step(world: World) -> None:
        if world.answers:
            world.ledger.judge(world.answers[number % len(world.answers)], verdict)

    return step


def corrupt(number: int) -> Step:
    def step(world: World) -> None:
        with database(world.path) as connection:
            connection.execute(
                "UPDATE payloads SET data = CAST('ruined' AS BLOB) WHERE (scope, digest) IN (SELECT scope, digest FROM artifacts WHERE ref = ?)",
                (world.ref(number),),
            )

    return step


def rebuild_now(world: World) -> None:
    before = projections(world.path)
    world.ledger.rebuild()
    assert projections(world.path) == before


def advance(seconds: int) -> Step:
    return lambda world: world.clock.advance(timedelta(seconds=seconds))


ARGUMENTS = ("dataset", "other")
spoken = numbers | st.sampled_from(["", "the sales", " art_" + "0" * 22])
puts = st.builds(
    put,
    in_either,
    st.sampled_from(KINDS),
    st.sampled_from(PAYLOADS),
    st.sampled_from((None, None, 1, 5)),
    st.lists(numbers, max_size=2),
    st.booleans(),
)
simple_puts = st.builds(
    put, in_either, st.sampled_from(KINDS), st.sampled_from(PAYLOADS), st.sampled_from((None, 5)), st.just(()), st.booleans()
)
resolves = st.builds(
    resolve,
    in_either,
    st.dictionaries(st.sampled_from(ARGUMENTS), st.sampled_from(KINDS), min_size=1),
    st.dictionaries(st.sampled_from(ARGUMENTS), spoken),
)
reads = st.builds(lambda here, number: lambda world: world.runs[here].get(world.ref(number)), in_either, numbers)
heads = st.builds(lambda here, number: lambda world: world.runs[here].head(world.ref(number)), in_either, numbers)
deletes = st.builds(lambda here, number: lambda world: world.runs[here].delete(world.ref(number), why="old"), in_either, numbers)
listings = st.builds(lambda here, kind: lambda world: world.runs[here].list(kind=kind), in_either, st.sampled_from((None, *KINDS)))
messages = st.builds(lambda here: lambda world: world.runs[here].message("user", "hello"), in_either)
bare_puts = st.builds(lambda here: lambda world: world.ledger.store.put(SCOPES[here], "bare", kind="text"), in_either)
steps: st.SearchStrategy[Step] = st.one_of(
    puts,
    simple_puts,
    simple_puts,
    resolves,
    resolves,
    reads,
    reads,
    heads,
    deletes,
    listings,
    messages,
    bare_puts,
    st.builds(end_call, in_either),
    st.builds(end_run, in_either),
    st.builds(answer, in_either, st.lists(numbers.filter(bool), max_size=2)),
    st.builds(judge, numbers, st.sampled_from(get_args(Verdict))),
    st.builds(corrupt, numbers),
    st.builds(advance, st.sampled_from((1, 1, 5, 60, -2))),
    st.just(lambda world: world.ledger.flush()),
    st.just(rebuild_now),
)
retentions = st.sampled_from(
    (
        None,
        None,
        Retention(max_count=3),
        Retention(max_bytes=60),
        Retention(ttl=timedelta(seconds=3)),
        Retention(timedelta(seconds=9), 90, 4),
    )
)


def lived(path: Path, retention: Retention | None, history: Sequence[Step]) -> World:
    """The world after the history, with a copy of its tables for every position at which a step ended."""
    world = World(path, retention)
    world.copy()
    for step in history:
        with suppress(InvalidArtifact, ArtifactIntegrity, RunRefused):
            step(world)
        world.copy()
    world.ledger.flush()
    world.copy()
    return world


# --- the same, replayed -------------------------------------------------------------------------------------------------------


def empty_database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    made = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=sa.StaticPool)
    Table.metadata.create_all(made)
    connection.execute("BEGIN")
    return connection


def rows_of(path: Path) -> list[Row]:
    with database(path) as connection:
        return [Row(*row) for row in connection.execute("SELECT * FROM events ORDER BY position").fetchall()]


def replayed(rows: Sequence[Row], connection: sqlite3.Connection) -> Iterator[tuple[Row, Event]]:
    """Each event, once its effect stands in the database."""
    connection.execute("INSERT INTO head (id, position, recorded_us, frontier) VALUES (1, 0, 0, x'')")
    projection, frontier, configuration = Projection(connection), Frontier(), None
    for row in rows:
        event = event_of(row)
        if row.scope is not None and row.scope_seq is not None:
            projection.count(row.scope, row.scope_seq)
        projection.apply(row, event)
        frontier = frontier.append(row.leaf_hash)
        configuration = row.body if isinstance(event, LogOpened) else configuration
        move_head(connection, Head(row.position, row.recorded_us, frontier, configuration))
        yield row, event


# --- a plain model of what is live --------------------------------------------------------------------------------------------


@dataclass
class Known:
    """What the events so far say of one artifact."""

    event: ArtifactMinted
    scope: str
    minted: int
    used: int
    gone: bool = False
    corrupt: bool = False

    def live(self, now_us: int) -> bool:
        return not self.gone and (self.event.expires_us is None or self.event.expires_us > now_us)


class Model:
    """Live at position p: minted at or before p, not gone at or before p, and not expired at the time recorded at p."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}

    def hear(self, row: Row, event: Event) -> None:
        assert row.scope is not None or isinstance(event, LogOpened)
        match event:
            case ArtifactMinted():
                self.known[event.ref] = Known(event, row.scope or "", row.position, row.position)
            case ArtifactGone():
                assert not self.known[event.ref].gone, "an artifact leaves once"
                self.known[event.ref].gone = True
            case ArtifactRead():
                self.use(event.ref, row)
            case DispatchResolved():
                for resolved in event.arguments:
                    self.use(resolved.ref, row)
            case ArtifactRefused(cause="corrupt" | "undecodable", ref=str(ref)):
                self.known[ref].corrupt = True
            case DispatchRefused():
                for judged in event.arguments:
                    if judged.cause in ("corrupt", "undecodable"):
                        assert judged.ref is not None
                        self.known[judged.ref].corrupt = True
            case _:
                pass

    def use(self, ref: str, row: Row) -> None:
        if not self.known[ref].gone:
            self.known[ref].used = row.position

    def live(self, scope: str, now_us: int, kind: str | None = None) -> list[str]:
        """The newest first; with a kind, none that is known to be corrupt."""
        found = [ref for ref, known in self.known.items() if known.scope == scope and known.live(now_us)]
        if kind is not None:
            found = [ref for ref in found if self.known[ref].event.kind == kind and not self.known[ref].corrupt]
        return sorted(found, key=lambda ref: -self.known[ref].minted)

    def unswept(self, scope: str) -> list[Known]:
        return sorted((known for known in self.known.values() if known.scope == scope and not known.gone), key=lambda known: known.used)


def assert_live_as_modelled(connection: sqlite3.Connection, model: Model, now_us: int) -> None:
    asked = Reads(connection)
    for scope in (SCOPE.key, ELSEWHERE.key):
        assert [artifact.ref for artifact in asked.live(scope, None, now_us=now_us, limit=99)] == model.live(scope, now_us)
        for kind in KINDS:
            live = model.live(scope, now_us, kind)
            assert [artifact.ref for artifact in asked.live(scope, kind, now_us=now_us, limit=99)] == live
            assert asked.live_total(scope, kind, now_us=now_us) == len(live)
        unswept = model.unswept(scope)
        assert asked.least_used(scope, limit=99) == [(known.event.ref, known.event.bytes) for known in unswept]
        totals = asked.totals(scope)
        assert (totals.live_count, totals.live_bytes) == (len(unswept), sum(known.event.bytes for known in unswept))


def assert_offered_as_modelled(event: DispatchRefused, row: Row, model: Model) -> None:
    """A refusal shows the newest of each wanted kind that were live when it was recorded, and counts them all."""
    for offers in event.offers:
        live = model.live(row.scope or "", row.recorded_us, offers.kind)
        assert ([offered.ref for offered in offers.refs], offers.total) == (live[:MAX_OFFERED], len(live))


# --- the properties -------------------------------------------------------------------------------------------------------------

EVERYTHING = (
    put(0, "text", "small", None, [], False),
    put(0, "text", "small", 5, [1], False),
    resolve(0, {"dataset": "text"}, {"dataset": 1}),
    put(0, "report", {"total": 3}, None, [2, 2], True),
    corrupt(1),
    resolve(0, {"dataset": "text", "other": "report"}, {"dataset": 2, "other": 1}),
    end_call(0),
    answer(0, [1, 3]),
    judge(0, "wrong"),
    advance(5),
    end_run(0),
    rebuild_now,
    put(1, "text", "small", None, [], False),
)


@property_settings(120, 2_000)
@given(history=st.lists(steps, min_size=5, max_size=45), retention=retentions)
@example(history=list(EVERYTHING), retention=None)
@example(history=[*EVERYTHING, *EVERYTHING], retention=Retention(max_count=2))
def test_replayed_projections_are_at_every_position_what_they_were_live(history: list[Step], retention: Retention | None) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(empty_database()) as connection:
        path = new_log(Path(folder))
        world = lived(path, retention, history)
        model, compared = Model(), set()
        for row, event in replayed(rows_of(path), connection):
            if isinstance(event, DispatchRefused):
                model.hear(row, event)
                assert_offered_as_modelled(event, row, model)
            else:
                model.hear(row, event)
            assert_live_as_modelled(connection, model, row.recorded_us)
            if row.position in world.copies:
                assert tables_of(connection) == world.copies[row.position], f"position {row.position}"
                compared.add(row.position)
        assert compared == set(world.copies) - {0}
        world.ledger.close()


@property_settings(30, 500)
@given(history=st.lists(steps, min_size=5, max_size=30), retention=retentions, data=st.data())
def test_rebuild_gives_them_up_to_any_position_and_the_ledger_leaves_them_equal(
    history: list[Step], retention: Retention | None, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(empty_database()) as connection:
        path = new_log(Path(folder))
        world = lived(path, retention, history)
        rows = rows_of(path)
        connection.executemany(
            f"INSERT INTO events VALUES ({', '.join('?' * len(Row.__dataclass_fields__))})",
            [tuple(getattr(row, name) for name in Row.__dataclass_fields__) for row in rows],
        )
        for position in data.draw(st.lists(st.sampled_from(sorted(world.copies)), max_size=4)):
            assert rebuild(connection, upto=position) == position
            assert tables_of(connection) == world.copies[position]
        assert rebuild(connection) == len(rows) == world.ledger.rebuild()
        assert tables_of(connection) == world.copies[len(rows)] == projections(path)
        report = world.ledger.verify()
        assert [verdict.name for verdict in report.verdicts if not verdict.ok] in ([], ["payloads match"])
        world.ledger.close()


def test_rebuild_makes_what_was_ruined_anew_and_leaves_bytes_texts_and_holders_alone(tmp_path: Path) -> None:
    path = new_log(tmp_path)
    with Ledger.open(path) as ledger:
        run = ledger.run(SCOPE)
        run.message("user", "hello")
        run.put("x", kind="text")
        others = {
            name: ask(path, f"SELECT * FROM {name}") for name in ("log", "events", "payloads", "payload_chunks", "content", "run_holders")
        }
        before = projections(path)
        for name in PROJECTIONS:
            with database(path) as connection:
                connection.execute(f"DELETE FROM {name}")
        assert ledger.rebuild() == 4
        assert projections(path) == before
        assert {name: ask(path, f"SELECT * FROM {name}") for name in others} == others
        change(path, "UPDATE artifacts SET kind = 'another', used = 99")
        ledger.rebuild()
        assert projections(path) == before
        run.put("the ledger works on", kind="text")
        assert ledger.verify().ok
