"""What each view and macro of the catalogue says of one small log that holds every kind of event: whole rows."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from refledger_queries.catalogue import OBJECTS, connect, reading, schema_of, statement_of
from refledger_queries.sources import table_of
from refledger_schema.arrow import LOG_SCHEMA
from refledger_schema.canonical import canonical_json
from refledger_schema.envelope import Draft
from refledger_schema.errors import LogCorrupt
from refledger_schema.events import (
    KINDS,
    AnswerGiven,
    AnswerJudged,
    ArtifactGone,
    ArtifactMinted,
    ArtifactPresented,
    ArtifactRead,
    ArtifactRefused,
    CallEnded,
    CallStarted,
    ContextComposed,
    CoverageDeclared,
    CoverageItem,
    DeclarationRefused,
    DispatchRefused,
    DispatchResolved,
    ImportNoted,
    JudgedArgument,
    LogGap,
    LogOpened,
    Match,
    MessageNoted,
    OfferedRef,
    Offers,
    Parent,
    ResolvedArgument,
    RunEnded,
    RunStarted,
)
from refledger_schema.scopes import Scope
from tests.logmaking import erased, event_id_at, make_log

HERE = Scope("c/1", "_", "100%")
KEY = "%5F/100%25/c%2F1"
A, B, C, D, E, F = ("art_" + letter * 22 for letter in "ABCDEF")
ONE, TWO, THREE = ("sha-256:" + digit * 64 for digit in "123")


def here(event: Any, call: str | None = None, dispatch: int | None = None, run: str | None = "r1") -> Draft:
    return Draft(event, HERE, run, call, dispatch)


DRAFTS = [
    Draft(LogOpened(software="0.1", durability="full", observations="buffered", record_content=True)),
    here(ImportNoted(format="otel", source=ONE, inferred=("parents",), lost=("windows", "reads"))),
    Draft(
        RunStarted(agent="analyst", model="m-1", parent_run="r0", parent_call="c0", attributes={"zone": "é", "trace": "t"}),
        HERE,
        "r1",
        occurred_us=-1,
    ),
    here(MessageNoted(role="user", index=1, turn=1, content=TWO, size=12)),
    here(CallStarted(tool="load", step=1, turn=1, message=1, arguments=ONE, size=5), "c1", 1),
    here(
        ArtifactMinted(
            ref=A,
            kind="rows",
            media_type="application/json",
            shape="json",
            bytes=2**53 - 1,
            digest=ONE,
            label="Q3 'sales'",
            expires_us=1_016_000,
            tool="load",
        ),
        "c1",
    ),
    here(CallEnded(status="ok", message=2, result=TWO, size=7, placed=A), "c1", 1),
    here(
        CallStarted(
            tool="sum",
            step=2,
            turn=2,
            arguments=TWO,
            matches=(Match(argument="data", source="artifact", id=A), Match(source="call", id="c1")),
        ),
        "c2",
        1,
    ),
    here(
        DispatchRefused(
            tool="sum",
            wording=1,
            arguments=(
                JudgedArgument(
                    argument="data",
                    wanted="rows",
                    outcome="refused",
                    reason="digest-mismatch",
                    cause="corrupt",
                    ref=A,
                    digest=ONE,
                    bytes=2,
                    spoken_as="text",
                    spoken_length=26,
                ),
                JudgedArgument(
                    argument="model",
                    wanted="model",
                    outcome="refused",
                    reason="missing-or-expired",
                    cause="evicted",
                    meant=B,
                    gone_by=C,
                    spoken_as="text",
                    spoken_length=5,
                ),
                JudgedArgument(argument="rest", wanted="rows", outcome="absent", spoken_as="absent"),
            ),
            offers=(
                Offers(kind="rows", refs=(OfferedRef(ref=B, bytes=8), OfferedRef(ref=A, bytes=2)), total=37),
                Offers(kind="model", refs=(), total=0),
            ),
            sentence=THREE,
            spoken={"data": A, "model": "art_?"},
            labels={A: "Q3"},
        ),
        "c2",
        1,
    ),
    here(CallEnded(status="refused"), "c2", 1),
    here(CallStarted(tool="sum", step=2, turn=3), "c2", 2),
    here(
        DispatchResolved(
            tool="sum",
            arguments=(
                ResolvedArgument(argument="data", kind="rows", ref=B, digest=TWO, bytes=8, verified=True),
                ResolvedArgument(argument="rest", kind="rows", ref=A, digest=ONE, bytes=2, verified=False),
            ),
        ),
        "c2",
        2,
    ),
    here(ArtifactRead(ref=A, via="head", door="call", verified=False), "c2", 2),
    here(
        ArtifactMinted(
            ref=B,
            kind="model",
            media_type="text/plain",
            shape="text",
            bytes=0,
            digest=TWO,
            parents=(Parent(ref=A, how="declared"), Parent(ref=C, how="call")),
        ),
        "c2",
        2,
    ),
    here(CallEnded(status="error", error_class="ValueError"), "c2", 2),
    here(ContextComposed(model="m-1", parameters={"top_p": "1"}, system=ONE, messages=(1,), calls=("c1",), refs=(A,), dropped=("c0",))),
    here(AnswerGiven(answer_id="ans", content=TWO, size=3, message=4, cited=(B,), found=(A,)), "c2"),
    here(AnswerJudged(answer_id="ans", verdict="right", by="qa"), run=None),
    here(AnswerJudged(answer_id="ans", verdict="wrong", by="qa", note="twice"), run=None),
    here(RunEnded(outcome="failed", error_class="ValueError")),
    here(ArtifactGone(ref=A, cause="max-count", forced_by=B, stated_us=1_016_000, observed_us=2, by="ops", why="room"), run=None),
    here(ArtifactRefused(op="get", reason="digest-mismatch", cause="undecodable", ref=B), run=None),
    here(LogGap(count=3, first_us=1, last_us=2, why="crash"), run=None),
    here(ArtifactPresented(ref=B, door="call", shown_as="table", snapshot={"kind": "model", "bytes": "0"}), "c2"),
    here(
        ArtifactRefused(
            op="get",
            reason="missing-or-expired",
            cause="near_miss",
            spoken_length=7,
            spoken_digest=ONE,
            wording=1,
            offered=(OfferedRef(ref=B, bytes=0), OfferedRef(ref=A, bytes=2)),
            total=5,
            sentence=TWO,
            spoken="art_b",
            labels={B: "b"},
        ),
        run=None,
    ),
    here(ArtifactPresented(ref=A, door="run", shown_as="chart"), run=None),
    here(
        CoverageDeclared(
            kind="coverage",
            checked=(CoverageItem(what="EU"),),
            cannot_cover=(CoverageItem(what="US", why="no access"),),
        ),
        "c2",
        2,
    ),
    here(
        DeclarationRefused(helper="coverage", at="coverage", key="notChecked", meant="not_checked", known=("checked", "not_checked")), "c2"
    ),
]
ERASED_AT = (15, 20, 26)


@pytest.fixture(scope="module")
def catalogue() -> Iterator[duckdb.DuckDBPyConnection]:
    rows = [erased(row) if row.position in ERASED_AT else row for row in make_log(DRAFTS)]
    with connect(table_of(rows, "log-a")) as connection:
        yield connection


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def stamp(position: int) -> tuple[int, datetime.datetime]:
    """recorded_us and recorded_at of the event at a position."""
    micros = 1_000_000 + (position - 1) * 1_000
    return micros, at_us(micros)


def at_us(micros: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=micros)


def test_the_log_of_these_tests_holds_every_kind_of_event() -> None:
    assert {draft.event.type for draft in DRAFTS} == {kind for kind, _ in KINDS}


def test_events(catalogue: duckdb.DuckDBPyConnection) -> None:
    found = rows(catalogue, "FROM events WHERE position IN (1, 3, 13, 15) ORDER BY position")
    opened = canonical_json(DRAFTS[0].event.body())
    scope = (KEY, "_", "100%", "c/1")
    run = '{"agent":"analyst","model":"m-1","parent_call":"c0","parent_run":"r0"}'
    attributes = '{"attributes":{"trace":"t","zone":"é"}}'
    read = '{"door":"call","ref":"art_AAAAAAAAAAAAAAAAAAAAAA","verified":false,"via":"head"}'
    ended = '{"error_class":"ValueError","status":"error"}'
    nowhere = (None,) * 8
    assert found == [
        ("log-a", 1, event_id_at(1), "log.opened", 1, *stamp(1), None, None, *nowhere, opened, None, False),
        ("log-a", 3, event_id_at(3), "run.started", 1, *stamp(3), -1, at_us(-1), *scope, 2, "r1", None, None, run, attributes, False),
        ("log-a", 13, event_id_at(13), "artifact.read", 1, *stamp(13), None, None, *scope, 12, "r1", "c2", 2, read, None, False),
        ("log-a", 15, event_id_at(15), "call.ended", 1, *stamp(15), None, None, *scope, 14, "r1", "c2", 2, ended, None, True),
    ]
    assert catalogue.execute("SELECT typeof(body), typeof(texts) FROM events LIMIT 1").fetchall() == [("JSON", "JSON")]


@pytest.mark.parametrize(
    "scope",
    [Scope(), Scope("c"), Scope("_", "%5F", "_"), Scope("a/b", "%2F", "%25"), Scope("%", "/", "%%25/"), Scope("é 𝄞", "_ ", "__")],
    ids=lambda scope: scope.key,
)
def test_the_names_of_a_scope_are_read_out_of_its_key(scope: Scope) -> None:
    with reading(LOG_SCHEMA.empty_table()) as connection:
        query = "SELECT segment_of($key, 1), segment_of($key, 2), segment_of($key, 3), segment_of(NULL, 1)"
        found = connection.execute(query, {"key": scope.key}).fetchone()
    assert found == (scope.tenant or None, scope.principal or None, scope.conversation or None, None)


def test_runs(catalogue: duckdb.DuckDBPyConnection) -> None:
    who = ("analyst", "m-1", "r0", "c0", {"trace": "t", "zone": "é"})
    scope = (KEY, "_", "100%", "c/1")
    assert rows(catalogue, "FROM runs") == [
        ("log-a", *scope, "r1", *who, "failed", "ValueError", "otel", 2, 2, 28, 3, *stamp(3), 20, *stamp(20), False)
    ]


def test_a_run_that_only_other_events_name_is_unfinished() -> None:
    log = table_of(make_log([here(MessageNoted(role="user", index=1, size=0), run="r9")]), "log-a")
    with reading(log) as connection:
        found = rows(connection, "SELECT run_id, outcome, started, ended, attributes, imported, erased FROM runs")
    assert found == [("r9", "unfinished", None, None, None, None, False)]


def test_imports(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM imports") == [("log-a", 2, *stamp(2), KEY, "r1", "otel", ONE, ["parents"], ["windows", "reads"])]


def test_messages(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM messages") == [("log-a", 4, *stamp(4), KEY, "r1", 1, 1, "user", TWO, 12, False)]


def test_call_starts_and_call_ends(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM call_starts ORDER BY position") == [
        ("log-a", 5, *stamp(5), KEY, "r1", "c1", 1, "load", 1, 1, 1, ONE, 5, False),
        ("log-a", 8, *stamp(8), KEY, "r1", "c2", 1, "sum", 2, 2, None, TWO, None, False),
        ("log-a", 11, *stamp(11), KEY, "r1", "c2", 2, "sum", 2, 3, None, None, None, False),
    ]
    assert rows(catalogue, "FROM call_ends ORDER BY position") == [
        ("log-a", 7, *stamp(7), KEY, "r1", "c1", 1, "ok", 2, TWO, 7, A, None, False),
        ("log-a", 10, *stamp(10), KEY, "r1", "c2", 1, "refused", None, None, None, None, None, False),
        ("log-a", 15, *stamp(15), KEY, "r1", "c2", 2, "error", None, None, None, None, "ValueError", True),
    ]


def test_calls(catalogue: duckdb.DuckDBPyConnection) -> None:
    asked = ("load", 1, 1, 1, 1, "ok", ONE, 5, TWO, 7, A, None)
    asked_twice = ("sum", 2, 2, None, 2, "error", TWO, None, None, None, None, "ValueError")
    assert rows(catalogue, "FROM calls ORDER BY started") == [
        ("log-a", KEY, "r1", "c1", *asked, 5, 7, 5, *stamp(5), 7, *stamp(7), False),
        ("log-a", KEY, "r1", "c2", *asked_twice, 8, 28, 8, *stamp(8), 15, *stamp(15), True),
    ]


def test_a_call_that_only_other_events_name_is_unfinished() -> None:
    log = table_of(make_log([here(ArtifactRead(ref=A, via="get", door="call", verified=True), "c9")]), "log-a")
    with reading(log) as connection:
        found = rows(connection, "SELECT call_id, tool, dispatches, status, started, ended, erased FROM calls")
    assert found == [("c9", None, 0, "unfinished", None, None, False)]


def test_artifacts(catalogue: duckdb.DuckDBPyConnection) -> None:
    big: tuple[Any, ...] = ("rows", "application/json", "json", 2**53 - 1, ONE, "Q3 'sales'", [])
    empty = ("model", "text/plain", "text", 0, TWO, None, [A, C])
    expiry = (1_016_000, at_us(1_016_000))
    assert rows(catalogue, "FROM artifacts ORDER BY minted") == [
        ("log-a", KEY, A, *big, "r1", "c1", "load", 6, *stamp(6), *expiry)
        + ("max-count", 21, *stamp(21), B, 1_016_000, 2, "ops", "room", 9, False),
        ("log-a", KEY, B, *empty, "r1", "c2", None, 14, *stamp(14), None, None, "live", *(None,) * 8, 22, False),
    ]


def test_corruptions(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM corruptions ORDER BY position") == [
        ("log-a", KEY, A, 9, "corrupt"),
        ("log-a", KEY, B, 22, "undecodable"),
    ]


def test_edges(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM edges ORDER BY parent") == [("log-a", KEY, B, A, "declared", 14), ("log-a", KEY, B, C, "call", 14)]


def test_reads(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM reads") == [("log-a", 13, *stamp(13), KEY, "r1", "c2", A, "head", "call", False)]


def test_resolutions(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM resolutions ORDER BY rank") == [
        ("log-a", 12, *stamp(12), KEY, "r1", "c2", 2, "sum", 1, "data", "rows", B, TWO, 8, True),
        ("log-a", 12, *stamp(12), KEY, "r1", "c2", 2, "sum", 2, "rest", "rows", A, ONE, 2, False),
    ]


def test_judgements(catalogue: duckdb.DuckDBPyConnection) -> None:
    dispatch = ("log-a", 9, event_id_at(9), stamp(9)[0], KEY, "r1", "c2", 1, "sum", 1, THREE)
    corrupt = ("refused", "digest-mismatch", "corrupt", A, "text", 26, A, ONE, 2, None, None, None)
    evicted = ("refused", "missing-or-expired", "evicted", "art_?", "text", 5, None, None, None, None, B, C)
    absent = ("absent", None, None, None, "absent", None, None, None, None, None, None, None)
    assert rows(catalogue, "FROM judgements ORDER BY rank") == [
        (*dispatch, 1, "data", "rows", *corrupt, False),
        (*dispatch, 2, "model", "model", *evicted, False),
        (*dispatch, 3, "rest", "rows", *absent, False),
    ]


def test_offered_kinds_and_offers(catalogue: duckdb.DuckDBPyConnection) -> None:
    dispatch = ("log-a", 9, event_id_at(9), *stamp(9), KEY, "r1", "c2", 1, "sum")
    assert rows(catalogue, "FROM offered_kinds ORDER BY total") == [
        (*dispatch, "model", 0, [], {A: "Q3"}, False),
        (*dispatch, "rows", 37, [{"ref": B, "bytes": 8}, {"ref": A, "bytes": 2}], {A: "Q3"}, False),
    ]
    assert rows(catalogue, "FROM offers ORDER BY rank") == [
        (*dispatch, "rows", 1, B, 8, None, 37, False),
        (*dispatch, "rows", 2, A, 2, "Q3", 37, False),
    ]


def test_dispatches_and_what_came_next(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM dispatches ORDER BY position") == [
        ("log-a", 9, event_id_at(9), *stamp(9), KEY, "r1", "c2", 1, "sum", "refused", 2, 8, 10),
        ("log-a", 12, event_id_at(12), *stamp(12), KEY, "r1", "c2", 2, "sum", "resolved", 3, 11, 15),
    ]
    assert rows(catalogue, "FROM next_dispatches") == [("log-a", 9, KEY, 2, 1, 12, "c2", 2)]


def test_spoken_arguments(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM spoken_arguments ORDER BY position, argument") == [
        ("log-a", 9, KEY, "data", "refused", A, False),
        ("log-a", 9, KEY, "model", "refused", "art_?", False),
        ("log-a", 9, KEY, "rest", "absent", None, False),
        ("log-a", 12, KEY, "data", "resolved", B, False),
        ("log-a", 12, KEY, "rest", "resolved", A, False),
    ]


def test_refusals(catalogue: duckdb.DuckDBPyConnection) -> None:
    dispatch = ("log-a", 9, event_id_at(9), *stamp(9), KEY, "r1", "c2", 1, "sum", 1, THREE)
    corrupt = ("digest-mismatch", "corrupt", A, "text", 26, A, ONE, 2, None, None, None)
    evicted = ("missing-or-expired", "evicted", "art_?", "text", 5, None, None, None, None, B, C)
    assert rows(catalogue, "FROM refusals ORDER BY rank") == [
        (*dispatch, 1, "data", "rows", *corrupt, 2, 37, "followed", 12, "c2", 2, "resolved", False),
        (*dispatch, 2, "model", "model", *evicted, 0, 0, "dropped", 12, "c2", 2, "absent", False),
    ]


def test_contexts(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM contexts") == [
        ("log-a", 16, *stamp(16), KEY, "r1", "m-1", {"top_p": "1"}, ONE, [1], ["c1"], [A], ["c0"], False)
    ]


def test_answers_and_verdicts(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM answers") == [
        ("log-a", 17, *stamp(17), KEY, "r1", "c2", "ans", TWO, 3, 4, [B], [A], "wrong", "qa", "twice", 19, False)
    ]
    assert rows(catalogue, "FROM verdicts ORDER BY position") == [
        ("log-a", 18, *stamp(18), KEY, "ans", "right", "qa", None, False),
        ("log-a", 19, *stamp(19), KEY, "ans", "wrong", "qa", "twice", False),
    ]


def test_matches(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM matches ORDER BY id") == [
        ("log-a", 8, KEY, "r1", "call", "c2", "data", "artifact", A),
        ("log-a", 8, KEY, "r1", "call", "c2", None, "call", "c1"),
    ]


def test_links(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM links ORDER BY position, to_id") == [
        ("log-a", KEY, 6, "artifact", "", A, "call", "r1", "c1", None, "declared"),
        ("log-a", KEY, 8, "call", "r1", "c2", "artifact", "", A, "data", "inferred"),
        ("log-a", KEY, 8, "call", "r1", "c2", "call", "r1", "c1", None, "inferred"),
        ("log-a", KEY, 12, "call", "r1", "c2", "artifact", "", A, "rest", "delivered-unverified"),
        ("log-a", KEY, 12, "call", "r1", "c2", "artifact", "", B, "data", "delivered"),
        ("log-a", KEY, 13, "call", "r1", "c2", "artifact", "", A, None, "described"),
        ("log-a", KEY, 14, "artifact", "", B, "artifact", "", A, None, "declared"),
        ("log-a", KEY, 14, "artifact", "", B, "artifact", "", C, None, "declared"),
        ("log-a", KEY, 14, "artifact", "", B, "call", "r1", "c2", None, "declared"),
        ("log-a", KEY, 24, "call", "r1", "c2", "artifact", "", B, None, "described"),
    ]


def test_presentations(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM presentations ORDER BY position") == [
        ("log-a", 24, *stamp(24), KEY, "r1", "c2", B, "head", "call", "table", {"kind": "model", "bytes": "0"}, False),
        ("log-a", 26, *stamp(26), KEY, None, None, A, "head", "run", None, None, True),
    ]


def test_coverage(catalogue: duckdb.DuckDBPyConnection) -> None:
    checked, not_covered = [{"what": "EU", "why": None}], [{"what": "US", "why": "no access"}]
    assert rows(catalogue, "FROM coverage ORDER BY position") == [
        ("log-a", 27, *stamp(27), KEY, "r1", "c2", 2, "coverage", checked, None, not_covered, None, False)
    ]


def test_declaration_refusals(catalogue: duckdb.DuckDBPyConnection) -> None:
    known = ["checked", "not_checked"]
    assert rows(catalogue, "FROM declaration_refusals ORDER BY position") == [
        ("log-a", 28, *stamp(28), KEY, "r1", "c2", "coverage", "coverage", "notChecked", "not_checked", known, False)
    ]


def test_verb_refusals(catalogue: duckdb.DuckDBPyConnection) -> None:
    corrupt = ("get", "digest-mismatch", "undecodable", B, None, None, None, None, None, None, None)
    near = ("get", "missing-or-expired", "near_miss", None, "art_b", 7, ONE, 1, TWO, [B, A], 5)
    assert rows(catalogue, "FROM verb_refusals ORDER BY position") == [
        ("log-a", 22, event_id_at(22), *stamp(22), KEY, None, None, *corrupt, False),
        ("log-a", 25, event_id_at(25), *stamp(25), KEY, None, None, *near, False),
    ]


def test_mints(catalogue: duckdb.DuckDBPyConnection) -> None:
    big: tuple[Any, ...] = ("rows", "application/json", "json", 2**53 - 1, ONE, "Q3 'sales'", 1_016_000, [], "load", False)
    parents = [{"ref": A, "how": "declared"}, {"ref": C, "how": "call"}]
    empty: tuple[Any, ...] = ("model", "text/plain", "text", 0, TWO, None, None, parents, None, False)
    assert rows(catalogue, "FROM mints ORDER BY position") == [
        ("log-a", 6, *stamp(6), KEY, "r1", "c1", A, *big),
        ("log-a", 14, *stamp(14), KEY, "r1", "c2", B, *empty),
    ]


def test_a_ref_that_is_minted_again_keeps_its_first_mint_and_its_first_end() -> None:
    mint = ArtifactMinted(ref=A, kind="rows", media_type="m", shape="json", bytes=1, digest=ONE, parents=(Parent(ref=B, how="call"),))
    again = ArtifactMinted(ref=A, kind="model", media_type="m", shape="json", bytes=2, digest=TWO, parents=(Parent(ref=C, how="call"),))
    gone = [here(ArtifactGone(ref=A, cause=cause), run=None) for cause in ("deleted", "erased")]
    other = Draft(again, Scope("c-2"))
    with reading(table_of(make_log([other, here(mint, "c1"), *gone, here(again, "c2")]), "log-a")) as connection:
        assert rows(connection, f"SELECT kind, minted, state, gone FROM artifacts WHERE scope = '{KEY}'") == [("rows", 2, "deleted", 3)]
        assert rows(connection, f"SELECT parent FROM edges WHERE scope = '{KEY}'") == [(B,)]
        assert rows(connection, f"SELECT to_id FROM links WHERE scope = '{KEY}' ORDER BY to_id") == [(B,), ("c1",)]


def test_gaps(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM gaps") == [("log-a", 23, *stamp(23), KEY, None, 3, 1, at_us(1), 2, at_us(2), "crash")]


# --- macros ----------------------------------------------------------------------------------------------------------------


def mint(ref: str, *parents: str, scope: Scope = HERE) -> Draft:
    edges = tuple(Parent(ref=parent, how="declared") for parent in parents) or None
    return Draft(ArtifactMinted(ref=ref, kind="rows", media_type="m", shape="json", bytes=1, digest=ONE, parents=edges), scope, "r1")


@pytest.fixture
def families() -> Iterator[duckdb.DuckDBPyConnection]:
    """A is the parent of B and C, both are D's, and D is A's. The same refs are other artifacts in another scope and another log."""
    first = [mint(A, D), mint(C, A), mint(B, A), mint(D, C, B), mint(F, E)]
    first += [mint(C, E, scope=Scope("c-2")), mint(D, C, scope=Scope("c-2"))]
    second = [mint(E, D)]
    logs = [table_of(make_log(first), "log-a"), table_of(make_log(second, log_id="log-b"), "log-b")]
    with reading(pa.concat_tables(logs)) as connection:
        yield connection


def test_lineage_walks_every_way_once_and_no_cycle_twice(families: duckdb.DuckDBPyConnection) -> None:
    assert families.execute("FROM lineage(?)", [D]).fetchall() == [
        ("log-a", KEY, 1, B, D, "declared", "rows", ONE, 3, "live"),
        ("log-a", KEY, 1, C, D, "declared", "rows", ONE, 2, "live"),
        ("log-a", KEY, 2, A, C, "declared", "rows", ONE, 1, "live"),
        ("log-a", "_/_/c-2", 1, C, D, "declared", "rows", ONE, 6, "live"),
        ("log-a", "_/_/c-2", 2, E, C, "declared", None, None, None, None),
    ]
    assert families.execute("FROM lineage(?)", [E]).fetchall() == [("log-b", KEY, 1, D, E, "declared", None, None, None, None)]


def test_descendants_walk_every_way_once_and_no_cycle_twice(families: duckdb.DuckDBPyConnection) -> None:
    assert families.execute("FROM descendants(?)", [D]).fetchall() == [
        ("log-a", KEY, 1, A, D, "declared", "rows", ONE, 1, "live"),
        ("log-a", KEY, 2, B, A, "declared", "rows", ONE, 3, "live"),
        ("log-a", KEY, 2, C, A, "declared", "rows", ONE, 2, "live"),
        ("log-b", KEY, 1, E, D, "declared", "rows", ONE, 1, "live"),
    ]
    assert families.execute("FROM descendants(?)", [E]).fetchall() == [
        ("log-a", KEY, 1, F, E, "declared", "rows", ONE, 5, "live"),
        ("log-a", "_/_/c-2", 1, C, E, "declared", "rows", ONE, 6, "live"),
        ("log-a", "_/_/c-2", 2, D, C, "declared", "rows", ONE, 7, "live"),
    ]
    assert families.execute("SELECT scope, depth, ref FROM descendants(?)", [C]).fetchall() == [
        (KEY, 1, D),
        (KEY, 2, A),
        (KEY, 3, B),
        ("_/_/c-2", 1, D),
    ]
    assert families.execute("FROM descendants(?)", [F]).fetchall() == []


def test_a_ladder_of_diamonds_is_not_walked_path_by_path() -> None:
    """2^60 paths lead from its top to its foot."""
    rungs = [f"art_{rung:022}" for rung in range(181)]
    drafts = [mint(rungs[0])]
    for foot, left, right, top in zip(rungs[0::3], rungs[1::3], rungs[2::3], rungs[3::3], strict=False):
        drafts += [mint(left, foot), mint(right, foot), mint(top, left, right)]
    drafts.append(here(AnswerGiven(answer_id="ans", size=1, cited=(rungs[180],))))
    with reading(table_of(make_log(drafts), "log-a")) as connection:
        assert connection.execute("SELECT count(*), max(depth) FROM lineage(?)", [rungs[180]]).fetchone() == (180, 120)
        assert connection.execute("SELECT count(*), max(depth) FROM descendants(?)", [rungs[0]]).fetchone() == (180, 120)
        assert connection.execute("SELECT count(*), max(depth) FROM backtrack('ans')").fetchone() == (182, 121)


LIVE_DRAFTS = [
    here(ArtifactMinted(ref=A, kind="rows", media_type="m", shape="json", bytes=1, digest=ONE, label="a", expires_us=50)),
    here(ArtifactMinted(ref=B, kind="model", media_type="m", shape="json", bytes=2, digest=TWO)),
    Draft(ArtifactMinted(ref=C, kind="rows", media_type="m", shape="json", bytes=3, digest=THREE), Scope("c-2")),
    here(ArtifactRefused(op="get", reason="digest-mismatch", cause="corrupt", ref=B), run=None),
    here(ArtifactRefused(op="get", reason="missing-or-expired", cause="expired", ref=A), run=None),
    here(ArtifactGone(ref=B, cause="deleted"), run=None),
    here(MessageNoted(role="user", index=1, size=0)),
]
LIVE_CLOCK = [10, 20, 30, 40, 49, 50, 49]
OF_A = ("log-a", KEY, A, "rows", "m", 1, ONE, "a", 1, 50, at_us(50), False)
OF_B = ("log-a", KEY, B, "model", "m", 2, TWO, None, 2, None, None)


@pytest.mark.parametrize(
    ("kind", "position", "live"),
    [
        pytest.param(None, 0, [], id="before the log began"),
        pytest.param(None, 1, [OF_A], id="at its mint"),
        pytest.param(None, 3, [(*OF_B, False), OF_A], id="newest first, and no other scope's"),
        pytest.param("rows", 3, [OF_A], id="of a kind"),
        pytest.param("spell", 3, [], id="of no kind"),
        pytest.param(None, 4, [(*OF_B, True), OF_A], id="known to be corrupt"),
        pytest.param(None, 6, [], id="expiry is inclusive, and what is gone is gone at once"),
        pytest.param(None, 7, [OF_A], id="the event's own clock counts, though it ran back"),
        pytest.param(None, 99, [OF_A], id="past the end is at the end"),
    ],
)
def test_live_at(kind: str | None, position: int, live: list[tuple[Any, ...]]) -> None:
    with reading(table_of(make_log(LIVE_DRAFTS, clock=LIVE_CLOCK), "log-a")) as connection:
        assert connection.execute("FROM live_at(?, ?, ?)", [KEY, kind, position]).fetchall() == live


def test_live_at_judges_each_log_by_its_own_clock() -> None:
    logs = [table_of(make_log(LIVE_DRAFTS[:1], log_id=log_id, clock=[us]), log_id) for log_id, us in (("log-b", 49), ("log-a", 50))]
    with reading(pa.concat_tables(logs)) as connection:
        found = connection.execute("SELECT log_id, ref FROM live_at(in_scope := ?, of_kind := NULL, at_position := 1)", [KEY]).fetchall()
    assert found == [("log-b", A)]


# --- the catalogue as a whole ----------------------------------------------------------------------------------------------------


BACKWARDS = DRAFTS[:1:-1]
"""The same events, so that what came first came last, with the same scopes, runs, calls, refs and ids of events."""


def test_no_view_joins_across_logs() -> None:
    alone = {
        "log-a": table_of(make_log(DRAFTS), "log-a"),
        "log-b": table_of(make_log(BACKWARDS, log_id="log-b"), "log-b"),
    }
    together = pa.concat_tables([alone["log-b"], alone["log-a"]])
    for log_id, log in alone.items():
        assert_every_view_says_the_same(log, together, f"log_id = '{log_id}'")


def test_no_view_joins_across_scopes() -> None:
    there = [replace(draft, scope=Scope("c-2")) for draft in BACKWARDS]
    both = make_log([draft for pair in zip(DRAFTS[2:], there, strict=True) for draft in pair])
    for key in (KEY, "_/_/c-2"):
        log = table_of([row for row in both if row.scope == key], "log-a")
        assert_every_view_says_the_same(log, table_of(both, "log-a"), f"scope = '{key}'")


def assert_every_view_says_the_same(alone: pa.Table, together: pa.Table, where: str) -> None:
    with reading(alone) as one, reading(together) as two:
        for described in schema_of(one):
            if described.sort == "view":
                query = f"FROM {described.name} WHERE {where} ORDER BY ALL"
                assert rows(two, query) == rows(one, query), described.name


def test_every_view_names_its_log_and_its_scope_and_no_number_is_wider_than_64_bits(catalogue: duckdb.DuckDBPyConnection) -> None:
    views = [described for described in schema_of(catalogue) if described.sort == "view"]
    assert [view.name for view in views if view.columns[0] != ("log_id", "VARCHAR") or ("scope", "VARCHAR") not in view.columns] == []
    allowed = {"VARCHAR", "BIGINT", "INTEGER", "BOOLEAN", "JSON", "TIMESTAMP WITH TIME ZONE", "VARCHAR[]", "BIGINT[]"}
    allowed |= {
        "MAP(VARCHAR, VARCHAR)",
        'STRUCT("ref" VARCHAR, bytes BIGINT)[]',
        'STRUCT("ref" VARCHAR, how VARCHAR)[]',
        "STRUCT(what VARCHAR, why VARCHAR)[]",
    }
    assert {data_type for view in views for _, data_type in view.columns} <= allowed


def test_every_object_opens_with_the_question_that_it_answers(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert [described.name for described in schema_of(catalogue)] == list(OBJECTS)
    for described in schema_of(catalogue):
        assert "?" in described.question
        assert f"CREATE {described.sort.upper()} {described.name}" in statement_of(described.name)
        assert "*" not in statement_of(described.name).replace("count(*)", "")


def test_macros_name_their_parameters(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert {described.name: described.parameters for described in schema_of(catalogue) if described.sort == "macro"} == {
        "segment_of": ("key", "place"),
        "strength_of": ("grade",),
        "lineage": ("of_ref",),
        "descendants": ("of_ref",),
        "live_at": ("in_scope", "of_kind", "at_position"),
        "backtrack_nodes": ("answer",),
        "rows_of": ("nodes",),
        "coverage_of": ("nodes",),
        "backtrack": ("answer",),
        "backtrack_coverage": ("answer",),
    }


def test_grades_are_ordered_from_strong_to_weak(catalogue: duckdb.DuckDBPyConnection) -> None:
    grades = [
        "delivered",
        "delivered-unverified",
        "declared",
        "cited",
        "described",
        "in-window",
        "offered",
        "spoken",
        "inferred",
        "preceded",
    ]
    query = "SELECT list(grade ORDER BY strength_of(grade)) FROM (SELECT unnest(?) AS grade)"
    assert catalogue.execute(query, [sorted(grades)]).fetchone() == (grades,)


def test_an_unknown_answer_has_no_rows_in_sql(catalogue: duckdb.DuckDBPyConnection) -> None:
    assert rows(catalogue, "FROM backtrack('nobody')") == []
    assert rows(catalogue, "FROM backtrack_coverage('nobody')") == []


def test_times_are_utc_wherever_the_machine_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = (
        "from refledger_queries.catalogue import connect, reading\n"
        "from refledger_schema.arrow import LOG_SCHEMA\n"
        "query = \"SELECT make_timestamptz(0)::VARCHAR, current_setting('TimeZone')\"\n"
        "print(connect(LOG_SCHEMA.empty_table()).execute(query).fetchone())\n"
        "with reading(LOG_SCHEMA.empty_table()) as connection: print(connection.execute(query).fetchone())\n"
    )
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    printed = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert printed == "('1970-01-01 00:00:00+00', 'UTC')\n" * 2


def test_importing_the_package_loads_neither_duckdb_nor_pyarrow() -> None:
    probe = (
        "import sys, refledger_queries, refledger_queries.catalogue, refledger_queries.sources, refledger_queries.backtrack, "
        "refledger_queries.sql; print({'duckdb', 'pyarrow', 'refledger', 'refledger_store'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout == "set()\n"


# --- rows as a table -----------------------------------------------------------------------------------------------------------------


def test_rows_become_a_table_whatever_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refledger_queries.sources._BATCH", 4)
    made = make_log(DRAFTS)
    table = table_of(iter(made), "log-a")
    assert table.schema == LOG_SCHEMA
    assert table.to_pylist() == [{"log_id": "log-a"} | {name: getattr(row, name) for name in LOG_SCHEMA.names[1:]} for row in made]
    assert table_of(iter(()), "log-a").equals(LOG_SCHEMA.empty_table())


@pytest.mark.parametrize("damage", [{"private": b"short"}, {"position": 2**63}, {"body": "\ud800"}, {"scope": 7}])
def test_a_row_that_no_column_can_hold_is_a_corrupt_log(damage: dict[str, Any]) -> None:
    made = make_log(DRAFTS)
    with pytest.raises(LogCorrupt) as caught:
        table_of([*made[:5], replace(made[5], **damage)], "log-a")
    assert "short" not in str(caught.value)
