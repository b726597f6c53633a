"""`refledger.testing`: what a user's own tests get, and that it leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger, Retention, Run, Scope
from refledger.testing import (
    SettableClock,
    assert_minted,
    assert_refused,
    assert_resolved,
    minted,
    refused,
    resolved,
    seeded_refs,
    temporary_ledger,
)
from refledger_schema import refs
from refledger_schema.errors import (
    AppendUnknown,
    InvalidArtifact,
    InvalidConfiguration,
    LedgerClosed,
    LockTimeout,
    RefledgerError,
    StoreFault,
    StoreFull,
)
from refledger_schema.events import CallEnded
from tests.ledgers import types

ROOT = Path(__file__).parent.parent
SCOPE = Scope(conversation="c-17", tenant="acme", principal="alice")
ROWS = "dataset/rows"
FIRST = "art_8qlFURem51pQl0RiEwt11X"


def put(ledger: Ledger, **words: Any) -> str:
    return ledger.store.put(SCOPE, "rows", kind=ROWS, **words).ref


def some_history(ledger: Ledger) -> tuple[str, str]:
    """A run that puts two artifacts, resolves one, and is refused the other: their refs."""
    with ledger.run(SCOPE, run_id="run-1") as run:
        with run.call("get_sales", call_id="t1") as call:
            rows = call.put([1, 2], kind=ROWS).ref
        with run.call("draw", call_id="t2") as call:
            chart = call.put("chart", kind="chart/spec").ref
        with run.call("sum_up", call_id="t3", args={"dataset": rows}) as call:
            assert call.resolve({"dataset": ROWS}).ok
        with run.call("sum_up", call_id="t4", args={"dataset": chart}) as call:
            assert not call.resolve({"dataset": ROWS}).ok
    return rows, chart


# --- the ledger ------------------------------------------------------------------------------------------------------------


def test_it_is_a_real_ledger_that_is_gone_with_its_folder() -> None:
    with temporary_ledger() as ledger:
        assert isinstance(ledger, Ledger)
        put(ledger)
        assert types(ledger) == ["log.opened", "artifact.minted"]
        folder = ledger.path.parent
        assert ledger.path.is_file()
    assert not folder.exists()
    with pytest.raises(LedgerClosed):
        put(ledger)


def test_it_takes_the_options_of_open() -> None:
    with temporary_ledger(retention=Retention(max_count=1), place_above=10, payloads="folder") as ledger:
        first = put(ledger)
        put(ledger)
        assert ledger.store.head(SCOPE, first) is None


def test_it_goes_away_after_an_error_in_its_block_which_comes_out() -> None:
    with pytest.raises(ZeroDivisionError), temporary_ledger(seed=1) as ledger:
        ledger.faults.fail_next("append")
        raise ZeroDivisionError
    assert not ledger.path.exists()


# --- the clock -------------------------------------------------------------------------------------------------------------


def test_its_clock_stands_still_until_it_is_moved_and_expiry_is_inclusive() -> None:
    with temporary_ledger() as ledger:
        ref = put(ledger, ttl=timedelta(seconds=10))
        ledger.clock.advance(9.999_999)
        assert ledger.store.head(SCOPE, ref) is not None
        ledger.clock.advance(timedelta(microseconds=1))
        assert ledger.store.head(SCOPE, ref) is None


def test_a_clock_counts_microseconds_and_moves_by_seconds_or_timedeltas_or_to_an_instant() -> None:
    clock = SettableClock(datetime(2026, 3, 1, tzinfo=UTC))
    assert clock() == 1_772_323_200_000_000
    clock.advance(1.5)
    clock.advance(timedelta(milliseconds=500))
    assert clock.now == datetime(2026, 3, 1, 0, 0, 2, tzinfo=UTC)
    clock.advance(-2)
    assert clock() == 1_772_323_200_000_000
    clock.set(datetime(2030, 1, 1, tzinfo=UTC))
    assert clock.now == datetime(2030, 1, 1, tzinfo=UTC)


def test_a_clock_refuses_an_instant_without_a_time_zone() -> None:
    with pytest.raises(InvalidConfiguration, match="time zone"):
        SettableClock(datetime(2026, 3, 1))


def test_a_clock_can_be_shared() -> None:
    clock = SettableClock()
    with temporary_ledger(clock=clock) as one, temporary_ledger(clock=clock) as other:
        clock.advance(60)
        assert one.clock is other.clock is clock


# --- seeded refs -----------------------------------------------------------------------------------------------------------


def test_seeded_refs_can_be_spelt_out() -> None:
    with temporary_ledger(seed=1) as ledger:
        assert put(ledger) == FIRST


def test_the_same_seed_gives_the_same_refs_and_another_one_others() -> None:
    def history(seed: int | str) -> list[str]:
        with temporary_ledger(seed=seed) as ledger, ledger.run(SCOPE) as run, run.call("t") as call:
            return [run.run_id, call.call_id, call.put("a", kind=ROWS).ref, call.put("a", kind=ROWS).ref, run.answer("x").answer_id]

    assert history(1) == history(1)
    assert not set(history(1)) & (set(history(2)) | set(history("1")))
    assert len(set(history(1))) == 5


def test_minting_is_random_again_after_the_block_and_after_an_error_in_it() -> None:
    before = refs._random_base62
    with pytest.raises(ZeroDivisionError), temporary_ledger(seed=1):
        raise ZeroDivisionError
    with seeded_refs(1):
        assert refs.mint_ref() == FIRST
    assert refs._random_base62 is before
    with temporary_ledger() as ledger:
        assert put(ledger) != FIRST


def test_seeds_nest_and_refs_keep_their_grammar() -> None:
    with seeded_refs(1):
        with seeded_refs(2):
            inner = refs.mint_ref()
        assert refs.mint_ref() == FIRST != inner
        assert all(refs.is_ref(refs.mint_ref()) for _ in range(100))


# --- faults ----------------------------------------------------------------------------------------------------------------


def resolve(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run, run.call("t", args={"a": "art_x"}) as call:
        call.resolve({"a": ROWS})


@pytest.mark.parametrize(
    "error", [StoreFault("x"), StoreFull("x"), LockTimeout(5.0), AppendUnknown("x")], ids=lambda error: type(error).__name__
)
def test_an_append_fails_as_told_and_keeps_nothing_and_the_next_one_works(error: RefledgerError) -> None:
    with temporary_ledger() as ledger:
        put(ledger)
        before = [recorded.position for recorded in ledger.events()]
        ledger.faults.fail_next("append", error)
        with pytest.raises(type(error)) as caught:
            put(ledger)
        assert caught.value is error
        assert [recorded.position for recorded in ledger.events()] == before
        assert len(ledger.store.list(SCOPE).artifacts) == 1
        put(ledger)
        assert len(ledger.store.list(SCOPE).artifacts) == 2


def test_a_lock_that_is_not_free_fails_before_anything_is_decided_and_a_full_disk_after() -> None:
    with temporary_ledger(seed=1) as ledger:
        for error in (LockTimeout(5.0), StoreFull("full")):
            ledger.faults.fail_next("append", error)
        with pytest.raises(LockTimeout):
            put(ledger)
        with pytest.raises(StoreFull):
            put(ledger)
        drawn_before_it_was_full = FIRST
        assert put(ledger) != drawn_before_it_was_full
    with temporary_ledger(seed=1) as ledger:
        ledger.faults.fail_next("append", LockTimeout(5.0))
        with pytest.raises(LockTimeout):
            put(ledger)
        assert put(ledger) == FIRST


def test_a_kept_append_raises_although_it_happened_and_its_key_finds_it_again() -> None:
    with temporary_ledger() as ledger:
        ledger.faults.fail_next("append", AppendUnknown("the connection broke"), kept=True)
        with pytest.raises(AppendUnknown):
            put(ledger, key="once")
        (there,) = ledger.store.list(SCOPE).artifacts
        assert put(ledger, key="once") == there.ref
        assert len(minted(ledger)) == 1


def test_a_dispatch_that_fails_hands_out_no_data() -> None:
    with temporary_ledger() as ledger:
        ref = put(ledger)
        with ledger.run(SCOPE) as run, run.call("sum_up", args={"dataset": ref}) as call:
            ledger.faults.fail_next("append", StoreFull("the disk is full"))
            with pytest.raises(StoreFull):
                call.resolve({"dataset": ROWS})
        assert resolved(ledger) == ()


def test_observations_wait_for_an_append_that_works() -> None:
    with temporary_ledger() as ledger:
        with ledger.run(SCOPE) as run:
            run.message("user", "how much?")
            ledger.faults.fail_next("append")
            with pytest.raises(StoreFault, match="a test told it to fail"):
                ledger.flush()
            assert "message.noted" not in types(ledger)
        assert types(ledger) == ["log.opened", "run.started", "message.noted", "run.ended"]


@pytest.mark.parametrize("read", [lambda ledger, ref: ledger.store.get(SCOPE, ref), lambda ledger, ref: ledger.store.head(SCOPE, ref)])
def test_a_read_fails_as_told_and_the_next_one_works(read: Callable[[Ledger, str], object]) -> None:
    with temporary_ledger() as ledger:
        ref = put(ledger)
        ledger.faults.fail_next("read", StoreFault("the disk is gone"))
        with pytest.raises(StoreFault, match="the disk is gone"):
            read(ledger, ref)
        assert read(ledger, ref) is not None


def test_a_stream_fails_between_its_pieces() -> None:
    with temporary_ledger() as ledger:
        ref = ledger.store.put_stream(SCOPE, [b"x" * 3_000_000], kind=ROWS).ref
        reader = ledger.store.get_stream(SCOPE, ref)
        assert reader is not None
        with reader:
            next(reader)
            ledger.faults.fail_next("read", StoreFault("the disk is gone"))
            with pytest.raises(StoreFault):
                reader.read_all()
        assert not reader.verified


def test_faults_are_met_once_each_in_their_order() -> None:
    with temporary_ledger() as ledger:
        for error in (StoreFull("1"), LockTimeout(1.0), StoreFault("3")):
            ledger.faults.fail_next("append", error)
        for kind in (StoreFull, LockTimeout, StoreFault):
            with pytest.raises(kind):
                put(ledger)
        assert ledger.faults.waiting() == 0
        put(ledger)


def test_an_append_that_is_refused_anyway_leaves_the_fault_for_the_next() -> None:
    with temporary_ledger() as ledger:
        ledger.faults.fail_next("append", StoreFull("full"))
        with pytest.raises(InvalidArtifact):
            put(ledger, parents=["art_0000000000000000000000"])
        with pytest.raises(StoreFull):
            put(ledger)


def test_a_fault_that_was_never_met_is_an_error_at_the_end() -> None:
    with pytest.raises(AssertionError, match="expected every fault to be met; 1 were not"), temporary_ledger() as ledger:
        ledger.faults.fail_next("read")
    assert not ledger.path.exists()


@pytest.mark.parametrize(
    ("option", "asked"),
    [
        ("act", {"act": "commit"}),
        ("error", {"act": "append", "error": OSError("no")}),
        ("error", {"act": "append", "error": StoreFault}),
        ("kept", {"act": "append", "error": StoreFull("full"), "kept": True}),
        ("kept", {"act": "read", "error": AppendUnknown("lost"), "kept": True}),
    ],
)
def test_a_fault_that_no_store_has_is_refused(option: str, asked: dict[str, Any]) -> None:
    with temporary_ledger() as ledger, pytest.raises(InvalidConfiguration) as caught:
        ledger.faults.fail_next(**asked)
    assert caught.value.option == option


def test_faults_of_one_ledger_are_not_anothers() -> None:
    with temporary_ledger() as one, temporary_ledger() as other:
        one.faults.fail_next("append")
        put(other)
        with pytest.raises(StoreFault):
            put(one)


# --- what happened ---------------------------------------------------------------------------------------------------------


def test_what_was_minted_resolved_and_refused_is_found_by_what_it_is() -> None:
    with temporary_ledger() as ledger:
        rows, chart = some_history(ledger)
        assert [event.ref for event in minted(ledger)] == [rows, chart]
        assert [event.ref for event in minted(ledger, kind="chart/spec")] == [chart]
        assert [event.ref for event in minted(ledger, tool="get_sales", scope=SCOPE, run_id="run-1", call_id="t1")] == [rows]
        assert minted(ledger, kind=ROWS, tool="draw") == minted(ledger, scope=Scope("elsewhere")) == minted(ledger, call_id="t3") == ()
        (resolution,) = resolved(ledger, tool="sum_up", argument="dataset", kind=ROWS, ref=rows)
        assert resolution.arguments[0].verified
        assert resolved(ledger, ref=chart) == resolved(ledger, tool="draw") == ()
        (refusal,) = refused(ledger, tool="sum_up", argument="dataset", kind=ROWS, reason="kind-mismatch", cause="wrong_kind")
        assert refusal.arguments[0].actual == "chart/spec"
        assert refused(ledger, reason="missing-or-expired") == refused(ledger, argument="other") == ()


def test_assertions_give_the_events_that_they_found() -> None:
    with temporary_ledger() as ledger:
        some_history(ledger)
        assert assert_minted(ledger, kind=ROWS, times=1) == minted(ledger, kind=ROWS)
        assert assert_minted(ledger) == minted(ledger)
        assert assert_minted(ledger, kind="nothing/like-it", times=0) == ()
        assert assert_resolved(ledger, tool="sum_up") == resolved(ledger)
        assert assert_refused(ledger, cause="wrong_kind", times=1) == refused(ledger)


def test_a_failed_assertion_says_what_was_expected_what_was_found_and_what_to_do() -> None:
    with temporary_ledger(seed=1) as ledger:
        rows, chart = some_history(ledger)
        with pytest.raises(AssertionError) as caught:
            assert_minted(ledger, kind="report/text", scope=SCOPE)
        assert str(caught.value).splitlines() == [
            "expected at least one mint of kind 'report/text', scope; found none. The log has:",
            f"  {rows} of kind 'dataset/rows', put by tool 'get_sales'",
            f"  {chart} of kind 'chart/spec', put by tool 'draw'",
            "Check what the tool puts, and in which scope.",
        ]
        with pytest.raises(AssertionError) as caught:
            assert_refused(ledger, tool="sum_up", times=2)
        assert str(caught.value).splitlines() == [
            "expected 2 refusals of tool 'sum_up'; found 1. The log has:",
            "  tool 'sum_up' refused: dataset, kind-mismatch (wrong_kind)",
            f"  tool 'sum_up' resolved: dataset = {rows} of kind 'dataset/rows'",
            "Check what the tool declares, and what the model passed.",
        ]


def test_a_failed_assertion_over_an_empty_log_and_over_a_long_one() -> None:
    with temporary_ledger() as ledger:
        with pytest.raises(AssertionError, match="expected at least one resolution; found none. The log has nothing of the kind."):
            assert_resolved(ledger)
        for _ in range(12):
            put(ledger)
        with pytest.raises(AssertionError, match="… and 2 more"):
            assert_minted(ledger, times=3)


# --- the fixture -------------------------------------------------------------------------------------------------------------


def run_pytest(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_theirs.py").write_text(test, encoding="utf-8")
    # As an entry point it is loaded by itself; here by name, so that it does not matter how Refledger was installed.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "refledger.pytest_plugin", "--rootdir", str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_fixture_is_a_temporary_ledger_with_seeded_refs(tmp_path: Path) -> None:
    ran = run_pytest(
        tmp_path,
        """
