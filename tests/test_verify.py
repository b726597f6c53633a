"""Whoever changes the file behind the log's back is found out, by the verdict that is about it; what cannot be seen is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger
from refledger.verify import NOT_CHECKED, SHOWN, Report
from refledger_schema.envelope import Draft, Row, leaf_bytes, placed, prepare
from refledger_schema.events import AnswerJudged
from refledger_schema.merkle import leaf_hash, root
from refledger_schema.tables import PROJECTIONS
from refledger_store.payloads import INLINE
from tests.ledgers import ELSEWHERE, NOON, SCOPE, Clock, ask, change, contents, database, new_log

COLUMNS = tuple(Row.__dataclass_fields__)
LARGE = b"x" * (INLINE + 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return new_log(tmp_path)


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A log in which every projection and every kind of bytes has a row."""
    with Ledger.open(path, clock=Clock(), durability="process") as ledger:
        with ledger.run(SCOPE, run_id="r1", agent="analyst") as run:
            run.message("user", "how much?", index=1)
            with run.call("get_sales", call_id="t1", args={"quarter": 3}) as call:
                rows = call.put([{"total": 1}, {"total": 2}], kind="dataset/rows", label="Q3", key="k1")
                call.result(f"stored {rows.ref}")
            with run.call("summarize", call_id="t2", args={"dataset": "the sales"}) as call:
                call.resolve({"dataset": "dataset/rows"})
            with run.call("summarize", call_id="t2", args={"dataset": rows.ref}) as call:
                call.resolve({"dataset": "dataset/rows"})
                report = call.put("3", kind="report")
            run.put(LARGE, kind="blob", ttl=timedelta(days=1))
            run.delete(run.put("old", kind="text").ref)
            answer = run.answer("3", cites=[report.ref])
        ledger.judge(answer.answer_id, "right", by="qa", note="checked")
        ledger.store.put(ELSEWHERE, "another scope's", kind="text")
        yield ledger


def failing(report: Report) -> set[str]:
    return {verdict.name for verdict in report.verdicts if not verdict.ok}


def positions_named(report: Report, name: str) -> set[int]:
    """The positions that a verdict's problems begin with."""
    said = [problem.partition(":")[0] for problem in report[name].problems]
    return {int(place.removeprefix("position ")) for place in said if place.startswith("position ")}


@contextmanager
def changed(path: Path, position: int, column: str, value: Any) -> Iterator[None]:
    """One column of one stored event is another, for a while."""
    ((before,),) = ask(path, f"SELECT {column} FROM events WHERE position = ?", position)
    assert before != value
    change(path, f"UPDATE events SET {column} = ? WHERE position = ?", value, position)
    yield
    now = value if column == "position" else position
    change(path, f"UPDATE events SET {column} = ? WHERE position = ?", before, now)


def position_of(path: Path, kind: str) -> int:
    return int(ask(path, "SELECT MIN(position) FROM events WHERE type = ?", kind)[0][0])


