"""The same key with the same request is answered as before; with another request it is a conflict; and no scope learns of another's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from refledger import Ledger, Refused, Resolved
from refledger_schema.errors import IdempotencyConflict, InvalidArtifact
from tests.ledgers import ELSEWHERE, SCOPE, Clock, new_log

ABSENT = "art_" + "0" * 22
WANTS = {"dataset": "dataset/rows"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(new_log(tmp_path), clock=clock) as opened:
        yield opened


def positions(ledger: Ledger) -> int:
    ledger.flush()
    return sum(1 for _ in ledger.events())


def test_a_repeated_put_gives_the_first_ticket_and_records_nothing(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        first = run.put([1, 2], kind="dataset/rows", label="sales", key="attempt-1")
        before = positions(ledger)
        assert run.put([1, 2], kind="dataset/rows", label="sales", key="attempt-1") == first
        assert positions(ledger) == before


def test_the_first_ticket_is_given_even_after_its_artifact_is_gone(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        first = run.put([1], kind="dataset/rows", key="k")
        run.delete(first.ref)
        assert run.put([1], kind="dataset/rows", key="k").ref == first.ref


@pytest.mark.parametrize(
    ("data", "kind", "label"),
    [([2], "dataset/rows", "a"), ([1], "dataset/other", "a"), ([1], "dataset/rows", "b"), ("[1]", "dataset/rows", "a")],
)
def test_another_request_under_the_same_key_is_a_conflict_and_stores_nothing(ledger: Ledger, data: object, kind: str, label: str) -> None:
    with ledger.run(SCOPE) as run:
        run.put([1], kind="dataset/rows", label="a", key="k")
        before = positions(ledger)
        with pytest.raises(IdempotencyConflict) as caught:
            run.put(data, kind=kind, label=label, key="k")
        assert (caught.value.operation, positions(ledger)) == ("put", before)


def test_a_key_says_nothing_to_another_scope_and_nothing_to_another_operation(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run, ledger.run(ELSEWHERE) as other:
        first = run.put([1], kind="dataset/rows", key="k")
        assert other.put([2], kind="dataset/other", key="k").ref != first.ref
        run.answer("done", key="k")


def test_a_repeated_dispatch_is_told_the_same_again(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        ref = run.put([1], kind="dataset/rows").ref
        outcomes = []
        for _ in range(2):
            with run.call("sum", call_id="t1", args={"dataset": ref}) as call:
                outcomes.append(call.resolve(WANTS, key="k"))
                call.result("1")
        refusals = []
        for _ in range(2):
            with run.call("sum", call_id="t2", args={"dataset": ABSENT}) as call:
                refusals.append(call.resolve(WANTS, key="r"))
        run.flush()
        types = [recorded.event.type for recorded in ledger.events()]
    assert outcomes[0] == outcomes[1] and isinstance(outcomes[0], Resolved)
    assert refusals[0] == refusals[1] and isinstance(refusals[0], Refused)
    assert (types.count("dispatch.resolved"), types.count("dispatch.refused")) == (1, 1)


def test_a_repeated_dispatch_whose_artifact_is_gone_is_judged_anew(ledger: Ledger, clock: Clock) -> None:
    with ledger.run(SCOPE) as run:
        ref = run.put([1], kind="dataset/rows", ttl=timedelta(seconds=1)).ref
        with run.call("sum", args={"dataset": ref}) as call:
            assert call.resolve(WANTS, key="k").ok
        clock.advance(timedelta(seconds=1))
        with run.call("sum", args={"dataset": ref}) as call:
            assert not call.resolve(WANTS, key="k").ok


def test_another_ref_under_the_same_key_is_a_conflict(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        refs = [run.put([number], kind="dataset/rows").ref for number in range(2)]
        with run.call("sum", args={"dataset": refs[0]}) as call:
            call.resolve(WANTS, key="k")
        with run.call("sum", args={"dataset": refs[1]}) as call, pytest.raises(IdempotencyConflict):
            call.resolve(WANTS, key="k")


def test_a_repeated_answer_is_the_first_answer(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        first = run.answer("42", key="k")
        assert run.answer("42", key="k") == first
        with pytest.raises(IdempotencyConflict):
            run.answer("43", key="k")
        assert len(ledger.answers()) == 1


def test_receipts_are_rebuilt_from_the_events(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        first = run.put([1], kind="dataset/rows", key="k")
        ledger.rebuild()
        assert run.put([1], kind="dataset/rows", key="k") == first
        assert ledger.verify().ok


def test_the_key_itself_is_not_in_the_log(ledger: Ledger, tmp_path: Path) -> None:
    with ledger.run(SCOPE) as run:
        run.put([1], kind="dataset/rows", key="customer-4711-secret")
    ledger.close()
    assert b"customer-4711-secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


@pytest.mark.parametrize("key", ["", 3, b"k"])
def test_a_key_that_is_no_text_is_refused(ledger: Ledger, key: object) -> None:
    with ledger.run(SCOPE) as run, pytest.raises(InvalidArtifact):
        run.put([1], kind="dataset/rows", key=key)  # type: ignore[arg-type]
