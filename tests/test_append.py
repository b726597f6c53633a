"""The append: a fact and its effect are one transaction; observations go in front; what is lost is told; one writer at a time."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger
from refledger.call import Call
from refledger.run import Run
from refledger_schema.envelope import Draft, Recorded
from refledger_schema.errors import (
    ArtifactIntegrity,
    LedgerClosed,
    LockTimeout,
    RunRefused,
    StoreFault,
    StoreFull,
    TooLarge,
    UnknownParentRef,
)
from refledger_schema.events import LogGap, LogOpened, RunStarted
from refledger_schema.scopes import Scope
from refledger_store.append import Decision, Locked
from refledger_store.observations import CAPACITY
from refledger_store.payloads import INLINE
from refledger_store.projections import Projection
from refledger_store.retention import Retention
from refledger_store.sessions import Sessions
from tests.ledgers import ELSEWHERE, NOON, SCOPE, SECOND, Clock, ask, change, contents, new_log, run_python, start_python, types

UNKNOWN = "art_" + "0" * 22
SOON = timedelta(seconds=5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return new_log(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(path, clock=clock, durability="process") as ledger:
        yield ledger


def stored_types(path: Path) -> list[str]:
    """What is committed, whatever waits."""
    return [kind for (kind,) in ask(path, "SELECT type FROM events ORDER BY position")]


def gaps(ledger: Ledger) -> list[tuple[str | None, LogGap]]:
    return [(event.run_id, event.event) for event in ledger.events() if isinstance(event.event, LogGap)]


def assert_gapless(path: Path) -> None:
    """Positions are 1, 2, 3, …, and so is each scope's own count."""
    rows = ask(path, "SELECT position, scope, scope_seq FROM events ORDER BY position")
    assert [position for position, _, _ in rows] == list(range(1, len(rows) + 1))
    seen: Counter[str] = Counter()
    for position, scope, seq in rows:
        seen[scope] += 1
        assert seq == (None if scope is None else seen[scope]), position


# --- order -----------------------------------------------------------------------------------------------------------------