def rows_of(path: Path) -> list[Row]:
    return [Row(*row) for row in ask(path, f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY position")]


# --- a clean log -----------------------------------------------------------------------------------------------------------------


def test_a_clean_log_passes_every_verdict_and_verifying_changes_nothing(path: Path, ledger: Ledger) -> None:
    before = contents(path)
    report = ledger.verify()
    assert contents(path) == before
    events = len(before["events"])
    assert [(verdict.name, verdict.found, verdict.skipped, verdict.problems) for verdict in report.verdicts] == [
        ("order", 0, 0, []),
        ("leaves", 0, 0, []),
        ("private parts", 0, 0, []),
        ("scopes", 0, 0, []),
        ("tree", 0, 0, []),
        ("payloads present", 0, 0, []),
        ("payloads match", 0, 0, []),
        ("content matches", 0, 0, []),
        ("projections", 0, 0, []),
    ]
    assert (report.ok, report.log_id, report.events) == (True, ledger.log_id, events)
    assert report.root == root([row.leaf_hash for row in rows_of(path)]).hex()
    checked = {verdict.name: verdict.checked for verdict in report.verdicts}
    assert checked == {
        "order": events,
        "leaves": events,
        "private parts": events,
        "scopes": events - 1,
        "tree": 1,
        "payloads present": 4,
        "payloads match": 4,
        "content matches": len(before["content"]),
        "projections": sum(len(before[name]) for name in PROJECTIONS),
    }
    assert checked["content matches"] >= 6


def test_an_empty_log_passes(path: Path) -> None:
    with Ledger.open(path) as ledger:
        report = ledger.verify()
    assert (report.ok, report.events) == (True, 0)


def test_verify_commits_what_waits_before_it_looks(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.run(SCOPE).message("user", "hello")
        assert ledger.verify().events == 3


def test_verify_tells_how_far_it_is(ledger: Ledger) -> None:
    told: list[tuple[int, int]] = []
    events = ledger.verify(lambda done, total: told.append((done, total))).events
    assert told[-1] == (events, events)


def test_it_says_what_it_cannot_see(ledger: Ledger) -> None:
    assert ledger.verify().not_checked == NOT_CHECKED
    said = " / ".join(NOT_CHECKED)
    for words in ("the end of the log was cut off", "rewrote it whole", "reported every call", "times that writers claim"):
        assert words in said


# --- one column of one event ------------------------------------------------------------------------------------------------------

RIGHT: dict[str, set[str]] = {column: {"leaves"} for column in COLUMNS} | {
    "position": {"order", "leaves"},
    "scope": {"private parts"},
    "scope_seq": {"leaves"},
    "private": {"leaves", "private parts"},
    "texts": {"private parts"},
    "salt": {"private parts"},
    "leaf_hash": {"leaves", "tree"},
}
"""By column: the verdicts that must fail when it is changed, whatever else does."""
NEVER: dict[str, set[str]] = {column: {"order", "tree"} for column in COLUMNS} | {
    "position": set(),
    "leaf_hash": {"order", "private parts"},
    "texts": {"order", "tree"},
    "salt": {"order", "tree", "leaves", "projections"},
    "scope": {"order", "tree", "leaves"},
}
"""By column: the verdicts that are about something else."""


def another(column: str, row: Row) -> Any:
    """Something that the column could hold and does not."""
    value = getattr(row, column)
    match column:
        case "position":
            return row.position + 1_000
        case "scope":
            return "_/_/elsewhere"
        case "type":
            return "run.ended" if value != "run.ended" else "run.started"
        case "body":
            return value.replace("{", '{ "x":1, ', 1) if value == "{}" else value.replace('":', '": ', 1)
        case "texts":
            return '{"note":"another"}' if value is None else value.replace("a", "b").replace("6", "7")
        case "salt" | "private" | "leaf_hash":
            return bytes([value[0] ^ 1]) + value[1:]
        case "scope_seq":
            return 1_000 if value is None else value + 1_000
    if value is None:
        return 1 if column in ("occurred_us", "dispatch") else "x"
    return value + 1 if isinstance(value, int) else f"{value}x"


@pytest.mark.parametrize("kind", ["log.opened", "message.noted", "artifact.minted", "dispatch.refused", "answer.judged"])
def test_each_column_of_a_stored_event_is_vouched_for(path: Path, ledger: Ledger, kind: str) -> None:
    position = position_of(path, kind)
    row = rows_of(path)[position - 1]
    for column in COLUMNS:
        value = another(column, row)
        with changed(path, position, column, value):
            report = ledger.verify()
        named = value if column == "position" else position
        for name in RIGHT[column] - {"order", "tree"}:
            assert named in positions_named(report, name), (column, report[name].problems)
        assert failing(report) >= RIGHT[column], column
        assert not failing(report) & NEVER[column], (column, failing(report))
    assert ledger.verify().ok


def test_a_column_made_empty_is_noticed(path: Path, ledger: Ledger) -> None:
    position = position_of(path, "dispatch.refused")
    empty: dict[str, Any] = {"private": b"", "leaf_hash": b"", "event_id": "", "type": "", "body": "", "version": 0, "recorded_us": 0}
    for column in COLUMNS:
        if column not in ("position", "occurred_us"):
            with changed(path, position, column, empty.get(column)):
                assert not ledger.verify().ok, column


@pytest.mark.parametrize("alias", ["//c", "%5f/_/c", "_/_/c/"])
def test_another_spelling_of_a_scope_is_another_scope(path: Path, alias: str) -> None:
    with Ledger.open(path) as ledger:
        ledger.store.put(type(SCOPE)(conversation="c"), "x", kind="text")
        ((key,),) = ask(path, "SELECT scope FROM events WHERE position = 2")
        assert key == "_/_/c"
        change(path, "UPDATE events SET scope = ? WHERE position = 2", alias)
        assert "private parts" in failing(ledger.verify())


def test_moving_a_column_into_the_body_is_noticed(path: Path, ledger: Ledger) -> None:
    """The leaf's bytes are then the same: the body must be one JSON text."""
    position = position_of(path, "call.started")
    change(path, """UPDATE events SET body = body || ',"call_id":"' || call_id || '"', call_id = NULL WHERE position = ?""", position)
    row = rows_of(path)[position - 1]
    assert leaf_hash(leaf_bytes(row, ledger.log_id)) == row.leaf_hash
    assert position in positions_named(ledger.verify(), "leaves")


# --- rows ---------------------------------------------------------------------------------------------------------------------------


def test_rows_that_changed_places_are_named(path: Path, ledger: Ledger) -> None:
    for before, after in ((4, -1), (5, 4), (-1, 5)):
        change(path, "UPDATE events SET position = ? WHERE position = ?", after, before)
    report = ledger.verify()
    assert positions_named(report, "leaves") == {4, 5}
    assert {"leaves", "scopes", "tree"} <= failing(report)


def test_a_row_removed_in_the_middle_is_missed(path: Path, ledger: Ledger) -> None:
    change(path, "DELETE FROM events WHERE position = 5")
    report = ledger.verify()
    assert report["order"].problems == ["position 5: missing; the next event stands at 6"]
    assert {"order", "scopes", "tree"} <= failing(report)


def test_a_gap_closed_by_renumbering_is_noticed(path: Path, ledger: Ledger) -> None:
    change(path, "DELETE FROM events WHERE position = 5")
    for position, *_ in ask(path, "SELECT position FROM events WHERE position > 5 ORDER BY position"):
        change(path, "UPDATE events SET position = position - 1 WHERE position = ?", position)
    report = ledger.verify()
    assert "order" not in failing(report)
    assert 5 in positions_named(report, "leaves")


def forged(path: Path, ledger: Ledger, position: int, scope_seq: int) -> None:
    """Put an event into the log that it never recorded, sound in itself."""
    ((answer_id, scope),) = ask(path, "SELECT answer_id, scope FROM answers")
    draft = Draft(AnswerJudged(answer_id=answer_id, verdict="wrong"), SCOPE, run_id="r1")
    event_id = "00000000-0000-7000-8000-000000000000"
    row = placed(prepare(draft, event_id), log_id=ledger.log_id, position=position, recorded_us=NOON, scope_key=scope, scope_seq=scope_seq)
    with database(path) as connection:
        connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * len(COLUMNS))})", [getattr(row, name) for name in COLUMNS])


