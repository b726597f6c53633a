"""Twenty real failed runs are imported whole, and the backtrack from their answers finds what people blamed, in a small cone.

The traces are not ours to ship: they are read from ../shared/traces, and the tests skip where that is not there.
"""

from __future__ import annotations

import json
from collections import Counter
from statistics import median
from typing import Any

import pytest

from refledger.importers import ImportedRun
from refledger.importers.openai_chat import imported_run, read_runs
from refledger_schema.events import AnswerGiven, AnswerJudged, ArtifactMinted, CallEnded, CallStarted, ImportNoted, MessageNoted
from tests.benchmarks.imported_runs import RUNS, WRITE_TOOLS, Measured, main, measured
from tests.logmaking import make_log

pytestmark = pytest.mark.skipif(not RUNS.exists(), reason="traces are not here")


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return list(read_runs(RUNS))


@pytest.fixture(scope="module")
def runs(records: list[dict[str, Any]]) -> list[ImportedRun]:
    return [imported_run(record, write_tools=WRITE_TOOLS) for record in records]


@pytest.fixture(scope="module")
def cones() -> list[Measured]:
    return list(measured())


def test_nothing_of_the_transcripts_is_lost(records: list[dict[str, Any]], runs: list[ImportedRun]) -> None:
    for record, run in zip(records, runs, strict=True):
        messages = record["traj"]
        results = [message for message in messages if message["role"] == "tool"]
        errors = [message for message in results if message["content"].startswith("Error:")]
        calls = sum(len(message.get("tool_calls") or ()) for message in messages)
        kinds = Counter(type(draft.event) for draft in run.drafts)
        assert (run.steps, kinds[MessageNoted]) == (len(messages), len(messages) - len(results))
        assert (kinds[CallStarted], kinds[CallEnded], kinds[ArtifactMinted]) == (calls, len(results), len(results) - len(errors))
        assert (kinds[AnswerGiven], kinds[AnswerJudged]) == (1, 1)
        opening = run.drafts[0].event
        assert isinstance(opening, ImportNoted) and opening.lost == ("times", "what the model's window held")
        texts = {message["content"] for message in messages if message["content"]}
        assert texts <= {data.decode() for data in run.content.values()}
        assert {data.decode() for data in run.payloads.values()} == {message["content"] for message in results if message not in errors}


def test_every_run_has_an_id_of_its_own_and_goes_into_a_log(runs: list[ImportedRun]) -> None:
    assert len({run.run_id for run in runs}) == len(runs) == 20
    for run in runs:
        assert len(make_log(run.drafts)) == len(run.drafts)


def test_a_value_names_no_place_that_comes_after_it_or_that_does_not_hold_it(runs: list[ImportedRun]) -> None:
    for run in runs:
        seen: dict[tuple[str, str], str] = {}
        for draft in run.drafts:
            event = draft.event
            if isinstance(event, CallStarted | AnswerGiven):
                assert {(match.source, match.id) for match in event.matches or ()} <= seen.keys()
            if isinstance(event, CallStarted):
                seen[("call", draft.call_id or "")] = event.tool
            elif isinstance(event, ArtifactMinted):
                seen[("artifact", event.ref)] = event.kind
            elif isinstance(event, MessageNoted):
                seen[("message", str(event.index))] = event.role


def test_the_answer_is_a_write_outside_the_gold_actions_wherever_there_is_one(
    records: list[dict[str, Any]], runs: list[ImportedRun]
) -> None:
    for record, run in zip(records, runs, strict=True):
        gold = [(action["name"], action["kwargs"]) for action in record["info"]["task"]["actions"]]
        calls = [call for message in record["traj"] for call in message.get("tool_calls") or ()]
        functions = [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
        prefixes = tuple(pattern.removesuffix("*") for pattern in WRITE_TOOLS)
        wrong = [id for id, name, args in functions if name.startswith(prefixes) and (name, args) not in gold]
        [answering] = [draft.call_id for draft in run.drafts if isinstance(draft.event, AnswerGiven)]
        if wrong:
            assert answering == wrong[0]
        else:
            assert answering in (None, functions[-1][0])


def test_the_backtrack_holds_what_people_blamed_at_least_as_often_as_a_naive_match_and_is_smaller(cones: list[Measured]) -> None:
    on_calls = [run for run in cones if run.kind == "tool call"]
    assert Counter(run.kind for run in cones) == {"tool call": 12, "assistant text": 3, "user": 5}
    assert sum(run.hit for run in on_calls) >= 9
    for size in range(3):
        assert median(run.shares()[size] for run in on_calls) <= 0.31


def test_the_benchmark_prints_every_run(capsys: pytest.CaptureFixture[str], cones: list[Measured]) -> None:
    main()
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[1 : 1 + len(cones)]] == [run.task for run in cones]
