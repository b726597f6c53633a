"""Bad input at every door: one clear line on stderr that says what to do, a code that is not 0, nothing on stdout, nothing lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from refledger import Ledger, Scope
from refledger.cli import main
from tests.ledgers import change

READING = [
    ["log"],
    ["log", "--json"],
    ["runs"],
    ["answers"],
    ["artifacts"],
    ["backtrack", "latest"],
    ["sql", "FROM runs"],
    ["verify"],
]
WRITING = [["judge", "latest", "wrong"], ["import", "good.jsonl", "--format", "openai-chat"], ["demo"]]
DOORS = pytest.mark.parametrize("command", READING + WRITING, ids=" ".join)
GOOD = '[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}]\n'


@dataclass
class Refusal:
    """What a command that refuses did."""

    code: int
    line: str


Refuse = Callable[..., Refusal]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refuse:
    """Runs a command that must refuse: with one line on stderr, nothing on stdout, and no traceback."""

    def run(*arguments: str | Path) -> Refusal:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), f"{out}\n{err}"
        assert err.startswith("refledger: ") and err.endswith("\n") and len(err) < 700
        assert code in (1, 2, 3)
        return Refusal(code, err.removeprefix("refledger: ").rstrip("\n"))

    return run


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.jsonl").write_text(GOOD, encoding="utf-8")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with a run and an answer, closed, so that all of it is in the one file."""
    path = tmp_path_factory.mktemp("original") / "agent.db"
    with Ledger.open(path) as ledger, ledger.run(Scope(conversation="c"), run_id="run-1") as run:
        for index in range(50):
            run.put(f"payload {index} " * 20, kind="text/line", label=f"line {index}")
        run.answer("done", answer_id="ans-1")
    return path