def test_an_event_added_at_the_end_is_noticed(path: Path, ledger: Ledger) -> None:
    ((last,),) = ask(path, "SELECT MAX(position) FROM events")
    ((seq,),) = ask(path, "SELECT events FROM scopes WHERE scope = ?", SCOPE.key)
    forged(path, ledger, last + 1, seq + 1)
    assert failing(ledger.verify()) == {"tree", "projections"}


@pytest.mark.parametrize("position", [0, -1, -(2**63)])
def test_an_event_added_in_front_of_the_first_is_noticed(path: Path, ledger: Ledger, position: int) -> None:
    ((seq,),) = ask(path, "SELECT events FROM scopes WHERE scope = ?", SCOPE.key)
    forged(path, ledger, position, seq + 1)
    assert "order" in failing(ledger.verify())


def test_neither_a_scope_seq_nor_an_event_id_can_be_stored_twice(path: Path, ledger: Ledger) -> None:
    for column in ("scope_seq", "event_id"):
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            change(path, f"UPDATE events SET {column} = (SELECT {column} FROM events WHERE position = 3) WHERE position = 4")


def test_a_scope_whose_count_has_a_gap_is_named(path: Path, ledger: Ledger) -> None:
    row = rows_of(path)[-1]
    moved = replace(row, scope_seq=7)
    moved = replace(moved, leaf_hash=leaf_hash(leaf_bytes(moved, ledger.log_id)))
    change(path, "UPDATE events SET scope_seq = 7, leaf_hash = ? WHERE position = ?", moved.leaf_hash, row.position)
    report = ledger.verify()
    assert report["scopes"].problems == [f"position {row.position}: expected scope_seq 1 in its scope, found 7"]
    assert failing(report) == {"scopes", "tree", "projections"}


def test_a_changed_event_with_its_leaf_hash_made_anew_does_not_fit_the_tree(path: Path, ledger: Ledger) -> None:
    position = position_of(path, "answer.judged")
    row = rows_of(path)[position - 1]
    lie = replace(row, body=row.body.replace("right", "wrong"))
    change(
        path, "UPDATE events SET body = ?, leaf_hash = ? WHERE position = ?", lie.body, leaf_hash(leaf_bytes(lie, ledger.log_id)), position
    )
    assert failing(ledger.verify()) == {"tree", "projections"}


