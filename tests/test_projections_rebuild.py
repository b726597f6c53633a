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

import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st

from refledger import Ledger
from refledger.call import Call
from refledger.run import Run
from refledger_schema.envelope import Draft, Row, event_of
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, LogCorrupt, RunRefused
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
from refledger_schema.scopes import Scope
from refledger_schema.tables import PROJECTIONS, Table
from refledger_store.append import Decision, Head, move_head
from refledger_store.projections import Projection
from refledger_store.reads import Reads
from refledger_store.rebuild import rebuild
from refledger_store.retention import Retention
from tests.ledgers import ELSEWHERE, SCOPE, Clock, Rows, ask, change, database, new_log, property_settings

SCOPES = (SCOPE, ELSEWHERE)
KINDS = ("dataset/rows", "report", "text")
PAYLOADS = ("", "small", "small too", "x" * 30, "y" * 25, [1, 2, 3], {"total": 3})
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
    minted: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    kinds: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    copies: dict[int, Tables] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger = Ledger.open(self.path, clock=self.clock, retention=self.retention, durability="process")
        self.runs: list[Run] = [self.ledger.run(scope) for scope in SCOPES]
        self.calls: list[Call | None] = [None, None]

    def ref(self, here: int, number: int) -> str:
        """A ref of this scope, 0 the newest, dead ones too; or, from `OWN` up, one that is not of this scope."""
        mine, others = self.minted[here], [UNKNOWN, *self.minted[1 - here]]
        return mine[-1 - number % len(mine)] if mine and number < OWN else others[number % len(others)]

    def copy(self) -> None:
        ((position,),) = ask(self.path, "SELECT position FROM head")
        self.copies[position] = projections(self.path)


Step = Callable[[World], object]
UNKNOWN = "art_" + "0" * 22
OWN = 24
in_either = st.sampled_from((0, 0, 0, 1))
numbers = st.integers(0, 5) | st.integers(0, OWN + 3)
own_numbers = st.integers(0, 3)


def put(here: int, kind: str, payload: Any, ttl: int | None, parents: Sequence[int], in_call: bool) -> Step:
    def step(world: World) -> None:
        door = world.calls[here] if in_call else None
        span = None if ttl is None else timedelta(seconds=ttl)
        named = [world.ref(here, number) for number in parents]
        meta = (door or world.runs[here]).put(payload, kind=kind, ttl=span, parents=named, label=f"{kind} {len(world.kinds)}")
        world.minted[here].append(meta.ref)
        world.kinds[meta.ref] = kind

    return step


def resolve(here: int, arguments: dict[str, tuple[int | str | None, str | None]]) -> Step:
    """Each argument: what is spoken (a text, or the number of a ref, or nothing), and the kind wanted, if not the ref's own."""

    def step(world: World) -> None:
        args = {name: world.ref(here, said) if isinstance(said, int) else said for name, (said, _) in arguments.items() if said is not None}
        newest = world.kinds.get(world.ref(here, 0), "text")
        wants = {name: kind or world.kinds.get(args.get(name, ""), newest) for name, (_, kind) in arguments.items()}
        call = world.calls[here] = world.calls[here] or world.runs[here].call("tool", args=args).__enter__()
        call.resolve(wants, args=args)

    return step


def end_call(here: int) -> Step:
    def step(world: World) -> None:
        call, world.calls[here] = world.calls[here], None
        if call is not None:
            call.__exit__(None, None, None)

    return step


def end_run(here: int) -> Step:
    def step(world: World) -> None:
        end_call(here)(world)
        world.runs[here].end()
        world.runs[here] = world.ledger.run(SCOPES[here], agent="analyst")

    return step


def answer(here: int, cites: Sequence[int]) -> Step:
    def step(world: World) -> None:
        cited = [world.ref(here, number) for number in cites]
        world.answers.append(world.runs[here].answer("so it is", cites=cited).answer_id)

    return step


def judge(number: int, verdict: Verdict) -> Step:
    def step(world: World) -> None:
        if world.answers:
            world.ledger.judge(world.answers[number % len(world.answers)], verdict)

    return step


def ruin(here: int, number: int, and_read: bool) -> Step:
    def step(world: World) -> None:
        ref = world.ref(here, number)
        with database(world.path) as connection:
            connection.execute(
                "UPDATE payloads SET data = CAST('ruined' AS BLOB) WHERE (scope, digest) IN (SELECT scope, digest FROM artifacts WHERE ref = ?)",
                (ref,),
            )
        if and_read:
            world.runs[here].get(ref)

    return step


def rebuild_now(world: World) -> None:
    before = projections(world.path)
    world.ledger.rebuild()
    assert projections(world.path) == before


def advance(seconds: int) -> Step:
    return lambda world: world.clock.advance(timedelta(seconds=seconds))


def asked(act: Callable[[Run, str], object]) -> st.SearchStrategy[Step]:
    """One act of a run on a ref."""

    def step(here: int, number: int) -> Step:
        return lambda world: act(world.runs[here], world.ref(here, number))

    return st.builds(step, in_either, numbers)