@pytest.fixture
def log(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to be ill-treated."""
    return Path(shutil.copy(original, tmp_path / "agent.db"))


@contextmanager
def left_as_it_is(path: Path) -> Iterator[None]:
    """The file is the same before and after, byte for byte, and no log is made beside it."""
    before, beside = path.read_bytes(), listing(path.parent)
    yield
    assert path.read_bytes() == before
    assert listing(path.parent) - beside <= {f"{path.name}.lock"}


def listing(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


# --- the log is not one ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [*READING, *WRITING[:2]], ids=" ".join)
def test_no_log_is_named(command: list[str], refused: Refuse) -> None:
    said = refused(*command)
    assert said == Refusal(2, "expected a log to work on; none was named. Pass --log PATH, or set REFLEDGER_LOG to the path.")


@DOORS
def test_the_file_is_no_database(command: list[str], refused: Refuse, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and they are precious.\n" * 100, encoding="utf-8")
    with left_as_it_is(path):
        said = refused(*command, "--log", path)
    assert (said.code, "the file is not a SQLite database" in said.line, f"The log is {path}" in said.line) == (2, True, True)


@DOORS
def test_the_database_is_somebody_elses(command: list[str], refused: Refuse, tmp_path: Path) -> None:
    path = tmp_path / "contacts.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE contacts (name TEXT)")
        connection.execute("INSERT INTO contacts VALUES ('Mia')")
    connection.close()
    with left_as_it_is(path):
        said = refused(*command, "--log", path)
    assert (said.code, "SQLite database of something else" in said.line, "name another file" in said.line) == (2, True, True)


@DOORS
def test_the_log_is_of_a_newer_refledger(command: list[str], refused: Refuse, log: Path) -> None:
    change(log, "UPDATE alembic_version SET version_num = '9999_from_the_future'")
    fold(log)
    with left_as_it_is(log):
        said = refused(*command, "--log", log)
    assert (said.code, "9999_from_the_future" in said.line, "Install that version or a newer one" in said.line) == (2, True, True)


@DOORS
def test_the_path_is_a_folder(command: list[str], refused: Refuse, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    said = refused(*command, "--log", tmp_path / "logs")
    assert (said.code, "the path is a folder" in said.line) == (2, True)
    assert listing(tmp_path / "logs") == set()


@DOORS
def test_the_path_is_a_url(command: list[str], refused: Refuse, tmp_path: Path) -> None:
    said = refused(*command, "--log", "postgresql+psycopg://somewhere/log")
    assert (said.code, "found a URL" in said.line) == (2, True)
    assert listing(tmp_path) == {"good.jsonl"}


@pytest.mark.parametrize("command", [*READING, WRITING[0]], ids=" ".join)
def test_there_is_no_file_and_none_is_made(command: list[str], refused: Refuse, tmp_path: Path) -> None:
    said = refused(*command, "--log", tmp_path / "nowhere.db")
    assert (said.code, "Check the path" in said.line, "nowhere.db" in said.line) == (2, True, True)
    assert listing(tmp_path) == {"good.jsonl"}


@DOORS
def test_there_is_no_folder(command: list[str], refused: Refuse, tmp_path: Path) -> None:
    said = refused(*command, "--log", tmp_path / "nowhere" / "agent.db")
    assert (said.code, "Check the path" in said.line or "check the path" in said.line) == (2, True)
    assert listing(tmp_path) == {"good.jsonl"}


@pytest.mark.parametrize("command", [*READING, WRITING[0]], ids=" ".join)
def test_the_path_cannot_be_said_on_one_line(command: list[str], refused: Refuse) -> None:
    assert "The log is evil [31m red.db" in refused(*command, "--log", "evil\n\x1b[31m\nred.db").line.replace("\ufffd", "")


def test_nobody_may_write_there(log: Path) -> None:
    """In a process of its own, which lets go of root's rights where it has them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(log, folder / "agent.db")
        (folder / "good.jsonl").write_text(GOOD, encoding="utf-8")
        before = (folder / "agent.db").read_bytes()
        (folder / "agent.db").chmod(0o444)
        folder.chmod(0o555)
        ran = subprocess.run([sys.executable, "-c", WITHOUT_RIGHTS], cwd=folder, capture_output=True, text=True, check=False)
        folder.chmod(0o755)
        lines = ran.stderr.splitlines()
        assert (ran.stdout, ran.returncode, len(lines)) == ("[3, 3, 3, 3]\n", 0, 4), ran.stderr
        assert [line for line in lines if "Give the user write access" not in line] == []
        assert (folder / "agent.db").read_bytes() == before
        assert listing(folder) == {"agent.db", "good.jsonl"}


WITHOUT_RIGHTS = """
import os
import refledger.demo, refledger_queries.backtrack, refledger_schema.migrate, sqlalchemy.dialects.sqlite
from refledger.cli import main
if os.geteuid() == 0:
    os.setegid(65534), os.seteuid(65534)
importing = ["import", "good.jsonl", "--format", "openai-chat", "--log"]
print([main([*importing, "new.db"]), main([*importing, "agent.db"]), main(["demo", "--log", "new.db"]),
       main(["judge", "latest", "wrong", "--log", "agent.db"])])
"""


# --- the log is damaged --------------------------------------------------------------------------------------------------------


def fold(path: Path) -> None:
    """Everything into the one file, as after a close."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


@pytest.mark.parametrize("command", [*READING[:2], *READING[5:]], ids=" ".join)
def test_the_file_was_cut_off(command: list[str], refused: Refuse, log: Path) -> None:
    os.truncate(log, log.stat().st_size // 2)
    with left_as_it_is(log):
        said = refused(*command, "--log", log)
    assert (said.code, "restore the log from a backup" in said.line, f"The log is {log}" in said.line) == (1, True, True)


@DOORS
def test_the_head_of_the_file_is_overwritten(command: list[str], refused: Refuse, log: Path) -> None:
    with log.open("r+b") as file:
        file.seek(100)
        file.write(b"\x7f" * 400)
    with left_as_it_is(log):
        said = refused(*command, "--log", log)
    assert (said.code, "restore the log from a backup" in said.line) == (1, True)


@pytest.mark.parametrize("command", [["log", "--after", "4"], ["log", "--after", "4", "--json"], ["backtrack", "ans-1"]], ids=" ".join)
def test_an_event_cannot_be_read(command: list[str], refused: Refuse, log: Path) -> None:
    change(log, "UPDATE events SET body = '{' WHERE position = 5")
    fold(log)
    with left_as_it_is(log):
        said = refused(*command, "--log", log)
    assert (said.code, "`refledger verify`" in said.line, "restore the log from a backup" in said.line) == (1, True, True)


def test_the_text_of_an_answer_was_forged(refused: Refuse, log: Path) -> None:
    change(log, "UPDATE content SET data = CAST('all is well' AS BLOB)")
    fold(log)
    with left_as_it_is(log):
        said = refused("backtrack", "ans-1", "--log", log)
    assert (said.code, "it was changed" in said.line, "all is well" in said.line) == (1, True, False)


# --- the request is wrong ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["backtrack", "ans-9"], ["judge", "ans-9", "wrong"], ["backtrack", ""]], ids=" ".join)
def test_the_answer_is_unknown(command: list[str], refused: Refuse, log: Path) -> None:
    with left_as_it_is(log):
        said = refused(*command, "--log", log)
    assert said == Refusal(2, "expected the id of an answer in this log; found none by that id. `refledger answers` lists them.")


@pytest.mark.parametrize("command", [["backtrack", "latest"], ["judge", "latest", "wrong"]], ids=" ".join)
def test_the_latest_answer_of_a_log_without_answers_is_unknown(command: list[str], refused: Refuse, tmp_path: Path) -> None:
    Ledger.open(tmp_path / "empty.db").close()
    assert refused(*command, "--log", tmp_path / "empty.db").code == 2


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1; SELECT 2",
        "DELETE FROM events",
        "DROP VIEW events",
        "UPDATE log_events SET body = ''",
        "SELECT nothing FROM events",
        "SELECT * FROM nothing",
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (FROM events) TO 'stolen.csv'",
        "ATTACH 'agent.db' AS live",
        "INSTALL sqlite",
        "SELECT ?",
        "SELECT",
        "",
        "hello",
    ],
)
def test_the_statement_is_not_one_select_over_the_log(statement: str, refused: Refuse, log: Path) -> None:
    with left_as_it_is(log):
        assert refused("sql", statement, "--log", log).code == 2
    assert not Path("stolen.csv").exists()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "nothing"),
        ("no JSON", "line 1"),
        ('{"messages": []}', "empty list"),
        ('{"role": "user"}', "one message"),
        ("[1, 2]", "record 1"),
        (GOOD + '{"messages": "none"}\n', "line 2"),
        (GOOD + "{\n", "line 2"),
        ('{"messages": [{"role": "user", "content": NaN}]}', "NaN"),
    ],
)
def test_the_trace_is_not_what_its_format_says(content: str, found: str, refused: Refuse, log: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text(content, encoding="utf-8")
    with left_as_it_is(log):
        said = refused("import", trace, "--format", "openai-chat", "--log", log)
    assert said.code == 2
    assert refused("import", trace, "--format", "openai-chat", "--log", tmp_path / "new.db") == said
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("trace", ["nowhere.jsonl", "."])
def test_there_is_no_trace(trace: str, refused: Refuse, log: Path) -> None:
    with left_as_it_is(log):
        said = refused("import", trace, "--format", "openai-chat", "--log", log)
    assert (said.code, "Check the path" in said.line) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["nothing"], "nothing"),
        (["lgo"], "log"),
        (["--nothing"], "--nothing"),
        (["log", "--lgo", "x"], "--log"),
        (["log", "--type", "answer"], "answer.given"),
        (["log", "--after", "-1"], "--after"),
        (["log", "--limit", "0"], "--limit"),
        (["log", "--limit", "some"], "--limit"),
        (["log", "--scope", "acme"], "three segments"),
        (["artifacts", "--scope", "a/b"], "three segments"),
        (["runs", "more"], "more"),
        (["judge"], "ANSWER"),
        (["judge", "ans-1", "bad"], "right"),
        (["judge", "ans-1", "wrong", "--by", "x" * 300], "`by`"),
        (["backtrack"], "ANSWER"),
        (["sql"], "STATEMENT"),
        (["import", "good.jsonl"], "--format"),
        (["import", "good.jsonl", "--format", "csv"], "openai-chat"),
        (["import", "good.jsonl", "--format", "openai-chat", "--tenant", "x" * 2_000], "tenant"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)
def test_the_command_is_not_one_that_there_is(
    arguments: list[str], hint: str, refused: Refuse, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLEDGER_LOG", str(log))
    with left_as_it_is(log):
        said = refused(*arguments)
    assert (said.code, hint in said.line) == (2, True), said.line


def test_the_lock_is_taken_and_stays_so(refused: Refuse, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Ledger.open
    monkeypatch.setattr(Ledger, "open", lambda path, **options: opened(path, **options, lock_timeout=0.05))
    with closing(sqlite3.connect(log, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        said = refused("judge", "ans-1", "wrong", "--log", log)
        holder.execute("ROLLBACK")
    holder.close()
    assert (said.code, "another writer still holds it" in said.line) == (3, True)


def test_a_bug_of_ours_is_not_taken_for_damage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], log: Path) -> None:
    monkeypatch.setattr(Ledger, "runs", lambda self, limit: 1 / 0)
    assert main(["runs", "--log", str(log)]) == 70
    assert capsys.readouterr().err.splitlines()[-1] == "refledger: that is a bug in Refledger; please report it with the lines above."
