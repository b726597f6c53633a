"""The command line: each command on a real log, as people and as programs read it."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer

from refledger import Ledger, Scope
from refledger.cli import app, main, summaries
from refledger_schema.digests import digest_of_text
from refledger_schema.events import KINDS
from refledger_schema.wording import harmless
from tests.ledgers import NOON, Clock, change

ALICE = Scope(conversation="c-17", tenant="acme", principal="alice")
UNTRUSTED = "[red]stop[/red] \x1b[31m\u202e:bomb:"
"""What a label may hold: markup, a terminal's control codes, a change of direction, the name of an emoji."""
EXAMPLES = Path(__file__).parent.parent / "docs/examples"
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@dataclass
class Log:
    """A log, and the refs in it: dataset, report, blob."""

    path: Path
    refs: list[str]


@dataclass
class Said:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of a table, without what only fills them up."""
        return [line.rstrip() for line in self.out.splitlines()]

    @property
    def objects(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Say = Callable[..., Said]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs a command, its output neither a terminal nor of any width."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str | Path) -> Said:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Said(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """A run that was refused once and judged wrong, and an unfinished one of another scope whose artifact has expired."""
    path = tmp_path_factory.mktemp("original") / "agent.db"
    with Ledger.open(path, clock=Clock()) as ledger:
        with ledger.run(ALICE, agent="analyst", model="m-1", run_id="run-1") as run:
            run.message("user", "total?")
            with run.call("get_sales", call_id="t1", args={"quarter": 3}, turn=1) as call:
                dataset = call.put([1, 2], kind="dataset/rows", label=UNTRUSTED).ref
                call.result("stored")
            with run.call("write", call_id="t2", turn=2) as call:
                report = call.put("fine", kind="report/text").ref
                call.result("stored")
            for turn, ref in ((3, report), (4, dataset)):
                with run.call("sum_up", call_id=f"t{turn}", args={"dataset": ref}, turn=turn) as call:
                    outcome = call.resolve({"dataset": "dataset/rows"})
                    call.result(sum(outcome.args["dataset"]) if outcome.ok else outcome.refusal)
            run.delete(report, by="alice", why="done")
            run.answer("3", cites=[dataset], answer_id="ans-1")
        ledger.judge("ans-1", "wrong", by="qa", note="it is 4")
        unfinished = ledger.run(Scope(conversation="c-18"), run_id="run-2", keep_open=True)
        blob = unfinished.put(b"x" * 2000, kind="blob", ttl=timedelta(seconds=1)).ref
        unfinished.flush()
    return Log(path, [dataset, report, blob])


@pytest.fixture
def log(original: Log, tmp_path: Path) -> Log:
    """A copy of it."""
    return Log(Path(shutil.copy(original.path, tmp_path / "agent.db")), original.refs)


def stable(log: Log, text: str) -> str:
    """A text with the log's refs replaced by ones of the same width: D…, R…, B…"""
    for ref, letter in zip(log.refs, "DRB", strict=True):
        text = text.replace(ref, "art_" + letter * 22).replace(ref[:10] + "…", "art_" + letter * 6 + "…")
    return text


def table(text: str) -> list[str]:
    return dedent(text).strip("\n").splitlines()


# --- the program -------------------------------------------------------------------------------------------------------------


def test_the_version_is_said(say: Say) -> None:
    assert re.fullmatch(r"refledger \d+\.\d+\.\d+\n", say("--version").out)


def test_without_arguments_the_commands_are_listed(say: Say) -> None:
    said = say()
    assert said.code == 0
    assert [command for command in COMMANDS if command not in said.out] == []
    assert "Exit codes" in said.out


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_help_of_a_command_names_its_arguments_and_options(command: str, say: Say) -> None:
    said = say(command, "--help")
    assert said.code == 0
    names = {opt if opt.startswith("-") else param.metavar for param in COMMANDS[command].params for opt in param.opts}
    assert {name for name in names if name is not None and name not in said.out} == set()


