"""A result too long for the window becomes a ticket; an artifact handed to the screen can be named after it has expired."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from refledger import Ledger, Retention
from refledger_schema.errors import ArtifactIntegrity, InvalidConfiguration
from refledger_schema.events import ArtifactPresented, ArtifactRefused, CallEnded
from refledger_schema.wording import present_sentence
from tests.ledgers import SCOPE, Clock, new_log


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(new_log(tmp_path), clock=clock, place_above=20) as opened:
        yield opened


def test_a_result_over_the_limit_is_checked_in_and_the_model_reads_its_ticket(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        source = run.put([1], kind="dataset/rows").ref
        with run.call("report", args={"dataset": source}) as call:
            call.resolve({"dataset": "dataset/rows"})
            ticket = json.loads(call.result("x" * 21))
        stored = run.get(ticket["ref"])
        ended = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, CallEnded)]
    assert stored is not None
    assert (stored.data, stored.meta.kind, stored.meta.label, stored.meta.media_type) == (
        "x" * 21,
        "tool-result/report",
        "report result",
        "text/plain",
    )
    assert [(parent.ref, parent.how) for parent in stored.meta.parents or ()] == [(source, "call")]
    assert {name: ticket[name] for name in ("placed", "kind", "mediaType", "bytes")} == {
        "placed": True,
        "kind": "tool-result/report",
        "mediaType": "text/plain",
        "bytes": 21,
    }
    assert [event.placed for event in ended] == [] or ended[-1].placed == ticket["ref"]


def test_the_limit_is_strict_and_what_is_not_text_is_placed_as_json(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        with run.call("report") as call:
            assert call.result("x" * 20) == "x" * 20
        with run.call("report") as call:
            ticket = call.result(list(range(10)))
        meta = run.head(ticket["ref"])
        run.flush()
        ended = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, CallEnded)]
    assert meta is not None and meta.media_type == "application/json"
    assert [event.placed for event in ended] == [None, meta.ref]


def test_a_refused_call_is_not_placed_and_a_store_without_room_leaves_the_result_as_it_is(tmp_path: Path) -> None:
    with Ledger.open(new_log(tmp_path), place_above=20, retention=Retention(max_bytes=10)) as ledger, ledger.run(SCOPE) as run:
        with run.call("report") as call:
            assert call.result("x" * 30) == "x" * 30
        with run.call("report", args={"dataset": "nothing"}) as call:
            outcome = call.resolve({"dataset": "dataset/rows"})
            assert not outcome.ok
            assert call.result(outcome.refusal) == outcome.refusal


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "20"])
def test_a_limit_that_is_no_whole_number_from_1_is_refused(tmp_path: Path, limit: object) -> None:
    with pytest.raises(InvalidConfiguration):
        Ledger.open(new_log(tmp_path), place_above=limit)  # type: ignore[arg-type]


def test_what_was_presented_can_be_named_after_it_has_expired(ledger: Ledger, clock: Clock) -> None:
    with ledger.run(SCOPE) as run:
        ref = run.put([1], kind="dataset/rows", label="sales", ttl=timedelta(seconds=1)).ref
        presented = run.present(ref, "table")
        clock.advance(timedelta(seconds=1))
        (event,) = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, ArtifactPresented)]
        gone = run.present(ref, "table")
    snapshot = {"kind": "dataset/rows", "mediaType": "application/json", "bytes": 3, "label": "sales"}
    assert presented.as_dict() == {"presented": True, "ref": ref, "as": "table", "snapshot": snapshot}
    assert event.snapshot == {"kind": "dataset/rows", "media_type": "application/json", "bytes": "3", "label": "sales"}
    assert not gone.ok


def test_a_label_of_the_call_stands_in_for_the_mints_and_a_blank_one_does_not(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        ref = run.put([1], kind="dataset/rows", label="sales").ref
        labels = [(run.present(ref, "table", label=label).snapshot or {})["label"] for label in ("my table", "  ", None)]
    assert labels == ["my table", "sales", "sales"]


def test_a_ref_that_is_not_there_is_refused_with_what_can_be_presented(ledger: Ledger) -> None:
    with ledger.run(SCOPE) as run:
        absent = run.present("art_" + "0" * 22, "table")
        ref = run.put([1], kind="dataset/rows", label="sales").ref
        missing = run.present("art_" + "0" * 22, "table")
        blank = run.present(ref, " ")
        events = [recorded.event for recorded in ledger.events() if isinstance(recorded.event, ArtifactRefused)]
    zeros = "art_" + "0" * 22
    assert absent.refusal is not None and absent.refusal.endswith("No ref is live in this conversation: produce one first.")
    assert missing.refusal is not None and missing.refusal.startswith("refused: nothing was presented.") and zeros in missing.refusal
    assert missing.refusal.endswith(f"Live refs, newest first, 1 of 1: {ref} ('sales', 3 bytes).")
    assert [present_sentence(event) for event in events] == [absent.refusal, missing.refusal, blank.refusal]
    assert [(event.cause, event.reason) for event in events] == [
        ("never_minted", "missing-or-expired"),
        ("never_minted", "missing-or-expired"),
        ("refused_input", "invalid-input"),
    ]


def test_presenting_refreshes_and_a_refused_presentation_does_not(tmp_path: Path) -> None:
    with Ledger.open(new_log(tmp_path), retention=Retention(max_count=2)) as ledger, ledger.run(SCOPE) as run:
        first, second = (run.put(text, kind="k").ref for text in "ab")
        run.present(first, "table")
        run.present(second, " ")
        run.put("c", kind="k")
        assert (run.head(first) is not None, run.head(second)) == (True, None)


def test_what_is_known_to_be_damaged_is_neither_offered_nor_counted(ledger: Ledger, clock: Clock) -> None:
    with ledger.run(SCOPE) as run:
        whole = run.put("whole", kind="k").ref
        run.put("brief", kind="k", ttl=timedelta(seconds=1))
        damaged = [run.put(f"damaged {number}", kind="k").ref for number in range(12)]
        with ledger._store._engine.writing() as connection:
            connection.execute("UPDATE payloads SET data = :data WHERE size = 9 OR size = 10", {"data": b"?"})
        for ref in damaged:
            with pytest.raises(ArtifactIntegrity):
                run.get(ref)
        clock.advance(timedelta(seconds=1))
        refusal = run.present("art_" + "0" * 22, "table").refusal
    assert refusal is not None and refusal.endswith(f"Live refs, newest first, 1 of 1: {whole} (5 bytes).")
