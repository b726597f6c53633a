"""A backtrack in SQL says what docs/backtrack.md says: on any history, the oracle's rows and coverage, in the same order.

REFLEDGER_NIGHTLY draws 2,000 histories a property instead of a few dozen; REFLEDGER_CI draws the same ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import NamedTuple, get_args

import pyarrow as pa
from hypothesis import HealthCheck, given, settings

from refledger_queries import catalogue
from refledger_queries.backtrack import Grade, NodeKind, backtrack
from refledger_queries.sources import table_of
from refledger_schema.envelope import Row, recorded
from refledger_schema.reasons import GoneCause
from tests import oracle
from tests.histories import History, histories, refusals_and_what_followed
from tests.logmaking import MadeLog

NIGHTLY = bool(os.environ.get("REFLEDGER_NIGHTLY"))


def examples(daily: int) -> settings:
    return settings(
        max_examples=2_000 if NIGHTLY else daily,
        derandomize=bool(os.environ.get("REFLEDGER_CI")),
        deadline=None,
        # Histories are meant to be large, and machines are slow at times.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# --- both sides, as plain tuples -------------------------------------------------------------------------------------------


class Found(NamedTuple):
    rows: list[tuple[object, ...]]
    coverage: list[tuple[object, ...]]


def by_the_page(rows: Sequence[Row], answer_id: str, log_id: str = "log-a") -> Found:
    found = oracle.backtrack([recorded(row, log_id) for row in rows], answer_id)
    return Found([tuple(row) for row in found.rows], [astuple(row) for row in found.coverage])


def by_the_api(rows: Sequence[Row], answer_id: str) -> Found:
    found = backtrack(MadeLog(rows), answer_id)
    return Found([astuple(row) for row in found.rows], [astuple(row) for row in found.coverage])


def by_the_macros(logs: pa.Table, answer_id: str) -> Found:
    with catalogue.reading(logs) as connection:
        rows = connection.execute("FROM backtrack(?)", [answer_id]).fetchall()
        coverage = connection.execute("FROM backtrack_coverage(?)", [answer_id]).fetchall()
    return Found(rows, coverage)


# --- properties --------------------------------------------------------------------------------------------------------------


@examples(60)
@given(histories())
def test_of_any_history_sql_and_page_say_the_same(history: History) -> None:
    rows = history.rows()
    for answer_id in history.answer_ids():
        assert by_the_api(rows, answer_id) == by_the_page(rows, answer_id)


@examples(30)
@given(refusals_and_what_followed())
def test_of_what_followed_refusals_sql_and_page_say_the_same(history: History) -> None:
    rows = history.rows()
    for answer_id in history.answer_ids():
        assert by_the_api(rows, answer_id) == by_the_page(rows, answer_id)


@examples(10)
@given(histories(), histories())
def test_other_scopes_and_other_logs_change_nothing(history: History, elsewhere: History) -> None:
    ours, theirs = history.rows("log-a"), elsewhere.rows("log-b")
    logs = pa.concat_tables([table_of(theirs, "log-b"), table_of(ours, "log-a")])
    for answer_id in history.answer_ids():
        assert by_the_macros(logs, answer_id) == by_the_page(ours, answer_id)
    # An id that stands more than once means the first by (log_id, position).
    for answer_id in set(elsewhere.answer_ids()) - set(history.answer_ids()):
        assert by_the_macros(logs, answer_id) == by_the_page(theirs, answer_id, "log-b")


# --- the properties are not vacuous ------------------------------------------------------------------------------------------


def features(found: oracle.Backtrack) -> Iterator[tuple[str, object]]:
    """What a backtrack shows, of all that the page speaks of."""
    for row in found.rows:
        yield "node", row.node_kind
        yield "grade", row.grade
        if row.node_kind == "artifact":
            yield "state", str(row.note).rsplit(" ", 1)[-1]
        if row.node_kind == "refusal":
            effect, _, outcome = str(row.note).partition(": ")[2].partition(", then ")
            yield "effect", effect
            yield "outcome", outcome
        if row.depth is not None:
            yield "depth", row.depth
    for line in found.coverage:
        yield "coverage", line.what if line.count else None
        if line.what == "gaps":
            yield "lost", line.note


EVERYTHING: set[tuple[str, object]] = {
    *(("node", kind) for kind in get_args(NodeKind)),
    *(("grade", grade) for grade in (*get_args(Grade), None)),
    *(("state", state) for state in ("live", "here", *get_args(GoneCause))),
    *(("effect", effect) for effect in oracle.EFFECTS),
    *(("outcome", outcome) for outcome in ("", "resolved", "refused", "absent")),
    *(("depth", depth) for depth in range(5)),
    *(("coverage", what) for what in (*oracle.COVERAGE, None)),
    *(("lost", note) for note in (None, "unknown", "0", "3")),
}


def test_the_histories_show_all_that_the_page_speaks_of() -> None:
    seen: set[tuple[str, object]] = set()

    @settings(max_examples=200, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories(), refusals_and_what_followed())
    def look_at(history: History, tries: History) -> None:
        for drawn in (history, tries):
            log = [recorded(row, "log-a") for row in drawn.rows()]
            for answer_id in drawn.answer_ids():
                seen.update(features(oracle.backtrack(log, answer_id)))

    look_at()
    assert EVERYTHING - seen == set()