def test_help_loads_no_database_and_no_table_library() -> None:
    program = "import sys; from refledger.cli import main; main(['--help']); print([name for name in {!r} if name in sys.modules])"
    heavy = ["duckdb", "pyarrow", "alembic", "sqlalchemy", "sqlmodel"]
    ran = subprocess.run([sys.executable, "-c", program.format(heavy)], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_as_the_program_does() -> None:
    ran = subprocess.run([sys.executable, "-m", "refledger", "runs", "--log", "nowhere.db"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith("refledger: expected a Refledger log;")


def test_an_output_that_lacks_a_character_gets_another(log: Log) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "refledger", "artifacts", "--log", log.path],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr, "sha-256:49a64717?" in ran.stdout) == (0, "", True)


def test_a_reader_who_leaves_is_no_error(log: Log) -> None:
    with Ledger.open(log.path) as ledger, ledger.run(ALICE, run_id="long") as run:
        for index in range(1_500):
            run.message("user", f"{index}")
    for arguments in (["log"], ["log", "--json"]):
        with subprocess.Popen(
            [sys.executable, "-m", "refledger", *arguments, "--log", log.path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert (process.stderr.read(), process.wait()) == (b"", 141)


def test_reading_makes_no_log_and_leaves_the_file_as_it_is(log: Log, say: Say) -> None:
    before = log.path.read_bytes()
    for command in (["log"], ["runs"], ["answers"], ["artifacts"], ["backtrack", "latest"], ["sql", "FROM runs"], ["verify"]):
        assert say(*command, "--log", log.path).code == 0
    assert log.path.read_bytes() == before
    assert {path.name for path in log.path.parent.iterdir()} == {"agent.db", "agent.db.lock"}


def test_the_environment_names_the_log(log: Log, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLEDGER_LOG", str(log.path))
    assert [run["run_id"] for run in say("runs", "--json").objects] == ["run-2", "run-1"]


# --- log -----------------------------------------------------------------------------------------------------------------------


def test_the_log_is_listed_in_its_order(log: Log, say: Say) -> None:
    said = say("log", "--log", log.path)
    assert said.code == 0
    lines = [line.replace("2026-03-01 12:00:00", "noon") for line in stable(log, said.out).splitlines()]
    assert [" ".join(line.split()) for line in lines] == table(
        f"""
        position recorded (UTC) type scope run call what
        1 noon log.opened by 0.1.0, durability full, observations buffered, texts kept
        2 noon run.started acme/alice/c-17 run-1 agent analyst, model m-1
        3 noon message.noted acme/alice/c-17 run-1 user, message 1, 6 bytes
        4 noon call.started acme/alice/c-17 run-1 t1 get_sales, step 1, turn 1
        5 noon artifact.minted acme/alice/c-17 run-1 t1 art_{"D" * 22} dataset/rows sha-256:49a64717… 5 bytes '[red]stop[/red] \ufffd[31m\ufffd:bomb:'
        6 noon call.ended acme/alice/c-17 run-1 t1 ok 6 bytes
        7 noon call.started acme/alice/c-17 run-1 t2 write, step 2, turn 2
        8 noon artifact.minted acme/alice/c-17 run-1 t2 art_{"R" * 22} report/text sha-256:d14a58ba… 4 bytes
        9 noon call.ended acme/alice/c-17 run-1 t2 ok 6 bytes
        10 noon call.started acme/alice/c-17 run-1 t3 sum_up, step 3, turn 3
        11 noon dispatch.refused acme/alice/c-17 run-1 t3 sum_up: dataset kind-mismatch (wrong_kind); 1 of 1 dataset/rows offered
        12 noon call.ended acme/alice/c-17 run-1 t3 refused 279 bytes
        13 noon call.started acme/alice/c-17 run-1 t4 sum_up, step 4, turn 4
        14 noon dispatch.resolved acme/alice/c-17 run-1 t4 sum_up: dataset=art_{"D" * 22}
        15 noon call.ended acme/alice/c-17 run-1 t4 ok 1 byte
        16 noon artifact.gone acme/alice/c-17 run-1 art_{"R" * 22} deleted by alice
        17 noon answer.given acme/alice/c-17 run-1 ans-1 1 byte cites art_{"D" * 22}
        18 noon run.ended acme/alice/c-17 run-1 closed
        19 noon answer.judged acme/alice/c-17 run-1 ans-1 wrong by qa 'it is 4'
        20 noon run.started _/_/c-18 run-2 agent ?, model ?
        21 noon artifact.minted _/_/c-18 run-2 art_{"B" * 22} blob sha-256:5c0e0ea4… 2,000 bytes
        """
    )


@pytest.mark.parametrize(
    ("options", "positions"),
    [
        (["--limit", "2"], [1, 2]),
        (["--after", "19"], [20, 21]),
        (["--after", "4", "--limit", "2"], [5, 6]),
        (["--type", "artifact.minted", "--type", "artifact.gone"], [5, 8, 16, 21]),
        (["--scope", "_/_/c-18"], [20, 21]),
        (["--scope", "acme/alice/c-17", "--after", "17"], [18, 19]),
        (["--conversation", "c-18"], [20, 21]),
        (["--tenant", "acme", "--type", "answer.given"], [17]),
        (["--tenant", "acme", "--conversation", "c-18"], []),
        (["--principal", "alice", "--after", "18"], [19]),
    ],
)
def test_the_log_is_narrowed_by_position_type_and_scope(options: list[str], positions: list[int], log: Log, say: Say) -> None:
    said = say("log", *options, "--json", "--log", log.path)
    assert (said.code, said.err) == (0, "")
    assert [event["position"] for event in said.objects] == positions


def test_an_event_in_json_is_all_that_the_log_has_of_it(log: Log, say: Say) -> None:
    (event,) = say("log", "--after", "4", "--limit", "1", "--json", "--log", log.path).objects
    assert re.fullmatch(r"[0-9a-f-]{36}", event.pop("log_id")) and re.fullmatch(r"[0-9a-f-]{36}", event.pop("event_id"))
    assert event == {
        "position": 5,
        "type": "artifact.minted",
        "version": 1,
        "recorded_us": NOON,
        "occurred_us": None,
        "scope": "acme/alice/c-17",
        "scope_seq": 4,
        "run_id": "run-1",
        "call_id": "t1",
        "dispatch": 1,
        "body": {
            "ref": log.refs[0],
            "kind": "dataset/rows",
            "media_type": "application/json",
            "shape": "json",
            "bytes": 5,
            "digest": digest_of_text("[1,2]"),
            "tool": "get_sales",
        },
        "texts": {"label": UNTRUSTED},
        "erased": False,
    }


def test_a_long_log_has_its_header_once(log: Log, say: Say) -> None:
    with Ledger.open(log.path, clock=Clock()) as ledger, ledger.run(ALICE, run_id="long") as run:
        for index in range(600):
            run.message("user", f"{index}")
    lines = say("log", "--log", log.path).lines
    assert (len(lines), [line for line in lines if line.startswith("position")]) == (1 + 21 + 1 + 600 + 1, lines[:1])


def test_every_type_of_event_has_its_own_summary() -> None:
    source = inspect.getsource(summaries)
    assert [kind.__name__ for kind in KINDS.values() if f"case events.{kind.__name__}():" not in source] == []


def test_a_log_with_no_such_event_says_so_beside_the_result(log: Log, say: Say) -> None:
    said = say("log", "--type", "log.gap", "--log", log.path)
    assert said == Said(0, "", "No such event.\n")


def test_erased_texts_are_said_to_be_erased(log: Log, say: Say) -> None:
    change(log.path, "UPDATE events SET texts = NULL, salt = NULL WHERE position = 19")
    assert say("log", "--after", "18", "--limit", "1", "--log", log.path).lines[1].endswith("ans-1 wrong (texts erased)")


# --- runs, answers, artifacts -----------------------------------------------------------------------------------------------------


def test_the_runs_are_listed_newest_first(log: Log, say: Say) -> None:
    assert say("runs", "--log", log.path).lines == table(
        """
        run    scope            agent    model  started at  ended at  outcome
        run-2  _/_/c-18                                 20            unfinished
        run-1  acme/alice/c-17  analyst  m-1             2        18  closed
        """
    )


def test_a_run_in_json(log: Log, say: Say) -> None:
    (run,) = say("runs", "--limit", "1", "--json", "--log", log.path).objects
    assert run == {
        "run_id": "run-2",
        "scope": "_/_/c-18",
        "agent": None,
        "model": None,
        "parent_run": None,
        "parent_call": None,
        "started": 20,
        "ended": None,
        "outcome": None,
    }


def test_the_answers_are_listed_with_their_verdicts(log: Log, say: Say) -> None:
    with Ledger.open(log.path, clock=Clock()) as ledger, ledger.run(ALICE, run_id="run-3") as run:
        run.answer("4", answer_id="ans-2")
    assert say("answers", "--log", log.path).lines == table(
        """
        answer  verdict   run    call  scope            given at  judged at
        ans-2   unjudged  run-3        acme/alice/c-17        23
        ans-1   wrong     run-1        acme/alice/c-17        17         19
        """
    )


def test_an_answer_in_json(log: Log, say: Say) -> None:
    assert say("answers", "--json", "--log", log.path).objects == [
        {
            "answer_id": "ans-1",
            "scope": "acme/alice/c-17",
            "run_id": "run-1",
            "call_id": None,
            "given": 17,
            "verdict": "wrong",
            "judged": 19,
        }
    ]


def test_the_artifacts_are_listed_with_what_became_of_them(log: Log, say: Say) -> None:
    said = say("artifacts", "--log", log.path)
    assert [line.rstrip() for line in stable(log, said.out).splitlines()] == table(
        f"""
        ref                         kind          state    bytes  digest             scope            minted at  label
        art_{"B" * 22}  blob          expired  2,000  sha-256:5c0e0ea4…  _/_/c-18                21
        art_{"R" * 22}  report/text   deleted      4  sha-256:d14a58ba…  acme/alice/c-17          8
        art_{"D" * 22}  dataset/rows  live         5  sha-256:49a64717…  acme/alice/c-17          5  [red]stop[/red] \ufffd[31m\ufffd:bomb:
        """
    )


def test_the_artifacts_of_a_scope_are_those_that_live_in_it(log: Log, say: Say) -> None:
    (artifact,) = say("artifacts", "--scope", "acme/alice/c-17", "--json", "--log", log.path).objects
    assert (artifact["ref"], artifact["state"], artifact["digest"], artifact["label"]) == (
        log.refs[0],
        "live",
        digest_of_text("[1,2]"),
        UNTRUSTED,
    )


@pytest.mark.parametrize(
    ("command", "note"),
    [("runs", "No run in this log yet."), ("answers", "No answer in this log yet."), ("artifacts", "No artifact there.")],
)
def test_an_empty_log_has_nothing_to_list(command: str, note: str, tmp_path: Path, say: Say) -> None:
    Ledger.open(tmp_path / "empty.db").close()
    assert say(command, "--log", tmp_path / "empty.db") == Said(0, "", f"{note}\n")
    assert say(command, "--json", "--log", tmp_path / "empty.db") == Said(0, "", "")


# --- judge, backtrack -----------------------------------------------------------------------------------------------------------


def test_a_verdict_is_recorded_and_stands(log: Log, say: Say) -> None:
    said = say("judge", "ans-1", "right", "--by", "me", "--note", "after all", "--log", log.path)
    assert said == Said(0, "ans-1 is judged right.\n", "")
    (answer,) = say("answers", "--json", "--log", log.path).objects
    assert answer["verdict"] == "right"
    (event,) = say("log", "--type", "answer.judged", "--after", "19", "--json", "--log", log.path).objects
    assert event["texts"] == {"by": "me", "note": "after all"}


def test_a_verdict_in_json_names_the_answer_that_latest_meant(log: Log, say: Say) -> None:
    said = say("judge", "latest", "unsure", "--json", "--log", log.path)
    assert said.objects == [{"answer_id": "ans-1", "verdict": "unsure"}]


def test_a_backtrack_tells_the_answer_the_cone_and_the_refusal_as_the_model_read_it(log: Log, say: Say) -> None:
    label = harmless(UNTRUSTED)
    said = say("backtrack", "ans-1", "--log", log.path)
    assert (said.code, re.sub(r"[0-9a-f-]{36}", "…", said.err)) == (0, "18 events read of log ….\n")
    assert [line.rstrip() for line in stable(log, said.out).splitlines()] == table(
        f"""
        ans-1 is judged wrong by qa: it is 4
            3

        What it rests on: 3
        depth  node                        grade     what                                 via          at
            1  art_{"D" * 22}  cited     dataset/rows sha-256:49a64717… live  ans-1         5
            1  call t4                     inferred  sum_up ok                            ans-1        13
            2  call t1                     declared  get_sales ok                         art_DDDDDD…   4

        Refused on the way: sum_up, call t3, at 11
          dataset: kind-mismatch (wrong_kind); next: followed, then resolved
          The model read:
            {stable(log, refusal_in(log))}
          Offered: 1 of 1 live
        offered                     {"label":<{len(label)}}  bytes  digest             state  rested on
        art_{"D" * 22}  {label}      5  sha-256:49a64717…  live   yes

        Earlier calls of the run, of which no more is known: 2
        depth  node     grade     what            via  at
               call t2  preceded  write ok              7
               call t3  preceded  sum_up refused       10

        What this cannot know:
          inferred edges: 1
          uninstrumented calls: 1
        """
    )


def refusal_in(log: Log) -> str:
    """The sentence that the model read, as it was recorded as the call's result."""
    with Ledger.open(log.path, clock=Clock()) as ledger:
        (event,) = (recorded.event for recorded in ledger.events() if recorded.event.type == "dispatch.refused")
        sentence = ledger.content(ALICE, event.sentence)  # type: ignore[attr-defined]
    assert sentence is not None and sentence.startswith("refused: ")
    return sentence


def test_a_backtrack_in_json_holds_the_rows_the_words_and_the_offers(log: Log, say: Say) -> None:
    (told,) = say("backtrack", "latest", "--json", "--log", log.path).objects
    with Ledger.open(log.path, clock=Clock()) as ledger:
        walked = ledger.backtrack("ans-1").as_dict()
    assert {key: told[key] for key in walked} == json.loads(json.dumps(walked))
    assert told["answer"] == {
        "answer_id": "ans-1",
        "run_id": "run-1",
        "call_id": None,
        "text": "3",
        "verdict": "wrong",
        "by": "qa",
        "note": "it is 4",
    }
    (refusal,) = told["refusals"]
    assert (refusal["position"], refusal["call_id"], refusal["tool"], refusal["live"]) == (11, "t3", "sum_up", 1)
    assert refusal["sentence"] == refusal_in(log)
    assert refusal["arguments"] == [
        {
            "argument": "dataset",
            "wanted": "dataset/rows",
            "spoken": log.refs[1],
            "actual": "report/text",
            "reason": "kind-mismatch",
            "cause": "wrong_kind",
            "effect": "followed, then resolved",
        }
    ]
    assert [(offer["ref"], offer["digest"], offer["state"], offer["in_cone"]) for offer in refusal["offers"]] == [
        (log.refs[0], digest_of_text("[1,2]"), "live", True)
    ]


def test_a_sentence_whose_texts_are_erased_is_not_made_up(log: Log, say: Say) -> None:
    change(log.path, "UPDATE events SET texts = NULL, salt = NULL WHERE position = 11")
    lines = say("backtrack", "ans-1", "--log", log.path).lines
    assert "  What the model read cannot be shown: its texts are erased." in lines
    assert "  texts erased: 1" in lines
    assert say("backtrack", "ans-1", "--json", "--log", log.path).objects[0]["refusals"][0]["sentence"] is None


def test_the_newest_verdict_is_the_one_that_is_told(log: Log, say: Say) -> None:
    say("judge", "ans-1", "right", "--log", log.path)
    assert say("backtrack", "ans-1", "--log", log.path).lines[0] == "ans-1 is judged right"


# --- sql -------------------------------------------------------------------------------------------------------------------------


def test_an_answer_of_sql_is_a_table(log: Log, say: Say) -> None:
    said = say("sql", "SELECT call_id, tool, error_class FROM calls ORDER BY started", "--log", log.path)
    assert said.lines == table(
        """
        call_id  tool       error_class
        t1       get_sales  NULL
        t2       write      NULL
        t3       sum_up     NULL
        t4       sum_up     NULL
        """
    )
    assert re.sub(r"log .*", "log …", said.err) == "4 rows; 21 events read of log …\n"


def test_an_answer_of_sql_in_json_keeps_what_json_has_not_as_text(log: Log, say: Say) -> None:
    statement = """
        SELECT 1 AS n, 1.5 AS price, 'nan'::DOUBLE AS odd, 2::HUGEINT << 70 AS big, 'ab'::BLOB AS bytes, NULL AS nothing,
        TIMESTAMPTZ '2026-03-01 12:00:00+00' AS at, DATE '2026-03-01' AS day, [1, NULL] AS items, MAP {'a': 1} AS named, true AS yes
    """
    (result,) = say("sql", statement, "--json", "--log", log.path).objects
    assert result["columns"] == ["n", "price", "odd", "big", "bytes", "nothing", "at", "day", "items", "named", "yes"]
    assert result["rows"] == [
        [1, "1.5", "nan", 2 << 70, "6162", None, "2026-03-01T12:00:00+00:00", "2026-03-01", [1, None], {"a": 1}, True]
    ]
    assert (result["types"][:2], result["truncated"], result["scanned"]["rows"]) == (["INTEGER", "DECIMAL(2,1)"], False, 21)


def test_a_statement_is_read_from_stdin(log: Log) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "refledger", "sql", "-", "--json", "--log", log.path],
        input="SELECT count(*) AS n FROM events",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout)["rows"] == [[21]]


# --- import ----------------------------------------------------------------------------------------------------------------------


def imported(path: Path, *options: str) -> tuple[str | Path, ...]:
    return ("import", EXAMPLES / "trace.jsonl", "--format", "openai-chat", "--write-tools", "cancel_*", *options, "--log", path)


def test_an_import_says_each_run_and_a_second_one_changes_nothing(tmp_path: Path, say: Say) -> None:
    log = tmp_path / "agent.db"
    assert say(*imported(log)) == Said(
        0,
        "run_eDedqwKXskrFNp07K9dThR  imported          7 steps  ans_eDedqwKXskrFNp07K9dThR  wrong\n"
        "run_xqDKvMaLrEM8yz0rV9Buqs  imported          4 steps  ans_xqDKvMaLrEM8yz0rV9Buqs  right\n",
        "2 runs: 2 imported, 0 already there.\n",
    )
    before = log.read_bytes()
    assert say(*imported(log)) == Said(
        0,
        "run_eDedqwKXskrFNp07K9dThR  already there     7 steps  ans_eDedqwKXskrFNp07K9dThR\n"
        "run_xqDKvMaLrEM8yz0rV9Buqs  already there     4 steps  ans_xqDKvMaLrEM8yz0rV9Buqs\n",
        "2 runs: 0 imported, 2 already there.\n",
    )
    assert log.read_bytes() == before


def test_an_import_in_json_is_an_object_a_run(tmp_path: Path, say: Say) -> None:
    first, second = say(*imported(tmp_path / "agent.db", "--json")).objects
    assert re.fullmatch(r"sha-256:[0-9a-f]{64}", first.pop("source"))
    assert first == {
        "run_id": "run_eDedqwKXskrFNp07K9dThR",
        "imported": True,
        "steps": 7,
        "answer_id": "ans_eDedqwKXskrFNp07K9dThR",
        "verdict": "wrong",
        "scope": "_/_/run_eDedqwKXskrFNp07K9dThR",
    }
    assert (second["verdict"], second["imported"]) == ("right", True)


@pytest.mark.parametrize(
    ("options", "scopes"),
    [
        (["--tenant", "acme"], ["acme/_/run_eDedqwKXskrFNp07K9dThR", "acme/_/run_xqDKvMaLrEM8yz0rV9Buqs"]),
        (["--principal", "alice", "--conversation", "c-1"], ["_/alice/c-1", "_/alice/c-1"]),
    ],
)
def test_an_import_stands_in_the_scope_that_is_named(options: list[str], scopes: list[str], tmp_path: Path, say: Say) -> None:
    assert [run["scope"] for run in say(*imported(tmp_path / "agent.db", *options, "--json")).objects] == scopes


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="this system has no /dev/fd")
def test_a_trace_that_can_be_read_only_once_is_imported(tmp_path: Path, say: Say) -> None:
    reading, writing = os.pipe()
    os.write(writing, (EXAMPLES / "trace.jsonl").read_bytes())
    os.close(writing)
    said = say("import", f"/dev/fd/{reading}", "--format", "openai-chat", "--log", tmp_path / "agent.db")
    os.close(reading)
    assert (said.code, len(said.lines), said.err) == (0, 2, "2 runs: 2 imported, 0 already there.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no pseudo-terminals")
def test_a_bar_on_a_terminal_leaves_the_results_alone(tmp_path: Path) -> None:
    import pty

    terminal, stderr = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "refledger", *imported(tmp_path / "agent.db", "--json")], stdout=subprocess.PIPE, stderr=stderr
    ) as process:
        os.close(stderr)
        assert process.stdout is not None
        runs = [json.loads(line) for line in process.stdout]
    drawn = os.read(terminal, 65_536)
    os.close(terminal)
    assert ([run["imported"] for run in runs], process.returncode) == ([True, True], 0)
    assert (b"2/2" in drawn, b"run_" in drawn) == (True, False)