def test_a_body_that_no_event_has_is_named_although_its_leaf_hash_fits(path: Path, ledger: Ledger) -> None:
    position = position_of(path, "answer.judged")
    row = rows_of(path)[position - 1]
    broken = replace(row, body='{"verdict":"splendid"}')
    change(
        path,
        "UPDATE events SET body = ?, leaf_hash = ? WHERE position = ?",
        broken.body,
        leaf_hash(leaf_bytes(broken, ledger.log_id)),
        position,
    )
    report = ledger.verify()
    assert report["leaves"].problems[0].startswith(f"position {position}: expected a readable answer.judged event")
    assert report["projections"].problems[0].startswith("the events cannot be replayed")


def test_a_log_under_another_id_is_another_log(path: Path, ledger: Ledger) -> None:
    ledger.close()
    change(path, "UPDATE log SET log_id = 'another'")
    with Ledger.open(path) as other:
        report = other.verify()
    assert failing(report) == {"leaves"}
    assert (report["leaves"].found, len(report["leaves"].problems)) == (report.events, min(SHOWN, report.events))


def test_problems_beyond_the_first_twenty_are_counted_and_not_spelled_out(path: Path, ledger: Ledger) -> None:
    ledger.store.put(SCOPE, "one more", kind="text")
    assert len(rows_of(path)) > SHOWN == 20
    change(path, "UPDATE events SET recorded_us = recorded_us + 1")
    verdict = ledger.verify()["leaves"]
    assert (verdict.found, len(verdict.problems)) == (len(rows_of(path)), 20)


# --- the tail -------------------------------------------------------------------------------------------------------------------------


def test_a_tail_cut_off_is_missed_by_the_head(path: Path, ledger: Ledger) -> None:
    ((last,),) = ask(path, "SELECT MAX(position) FROM events")
    change(path, "DELETE FROM events WHERE position = ?", last)
    report = ledger.verify()
    assert report["tree"].problems == [f"the head says {last} events, the log holds {last - 1}"]
    assert failing(report) == {"tree", "projections"}


def test_a_tail_cut_off_with_its_projections_made_anew_cannot_be_seen_and_that_is_said(path: Path, ledger: Ledger) -> None:
    ((last,),) = ask(path, "SELECT MAX(position) FROM events")
    change(path, "DELETE FROM events WHERE position > ?", last - 2)
    ledger.rebuild()
    report = ledger.verify()
    assert (report.ok, report.events) == (True, last - 2)
    assert report.not_checked[0] == "whether the end of the log was cut off: without a checkpoint kept elsewhere that cannot be seen"


# --- erasure --------------------------------------------------------------------------------------------------------------------------


def test_texts_and_salt_erased_together_leave_a_log_that_verifies_and_says_how_much_it_could_not_check(path: Path, ledger: Ledger) -> None:
    everything = ledger.verify()
    change(path, "UPDATE events SET texts = NULL, salt = NULL WHERE texts IS NOT NULL")
    ledger.rebuild()
    report = ledger.verify()
    erased = len([row for row in rows_of(path) if row.salt is None])
    assert (report.ok, report.root) == (True, everything.root)
    assert (report["private parts"].skipped, report["private parts"].checked) == (erased, report.events - erased)
    assert erased >= 5


def test_a_label_that_outlived_its_erasure_in_a_projection_is_noticed(path: Path, ledger: Ledger) -> None:
    change(path, "UPDATE events SET texts = NULL, salt = NULL WHERE texts IS NOT NULL")
    report = ledger.verify()
    assert failing(report) == {"projections"}
    assert "label" in report["projections"].problems[0]


def test_texts_that_were_changed_fail_the_private_parts_only(path: Path, ledger: Ledger) -> None:
    position = position_of(path, "answer.judged")
    change(path, """UPDATE events SET texts = '{"by":"qa","note":"never checked"}' WHERE position = ?""", position)
    report = ledger.verify()
    assert (failing(report), positions_named(report, "private parts")) == ({"private parts"}, {position})


def test_texts_without_their_salt_vouch_for_nothing(path: Path, ledger: Ledger) -> None:
    position = position_of(path, "answer.judged")
    change(path, "UPDATE events SET salt = NULL WHERE position = ?", position)
    assert positions_named(ledger.verify(), "private parts") == {position}


def test_a_salt_without_its_texts_is_noticed(path: Path, ledger: Ledger) -> None:
    position = position_of(path, "answer.judged")
    change(path, "UPDATE events SET texts = NULL WHERE position = ?", position)
    assert positions_named(ledger.verify(), "private parts") == {position}


