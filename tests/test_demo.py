"""The demo: what it claims is asserted from the log, not from what it prints; and what it prints fits one screen and works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from refledger import Ledger
from refledger.cli import main
from refledger.demo import FRESH, STALE, LastRefModel, Played, play, table, third_quarter
from refledger_queries.backtrack import Backtrack
from refledger_schema.digests import digest_of_text
from refledger_schema.events import DispatchRefused
from refledger_schema.wording import dispatch_sentence


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "demo.db") as opened:
        yield opened


def refs_by_label(ledger: Ledger) -> dict[str, tuple[str, str]]:
    """By label: (ref, digest)."""
    return {artifact.label or "": (artifact.ref, artifact.digest) for artifact in ledger.artifacts()}


def test_the_backtrack_leads_to_the_stale_dataset_by_its_digest(ledger: Ledger) -> None:
    walked = ledger.backtrack(play(ledger).answer_id)
    ref, digest = refs_by_label(ledger)[f"sales until {STALE}"]
    (row,) = (row for row in walked.cone if row.node_id == ref)
    assert row.note == f"dataset/rows {digest} live"


def test_the_refusal_that_offered_it_is_on_the_way_and_was_followed(ledger: Ledger) -> None:
    walked = ledger.backtrack(play(ledger).answer_id)
    (refusal,) = walked.refusals
    assert (refusal.argument, refusal.note) == ("dataset", "kind-mismatch (wrong_kind): followed, then resolved")
    event = refusal_event(ledger, walked)
    stale, fresh = (refs_by_label(ledger)[f"sales until {day}"][0] for day in (STALE, FRESH))
    (offers,) = event.offers
    assert ([offered.ref for offered in offers.refs], offers.total) == ([fresh, stale], 2)


def test_the_fresh_dataset_was_live_and_offered_and_the_answer_does_not_rest_on_it(ledger: Ledger) -> None:
    walked = ledger.backtrack(play(ledger).answer_id)
    ref, digest = refs_by_label(ledger)[f"sales until {FRESH}"]
    assert [row.note for row in walked.offered if (row.node_id, row.grade) == (ref, "offered")] == [f"dataset/rows {digest} live"]
    assert [row for row in walked.cone if row.node_id == ref] == []


def test_the_command_line_says_which_of_the_offered_the_answer_rests_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "demo.db"
    with Ledger.open(path) as ledger:
        play(ledger)
        stale, fresh = (refs_by_label(ledger)[f"sales until {day}"] for day in (STALE, FRESH))
    assert main(["backtrack", "latest", "--json", "--log", str(path)]) == 0
    (refusal,) = json.loads(capsys.readouterr().out)["refusals"]
    offers = [(offer["ref"], offer["digest"], offer["state"], offer["in_cone"]) for offer in refusal["offers"]]
    assert offers == [(*fresh, "live", False), (*stale, "live", True)]


def test_the_model_passed_the_report_and_read_the_sentence_that_the_log_holds(ledger: Ledger) -> None:
    played = play(ledger)
    event = refusal_event(ledger, ledger.backtrack(played.answer_id))
    assert (event.spoken, event.arguments[0].actual) == ({"dataset": refs_by_label(ledger)["how to read the sales"][0]}, "report/text")
    (refused,) = (turn for turn in played.turns if turn.refused)
    assert dispatch_sentence(event) == refused.read
    assert digest_of_text(refused.read) == event.sentence


def test_the_answer_is_judged_by_the_table(ledger: Ledger) -> None:
    played = play(ledger)
    stale = third_quarter([row for row in table() if row["booked_on"] <= STALE])
    truth = third_quarter(table())
    assert truth != stale
    assert (f"EUR {stale:,}" in played.answer, played.truth, played.verdict) == (True, f"EUR {truth:,}", "wrong")
    assert [answer.verdict for answer in ledger.answers()] == ["wrong"]


def test_a_model_that_takes_the_first_ref_offered_is_right(ledger: Ledger) -> None:
    class FirstRefModel(LastRefModel):
        def choose(self, refs: Sequence[str]) -> str | None:
            # Of a refusal the first ref is the one that was spoken; the next is the first that was offered.
            return refs[1] if len(refs) > 1 else super().choose(refs)

    played = play(ledger, FirstRefModel())
    assert (played.verdict, played.truth in played.answer) == ("right", True)
    fresh = refs_by_label(ledger)[f"sales until {FRESH}"][0]
    assert fresh in [row.node_id for row in ledger.backtrack(played.answer_id).cone]


def test_a_second_play_adds_a_run_of_its_own(ledger: Ledger) -> None:
    first, second = play(ledger), play(ledger)
    assert {run.run_id for run in ledger.runs()} == {first.run_id, second.run_id}
    assert [shape_of(ledger, played) for played in (first, second)] == [shape_of(ledger, first)] * 2
    assert ledger.verify().ok


def shape_of(ledger: Ledger, played: Played) -> list[tuple[object, ...]]:
    """A backtrack without what differs from play to play."""
    rows = ledger.backtrack(played.answer_id).rows
    return [(row.depth, row.node_kind, row.argument, row.grade, row.note) for row in rows]


def refusal_event(ledger: Ledger, walked: Backtrack) -> DispatchRefused:
    (refusal,) = walked.refusals
    (recorded,) = (recorded for recorded in ledger.events() if recorded.event_id == refusal.node_id)
    assert isinstance(recorded.event, DispatchRefused)
    return recorded.event


# --- what it prints ------------------------------------------------------------------------------------------------------------


def played_by(command: Sequence[str | Path], folder: Path) -> list[str]:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()


def test_it_fits_one_screen_and_the_commands_it_names_work_when_pasted(tmp_path: Path) -> None:
    lines = played_by([sys.executable, "-m", "refledger", "demo"], tmp_path)
    assert len(lines) <= 40
    commands = lines[lines.index("The log is demo.db. Try next:") + 1 :]
    assert [line for line in lines if len(line) > 100 and line not in commands] == []
    assert len(commands) == 3
    for command in commands:
        ran = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout != "") == (0, True), f"{command}: {ran.stderr}"


def test_it_plays_again_on_the_log_it_left(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [main(["demo"]), main(["demo"])] == [0, 0]
    capsys.readouterr()
    assert main(["sql", "SELECT count(*) AS runs FROM runs", "--log", "demo.db"]) == 0
    assert capsys.readouterr().out.split() == ["runs", "2"]


def test_the_commands_are_those_that_work_after_make_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / ".venv/bin/refledger"
    script.parent.mkdir(parents=True)
    script.touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", os.defpath)
    assert main(["demo", "--log", "my log.db"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  .venv/bin/refledger verify --log 'my log.db'"