def test_an_imported_backtrack_names_the_act_that_is_the_answer(tmp_path: Path, say: Say) -> None:
    say(*imported(tmp_path / "agent.db"))
    lines = say("backtrack", "ans_eDedqwKXskrFNp07K9dThR", "--log", tmp_path / "agent.db").lines
    assert lines[:2] == [
        "ans_eDedqwKXskrFNp07K9dThR is judged wrong by reward",
        "    The answer is what it did: call c2 cancel_order ok",
    ]


# --- verify ----------------------------------------------------------------------------------------------------------------------


def test_a_sound_log_gets_a_verdict_a_question_and_what_was_not_checked(log: Log, say: Say) -> None:
    said = say("verify", "--log", log.path)
    assert (said.code, said.err) == (0, "")
    with Ledger.open(log.path, clock=Clock()) as ledger:
        report = ledger.verify()
    verdicts = said.lines[1 : 1 + len(report.verdicts)]
    assert [line.split()[0] for line in verdicts] == ["ok"] * len(report.verdicts)
    assert [line.endswith(verdict.question) for line, verdict in zip(verdicts, report.verdicts, strict=True)] == [True] * len(verdicts)
    assert [f"  - {what}" for what in report.not_checked if f"  - {what}" not in said.lines] == []
    assert said.lines[-1] == f"Sound: 21 events of log {report.log_id}, root {report.root}"


