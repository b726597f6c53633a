"""One SELECT over a log: what it gives, what it is told when it cannot run, and what it must not do."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refledger_queries.sources import Scanned
from refledger_queries.sql import Result, select
from refledger_schema.envelope import Draft, Row
from refledger_schema.errors import InvalidConfiguration, QueryRefused
from refledger_schema.events import AnswerGiven, ArtifactMinted, MessageNoted, RunStarted
from refledger_schema.scopes import Scope
from tests.logmaking import MadeLog, make_log

HERE = Scope("c-1", "acme", "alice")
A = "art_" + "A" * 22
DIGEST = "sha-256:" + "1" * 64
SECRET = "payload-of-acme"


def log() -> MadeLog:
    return MadeLog(
        make_log(
            [
                Draft(RunStarted(agent=SECRET, attributes={"note": SECRET}), HERE, "r1"),
                *(Draft(MessageNoted(role="user", index=index, size=10 * index), HERE, "r1") for index in (1, 2, 3)),
                Draft(ArtifactMinted(ref=A, kind="rows", media_type="m", shape="json", bytes=1, digest=DIGEST), HERE, "r1"),
                Draft(AnswerGiven(answer_id="ans", size=1, cited=(A,)), HERE, "r1"),
                Draft(RunStarted(agent="other"), Scope("c-2"), "r2"),
            ]
        )
    )


SCANNED = Scanned(rows=7, sources=("log-a",))


def test_a_question_has_columns_types_and_rows() -> None:
    query = """
        SELECT run_id, started_at, count(*) AS runs, avg(started_us) AS us, attributes
        FROM runs
        GROUP BY ALL
        ORDER BY run_id
    """
    start = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    assert select(log(), query) == Result(
        columns=("run_id", "started_at", "runs", "us", "attributes"),
        types=("VARCHAR", "TIMESTAMP WITH TIME ZONE", "BIGINT", "DOUBLE", "MAP(VARCHAR, VARCHAR)"),
        rows=(
            ("r1", start, 1, 1_000_000.0, {"note": SECRET}),
            ("r2", start + datetime.timedelta(milliseconds=6), 1, 1_006_000.0, None),
        ),
        truncated=False,
        scanned=SCANNED,
    )


@pytest.mark.parametrize(
    ("limit", "indexes", "truncated"),
    [(None, [1, 2, 3], False), (1, [1], True), (2, [1, 2], True), (3, [1, 2, 3], False), (9, [1, 2, 3], False)],
)
def test_a_limit_says_whether_there_was_more(limit: int | None, indexes: list[int], truncated: bool) -> None:
    found = select(log(), "SELECT index FROM messages ORDER BY index", limit=limit)
    assert ([index for (index,) in found.rows], found.truncated) == (indexes, truncated)


def test_a_limit_below_one_is_no_limit() -> None:
    with pytest.raises(InvalidConfiguration, match="at least 1 row"):
        select(log(), "SELECT 1", limit=0)


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("SELECT role FROM messages WHERE index = ? AND size = ?", [2, 20]),
        ("SELECT role FROM messages WHERE index = $index AND size = $size", {"size": 20, "index": 2}),
        ("SELECT role FROM messages WHERE index = $2 AND size = $1", (20, 2)),
    ],
)
def test_values_are_parameters(query: str, parameters: Sequence[Any] | Mapping[str, Any]) -> None:
    assert select(log(), query, parameters).rows == (("user",),)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("FROM backtrack('ans') SELECT node_id, grade", (("ans", None), (A, "cited"))),
        ("SELECT what FROM backtrack_coverage('ans') WHERE count > 0", ()),
        ("SELECT ref FROM live_at('acme/alice/c-1', NULL, 7)", ((A,),)),
        ("FROM messages SELECT max(size);", ((30,),)),
        ("VALUES (1, 'a')", ((1, "a"),)),
        ("WITH few AS (SELECT index FROM messages) SELECT sum(index) FROM few -- a comment", ((6,),)),
        ("SELECT 'a; DROP VIEW runs'", (("a; DROP VIEW runs",),)),
    ],
)
def test_whatever_selects_is_run(query: str, rows: tuple[tuple[Any, ...], ...]) -> None:
    assert select(log(), query).rows == rows


def test_columns_of_a_view_can_be_asked_for() -> None:
    assert [row[0] for row in select(log(), "DESCRIBE edges").rows] == ["log_id", "scope", "child", "parent", "how", "position"]
    assert ("refusals",) in select(log(), "SHOW TABLES").rows


def test_binary_columns_are_bytes() -> None:
    found = select(log(), "SELECT leaf_hash, salt, encode('é') AS text FROM log_events WHERE position = 1")
    first = log().rows[0]
    assert found.types == ("BLOB", "BLOB", "BLOB")
    assert found.rows[0][2] == "é".encode()
    assert [type(cell) for cell in found.rows[0]] == [bytes] * 3
    assert len(found.rows[0][0]) == len(first.leaf_hash)


def test_no_rows_still_have_columns() -> None:
    assert select(log(), "SELECT ref, position FROM reads") == Result(("ref", "position"), ("VARCHAR", "BIGINT"), (), False, SCANNED)


# --- refused ---------------------------------------------------------------------------------------------------------------


def refusal(query: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None, rows: Sequence[Row] | None = None) -> str:
    with pytest.raises(QueryRefused) as caught:
        select(log() if rows is None else MadeLog(rows), query, parameters)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return message


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "found 0 statements"),
        ("-- nothing", "found 0 statements"),
        ("SELECT 1; SELECT 2", "found 2 statements"),
        ("SELECT 1; DROP VIEW runs", "found 2 statements"),
        ("DROP VIEW runs", "found DROP"),
        ("DELETE FROM log_events", "found DELETE"),
        ("INSERT INTO log_events VALUES (1)", "found INSERT"),
        ("UPDATE log_events SET body = ''", "found UPDATE"),
        ("CREATE TABLE t AS SELECT 1", "found CREATE"),
        ("CREATE TEMP TABLE t AS SELECT 1", "found CREATE"),
        ("COPY (SELECT 1) TO 'x.csv'", "found COPY"),
        ("EXPORT DATABASE 'x'", "found EXPORT"),
        ("ATTACH 'x.db'", "found ATTACH"),
        ("SET threads = 1", "found SET"),
        ("PRAGMA show_tables", "found PRAGMA"),
        ("CALL pragma_version()", "found CALL"),
        ("INSTALL httpfs", "found LOAD"),
        ("LOAD httpfs", "found LOAD"),
        ("EXPLAIN ANALYZE SELECT 1", "found EXPLAIN"),
        ("BEGIN", "found TRANSACTION"),
        ("PREPARE p AS SELECT 1", "found PREPARE"),
        ("VACUUM", "found VACUUM"),
    ],
)
def test_anything_but_one_select_is_refused(query: str, found: str) -> None:
    assert found in refusal(query)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT reson FROM refusals", 'Referenced column "reson" not found in FROM clause! Candidate bindings: "reason"'),
        ("SELECT reason FROM refusal", 'Table with name refusal does not exist! Did you mean "refusals"?'),
        ("FROM bactrack('ans')", 'Did you mean "backtrack"?'),
        ("FROM backtrack()", "Candidate macros: backtrack(answer)"),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT sum(reason) FROM refusals", "No function matches the given name and argument types 'sum(VARCHAR)'."),
    ],
)
def test_a_wrong_name_is_told_the_right_one(query: str, said: str) -> None:
    message = refusal(query)
    assert said in message
    assert "DESCRIBE" in message


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("SELECT agent::INTEGER FROM runs", "TRY_CAST"),
        ("SELECT agent::DATE FROM runs", "TRY_CAST"),
        ("SELECT strptime(agent, '%Y') FROM runs", "Simplify"),
        ("SELECT error(agent) FROM runs", "Simplify"),
        ("SELECT size * 9223372036854775807 FROM messages", "HUGEINT"),
        ("SELECT from_json(agent, '\"VARCHAR\"') FROM runs", "Simplify"),
    ],
)
def test_what_goes_wrong_in_the_log_is_told_without_its_values(query: str, advice: str) -> None:
    assert advice in refusal(query)


def test_damaged_rows_are_told_without_their_values() -> None:
    damaged = [replace(log().rows[0], body='{"agent": "' + SECRET)]
    assert "Simplify" in refusal("SELECT agent FROM runs", rows=damaged)


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("SELECT ?", None),
        ("SELECT ?", [1, 2]),
        ("SELECT $a", {"b": 1}),
        ("SELECT 1", [1]),
    ],
)
def test_parameters_that_do_not_fit_are_named(query: str, parameters: Sequence[Any] | Mapping[str, Any] | None) -> None:
    assert "expected a value for each parameter" in refusal(query, parameters)


# --- nothing but the log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "SELECT content FROM read_text('{path}')",
        "SELECT content FROM read_blob('{path}')",
        "FROM read_csv('{path}')",
        "FROM '{path}'",
        "FROM glob('{path}')",
        "SELECT * FROM read_parquet('https://example.invalid/x.parquet')",
    ],
)
def test_files_are_closed(query: str, tmp_path: Path) -> None:
    path = tmp_path / "beside.csv"
    path.write_text("a\n1\n")
    assert "files" in refusal(query.format(path=path))


@pytest.mark.parametrize(
    "query",
    [
        "WITH gone AS (DELETE FROM log_events RETURNING position) FROM gone",
        "WITH made AS (INSERT INTO log_events (position) VALUES (1) RETURNING position) FROM made",
    ],
)
def test_a_select_that_writes_is_refused(query: str) -> None:
    refusal(query)


def test_python_variables_are_no_tables() -> None:
    import pyarrow

    beside = pyarrow.table({"a": [1]})
    assert beside.num_rows == 1
    assert "beside" in refusal("SELECT a FROM beside")


def test_nothing_is_left_behind_for_the_next_question() -> None:
    select(log(), "SELECT setseed(0.5)")
    assert select(log(), "SELECT count(*) FROM log_events").rows == ((7,),)
    assert select(MadeLog([]), "SELECT count(*) FROM log_events") == Result(
        ("count_star()",), ("BIGINT",), ((0,),), False, Scanned(0, ("log-a",))
    )