kinds = st.sampled_from(KINDS)
said = numbers | own_numbers | st.sampled_from((None, "", "the sales", f" {UNKNOWN}"))
puts = st.builds(
    put,
    in_either,
    kinds,
    st.sampled_from(PAYLOADS),
    st.sampled_from((None, None, 1, 5)),
    st.just(()) | st.lists(own_numbers, max_size=2) | st.lists(numbers, max_size=2),
    st.booleans(),
)
resolves = st.builds(
    resolve, in_either, st.dictionaries(st.sampled_from(("dataset", "other")), st.tuples(said, st.none() | kinds), min_size=1)
)
listings = st.builds(lambda here, kind: lambda world: world.runs[here].list(kind=kind), in_either, st.none() | kinds)
messages = st.builds(lambda here: lambda world: world.runs[here].message("user", "hello"), in_either)
bare_gets = st.builds(lambda here, number: lambda world: world.ledger.store.get(SCOPES[here], world.ref(here, number)), in_either, numbers)
bare_deletes = st.builds(
    lambda here, number: lambda world: world.ledger.store.delete(SCOPES[here], world.ref(here, number)), in_either, numbers
)
bare_puts = st.builds(lambda here: lambda world: world.ledger.store.put(SCOPES[here], "bare", kind="text"), in_either)
steps: st.SearchStrategy[Step] = st.one_of(
    puts,
    puts,
    puts,
    resolves,
    resolves,
    resolves,
    asked(lambda run, ref: run.get(ref)),
    asked(lambda run, ref: run.get(ref)),
    asked(lambda run, ref: run.head(ref)),
    asked(lambda run, ref: run.delete(ref, why="old")),
    listings,
    messages,
    bare_puts,
    bare_gets,
    bare_deletes,
    st.builds(end_call, in_either),
    st.builds(end_run, in_either),
    st.builds(answer, in_either, st.lists(own_numbers, max_size=2)),
    st.builds(judge, numbers, st.sampled_from(get_args(Verdict))),
    st.builds(ruin, in_either, own_numbers, st.booleans()),
    st.builds(advance, st.sampled_from((1, 1, 5, 60, -2))),
    st.just(lambda world: world.ledger.flush()),
    st.just(rebuild_now),
)
histories = st.tuples(st.lists(puts, min_size=2, max_size=6), st.lists(steps, min_size=5, max_size=25), st.lists(steps, max_size=25)).map(
    lambda parts: [step for part in parts for step in part]
)
retentions = st.sampled_from(
    (
        None,
        None,
        Retention(max_count=3),
        Retention(max_bytes=40),
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
    put(0, "text", "small", 5, [0], False),
    resolve(0, {"dataset": (1, "text")}),
    put(0, "report", {"total": 3}, None, [1, 1], True),
    ruin(0, 2, False),
    resolve(0, {"dataset": (1, "text"), "other": (2, "report")}),
    end_call(0),
    answer(0, [0, 2]),
    judge(0, "wrong"),
    ruin(0, 2, True),
    advance(5),
    end_run(0),
    rebuild_now,
    put(1, "text", "small", None, [], False),
)


@property_settings(60, 2_000)
@given(history=histories, retention=retentions)
@example(history=list(EVERYTHING), retention=None)
@example(history=[*EVERYTHING, *EVERYTHING], retention=Retention(max_count=2))
@example(history=[*EVERYTHING, *EVERYTHING], retention=Retention(max_bytes=12))
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


@property_settings(15, 500)
@given(history=histories, retention=retentions, data=st.data())
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


@pytest.mark.parametrize("statement", ["DELETE FROM events WHERE position = 3", "UPDATE events SET body = 'ruined' WHERE position = 3"])
def test_rebuild_stops_at_what_is_missing_or_unreadable_and_changes_nothing(tmp_path: Path, statement: str) -> None:
    path = new_log(tmp_path)
    with Ledger.open(path) as ledger:
        run = ledger.run(SCOPE)
        run.put("x", kind="text")
        run.put("y", kind="text")
        change(path, statement)
        before = projections(path)
        with pytest.raises(LogCorrupt) as corrupt:
            ledger.rebuild()
        assert corrupt.value.position == 3
        assert projections(path) == before


def test_an_event_that_comes_late_or_from_another_scope_changes_nothing(tmp_path: Path) -> None:
    path = new_log(tmp_path)
    with Ledger.open(path) as ledger:

        def record(event: Event, scope: Scope) -> None:
            ledger._store.append(lambda state: Decision(None, [Draft(event, scope)]))

        def artifacts() -> tuple[Rows, Rows, Rows]:
            question = "SELECT scope, live_count, live_bytes FROM scopes WHERE scope = ?"
            return ask(path, "SELECT * FROM artifacts"), ask(path, "SELECT * FROM kind_counts"), ask(path, question, SCOPE.key)

        gone, corrupt = (ledger.store.put(SCOPE, "x", kind="text").ref for _ in range(2))
        record(ArtifactGone(ref=gone, cause="deleted"), SCOPE)
        record(ArtifactRefused(op="get", reason="digest-mismatch", cause="corrupt", ref=corrupt), SCOPE)
        counted = artifacts()
        for ref in (gone, corrupt):
            record(ArtifactGone(ref=ref, cause="deleted"), ELSEWHERE)
            record(ArtifactRefused(op="get", reason="digest-mismatch", cause="corrupt", ref=ref), ELSEWHERE)
            record(ArtifactRead(ref=ref, via="get", door="store", verified=True), ELSEWHERE)
        record(ArtifactGone(ref=gone, cause="expired"), SCOPE)
        record(ArtifactRead(ref=gone, via="get", door="store", verified=True), SCOPE)
        record(ArtifactRefused(op="get", reason="digest-mismatch", cause="corrupt", ref=corrupt), SCOPE)
        assert artifacts() == counted
        record(ArtifactRefused(op="get", reason="digest-mismatch", cause="corrupt", ref=gone), SCOPE)
        assert artifacts()[1:] == counted[1:], "it was counted off when it left"
        record(ArtifactGone(ref=corrupt, cause="deleted"), SCOPE)
        assert [artifacts()[1], artifacts()[2]] == [[(SCOPE.key, "text", 0)], [(SCOPE.key, 0, 0)]]
        assert ledger.verify().ok