def test_a_damaged_log_is_told_with_its_position_and_exit_code_1(log: Log, say: Say) -> None:
    change(log.path, "UPDATE events SET run_id = 'run-9' WHERE position = 4")
    said = say("verify", "--log", log.path)
    assert said.code == 1
    assert [line for line in said.lines if line.startswith("leaves: position 4:")] != []
    assert said.lines[-1].startswith("DAMAGED: 21 events of log ")
    report = say("verify", "--json", "--log", log.path)
    assert (report.code, report.objects[0]["ok"]) == (1, False)
    assert [verdict["ok"] for verdict in report.objects[0]["verdicts"] if verdict["name"] == "leaves"] == [False]


# --- what agents write is text ------------------------------------------------------------------------------------------------------


def test_no_text_of_an_agent_reaches_a_terminal_as_more_than_text(log: Log, say: Say) -> None:
    say("judge", "ans-1", "wrong", "--by", UNTRUSTED, "--note", f"{UNTRUSTED}\nsecond line", "--log", log.path)
    with Ledger.open(log.path, clock=Clock()) as ledger, ledger.run(ALICE, run_id="run-3", agent="x\u009b2J") as run:
        with run.call("t\x07ool", call_id="t1") as call:
            call.result("done")
        run.answer(UNTRUSTED, answer_id="ans-3")
    commands = (
        ["log"],
        ["runs"],
        ["artifacts"],
        ["backtrack", "ans-1"],
        ["backtrack", "ans-3"],
        ["sql", "FROM artifacts"],
        ["sql", "FROM verdicts"],
    )
    for command in commands:
        out = say(*command, "--log", log.path).out
        assert {char for char in out if not char.isprintable()} == {"\n"}
    assert "[red]stop[/red]" in say("backtrack", "ans-3", "--log", log.path).out
    for command in (["log"], ["artifacts"], ["backtrack", "ans-1"], ["sql", "FROM verdicts"]):
        out = say(*command, "--json", "--log", log.path).out
        assert out.isascii() and {char for char in out if not char.isprintable()} == {"\n"}


@pytest.mark.parametrize("width", ["30", "60", "100"])
def test_ids_are_whole_however_narrow_the_terminal(width: str, log: Log, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for command in (["log"], ["artifacts"], ["backtrack", "ans-1"]):
        said = say(*command, "--log", log.path)
        assert log.refs[0] in said.out, said.out
