"""What a backtrack says of small logs made by hand: whole rows, case by case through docs/backtrack.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from typing import Any

import pytest

from refledger_queries.backtrack import Backtrack, backtrack
from refledger_queries.sources import Scanned
from refledger_schema.envelope import Draft
from refledger_schema.errors import LogCorrupt, UnknownAnswer
from refledger_schema.events import (
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
    RunStarted,
    SpokenAs,
    Status,
    Via,
)
from refledger_schema.reasons import GoneCause
from refledger_schema.scopes import Scope
from tests.logmaking import MadeLog, erased, event_id_at, make_log

HERE = Scope("c-1", "acme", "alice")
THERE = Scope("c-2", "acme", "alice")
A, B, C, D, E = ("art_" + letter * 22 for letter in "ABCDE")
DIGEST = "sha-256:" + "1" * 64
OTHER_DIGEST = "sha-256:" + "2" * 64
LIVE = f"rows {DIGEST} live"

NOTHING_TO_SAY = {
    "gaps": (0, None),
    "imported": (0, None),
    "inferred edges": (0, None),
    "missing artifacts": (0, None),
    "payloads erased": (0, None),
    "payloads gone": (0, None),
    "texts erased": (0, None),
    "unfinished calls": (0, None),
    "uninstrumented calls": (0, None),
}


# --- the events of a run ---------------------------------------------------------------------------------------------------


def at(event: Event, call: str | None = None, *, dispatch: int | None = None, run: str | None = "r1", scope: Scope = HERE) -> Draft:
    return Draft(event, scope=scope, run_id=run, call_id=call, dispatch=dispatch)


def started(call: str, tool: str = "sum", *, turn: int | None = None, matches: Sequence[Match] | None = None, **where: Any) -> Draft:
    event = CallStarted(tool=tool, step=1, turn=turn, matches=None if matches is None else tuple(matches))
    return at(event, call, **{"dispatch": 1, **where})


def ended(call: str, status: Status = "ok", *, result: str | None = None, **where: Any) -> Draft:
    return at(CallEnded(status=status, result=result), call, **{"dispatch": 1, **where})


def minted(ref: str, call: str | None = None, *, parents: Sequence[str] = (), digest: str = DIGEST, **where: Any) -> Draft:
    edges = tuple(Parent(ref=parent, how="declared") for parent in parents) or None
    return at(ArtifactMinted(ref=ref, kind="rows", media_type="m/m", shape="json", bytes=9, digest=digest, parents=edges), call, **where)


def resolved(call: str, tool: str = "sum", *, verified: bool = True, refs: dict[str, str], **where: Any) -> Draft:
    arguments = tuple(
        ResolvedArgument(argument=argument, kind="rows", ref=ref, digest=DIGEST, bytes=9, verified=verified)
        for argument, ref in refs.items()
    )
    return at(DispatchResolved(tool=tool, arguments=arguments), call, **{"dispatch": 1, **where})


def refused(
    call: str,
    tool: str = "sum",
    *,
    spoken: str | None = "nope",
    spoken_as: SpokenAs = "text",
    ref: str | None = None,
    offered: Sequence[str] = (),
    others: Sequence[JudgedArgument] = (),
    **where: Any,
) -> Draft:
    """A refusal of the argument `data`; `others` are judged beside it."""
    judged = JudgedArgument(
        argument="data",
        wanted="rows",
        outcome="refused",
        reason="missing-or-expired",
        cause="never_minted",
        ref=ref,
        spoken_as=spoken_as,
        spoken_length=None if spoken is None else len(spoken),
    )
    event = DispatchRefused(
        tool=tool,
        wording=1,
        arguments=(judged, *others),
        offers=(Offers(kind="rows", refs=tuple(OfferedRef(ref=ref, bytes=9) for ref in offered), total=len(offered)),),
        sentence=DIGEST,
        spoken=None if spoken is None else {"data": spoken},
    )
    return at(event, call, **{"dispatch": 1, **where})


def read(call: str, ref: str, via: Via = "get", *, verified: bool = True, **where: Any) -> Draft:
    return at(ArtifactRead(ref=ref, via=via, door="call", verified=verified), call, **where)


def answer(*cited: str, call: str | None = None, content: str | None = None, size: int = 2, **fields: Any) -> Draft:
    return at(AnswerGiven(answer_id="ans", content=content, size=size, cited=cited or None, **fields), call)


def of(drafts: Sequence[Draft], *erased_at: int) -> Backtrack:
    rows = [erased(row) if row.position in erased_at else row for row in make_log(drafts)]
    return backtrack(MadeLog(rows), "ans")


def rows_of(drafts: Sequence[Draft], *erased_at: int) -> list[tuple[Any, ...]]:
    return [astuple(row) for row in of(drafts, *erased_at).rows]


def coverage_of(drafts: Sequence[Draft], *erased_at: int) -> dict[str, tuple[int, str | None]]:
    return {row.what: (row.count, row.note) for row in of(drafts, *erased_at).coverage}


# --- the cone ----------------------------------------------------------------------------------------------------------------


def test_a_chain_of_calls_is_walked_to_its_start() -> None:
    assert rows_of(
        [
            started("c1", "load"),
            minted(A, "c1"),
            ended("c1"),
            started("c2"),
            resolved("c2", refs={"data": A}),
            minted(B, "c2", parents=[A]),
            ended("c2"),
            answer(B),
        ]
    ) == [
        (0, 8, "answer", "ans", None, None, None, "unjudged"),
        (1, 6, "artifact", B, "ans", None, "cited", LIVE),
        (2, 2, "artifact", A, B, None, "declared", LIVE),
        (2, 4, "call", "r1/c2", B, None, "declared", "sum ok"),
        (3, 1, "call", "r1/c1", A, None, "declared", "load ok"),
    ]


def test_a_diamond_is_walked_once_and_the_stronger_then_the_lesser_way_stands() -> None:
    assert rows_of([minted(A), minted(C, parents=[A]), minted(B, parents=[A]), minted(D, parents=[C, B]), answer(D)]) == [
        (0, 5, "answer", "ans", None, None, None, "unjudged"),
        (1, 4, "artifact", D, "ans", None, "cited", LIVE),
        (2, 2, "artifact", C, D, None, "declared", LIVE),
        (2, 3, "artifact", B, D, None, "declared", LIVE),
        (3, 1, "artifact", A, B, None, "declared", LIVE),
    ]


def test_a_node_reached_twice_at_one_depth_keeps_its_strongest_grade() -> None:
    assert rows_of(
        [minted(A), started("c1"), read("c1", A, "head"), resolved("c1", refs={"data": A, "base": A}), ended("c1"), answer(call="c1")]
    ) == [
        (0, 6, "answer", "ans", None, None, None, "unjudged"),
        (1, 2, "call", "r1/c1", "ans", None, "cited", "sum ok"),
        (2, 1, "artifact", A, "r1/c1", "base", "delivered", LIVE),
    ]


def test_of_two_ways_that_are_as_strong_the_lesser_via_stands_before_the_lesser_argument() -> None:
    window = at(ContextComposed(calls=("c2", "c1")))
    reading = [started("c2"), resolved("c2", refs={"a": A}), started("c1"), resolved("c1", refs={"z": A, "y": A})]
    assert rows_of([minted(A), *reading, window, answer()])[-1] == (2, 1, "artifact", A, "r1/c1", "y", "delivered", LIVE)


def test_the_least_depth_stands_before_the_strongest_grade() -> None:
    window = at(ContextComposed(refs=(A,)))
    assert rows_of([minted(A), minted(B, parents=[A]), window, answer(B)]) == [
        (0, 4, "answer", "ans", None, None, None, "unjudged"),
        (1, 1, "artifact", A, "ans", None, "in-window", LIVE),
        (1, 2, "artifact", B, "ans", None, "cited", LIVE),
    ]


def test_every_way_that_a_call_reads_has_its_grade() -> None:
    drafts = [
        *(minted(ref) for ref in (A, B, C, D, E)),
        started("c1"),
        resolved("c1", refs={"data": A}, verified=False),
        read("c1", B, "get"),
        read("c1", C, "stream", verified=False),
        read("c1", D, "head"),
        read("c1", E, "head", verified=False),
        ended("c1"),
        answer(call="c1"),
    ]
    assert rows_of(drafts)[2:] == [
        (2, 1, "artifact", A, "r1/c1", "data", "delivered-unverified", LIVE),
        (2, 2, "artifact", B, "r1/c1", None, "delivered", LIVE),
        (2, 3, "artifact", C, "r1/c1", None, "delivered-unverified", LIVE),
        (2, 4, "artifact", D, "r1/c1", None, "described", LIVE),
        (2, 5, "artifact", E, "r1/c1", None, "described", LIVE),
    ]


def test_matches_of_arguments_lead_on_as_inferred() -> None:
    matches = [
        Match(argument="x", source="call", id="c1"),
        Match(argument="y", source="artifact", id=A),
        Match(argument="z", source="artifact", id="not a ref"),
        Match(source="message", id="3"),
    ]
    drafts = [started("c1"), ended("c1"), at(MessageNoted(role="user", index=3, size=1)), started("c2", matches=matches), answer(call="c2")]
    assert rows_of(drafts)[1:] == [
        (1, 4, "call", "r1/c2", "ans", None, "cited", "sum unfinished"),
        (2, 1, "call", "r1/c1", "r1/c2", "x", "inferred", "sum ok"),
        (2, 3, "message", "r1#3", "r1/c2", None, "inferred", "user"),
        (2, None, "artifact", A, "r1/c2", "y", "inferred", "never minted here"),
    ]


def test_a_call_that_reads_what_it_minted_ends_the_walk() -> None:
    assert rows_of([started("c1"), minted(A, "c1"), read("c1", A), ended("c1"), answer(A)])[1:] == [
        (1, 2, "artifact", A, "ans", None, "cited", LIVE),
        (2, 1, "call", "r1/c1", A, None, "declared", "sum ok"),
    ]


def test_artifacts_that_are_each_others_parents_end_the_walk() -> None:
    assert rows_of([minted(A, parents=[B, A]), minted(B, parents=[A]), answer(A)])[1:] == [
        (1, 1, "artifact", A, "ans", None, "cited", LIVE),
        (2, 2, "artifact", B, A, None, "declared", LIVE),
    ]


def test_a_parent_that_the_log_never_minted_is_named_as_missing() -> None:
    drafts = [minted(B, parents=[A]), answer(B)]
    assert rows_of(drafts)[1:] == [
        (1, 1, "artifact", B, "ans", None, "cited", LIVE),
        (2, None, "artifact", A, B, None, "declared", "never minted here"),
    ]
    assert coverage_of(drafts) == NOTHING_TO_SAY | {"missing artifacts": (1, None)}


@pytest.mark.parametrize(
    ("cause", "hole"),
    [
        ("expired", "payloads gone"),
        ("max-bytes", "payloads gone"),
        ("max-count", "payloads gone"),
        ("deleted", "payloads gone"),
        ("erased", "payloads erased"),
    ],
)
def test_what_became_of_an_artifact_is_read_past_the_answer(cause: GoneCause, hole: str) -> None:
    drafts = [minted(A), answer(A), at(ArtifactGone(ref=A, cause=cause), run=None), at(ArtifactGone(ref=A, cause="erased"), run=None)]
    assert rows_of(drafts)[1:] == [(1, 1, "artifact", A, "ans", None, "cited", f"rows {DIGEST} {cause}")]
    assert coverage_of(drafts) == NOTHING_TO_SAY | {hole: (1, None)}


def test_erased_texts_match_nothing_and_are_counted() -> None:
    drafts = [started("c1"), ended("c1", result=DIGEST), started("c2"), minted(A, "c2"), ended("c2"), answer(A, content=DIGEST)]
    assert [row[3:7] for row in rows_of(drafts)[1:3]] == [("r1/c1", "ans", None, "inferred"), (A, "ans", None, "cited")]
    assert rows_of(drafts, 2, 4, 6)[1:] == [
        (1, 4, "artifact", A, "ans", None, "cited", LIVE),
        (2, 3, "call", "r1/c2", A, None, "declared", "sum ok"),
        (None, 1, "call", "r1/c1", None, None, "preceded", "sum ok"),
    ]
    assert coverage_of(drafts, 2, 4, 6) == NOTHING_TO_SAY | {"texts erased": (2, None), "uninstrumented calls": (1, None)}


# --- seeds -------------------------------------------------------------------------------------------------------------------


def test_the_answers_content_is_found_in_results_and_artifacts() -> None:
    drafts = [
        started("c1"),
        ended("c1", result=OTHER_DIGEST),
        started("c1", dispatch=2),
        ended("c1", result=DIGEST, dispatch=2),
        started("c2"),
        ended("c2", result=DIGEST),
        ended("c2", result=OTHER_DIGEST),
        minted(A),
        minted(B, digest=OTHER_DIGEST),
        answer(content=DIGEST),
    ]
    assert rows_of(drafts)[1:] == [
        (1, 1, "call", "r1/c1", "ans", None, "inferred", "sum ok"),
        (1, 8, "artifact", A, "ans", None, "inferred", LIVE),
        (None, 5, "call", "r1/c2", None, None, "preceded", "sum ok"),
    ]
    assert coverage_of(drafts) == NOTHING_TO_SAY | {"inferred edges": (2, None), "uninstrumented calls": (1, None)}


def test_an_empty_answer_is_found_nowhere() -> None:
    assert rows_of([minted(A), started("c1"), ended("c1", result=DIGEST), answer(content=DIGEST, size=0)])[1:] == [
        (1, 2, "call", "r1/c1", "ans", None, "preceded", "sum ok")
    ]


def test_matches_and_found_refs_of_the_answer_are_seeds() -> None:
    matches = (
        Match(source="call", id="c1"),
        Match(argument="x", source="artifact", id=A),
        Match(source="artifact", id=B),
        Match(source="message", id="2"),
    )
    assert rows_of([started("c1"), answer(found=(B,), matches=matches)])[1:] == [
        (1, 1, "call", "r1/c1", "ans", None, "inferred", "sum unfinished"),
        (1, None, "artifact", A, "ans", "x", "inferred", "never minted here"),
        (1, None, "artifact", B, "ans", None, "cited", "never minted here"),
        (1, None, "message", "r1#2", "ans", None, "inferred", "not recorded"),
    ]


def test_the_newest_window_before_the_answer_holds_seeds() -> None:
    drafts = [
        started("c1"),
        minted(A),
        at(MessageNoted(role="user", index=1, size=1)),
        at(ContextComposed(calls=("c1",), refs=(B,), messages=(2,))),
        at(ContextComposed(calls=("c1", "c9"), refs=(A,), messages=(1, 7))),
        at(ContextComposed(refs=(C,)), run="r2"),
        answer(),
        at(ContextComposed(refs=(D,))),
    ]
    assert rows_of(drafts)[1:] == [
        (1, 1, "call", "r1/c1", "ans", None, "in-window", "sum unfinished"),
        (1, 2, "artifact", A, "ans", None, "in-window", LIVE),
        (1, 3, "message", "r1#1", "ans", None, "in-window", "user"),
        (1, None, "call", "r1/c9", "ans", None, "in-window", "? unfinished"),
        (1, None, "message", "r1#7", "ans", None, "in-window", "not recorded"),
    ]


def test_without_seeds_the_walk_starts_at_the_call_that_ended_last() -> None:
    drafts = [
        started("c1"),
        started("c2", "load"),
        minted(A, "c2"),
        read("c2", B),
        ended("c2"),
        ended("c1", "error"),
        started("c3"),
        started("c4", run="r2"),
        ended("c4", run="r2"),
        at(ArtifactRead(ref=A, via="get", door="call", verified=True), "c5"),
        answer(),
    ]
    assert rows_of(drafts)[1:] == [
        (1, 1, "call", "r1/c1", "ans", None, "preceded", "sum error"),
        (None, 2, "call", "r1/c2", None, None, "preceded", "load ok"),
        (None, 7, "call", "r1/c3", None, None, "preceded", "sum unfinished"),
        (None, 10, "call", "r1/c5", None, None, "preceded", "? unfinished"),
    ]
    assert coverage_of(drafts) == NOTHING_TO_SAY | {"unfinished calls": (2, None), "uninstrumented calls": (1, None)}
    assert [row.node_id for row in of(drafts).cone] == ["r1/c1"]
    assert [row.node_id for row in of(drafts).preceded] == ["r1/c2", "r1/c3", "r1/c5"]


def test_an_answer_alone_is_one_row() -> None:
    assert rows_of([answer()]) == [(0, 1, "answer", "ans", None, None, None, "unjudged")]
    assert coverage_of([answer()]) == NOTHING_TO_SAY


def test_the_newest_verdict_stands() -> None:
    verdicts = [at(AnswerJudged(answer_id="ans", verdict=verdict), run=None) for verdict in ("right", "unsure", "wrong")]
    assert rows_of([answer(), *verdicts, at(AnswerJudged(answer_id="other", verdict="right"))])[0][7] == "wrong"


# --- what is not read ----------------------------------------------------------------------------------------------------------


def test_another_scopes_run_of_the_same_name_is_another_run() -> None:
    elsewhere = [
        started("c1", "spy", scope=THERE, turn=1),
        minted(A, "c1", scope=THERE, parents=[B]),
        resolved("c1", "spy", refs={"data": C}, scope=THERE),
        at(ContextComposed(refs=(D,)), scope=THERE),
        at(MessageNoted(role="spy", index=1, size=1), scope=THERE),
        at(AnswerJudged(answer_id="ans", verdict="wrong"), scope=THERE),
        at(ArtifactGone(ref=B, cause="erased"), scope=THERE),
        at(LogGap(count=5, why="crash"), scope=THERE),
        at(ImportNoted(format="otel", source=DIGEST), scope=THERE),
        started("c9", scope=THERE),
    ]
    here = [started("c1"), minted(B, "c1", parents=[A]), ended("c1"), at(ContextComposed(messages=(1,))), answer(B)]
    rows = make_log([*elsewhere, *here, resolved("c1", refs={"data": A}, scope=THERE)])
    found = backtrack(EveryScope(rows), "ans")
    assert [astuple(row) for row in found.rows] == [
        (0, 15, "answer", "ans", None, None, None, "unjudged"),
        (1, 12, "artifact", B, "ans", None, "cited", LIVE),
        (1, None, "message", "r1#1", "ans", None, "in-window", "not recorded"),
        (2, 11, "call", "r1/c1", B, None, "declared", "sum ok"),
        (2, None, "artifact", A, B, None, "declared", "never minted here"),
    ]
    assert {row.what: (row.count, row.note) for row in found.coverage} == NOTHING_TO_SAY | {
        "missing artifacts": (1, None),
        "uninstrumented calls": (1, None),
    }


class EveryScope(MadeLog):
    """A source that gives more than it was asked for."""

    def events(self, scope: str | None) -> Any:
        return self.rows


def test_nothing_after_the_answer_changes_what_shaped_it() -> None:
    window = at(ContextComposed(calls=("c2",), refs=(B,), messages=(1,)))
    before = [minted(A), started("c1"), refused("c1"), read("c1", A), window, answer(A, call="c1", content=OTHER_DIGEST)]
    after = [
        minted(B, "c1"),
        minted(C, digest=OTHER_DIGEST),
        at(ContextComposed(refs=(D,))),
        read("c1", E),
        ended("c1", result=OTHER_DIGEST),
        started("c1", "late", matches=[Match(source="call", id="c2")]),
        started("c2"),
        ended("c2"),
        at(LogGap(count=1, why="crash")),
        at(ImportNoted(format="otel", source=DIGEST)),
        at(MessageNoted(role="user", index=1, size=1)),
    ]
    assert of([*before, *after]).rows == of(before).rows
    assert of([*before, *after]).coverage == of(before).coverage


def test_two_logs_in_one_source_of_sql_do_not_mix() -> None:
    import pyarrow as pa

    from refledger_queries.catalogue import connect
    from refledger_queries.sources import table_of

    first = make_log([started("c1"), minted(A, "c1", parents=[B]), ended("c1"), answer(A)], log_id="log-a")
    second = make_log([minted(B, "c2", parents=[C]), answer(B), at(AnswerJudged(answer_id="ans", verdict="wrong"))], log_id="log-b")
    both = pa.concat_tables([table_of(second, "log-b"), table_of(first, "log-a")])
    with connect(both) as connection:
        assert connection.execute("FROM backtrack('ans')").fetchall() == [astuple(row) for row in backtrack(MadeLog(first), "ans").rows]


# --- refusals ------------------------------------------------------------------------------------------------------------------


def refusal_rows(drafts: Sequence[Draft], *erased_at: int) -> list[tuple[Any, ...]]:
    return [row for row in rows_of(drafts, *erased_at) if row[2] == "refusal" or row[6] in ("offered", "spoken")]


def test_a_refusal_that_a_cone_call_followed_is_attached_with_what_it_showed() -> None:
    drafts = [
        minted(A),
        minted(B),
        started("c1", turn=1),
        refused("c1", spoken=C, offered=[B, A]),
        ended("c1", "refused"),
        started("c2", turn=2),
        resolved("c2", refs={"data": A}),
        ended("c2"),
        answer(call="c2"),
    ]
    assert rows_of(drafts) == [
        (0, 9, "answer", "ans", None, None, None, "unjudged"),
        (1, 6, "call", "r1/c2", "ans", None, "cited", "sum ok"),
        (2, 1, "artifact", A, "r1/c2", "data", "delivered", LIVE),
        (2, 4, "refusal", event_id_at(4), "r1/c2", "data", None, "missing-or-expired (never_minted): followed, then resolved"),
        (3, 2, "artifact", B, event_id_at(4), None, "offered", LIVE),
        (3, None, "artifact", C, event_id_at(4), "data", "spoken", "never minted here"),
        (None, 3, "call", "r1/c1", None, None, "preceded", "sum refused"),
    ]
    found = of(drafts)
    assert [row.node_id for row in found.cone] == ["r1/c2", A]
    assert [row.node_id for row in found.refusals] == [event_id_at(4)]
    assert [row.node_id for row in found.offered] == [B, C]
    assert coverage_of(drafts) == NOTHING_TO_SAY


def test_offered_is_stronger_than_spoken_and_a_refusal_keeps_its_nearest_call() -> None:
    drafts = [
        started("c1", turn=1),
        refused("c1", ref=A, spoken=None, spoken_as="other", offered=[A]),
        started("c1", turn=2, dispatch=2),
        refused("c1", dispatch=2, spoken=B),
        ended("c1", "refused", dispatch=2),
        answer(call="c1"),
    ]
    assert rows_of(drafts)[1:] == [
        (1, 1, "call", "r1/c1", "ans", None, "cited", "sum refused"),
        (2, 2, "refusal", event_id_at(2), "r1/c1", "data", None, "missing-or-expired (never_minted): ignored, then refused"),
        (2, 4, "refusal", event_id_at(4), "r1/c1", "data", None, "missing-or-expired (never_minted): abandoned"),
        (3, None, "artifact", A, event_id_at(2), None, "offered", "never minted here"),
        (3, None, "artifact", B, event_id_at(4), "data", "spoken", "never minted here"),
    ]


def test_a_ref_shown_in_two_refusals_keeps_the_nearer_one_before_the_stronger() -> None:
    drafts = [
        started("c1", turn=1),
        refused("c1", offered=[B]),
        minted(A, "c1"),
        started("c2", turn=1),
        resolved("c2", refs={"data": A}),
        started("c2", turn=2, dispatch=2),
        refused("c2", dispatch=2, spoken=B, tool="plot"),
        answer(call="c2"),
    ]
    assert [row[:7] for row in refusal_rows(drafts)] == [
        (2, 7, "refusal", event_id_at(7), "r1/c2", "data", None),
        (3, None, "artifact", B, event_id_at(7), "data", "spoken"),
        (4, 2, "refusal", event_id_at(2), "r1/c1", "data", None),
    ]


def test_a_refusal_reached_through_two_calls_keeps_the_nearer_one() -> None:
    drafts = [
        started("c1", turn=1),
        refused("c1"),
        minted(A, "c1"),
        ended("c1"),
        started("c2", turn=2),
        resolved("c2", refs={"data": A}),
        ended("c2"),
        answer(call="c2"),
    ]
    assert [row[:5] for row in refusal_rows(drafts)] == [(2, 2, "refusal", event_id_at(2), "r1/c2")]


def test_each_refused_argument_has_its_row() -> None:
    others = [
        JudgedArgument(argument="good", wanted="rows", outcome="resolved", ref=B, spoken_as="text"),
        JudgedArgument(argument="left", wanted="rows", outcome="absent", spoken_as="absent"),
        JudgedArgument(
            argument="bad", wanted="model", outcome="refused", reason="kind-mismatch", cause="wrong_kind", ref=C, spoken_as="text"
        ),
    ]
    drafts = [
        started("c1", turn=1),
        refused("c1", offered=[A], others=others),
        started("c2", turn=2),
        resolved("c2", refs={"data": A, "bad": A}),
        answer(call="c1"),
    ]
    assert refusal_rows(drafts) == [
        (2, 2, "refusal", event_id_at(2), "r1/c1", "bad", None, "kind-mismatch (wrong_kind): elsewhere, then resolved"),
        (2, 2, "refusal", event_id_at(2), "r1/c1", "data", None, "missing-or-expired (never_minted): followed, then resolved"),
        (3, None, "artifact", A, event_id_at(2), None, "offered", "never minted here"),
        (3, None, "artifact", C, event_id_at(2), "bad", "spoken", "never minted here"),
    ]


LATER = dict[str, Any]


@pytest.mark.parametrize(
    ("offered", "after", "effect"),
    [
        pytest.param([A], [started("c2", turn=2), resolved("c2", refs={"data": A})], "followed, then resolved", id="followed"),
        pytest.param([A], [started("c2", turn=2), resolved("c2", refs={"data": B})], "ignored, then resolved", id="ignored"),
        pytest.param([], [started("c2", turn=2), resolved("c2", refs={"data": B})], "elsewhere, then resolved", id="elsewhere"),
        pytest.param([A], [started("c2", turn=2), resolved("c2", refs={"base": A})], "dropped, then absent", id="dropped: not listed"),
        pytest.param(
            [A],
            [
                started("c2", turn=2),
                refused("c2", others=[JudgedArgument(argument="x", wanted="rows", outcome="absent", spoken_as="absent")]),
            ],
            "ignored, then refused",
            id="ignored: another text",
        ),
        pytest.param([A], [started("c2", turn=2), refused("c2", spoken=A)], "followed, then refused", id="followed: in text"),
        pytest.param([A], [started("c2", turn=2), refused("c2", ref=A, spoken=None)], "followed, then refused", id="followed: by ref"),
        pytest.param(
            [A], [started("c2", turn=2), refused("c2", spoken=None, spoken_as="null")], "ignored, then refused", id="ignored: not a text"
        ),
        pytest.param([A], [], "abandoned", id="abandoned: nothing came"),
        pytest.param([A], [started("c2", turn=1), resolved("c2", refs={"data": A})], "abandoned", id="abandoned: the same turn"),
        pytest.param([A], [started("c2"), resolved("c2", refs={"data": A})], "abandoned", id="abandoned: no turn"),
        pytest.param(
            [A], [started("c2", "plot", turn=2), resolved("c2", "plot", refs={"data": A})], "abandoned", id="abandoned: other tool"
        ),
        pytest.param(
            [A], [started("c2", turn=2, run="r2"), resolved("c2", refs={"data": A}, run="r2")], "abandoned", id="abandoned: other run"
        ),
        pytest.param(
            [A],
            [started("c2", turn=1), started("c3", turn=2), resolved("c3", refs={"data": B}), resolved("c2", refs={"data": A})],
            "ignored, then resolved",
            id="the first of a later turn",
        ),
        pytest.param(
            [A],
            [started("c1", turn=3, dispatch=2), resolved("c1", refs={"data": A}, dispatch=2)],
            "followed, then resolved",
            id="the same call again",
        ),
    ],
)
def test_what_followed_a_refusal_by_turns(offered: list[str], after: list[Draft], effect: str) -> None:
    drafts = [answer(call="c1"), started("c1", turn=1), refused("c1", offered=offered), ended("c1", "refused"), *after]
    rows = [*drafts[1:4], drafts[0], *after]
    assert refusal_rows(rows)[0][7] == f"missing-or-expired (never_minted): {effect}"


@pytest.mark.parametrize(
    ("events", "effect"),
    [
        pytest.param(
            [started("c1"), refused("c1", offered=[A]), ended("c1"), started("c2"), resolved("c2", refs={"data": A})],
            "followed, then resolved",
            id="started after it ended",
        ),
        pytest.param(
            [started("c1"), started("c2"), refused("c1", offered=[A]), ended("c1"), resolved("c2", refs={"data": A})],
            "unknown",
            id="started before it ended",
        ),
        pytest.param(
            [started("c1"), refused("c1", offered=[A]), started("c2"), resolved("c2", refs={"data": A})], "unknown", id="never ended"
        ),
        pytest.param([started("c1"), refused("c1", offered=[A]), ended("c1"), resolved("c2", refs={"data": A})], "unknown", id="no start"),
        pytest.param([started("c1"), refused("c1", offered=[A]), ended("c1"), started("c2")], "abandoned", id="nothing later"),
        pytest.param(
            [started("c1"), started("c2"), refused("c1", offered=[A]), ended("c1"), resolved("c2", refs={"data": A})]
            + [started("c3"), resolved("c3", refs={"data": B})],
            "ignored, then resolved",
            id="a parallel one does not count when another came after",
        ),
        pytest.param(
            [started("c1", dispatch=None), refused("c1", offered=[A], dispatch=None), ended("c1", dispatch=None)]
            + [started("c2"), resolved("c2", refs={"data": A})],
            "followed, then resolved",
            id="without numbers of dispatch",
        ),
    ],
)
def test_what_followed_a_refusal_without_turns(events: list[Draft], effect: str) -> None:
    assert refusal_rows([*events, answer(call="c1")])[0][7] == f"missing-or-expired (never_minted): {effect}"


def test_what_followed_is_unknown_when_the_next_text_was_erased_and_only_then() -> None:
    def effect(**next_dispatch: Any) -> str:
        drafts = [started("c1", turn=1), refused("c1", offered=[A]), ended("c1"), started("c2", turn=2)]
        return str(refusal_rows([*drafts, refused("c2", **next_dispatch), answer(call="c1")], 5)[0][7])

    assert effect(spoken=A) == "missing-or-expired (never_minted): unknown, then refused"
    assert effect(spoken=A * 8) == "missing-or-expired (never_minted): ignored, then refused"
    assert effect(spoken=None, spoken_as="number") == "missing-or-expired (never_minted): ignored, then refused"
    assert effect(spoken="", spoken_as="empty-text") == "missing-or-expired (never_minted): ignored, then refused"
    assert effect(ref=A) == "missing-or-expired (never_minted): followed, then refused"


def test_what_followed_is_read_past_the_answer_but_no_refusal_after_it_is_attached() -> None:
    drafts = [
        started("c1", turn=1),
        refused("c1", offered=[A]),
        ended("c1"),
        answer(call="c1"),
        started("c2", turn=2),
        resolved("c2", refs={"data": A}),
        started("c1", turn=3, dispatch=2),
        refused("c1", dispatch=2),
    ]
    assert [row[1:] for row in refusal_rows(drafts) if row[2] == "refusal"] == [
        (2, "refusal", event_id_at(2), "r1/c1", "data", None, "missing-or-expired (never_minted): followed, then resolved")
    ]


# --- coverage --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "note"), [([], None), ([0], "0"), ([2, 3], "5"), ([2, None], "unknown"), ([2**53 - 1, 2**53 - 1], "18014398509481982")]
)
def test_gaps_are_repeated(counts: list[int | None], note: str | None) -> None:
    gaps = [at(LogGap(count=count, why="crash"), run=None) for count in counts]
    unscoped = Draft(LogGap(count=7, why="crash"))
    assert coverage_of([*gaps, unscoped, answer()]) == NOTHING_TO_SAY | {"gaps": (len(counts), note)}


def test_an_imported_run_says_so() -> None:
    drafts = [
        at(ImportNoted(format="otel", source=DIGEST)),
        at(RunStarted()),
        at(ImportNoted(format="chat", source=DIGEST), run="r2"),
        answer(),
    ]
    assert coverage_of(drafts) == NOTHING_TO_SAY | {"imported": (1, "otel")}


def test_unfinished_and_uninstrumented_calls_are_counted() -> None:
    drafts = [
        started("c1"),
        resolved("c1", refs={}),
        started("c2"),
        read("c2", A),
        ended("c2"),
        started("c3", run="r2"),
        minted(B, "c3", run="r2"),
        at(ContextComposed(calls=("c1", "c2", "c9"))),
        answer(B),
        ended("c1"),
    ]
    assert coverage_of(drafts) == NOTHING_TO_SAY | {
        "missing artifacts": (1, None),
        "unfinished calls": (1, None),
        "uninstrumented calls": (3, None),
    }


def test_erased_texts_are_counted_once_for_each_event_that_the_answer_rests_on() -> None:
    drafts = [
        started("c1", turn=1),
        refused("c1", offered=[B]),
        ended("c1"),
        minted(B),
        started("c2", turn=2),
        resolved("c2", refs={"data": A}),
        minted(A, "c2"),
        ended("c2"),
        answer(A),
        ended("c2"),
    ]
    everything = range(1, 11)
    # Not the refused call, nor the artifact that was only offered, nor what came after.
    assert coverage_of(drafts, *everything)["texts erased"] == (6, None)


# --- the value ---------------------------------------------------------------------------------------------------------------------


def test_an_unknown_answer_is_refused() -> None:
    with pytest.raises(UnknownAnswer) as caught:
        backtrack(MadeLog(make_log([answer()])), "ans-of-another")
    assert caught.value.answer_id == "ans-of-another"


def test_a_body_that_is_no_json_is_a_corrupt_log() -> None:
    from dataclasses import replace

    rows = make_log([minted(A), answer(A)])
    with pytest.raises(LogCorrupt) as caught:
        backtrack(MadeLog([replace(rows[0], body='{"secret'), rows[1]]), "ans")
    assert "secret" not in str(caught.value)


def test_a_backtrack_is_a_value_that_json_can_carry() -> None:
    found = of([Draft(LogOpened(software="1", durability="full", observations="buffered", record_content=True)), minted(A), answer(A)])
    assert found.scanned == Scanned(rows=2, sources=("log-a",))
    assert json.loads(json.dumps(found.as_dict())) == {
        "log_id": "log-a",
        "answer_id": "ans",
        "rows": [
            dict(depth=0, position=3, node_kind="answer", node_id="ans", via_id=None, argument=None, grade=None, note="unjudged"),
            dict(depth=1, position=2, node_kind="artifact", node_id=A, via_id="ans", argument=None, grade="cited", note=LIVE),
        ],
        "coverage": [{"what": what, "count": count, "note": note} for what, (count, note) in NOTHING_TO_SAY.items()],
        "scanned": {"rows": 2, "sources": ["log-a"]},
    }


def test_a_backtrack_reads_as_plain_text() -> None:
    drafts = [started("c1", "su\x1bm\n", turn=1), refused("c1", offered=[B]), ended("c1"), started("c2"), answer(call="c1")]
    assert str(of(drafts)) == "\n".join(
        [
            "ans: unjudged",
            "",
            "what it rests on: 1",
            "  1  call  r1/c1  cited  su�m� ok  via ans  at 1",
            "",
            "refusals on the way: 1",
            f"  2  refusal  {event_id_at(2)}  missing-or-expired (never_minted): abandoned  as data  via r1/c1  at 2",
            "",
            "shown or spoken there, and not used: 1",
            f"  3  artifact  {B}  offered  never minted here  via {event_id_at(2)}  not in the log",
            "",
            "earlier calls of the run: 1",
            "  call  r1/c2  preceded  sum unfinished  at 4",
            "",
            "what this cannot know: 2",
            "  unfinished calls      1",
            "  uninstrumented calls  1",
            "",
            "5 events read of log-a",
        ]
    )


def test_threads_ask_at_once_and_each_reads_its_own_log() -> None:
    logs = [MadeLog(make_log([minted(ref), answer(ref)])) for ref in (A, B, C, D)] * 4
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda log: backtrack(log, "ans").cone[0].node_id, logs))
    assert found == [A, B, C, D] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_that_was_forked_between_questions_asks_and_exits() -> None:
    program = (
        "import os, sys\n"
        "from tests.test_backtrack_rows import A, answer, minted, of\n"
        "of([minted(A), answer(A)])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    sys.exit(len(of([minted(A), answer(A)]).rows))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(of([minted(A), answer(A)]).rows))\n"
    )
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert asked.stdout == "2 2\n"