# --- bytes ----------------------------------------------------------------------------------------------------------------------------


def ref_of(path: Path, kind: str) -> str:
    return str(ask(path, "SELECT ref FROM artifacts WHERE kind = ? AND gone IS NULL", kind)[0][0])


DAMAGE = {
    "a byte of a payload": ("report", "payloads match", "UPDATE payloads SET data = x'34' WHERE size = 1"),
    "a payload": ("report", "payloads present", "DELETE FROM payloads WHERE size = 1"),
    "a chunk's bytes": ("blob", "payloads match", "UPDATE payload_chunks SET data = x'00' WHERE chunk = 1"),
    "a chunk": ("blob", "payloads match", "DELETE FROM payload_chunks WHERE chunk = 0"),
    "a large payload": ("blob", "payloads present", f"DELETE FROM payloads WHERE size = {len(LARGE)}"),
}


@pytest.mark.parametrize(("kind", "verdict", "damage"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_to_bytes_is_laid_at_the_door_of_the_artifact_alone(
    path: Path, ledger: Ledger, kind: str, verdict: str, damage: str
) -> None:
    change(path, damage)
    report = ledger.verify()
    assert failing(report) == {verdict}
    assert [problem.partition(":")[0] for problem in report[verdict].problems] == [ref_of(path, kind)]
    assert report["content matches"].ok


def test_a_recorded_text_that_was_changed_is_named_by_its_digest(path: Path, ledger: Ledger) -> None:
    ((digest,),) = ask(path, "SELECT digest FROM content WHERE data = CAST('how much?' AS BLOB)")
    change(path, "UPDATE content SET data = CAST('how many?' AS BLOB) WHERE digest = ?", digest)
    report = ledger.verify()
    assert failing(report) == {"content matches"}
    assert digest in report["content matches"].problems[0]


# --- projections ----------------------------------------------------------------------------------------------------------------------

PROJECTED = {
    "head": "UPDATE head SET recorded_us = recorded_us + 1",
    "head's configuration": "UPDATE head SET configuration = NULL",
    "scopes": "UPDATE scopes SET live_count = live_count + 1",
    "kind_counts": "UPDATE kind_counts SET live = live + 1",
    "artifacts": "UPDATE artifacts SET used = used + 1",
    "artifacts, a row less": "DELETE FROM artifacts WHERE kind = 'report'",
    "artifacts, one come back": "UPDATE artifacts SET gone = NULL, gone_cause = NULL, digest = (SELECT digest FROM payloads LIMIT 1) WHERE gone IS NOT NULL",
    "edges": "UPDATE edges SET how = 'declared'",
    "edges, a row more": "INSERT INTO edges SELECT child, 7, parent, how, position FROM edges",
    "runs": "UPDATE runs SET agent = 'another'",
    "answers": "UPDATE answers SET verdict = 'wrong'",
    "receipts": "UPDATE receipts SET request = 'another'",
    "receipts, none left": "DELETE FROM receipts",
}


@pytest.mark.parametrize(("table", "statement"), PROJECTED.items(), ids=PROJECTED.keys())
def test_a_projection_that_was_changed_fails_the_projections_only(path: Path, ledger: Ledger, table: str, statement: str) -> None:
    change(path, statement)
    report = ledger.verify()
    assert failing(report) <= {"projections", "payloads match", "payloads present"} if "come back" in table else {"projections"}
    assert "projections" in failing(report)
    assert report["projections"].problems[0].startswith(table.partition(",")[0].partition("'")[0])
    ledger.rebuild()
    assert ledger.verify().ok


def test_every_projection_has_its_turn_in_these_tests(path: Path, ledger: Ledger) -> None:
    assert {name.partition(",")[0].partition("'")[0] for name in PROJECTED} == set(PROJECTIONS)
    assert [name for name in PROJECTIONS if not ask(path, f"SELECT * FROM {name}")] == []


HEAD = {
    "position": "UPDATE head SET position = position - 1",
    "frontier": "UPDATE head SET frontier = zeroblob(LENGTH(frontier))",
    "an empty frontier": "UPDATE head SET frontier = x''",
    "no head": "DELETE FROM head",
}


@pytest.mark.parametrize("statement", HEAD.values(), ids=HEAD.keys())
def test_a_head_that_was_changed_fails_the_tree(path: Path, ledger: Ledger, statement: str) -> None:
    change(path, statement)
    assert failing(ledger.verify()) == {"tree", "projections"}
    ledger.rebuild()
    assert ledger.verify().ok