def test_positions_and_scope_seqs_have_no_gaps(path: Path, ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run, ledger.run(ELSEWHERE) as other:
        for number in range(5):
            run.put(number, kind="number")
            other.message("user", "hello")
            other.put(number, kind="number")
        ledger.store.put(SCOPE, "outside any run", kind="text")
    assert_gapless(path)
    assert ledger.verify().ok


def test_one_append_may_touch_several_scopes(path: Path, ledger: Ledger) -> None:
    def decide(state: Locked) -> Decision[None]:
        return Decision(None, [Draft(RunStarted(), scope, run_id=f"r{n}") for n, scope in enumerate((SCOPE, ELSEWHERE, SCOPE, SCOPE))])

    ledger._store.append(decide)
    assert ask(path, "SELECT scope, scope_seq FROM events ORDER BY position") == [
        (None, None),
        (SCOPE.key, 1),
        (ELSEWHERE.key, 1),
        (SCOPE.key, 2),
        (SCOPE.key, 3),
    ]


def test_reading_appends_nothing(path: Path, ledger: Ledger) -> None:
    assert (types(ledger), ledger.runs(), ledger.answers(), ledger.artifacts(SCOPE), ledger.store.list(SCOPE).artifacts) == (
        [],
        [],
        [],
        [],
        (),
    )
    assert ask(path, "SELECT COUNT(*) FROM events") == [(0,)]


def test_the_configuration_is_recorded_when_it_differs_from_the_last_one_recorded(path: Path) -> None:
    def put(**options: Any) -> None:
        with Ledger.open(path, **options) as ledger:
            ledger.store.put(SCOPE, "x", kind="text")

    for options in ({}, {}, {"retention": Retention(max_count=30)}, {"retention": Retention(max_count=30)}, {}):
        put(**options)
    with Ledger.open(path) as ledger:
        assert types(ledger) == [
            "log.opened",
            "artifact.minted",
            "artifact.minted",
            "log.opened",
            "artifact.minted",
            "artifact.minted",
            "log.opened",
            "artifact.minted",
        ]
        opened = [event.event.max_count for event in ledger.events() if isinstance(event.event, LogOpened)]
        assert opened == [None, 30, None]


def test_the_clock_is_read_once_an_append_and_never_orders_it(path: Path, ledger: Ledger, clock: Clock) -> None:
    ledger.store.put(SCOPE, "first", kind="text")
    clock.advance(-SOON)
    ledger.store.put(SCOPE, "second", kind="text")
    assert ask(path, "SELECT position, recorded_us FROM events ORDER BY position") == [
        (1, NOON),
        (2, NOON),
        (3, NOON - 5 * SECOND),
    ]
    assert [meta.ref for meta in ledger.store.list(SCOPE).artifacts] == [
        event.event.body()["ref"] for event in reversed(list(ledger.events())) if event.event.type == "artifact.minted"
    ]


# --- one transaction -------------------------------------------------------------------------------------------------------


def disk_error() -> sqlite3.Error:
    """What the driver raises when the disk fails."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR, "SQLITE_IOERR"
    return error


class Failing:
    """A connection whose `at`-th statement from now on fails, before it ran or after."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self._real = real
        self.at = 0
        self.after = False
        self.failed: str | None = None

    def arm(self, at: int, *, after: bool = False) -> None:
        self.at, self.after, self.failed = at, after, None

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        return self._guarded(sql, lambda: self._real.execute(sql, parameters))

    def executemany(self, sql: str, parameters: Any) -> Any:
        return self._guarded(sql, lambda: self._real.executemany(sql, parameters))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _guarded(self, sql: str, run: Callable[[], Any]) -> Any:
        self.at -= 1
        if self.at != 0 or sql == "ROLLBACK":
            return run()
        self.failed = sql
        if self.after and sql != "COMMIT":
            run()
        raise disk_error()


@dataclass
class Scene:
    """A ledger with some past, and one observation that waits."""

    ledger: Ledger
    clock: Clock
    run: Run
    call: Call
    sales: str
    report: str
    answer: str
    writer: Failing = field(init=False)

    def __post_init__(self) -> None:
        engine = self.ledger._store._engine
        self.writer = Failing(engine._writer)
        engine._writer = self.writer  # type: ignore[assignment]


@pytest.fixture
def scene(path: Path, clock: Clock) -> Iterator[Scene]:
    with Ledger.open(path, clock=clock, retention=Retention(max_count=4), durability="process") as ledger:
        run = ledger.run(SCOPE, run_id="r1")
        sales = run.put([1, 2], kind="dataset/rows", label="Q3").ref
        run.put("about to die", kind="text", ttl=SOON)
        report = run.put({"total": 3}, kind="report", parents=[sales]).ref
        run.put("least used", kind="text")
        answer = run.answer("3", cites=[report]).answer_id
        clock.advance(SOON)
        call = run.call("summarize", call_id="t1", args={"dataset": sales})
        run.message("user", "why?")
        yield Scene(ledger, clock, run, call, sales, report, answer)


ACTS: dict[str, Callable[[Scene], object]] = {
    "a put that sweeps what expired": lambda scene: scene.run.put("new", kind="text", parents=[scene.report]),
    "a put of bytes that are there": lambda scene: scene.run.put([1, 2], kind="dataset/rows"),
    "a put in chunks": lambda scene: scene.run.put(b"x" * (INLINE + 1), kind="blob"),
    "a delete": lambda scene: scene.run.delete(scene.sales, by="alice", why="old"),
    "a dispatch that resolves": lambda scene: scene.call.resolve({"dataset": "dataset/rows"}),
    "a dispatch that is refused": lambda scene: scene.call.resolve({"dataset": "report"}),
    "an answer": lambda scene: scene.run.answer(f"see {scene.report}"),
    "a verdict": lambda scene: scene.ledger.judge(scene.answer, "wrong", note="no"),
    "a run opening": lambda scene: scene.ledger.run(ELSEWHERE),
    "a run joined": lambda scene: scene.ledger.run(SCOPE, run_id="r1"),
    "a flush": lambda scene: scene.ledger.flush(),
    "a rebuild": lambda scene: scene.ledger.rebuild(),
}


@pytest.mark.parametrize("after", [False, True], ids=["before it ran", "after it ran"])
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_whatever_statement_fails_the_file_is_as_it_was(scene: Scene, path: Path, act: Callable[[Scene], object], after: bool) -> None:
    # Chunks are written ahead, in transactions of their own; what nothing links to is swept after a day.
    before = contents(path, but=["payload_chunks"])
    failed: list[str] = []
    while True:
        scene.writer.arm(len(failed) + 1, after=after)
        try:
            act(scene)
        except StoreFault:
            assert scene.writer.failed is not None
            failed.append(scene.writer.failed)
            assert contents(path, but=["payload_chunks"]) == before, scene.writer.failed
            continue
        break
    assert scene.writer.failed is None
    scene.writer.arm(0)
    assert failed[-1] == "COMMIT" and "BEGIN IMMEDIATE" in failed and len(failed) >= 4
    scene.ledger.flush()
    assert_gapless(path)
    assert scene.ledger.verify().ok
    assert [event.event.type for event in scene.ledger.events()].count("message.noted") == 1


@pytest.mark.parametrize("act", [act for name, act in ACTS.items() if name not in ("a rebuild", "a run joined")])
def test_an_exception_in_a_projection_leaves_the_file_as_it_was(
    scene: Scene, path: Path, act: Callable[[Scene], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(path)

    def apply(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(Projection, "apply", apply)
        act(scene)
    assert contents(path) == before
    act(scene)
    assert scene.ledger.verify().ok


def test_an_exception_in_a_decision_leaves_the_file_as_it_was_and_what_waits_waiting(scene: Scene, path: Path) -> None:
    before = contents(path)

    def decide(state: Locked) -> Decision[None]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scene.ledger._store.append(decide, key="r1")
    assert contents(path) == before
    scene.run.flush()
    assert stored_types(path)[-1] == "message.noted"


def test_a_full_disk_is_told_and_recovered_from(path: Path, clock: Clock) -> None:
    with Ledger.open(path, clock=clock) as ledger:
        run = ledger.run(SCOPE)
        run.message("user", "keep me")
        writer = ledger._store._engine._writer
        pages = writer.execute("PRAGMA page_count").fetchone()[0]
        writer.execute(f"PRAGMA max_page_count = {pages + 4}").fetchall()
        before = contents(path)
        with pytest.raises(StoreFull):
            run.put(b"x" * 900_000, kind="blob")
        assert contents(path) == before
        writer.execute("PRAGMA max_page_count = 1000000").fetchall()
        run.put(b"x" * 900_000, kind="blob")
        assert stored_types(path) == ["log.opened", "run.started", "message.noted", "artifact.minted"]
        assert ledger.verify().ok


# --- observations ------------------------------------------------------------------------------------------------------------


def test_observations_are_committed_in_front_of_the_runs_next_closed_event_and_in_their_order(path: Path, ledger: Ledger) -> None:
    run = ledger.run(SCOPE, run_id="r1")
    run.message("user", "one")
    with run.call("get_sales") as call:
        assert stored_types(path) == ["log.opened", "run.started"]
        call.put([1], kind="dataset/rows")
        call.result("done")
    run.message("assistant", "two")
    assert stored_types(path) == ["log.opened", "run.started", "message.noted", "call.started", "artifact.minted"]
    run.end()
    assert stored_types(path)[5:] == ["call.ended", "message.noted", "run.ended"]


def test_observations_of_another_run_wait_on(path: Path, ledger: Ledger) -> None:
    one, other = ledger.run(SCOPE), ledger.run(SCOPE)
    other.message("user", "mine")
    one.put("x", kind="text")
    assert "message.noted" not in stored_types(path)
    ledger.close()
    assert stored_types(path)[-1] == "message.noted"


def test_an_observation_says_when_it_happened(ledger: Ledger, clock: Clock) -> None:
    run = ledger.run(SCOPE)
    run.message("user", "early")
    clock.advance(SOON)
    run.put("late", kind="text")
    assert [(event.event.type, event.occurred_us, event.recorded_us) for event in list(ledger.events())[2:]] == [
        ("message.noted", NOON, NOON + 5 * SECOND),
        ("artifact.minted", None, NOON + 5 * SECOND),
    ]


def test_a_refused_act_leaves_observations_waiting(path: Path, ledger: Ledger) -> None:
    run = ledger.run(SCOPE)
    run.message("user", "one")
    with pytest.raises(UnknownParentRef):
        run.put("x", kind="text", parents=[UNKNOWN])
    assert stored_types(path) == ["log.opened", "run.started"]
    run.message("user", "two")
    run.put("x", kind="text")
    assert stored_types(path)[2:] == ["message.noted", "artifact.refused", "message.noted", "artifact.minted"]


def test_the_256th_observation_commits_them_all(path: Path, ledger: Ledger) -> None:
    run = ledger.run(SCOPE)
    for number in range(CAPACITY - 1):
        run.message("user", str(number))
    assert len(stored_types(path)) == 2
    run.message("user", "one more")
    assert len(stored_types(path)) == 2 + CAPACITY == 258


def test_durable_observations_are_committed_one_by_one(path: Path) -> None:
    with Ledger.open(path, observations="durable") as ledger:
        run = ledger.run(SCOPE)
        run.message("user", "now")
        assert stored_types(path) == ["log.opened", "run.started", "message.noted"]
        run.head(UNKNOWN)
        assert stored_types(path)[3:] == ["artifact.refused"]


def test_a_failing_store_loses_observations_beyond_capacity_only_and_says_how_many(scene: Scene, path: Path) -> None:
    scene.run.flush()
    before = stored_types(path)
    broken = scene.ledger._store._engine._writer
    scene.ledger._store._engine._writer = Broken()  # type: ignore[assignment]
    started = scene.clock.now_us
    for number in range(CAPACITY + 44):
        scene.run.message("user", f"text {number}", index=number)
        scene.clock.advance(timedelta(seconds=1))
    with pytest.raises(StoreFault):
        scene.run.put("x", kind="text")
    assert stored_types(path) == before
    scene.ledger._store._engine._writer = broken
    scene.run.put("x", kind="text")
    new = list(scene.ledger.events(after=len(before)))
    gap = LogGap(count=44, first_us=started, last_us=started + 43 * SECOND, why="store-fault")
    assert (new[0].event, new[0].run_id, new[0].scope) == (gap, "r1", SCOPE)
    assert [event.event.body()["index"] for event in new if event.event.type == "message.noted"] == list(range(44, 300))
    assert types(scene.ledger).count("log.gap") == 1
    kept = {bytes(data).decode() for (data,) in ask(path, "SELECT data FROM content")}
    assert "text 44" in kept and "text 43" not in kept
    assert scene.ledger.verify().ok


class Broken:
    """A connection over a disk that is gone."""

    in_transaction = False

    def execute(self, *_: object) -> Any:
        raise disk_error()

    def close(self) -> None:
        pass


def test_what_is_observed_while_an_append_fails_comes_after_what_waited(scene: Scene) -> None:
    def decide(state: Locked) -> Decision[None]:
        scene.run.message("user", "meanwhile", index=2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scene.ledger._store.append(decide, key="r1")
    scene.run.flush()
    assert [event.event.body()["index"] for event in scene.ledger.events() if event.event.type == "message.noted"] == [1, 2]


def test_losses_while_an_append_fails_are_counted_with_the_others(scene: Scene) -> None:
    buffers = scene.ledger._store._observations
    waiting = buffers.take("r1")
    assert waiting is not None
    (observation,) = waiting.drafts
    buffers.give_back("r1", waiting)

    def decide(state: Locked) -> Decision[None]:
        for _ in range(2 * CAPACITY):
            buffers.add("r1", observation, {})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scene.ledger._store.append(decide, key="r1")
    left = buffers.take("r1")
    assert left is not None
    assert (len(left.drafts), left.lost.count) == (CAPACITY, CAPACITY + 1)


def test_an_interrupt_after_the_commit_gives_nothing_back(scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scene.ledger._store._engine, "_fold", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scene.run.put("x", kind="text")
    monkeypatch.undo()
    scene.run.put("y", kind="text")
    assert stored_types(path).count("message.noted") == 1
    assert scene.ledger.verify().ok


def test_an_interrupt_after_the_commit_keeps_the_payload_of_what_was_minted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scene.ledger._store._engine, "appended", interrupted_after(1, interrupted))
    with pytest.raises(KeyboardInterrupt):
        scene.run.put(b"x" * 3_000_000, kind="blob")
    monkeypatch.undo()
    monkeypatch.setattr(scene.ledger._store, "_remove", interrupted)
    with pytest.raises(KeyboardInterrupt):
        scene.run.put(b"y" * 3_000_000, kind="blob")
    monkeypatch.undo()
    assert scene.ledger.verify().ok
    (minted,) = scene.run.list(kind="blob").artifacts
    stored = scene.run.get(minted.ref)
    assert stored is not None and stored.data == b"y" * 3_000_000


def interrupted_after(calls: int, act: Callable[[], None]) -> Callable[..., None]:
    left = [calls]

    def counted(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            act()

    return counted


def test_an_observation_too_large_for_a_leaf_is_refused_at_the_door_and_blocks_nobody(path: Path, ledger: Ledger) -> None:
    run = ledger.run(SCOPE)
    with pytest.raises(TooLarge):
        run.context(calls=["x" * 200] * 500)
    run.put("x", kind="text")
    run.end()
    assert stored_types(path) == ["log.opened", "run.started", "artifact.minted", "run.ended"]


def test_the_end_of_a_run_waits_when_the_store_fails(scene: Scene, path: Path) -> None:
    scene.writer.arm(1)
    scene.run.end()
    assert "run.ended" not in stored_types(path)
    scene.ledger.flush()
    assert stored_types(path)[-2:] == ["message.noted", "run.ended"]


def test_without_record_content_digests_are_kept_and_texts_are_not(path: Path) -> None:
    with Ledger.open(path, record_content=False) as ledger, ledger.run(SCOPE) as run:
        run.message("user", "secret")
        run.answer("secret too")
        assert [event.event.texts().keys() for event in ledger.events() if "content" in event.event.texts()] == [{"content"}, {"content"}]
    assert ask(path, "SELECT COUNT(*) FROM content") == [(0,)]


# --- decisions look at what waited ---------------------------------------------------------------------------------------------


def test_a_decision_sees_the_reads_that_are_committed_in_front_of_it(path: Path) -> None:
    with Ledger.open(path, retention=Retention(max_count=2)) as ledger:
        run = ledger.run(SCOPE)
        old, new = run.put("old", kind="text").ref, run.put("new", kind="text").ref
        run.get(old)
        run.put("another", kind="text")
        assert [run.head(ref) is not None for ref in (old, new)] == [True, False]


def test_a_refusal_never_offers_what_an_earlier_event_says_is_corrupt(path: Path, ledger: Ledger) -> None:
    run = ledger.run(SCOPE)
    bad, good = run.put("bad", kind="text"), run.put("good", kind="text")
    change(path, "UPDATE payloads SET data = x'00' WHERE digest = ?", bad.digest)
    with pytest.raises(ArtifactIntegrity):
        run.get(bad.ref)
    with run.call("summarize", args={"text": "that one"}) as call:
        outcome = call.resolve({"text": "text"})
    assert not outcome.ok
    assert good.ref in outcome.refusal and bad.ref not in outcome.refusal and "1 of 1" in outcome.refusal


# --- crashes ---------------------------------------------------------------------------------------------------------------------

CRASH = """
    import os, signal, sys
    from refledger import Ledger, Scope
    scope = Scope(conversation="c-17", tenant="acme", principal="alice")
    ledger = Ledger.open(sys.argv[1], clock=lambda: {now})
    run = ledger.run(scope, run_id="r1")
    run.message("user", "never heard of")
    {more}
    print("ready", flush=True)
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
    """


def crash(path: Path, more: str = "pass", now: int = NOON) -> Callable[[], None]:
    """A process that has a run in hand; call what it gives to kill it."""
    process = start_python(CRASH.format(more=more, now=now), path)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "ready\n"

    def kill() -> None:
        assert process.communicate("go\n", timeout=60)[1] == ""

    return kill


CRASHED = ("r1", LogGap(first_us=NOON, why="crash"))


def put_by_another(path: Path) -> list[tuple[str | None, LogGap]]:
    """What another writer, who comes later, finds lost."""
    with Ledger.open(path) as later:
        later.store.put(SCOPE, "x", kind="text")
        return gaps(later)


def test_the_next_writer_tells_of_a_run_whose_process_was_killed_once(path: Path) -> None:
    crash(path)()
    assert put_by_another(path) == [CRASHED]
    assert put_by_another(path) == [CRASHED]
    with Ledger.open(path) as ledger:
        assert types(ledger) == ["log.opened", "run.started", "log.gap", "artifact.minted", "artifact.minted"]
        assert ledger.verify().ok


def test_a_killed_process_is_told_of_only_for_the_runs_that_it_had_in_hand(path: Path) -> None:
    crash(path, more='ledger.run(scope, run_id="r2").end(); ledger.run(scope, run_id="r3")')()
    assert put_by_another(path) == [CRASHED, ("r3", CRASHED[1])]


@pytest.mark.parametrize("more", ["pass", 'ledger.run(scope, run_id="r1")'], ids=["opened", "joined by its own process as well"])
def test_a_run_whose_process_is_alive_is_not_told_of(path: Path, more: str) -> None:
    kill = crash(path, more)
    assert put_by_another(path) == []
    kill()
    assert put_by_another(path) == [CRASHED]


def test_nothing_is_told_of_a_run_that_somebody_ended_for_the_dead(path: Path) -> None:
    kill = crash(path)
    with Ledger.open(path) as ledger:
        ledger.run(SCOPE, run_id="r1").end()
        kill()
    assert put_by_another(path) == []


def test_nothing_is_told_of_an_ended_run_whose_holder_was_never_let_go(path: Path, ledger: Ledger) -> None:
    ledger.run(SCOPE, run_id="r1").end()
    change(path, "INSERT INTO run_holders VALUES ('r1', 'somebody dead'), ('never started', 'somebody dead')")
    assert put_by_another(path) == []
    assert ask(path, "SELECT * FROM run_holders") == []


def test_a_run_held_through_another_path_to_the_same_file_is_not_told_of(path: Path, tmp_path: Path) -> None:
    kill = crash(path)
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    assert put_by_another(link) == []
    kill()
    assert put_by_another(link) == [CRASHED]
    assert list(link.parent.iterdir()) == [link]


def test_a_session_that_cannot_be_looked_at_is_taken_to_be_alive(path: Path, ledger: Ledger) -> None:
    ledger.run(SCOPE, run_id="r1")
    change(path, "INSERT INTO run_holders VALUES ('r1', 'odd')")
    Path(f"{path}.session-odd").symlink_to(f"{path}.session-odd")  # A loop: the system refuses to open it.
    assert put_by_another(path) == []


def test_a_process_that_goes_to_another_folder_leaves_nothing_of_the_log_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    new_log(home)
    monkeypatch.chdir(home)
    with Ledger.open("agent.db") as ledger:
        monkeypatch.chdir(away)
        ledger.run(SCOPE).put("x", kind="text")
        assert list(away.iterdir()) == []
        assert ledger.verify().ok


@pytest.mark.parametrize("closes", [True, False], ids=["and left it", "and holds it still"])
def test_the_crash_of_one_holder_of_a_run_is_told_although_another_joined_it(path: Path, closes: bool) -> None:
    kill = crash(path)
    joined = Ledger.open(path, clock=Clock())
    joined.run(SCOPE, run_id="r1")
    if closes:
        joined.close()
    kill()
    assert put_by_another(path) == [CRASHED]
    joined.close()
    assert put_by_another(path) == [CRASHED]


def test_a_run_that_was_left_open_by_a_clean_close_is_joined_without_a_gap(path: Path) -> None:
    with Ledger.open(path) as ledger, ledger.run(SCOPE, run_id="r1", keep_open=True) as run:
        run.message("user", "kept")
    with Ledger.open(path) as ledger, ledger.run(SCOPE, run_id="r1") as run:
        run.put("x", kind="text")
        assert (run.joined, gaps(ledger)) == (True, [])
        assert types(ledger) == ["log.opened", "run.started", "message.noted", "artifact.minted"]


def test_a_process_that_exits_without_closing_loses_nothing(path: Path) -> None:
    script = """
        import sys
        from refledger import Ledger, Scope
        Ledger.open(sys.argv[1]).run(Scope(conversation="c-17", tenant="acme", principal="alice"), run_id="r1").message("user", "kept")
        """
    run_python(script, path)
    assert put_by_another(path) == []
    assert "message.noted" in stored_types(path)


def test_two_writers_that_find_the_same_dead_tell_of_them_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(path)()
    with Ledger.open(path) as one, Ledger.open(path) as other:
        dead = Sessions.dead

        def slowly(sessions: Sessions, session: str) -> bool:
            monkeypatch.setattr(Sessions, "dead", dead)
            found = sessions.dead(session)
            other.store.put(SCOPE, "faster", kind="text")
            other.run(SCOPE, run_id="r1").message("user", "mine now")
            return found

        monkeypatch.setattr(Sessions, "dead", slowly)
        one.store.put(SCOPE, "slower", kind="text")
        assert gaps(one) == [("r1", LogGap(first_us=gaps(one)[0][1].first_us, why="crash"))]
        assert ask(path, "SELECT run_id, session FROM run_holders") == [("r1", other._store._sessions.mine)]


def test_a_close_that_could_not_keep_what_waited_leaves_a_gap_to_the_next(scene: Scene, path: Path) -> None:
    scene.ledger._store._engine._writer = Broken()  # type: ignore[assignment]
    with pytest.raises(StoreFault):
        scene.ledger.close()
    scene.ledger.close()
    assert [(run_id, gap.why) for run_id, gap in put_by_another(path)] == [("r1", "crash")]


# --- runs, joined and refused -----------------------------------------------------------------------------------------------------


def test_a_run_is_joined_from_another_process(path: Path, ledger: Ledger) -> None:
    run = ledger.run(SCOPE, run_id="r1")
    with run.call("first", call_id="t1"):
        pass
    run.flush()
    script = """
        import sys
        from refledger import Ledger, Scope
        scope = Scope(conversation="c-17", tenant="acme", principal="alice")
        with Ledger.open(sys.argv[1]) as ledger, ledger.run(scope, run_id="r1") as run:
            assert run.joined
            with run.call("first", call_id="t1") as again, run.call("second", call_id="t2") as call:
                print(again.dispatch, call.dispatch)
        """
    assert run_python(script, path) == "2 1\n"
    run.put("still open", kind="text")
    run.end()
    started = [event for event in ledger.events() if event.event.type == "call.started"]
    assert [(event.run_id, event.call_id, event.dispatch) for event in started] == [("r1", "t1", 1), ("r1", "t1", 2), ("r1", "t2", 1)]
    assert types(ledger).count("run.started") == types(ledger).count("run.ended") == 1


@pytest.mark.parametrize("scope", [SCOPE, ELSEWHERE], ids=["that has ended", "of another scope"])
def test_a_run_that_cannot_be_joined_is_refused_and_nothing_is_recorded(path: Path, ledger: Ledger, scope: Scope) -> None:
    run = ledger.run(SCOPE, run_id="r1")
    if scope == SCOPE:
        run.end()
    before = contents(path)
    with pytest.raises(RunRefused) as refused:
        ledger.run(scope, run_id="r1")
    assert refused.value.run_id == "r1"
    assert contents(path) == before


# --- one writer at a time -----------------------------------------------------------------------------------------------------------

HOLD = {
    "a transaction": """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        sys.stdin.readline()
        """,
    "the sidecar": """
        import fcntl, sys
        file = open(sys.argv[1] + ".lock", "w")
        fcntl.flock(file, fcntl.LOCK_EX)
        print("held", flush=True)
        sys.stdin.readline()
        """,
}


@pytest.mark.parametrize("script", HOLD.values(), ids=HOLD.keys())
def test_a_lock_that_another_process_holds_is_waited_for_until_the_deadline(path: Path, script: str) -> None:
    with Ledger.open(path, lock_timeout=0.3) as ledger:
        run = ledger.run(SCOPE)
        run.message("user", "waits")
        before = contents(path)
        holder = start_python(script, path)
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        started = time.monotonic()
        with pytest.raises(LockTimeout) as timeout:
            run.put("x", kind="text")
        assert 0.3 <= time.monotonic() - started < 3
        assert timeout.value.waited_seconds == 0.3
        assert contents(path) == before
        assert run.head(UNKNOWN) is None, "reading needs no lock"
        holder.communicate("done\n", timeout=60)
        run.put("x", kind="text")
        assert stored_types(path) == ["log.opened", "run.started", "message.noted", "artifact.refused", "artifact.minted"]


def test_a_thread_waits_for_another_threads_append_until_the_deadline(path: Path) -> None:
    with Ledger.open(path, lock_timeout=0.2) as ledger:
        deciding, decided = threading.Event(), threading.Event()

        def slowly(state: Locked) -> Decision[None]:
            deciding.set()
            decided.wait(30)
            return Decision(None)

        thread = threading.Thread(target=ledger._store.append, args=(slowly,))
        thread.start()
        deciding.wait(30)
        with pytest.raises(LockTimeout):
            ledger.store.put(SCOPE, "x", kind="text")
        decided.set()
        thread.join()
        ledger.store.put(SCOPE, "x", kind="text")


def test_all_waits_together_keep_to_the_one_deadline(path: Path) -> None:
    with Ledger.open(path, lock_timeout=2) as ledger:
        ledger.store.put(SCOPE, "x", kind="text")
        holder = start_python(HOLD["a transaction"], path)
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        waited: list[float] = []

        def put() -> None:
            started = time.monotonic()
            with pytest.raises(LockTimeout):
                ledger.store.put(SCOPE, "x", kind="text")
            waited.append(time.monotonic() - started)

        thread = threading.Thread(target=put)
        with ledger._store._engine._writers:
            thread.start()
            time.sleep(1.6)
        thread.join()
        holder.communicate("done\n", timeout=60)
        assert 1.6 <= waited[0] < 3


def in_threads(number: int, act: Callable[[int], None]) -> None:
    """Run `act` in some threads that start together; what one raises is raised here."""
    barrier, failures = threading.Barrier(number), []

    def work(mine: int) -> None:
        barrier.wait()
        try:
            act(mine)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(mine,), daemon=True) for mine in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "some thread waits for ever"
    if failures:
        raise failures[0]


def test_eight_threads_with_fifty_puts_each_leave_no_gap(path: Path) -> None:
    with Ledger.open(path, durability="process", lock_timeout=60) as ledger, ledger.run(SCOPE) as run:

        def work(mine: int) -> None:
            for number in range(50):
                with run.call("t", call_id=f"{mine}-{number}") as call:
                    call.put([mine, number], kind="pair")

        in_threads(8, work)
        run.flush()
        assert_gapless(path)
        assert [meta is not None for meta in (run.list(limit=1_000).artifacts)] == [True] * 400
        events = list(ledger.events())
        assert broken_orders(events) == []
        assert ledger.verify().ok


def broken_orders(events: list[Recorded]) -> list[str]:
    """The calls whose events do not stand in the order in which their thread made them."""
    made: dict[str, list[str]] = {}
    for event in events:
        if event.call_id is not None:
            made.setdefault(event.call_id, []).append(event.event.type)
    return [call_id for call_id, order in made.items() if order != ["call.started", "artifact.minted", "call.ended"]]


def test_what_a_thread_observed_is_not_overtaken_by_its_own_put_while_another_thread_has_it_in_hand(path: Path) -> None:
    with Ledger.open(path, durability="process", lock_timeout=60) as ledger:
        run = ledger.run(SCOPE)
        with run.call("mine", call_id="t1") as mine:
            waiting = threading.Event()

            def decide(state: Locked) -> Decision[None]:
                waiting.set()
                return Decision(None)

            # The other thread's append is at the lock's door when ours comes, with the run's observations as its key.
            with ledger._store._engine.writing():
                other = threading.Thread(target=ledger._store.append, args=(decide,), kwargs={"key": run.run_id})
                other.start()
                time.sleep(0.05)
                assert not waiting.is_set()
                assert ledger._store._observations.keys() == [run.run_id], "nobody takes what waits before it has the lock"
            other.join()
            mine.put("x", kind="text")
        run.end()
        assert broken_orders(list(ledger.events())) == []


def test_threads_that_open_their_first_runs_together_do_not_wait_for_each_other_for_ever(path: Path) -> None:
    for _ in range(5):
        with Ledger.open(path, durability="process", lock_timeout=60) as ledger:
            in_threads(8, lambda mine: ledger.run(SCOPE).end())
    with Ledger.open(path) as ledger:
        assert types(ledger).count("run.started") == types(ledger).count("run.ended") == 40


def test_two_processes_append_by_turns_without_a_gap(path: Path) -> None:
    script = """
        import sys
        from refledger import Ledger, Scope
        scope = Scope(conversation="c-17", tenant="acme", principal="alice")
        with Ledger.open(sys.argv[1], durability="process", lock_timeout=60) as ledger, ledger.run(scope) as run:
            for number in range(100):
                run.message("user", str(number))
                run.put(number, kind="number")
        """
    processes = [start_python(script, path) for _ in range(2)]
    assert [process.communicate(timeout=120)[1] for process in processes] == ["", ""]
    assert_gapless(path)
    with Ledger.open(path) as ledger:
        assert Counter(types(ledger)) == {
            "log.opened": 1,
            "run.started": 2,
            "message.noted": 200,
            "artifact.minted": 200,
            "run.ended": 2,
        }
        assert ledger.verify().ok


def test_processes_that_make_the_same_new_log_make_one(tmp_path: Path) -> None:
    script = """
        import sys
        import sqlalchemy, alembic.command, alembic.config
        from refledger import Ledger, Scope
        print("ready", flush=True)
        sys.stdin.readline()
        with Ledger.open(sys.argv[1], lock_timeout=60) as ledger:
            ledger.store.put(Scope(conversation="c"), "x", kind="text")
            print(ledger.log_id)
        """
    processes = [start_python(script, tmp_path / "agent.db") for _ in range(3)]
    assert [process.stdout.readline() for process in processes if process.stdout is not None] == ["ready\n"] * 3
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=120) for process in processes]
    assert [err for _, err in ended] == ["", "", ""]
    assert len({out for out, _ in ended}) == 1
    assert stored_types(tmp_path / "agent.db") == ["log.opened", *["artifact.minted"] * 3]


# --- closing and forking -----------------------------------------------------------------------------------------------------------


def test_closing_twice_is_closing_once_and_a_closed_ledger_says_so(path: Path, ledger: Ledger) -> None:
    run = ledger.run(SCOPE)
    run.message("user", "kept")
    ledger.close()
    ledger.close()
    assert stored_types(path)[-1] == "message.noted"
    before = contents(path)
    for act in (lambda: run.put("x", kind="text"), lambda: ledger.store.list(SCOPE), ledger.rebuild, ledger.verify):
        with pytest.raises(LedgerClosed):
            act()
    assert contents(path) == before


def test_a_fork_refuses_the_ledger_that_it_inherited_and_takes_nothing_from_its_parent(path: Path) -> None:
    script = """
        import os, sys
        from refledger import Ledger, Scope
        from refledger_schema.errors import LedgerClosed
        scope = Scope(conversation="c-17", tenant="acme", principal="alice")
        ledger = Ledger.open(sys.argv[1])
        run = ledger.run(scope, run_id="r1")
        run.message("user", "the parent's")
        child = os.fork()
        if child == 0:
            for act in (lambda: run.put("x", kind="text"), lambda: ledger.store.list(scope), lambda: ledger.run(scope)):
                try:
                    act()
                except LedgerClosed as refused:
                    print(str(refused).partition(".")[0])
            ledger.close()
            sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print("forked", flush=True)
        sys.stdin.readline()
        run.put("x", kind="text")
        ledger.close()
        """
    process = start_python(script, path)
    assert process.stdout is not None
    crossed = "expected a ledger opened by this process; this one crossed a fork\n"
    assert [process.stdout.readline() for _ in range(4)] == [crossed, crossed, crossed, "forked\n"]
    assert put_by_another(path) == [], "the parent is alive"
    assert process.communicate("go\n", timeout=60)[1] == ""
    assert put_by_another(path) == []
    assert stored_types(path)[:2] == ["log.opened", "run.started"]
    assert stored_types(path).count("message.noted") == 1
    assert_gapless(path)
