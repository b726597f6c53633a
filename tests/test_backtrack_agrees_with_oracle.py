"""A backtrack in SQL says what docs/backtrack.md says: on any history, the oracle's rows and coverage, in the same order.

REFLEDGER_NIGHTLY draws 2,000 histories a property instead of a few dozen; REFLEDGER_CI draws the same ones each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from typing import NamedTuple, TypeVar, get_args

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy, tuples

from refledger_queries import catalogue
from refledger_queries.backtrack import Grade, NodeKind, backtrack
from refledger_queries.sources import table_of
from refledger_schema.envelope import Draft, Row, recorded
from refledger_schema.events import (
    MAX_SPOKEN,
    AnswerGiven,
    AnswerJudged,
    ArtifactGone,
    ArtifactMinted,
    ArtifactRead,
    CallEnded,
    CallStarted,
    ContextComposed,
    DispatchRefused,
    DispatchResolved,
    Event,
    JudgedArgument,
    OfferedRef,
    Offers,
    Parent,
    ResolvedArgument,
    SpokenAs,
)
from refledger_schema.reasons import GoneCause
from refledger_schema.scopes import Scope
from tests import oracle
from tests.histories import History, erase, histories, refusals_and_what_followed
from tests.logmaking import MadeLog, event_id_at, make_log

NIGHTLY = bool(os.environ.get("REFLEDGER_NIGHTLY"))
CI = bool(os.environ.get("REFLEDGER_CI"))
BATCH = 10
# Histories are meant to be large, and machines are slow at times.
QUIET = settings(max_examples=BATCH, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

T = TypeVar("T")


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


# --- any history -------------------------------------------------------------------------------------------------------------


def batches(strategy: SearchStrategy[T], check: Callable[[T], None], examples: int, *, same_each_time: bool = CI) -> Iterator[None]:
    """Checks ten histories a step, since with the eleventh Hypothesis begins to mutate what it has drawn, and fresh ones find more."""
    for batch in range(examples // BATCH):
        checked = QUIET(given(strategy)(check))
        yield (seed(batch)(checked) if same_each_time else checked)()


def check_each(strategy: SearchStrategy[T], check: Callable[[T], None], examples: int) -> None:
    for _ in batches(strategy, check, examples):
        pass


def both_agree(history: History) -> None:
    rows = history.rows()
    for answer_id in history.answer_ids():
        assert by_the_api(rows, answer_id) == by_the_page(rows, answer_id)


def both_agree_among_other_logs(drawn: tuple[History, History]) -> None:
    ours, theirs = drawn
    our_rows, their_rows = ours.rows("log-a"), theirs.rows("log-b")
    logs = pa.concat_tables([table_of(their_rows, "log-b"), table_of(our_rows, "log-a")])
    for answer_id in ours.answer_ids()[:1]:
        assert by_the_macros(logs, answer_id) == by_the_page(our_rows, answer_id)
    # An id that stands more than once means the first by (log_id, position): of theirs, only those we have not.
    for answer_id in sorted(set(theirs.answer_ids()) - set(ours.answer_ids()))[:1]:
        assert by_the_macros(logs, answer_id) == by_the_page(their_rows, answer_id, "log-b")


def test_of_any_history_sql_and_page_say_the_same() -> None:
    check_each(histories(), both_agree, 2_000 if NIGHTLY else 60)


def test_of_what_followed_refusals_sql_and_page_say_the_same() -> None:
    check_each(refusals_and_what_followed(), both_agree, 2_000 if NIGHTLY else 40)


def test_neither_other_scopes_nor_other_logs_change_what_sql_says() -> None:
    check_each(tuples(histories(), histories()), both_agree_among_other_logs, 200 if NIGHTLY else 10)


# --- the histories are worth drawing -----------------------------------------------------------------------------------------


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
"""`here` ends `never minted here`, and no outcome stands where no next dispatch was found."""


def test_few_histories_show_all_that_the_page_speaks_of() -> None:
    seen: set[tuple[str, object]] = set()

    def look_at(drawn: tuple[History, History]) -> None:
        for history in drawn:
            log = [recorded(row, "log-a") for row in history.rows()]
            for answer_id in history.answer_ids():
                seen.update(features(oracle.backtrack(log, answer_id)))

    for _ in batches(tuples(histories(), refusals_and_what_followed()), look_at, 200, same_each_time=True):
        if seen >= EVERYTHING:
            break
    assert EVERYTHING - seen == set()


# --- histories with a name: what the oracle itself must say ---------------------------------------------------------------

A, B, C, D = ("art_" + letter * 22 for letter in "ABCD")
DATA, TEXT = "sha-256:" + "1" * 64, "sha-256:" + "2" * 64
LIVE = f"rows {DATA} live"
HERE = Scope("c-1")


def at(event: Event, call_id: str | None = None) -> Draft:
    return Draft(event, HERE, "r1", call_id, None if call_id is None else 1)


def minted(ref: str, *parents: str) -> ArtifactMinted:
    named = tuple(Parent(ref=parent, how="declared") for parent in parents) or None
    return ArtifactMinted(ref=ref, kind="rows", media_type="application/json", shape="json", bytes=7, digest=DATA, parents=named)


def refused(text: str | None, *offered: str, spoken_as: SpokenAs = "text", length: int | None = None) -> DispatchRefused:
    """The refusal of one argument for which `text` was spoken, or None: what is no text, or too long a one."""
    judged = JudgedArgument(
        argument="data",
        wanted="rows",
        outcome="refused",
        reason="missing-or-expired",
        cause="malformed",
        spoken_as=spoken_as,
        spoken_length=length if text is None else len(text),
    )
    return DispatchRefused(
        tool="sum",
        wording=1,
        arguments=(judged,),
        offers=(Offers(kind="rows", refs=tuple(OfferedRef(ref=ref, bytes=7) for ref in offered), total=len(offered)),),
        sentence=TEXT,
        spoken=None if text is None else {"data": text},
    )


def resolved(ref: str) -> DispatchResolved:
    argument = ResolvedArgument(argument="data", kind="rows", ref=ref, digest=DATA, bytes=7, verified=True)
    return DispatchResolved(tool="sum", arguments=(argument,))


def both_say(rows: Sequence[Row], expected: list[tuple[object, ...]], **coverage: int) -> None:
    counts: list[tuple[object, ...]] = [(what, coverage.get(what.replace(" ", "_"), 0), None) for what in oracle.COVERAGE]
    assert by_the_page(rows, "ans-1") == Found(expected, counts)
    assert by_the_api(rows, "ans-1") == Found(expected, counts)


def test_the_model_follows_an_offer_and_the_answer_repeats_the_result() -> None:
    log = make_log(
        [
            at(CallStarted(tool="get_sales", step=1, turn=1), "t1"),
            at(minted(A), "t1"),
            at(CallEnded(status="ok"), "t1"),
            at(CallStarted(tool="sum", step=2, turn=2), "t2"),
            at(refused("the sales", A), "t2"),
            at(CallEnded(status="refused"), "t2"),
            at(CallStarted(tool="sum", step=3, turn=3), "t3"),
            at(resolved(A), "t3"),
            at(CallEnded(status="ok", result=TEXT, size=2), "t3"),
            at(AnswerGiven(answer_id="ans-1", content=TEXT, size=2)),
            at(AnswerJudged(answer_id="ans-1", verdict="unsure")),
            at(AnswerJudged(answer_id="ans-1", verdict="wrong")),
        ]
    )
    both_say(
        log,
        [
            (0, 10, "answer", "ans-1", None, None, None, "wrong"),
            (1, 7, "call", "r1/t3", "ans-1", None, "inferred", "sum ok"),
            (2, 2, "artifact", A, "r1/t3", "data", "delivered", LIVE),
            (2, 5, "refusal", event_id_at(5), "r1/t3", "data", None, "missing-or-expired (malformed): followed, then resolved"),
            (3, 1, "call", "r1/t1", A, None, "declared", "get_sales ok"),
            (None, 4, "call", "r1/t2", None, None, "preceded", "sum refused"),
        ],
        inferred_edges=1,
        uninstrumented_calls=1,
    )


def test_a_call_reads_what_it_minted_and_two_parents_share_theirs() -> None:
    log = make_log(
        [
            at(minted(A)),
            at(minted(B, A)),
            at(minted(C, A)),
            at(CallStarted(tool="join", step=1), "t1"),
            at(minted(D, B, C), "t1"),
            at(ArtifactRead(ref=D, via="get", door="call", verified=True), "t1"),
            at(CallEnded(status="ok"), "t1"),
            at(AnswerGiven(answer_id="ans-1", size=2, cited=(D,))),
            at(ArtifactGone(ref=A, cause="erased")),
            at(ArtifactGone(ref=C, cause="max-count", forced_by=D)),
        ]
    )
    both_say(
        log,
        [
            (0, 8, "answer", "ans-1", None, None, None, "unjudged"),
            (1, 5, "artifact", D, "ans-1", None, "cited", LIVE),
            (2, 2, "artifact", B, D, None, "declared", LIVE),
            (2, 3, "artifact", C, D, None, "declared", f"rows {DATA} max-count"),
            (2, 4, "call", "r1/t1", D, None, "declared", "join ok"),
            (3, 1, "artifact", A, B, None, "declared", f"rows {DATA} erased"),
        ],
        payloads_erased=1,
        payloads_gone=1,
    )


def test_the_newest_window_and_the_last_result_of_a_call_count() -> None:
    log = make_log(
        [
            at(CallStarted(tool="sum", step=1), "t1"),
            at(CallEnded(status="ok", result=TEXT, size=2), "t1"),
            at(CallEnded(status="ok", result=DATA, size=2), "t1"),
            at(CallStarted(tool="sum", step=2), "t2"),
            at(CallEnded(status="ok", result=TEXT, size=2), "t2"),
            at(ContextComposed(calls=("t1",))),
            at(ContextComposed(refs=(A,), messages=(2,), dropped=("t1",))),
            at(AnswerGiven(answer_id="ans-1", content=TEXT, size=2)),
        ]
    )
    both_say(
        log,
        [
            (0, 8, "answer", "ans-1", None, None, None, "unjudged"),
            (1, 4, "call", "r1/t2", "ans-1", None, "inferred", "sum ok"),
            (1, None, "artifact", A, "ans-1", None, "in-window", "never minted here"),
            (1, None, "message", "r1#2", "ans-1", None, "in-window", "not recorded"),
            (None, 1, "call", "r1/t1", None, None, "preceded", "sum ok"),
        ],
        inferred_edges=1,
        missing_artifacts=1,
        uninstrumented_calls=1,
    )


def test_a_ref_offered_for_another_kind_was_not_offered_for_this_one() -> None:
    none, some = refused("the sales"), refused("a pie", A)
    map_wanted = some.arguments[0].model_copy(update={"argument": "shape", "wanted": "map"})
    maps_offered = some.offers[0].model_copy(update={"kind": "map"})
    both = none.model_copy(update={"arguments": (*none.arguments, map_wanted), "offers": (*none.offers, maps_offered)})
    log = make_log(
        [
            at(minted(A)),
            at(CallStarted(tool="sum", step=1), "t1"),
            at(both, "t1"),
            at(CallEnded(status="refused"), "t1"),
            at(CallStarted(tool="sum", step=2), "t2"),
            at(resolved(A), "t2"),
            at(CallEnded(status="ok"), "t2"),
            at(AnswerGiven(answer_id="ans-1", size=2), "t2"),
        ]
    )
    both_say(
        log,
        [
            (0, 8, "answer", "ans-1", None, None, None, "unjudged"),
            (1, 5, "call", "r1/t2", "ans-1", None, "cited", "sum ok"),
            (2, 1, "artifact", A, "r1/t2", "data", "delivered", LIVE),
            (2, 3, "refusal", event_id_at(3), "r1/t2", "data", None, "missing-or-expired (malformed): elsewhere, then resolved"),
            (2, 3, "refusal", event_id_at(3), "r1/t2", "shape", None, "missing-or-expired (malformed): dropped, then absent"),
            (None, 2, "call", "r1/t1", None, None, "preceded", "sum refused"),
        ],
    )


@pytest.mark.parametrize(
    ("tried", "effect"),
    [
        (refused("the sales", A), "unknown"),
        (refused("x" * MAX_SPOKEN, A), "unknown"),
        (refused(None, A, length=MAX_SPOKEN + 1), "ignored"),
        (refused("", A, spoken_as="empty-text"), "ignored"),
        (refused(None, A, spoken_as="number", length=2), "ignored"),
    ],
    ids=["text", "longest text", "too long", "empty", "number"],
)
def test_what_was_spoken_after_a_refusal_is_erased(tried: DispatchRefused, effect: str) -> None:
    log = make_log(
        [
            at(minted(A)),
            at(CallStarted(tool="sum", step=1), "t1"),
            at(refused(B, A), "t1"),
            at(CallEnded(status="refused"), "t1"),
            at(CallStarted(tool="sum", step=2), "t2"),
            at(tried, "t2"),
            at(ContextComposed(calls=("t1",))),
            at(AnswerGiven(answer_id="ans-1", size=2)),
        ]
    )
    both_say(
        erase(log, {5}),
        [
            (0, 8, "answer", "ans-1", None, None, None, "unjudged"),
            (1, 2, "call", "r1/t1", "ans-1", None, "in-window", "sum refused"),
            (2, 3, "refusal", event_id_at(3), "r1/t1", "data", None, f"missing-or-expired (malformed): {effect}, then refused"),
            (3, 1, "artifact", A, event_id_at(3), None, "offered", LIVE),
            (3, None, "artifact", B, event_id_at(3), "data", "spoken", "never minted here"),
            (None, 5, "call", "r1/t2", None, None, "preceded", "sum unfinished"),
        ],
        unfinished_calls=1,
        uninstrumented_calls=1,
    )


def test_of_an_answer_that_stands_nowhere_neither_says_anything() -> None:
    log = make_log([at(CallStarted(tool="sum", step=1), "t1")])
    assert by_the_page(log, "ans-1") == by_the_macros(table_of(log, "log-a"), "ans-1") == Found([], [])