import sys

HEAVY = {"duckdb", "pyarrow", "sqlmodel", "sqlalchemy", "alembic"}
AT_COLLECTION = HEAVY & set(sys.modules)

from refledger import Scope
from refledger.testing import TemporaryLedger, assert_minted

def test_collecting_loads_nothing_heavy():
    assert AT_COLLECTION == set()

def test_a(refledger_ledger):
    assert isinstance(refledger_ledger, TemporaryLedger)
    test_a.ref = refledger_ledger.store.put(Scope("c"), "a", kind="k").ref
    assert_minted(refledger_ledger, times=1)

def test_b(refledger_ledger):
    assert refledger_ledger.store.put(Scope("c"), "b", kind="k").ref == test_a.ref
""",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 passed" in ran.stdout


def test_a_fault_that_a_test_did_not_meet_shows_in_that_test(tmp_path: Path) -> None:
    ran = run_pytest(tmp_path, "def test_a(refledger_ledger):\n    refledger_ledger.faults.fail_next('append')\n")
    assert ran.returncode == 1
    assert "expected every fault to be met" in ran.stdout


def test_pytest_finds_the_fixture_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"] == {"pytest11": {"refledger": "refledger.pytest_plugin"}}


def test_a_user_tests_what_the_runtime_does_when_the_store_fails() -> None:
    def dispatch(run: Run, ref: str) -> str:
        with run.call("sum_up", args={"dataset": ref}) as call:
            try:
                return "ran" if call.resolve({"dataset": ROWS}).ok else "refused"
            except StoreFault as fault:
                call.fail(type(fault).__name__)
                return "stopped"

    with temporary_ledger() as ledger:
        ref = put(ledger)
        with ledger.run(SCOPE) as run:
            ledger.faults.fail_next("append", LockTimeout(5.0))
            assert [dispatch(run, ref), dispatch(run, ref)] == ["stopped", "ran"]
        assert_resolved(ledger, tool="sum_up", times=1)
        ended = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, CallEnded)]
        assert [(event.status, event.error_class) for event in ended] == [("error", "LockTimeout"), ("no-result", None)]
