"""Every vector of capability_facts.json through the doors of a run and a call: what each step answers, and the events it leaves.

Their facts are `minted`, `resolved`, `refused` and `expired`; ours are `artifact.minted`, `artifact.read`, `artifact.refused` and
`artifact.gone`. `OUR_STEPS` holds the steps that we answer otherwise; `tests/vector_differences.py` says why, case by case.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from refledger import REFUSED_PREFIX
from refledger.contract import ArtifactMeta
from refledger.wants import wants_needs_store_refusal
from refledger_schema.errors import StoreFault
from refledger_schema.events import ArtifactGone, ArtifactMinted, ArtifactRead, ArtifactRefused, Event
from refledger_schema.reasons import Reason
from tests.vector_differences import FACTS, differs, note, stale, verdict_on
from tests.vectors_encoding import UNDEFINED, decode, load
from tests.vectors_steps import SCOPES, START, TTL_CAUSE, Facts, Steps, World, opened, padded, through_the_store

VECTORS = load(FACTS)
CASES: dict[str, Facts] = {case["id"]: case for case in VECTORS["cases"]}
CATCHING = ("sink-throws-on-minted", "sink-throws-on-refusal")
NO_STORE = {name for name, case in CASES.items() if case["door"] == "unconfigured"}


def ticket(ref: str, created: int = START, **more: Any) -> Facts:
    return {"ref": ref, "kind": "k", "mediaType": "text/plain", "bytes": 1, "createdAt": created} | more


def minted(ref: str, created: int = START, *before: Facts) -> Facts:
    return {"meta": ticket(ref, created), "events": [*before, {"type": "minted", "meta": ticket(ref, created)}]}


def refusal(op: str, reason: str, **spoken: Any) -> Facts:
    return {"type": "refused", "op": op, "reason": reason, **spoken}


def absent(op: str, **spoken: Any) -> Facts:
    return {"value": None, "events": [refusal(op, "missing-or-expired", **spoken)]}


def shown(ref: str) -> Facts:
    return {"value": ticket(ref), "events": [{"type": "resolved", "ref": ref, "via": "head", "kind": "k", "bytes": 1}]}


def left(fact: str, ref: str, reason: str) -> Facts:
    return {"type": fact, "swept": {"ref": ref, "reason": reason, "kind": "k", "bytes": 1}}


def put_refused(category: str, reason: str = "invalid-input") -> Facts:
    return {"throws": {"code": "ERR_INVALID_ARTIFACT", "category": category}, "events": [refusal("put", reason)]}


DELETED: Facts = {"value": UNDEFINED, "events": [left("deleted", "a", "deleted")]}
NO_SUCH_ARGUMENT: Facts = {"throws": {"error": "TypeError", "code": None}, "events": []}


def found_expired(op: str) -> Facts:
    """A read that finds an artifact expired is refused, and tells of its departure."""
    told = absent(op, ref="a")
    return told | {"events": [*told["events"], left("expired", "a", "ttl")]}


OUR_STEPS: dict[str, dict[int, Facts]] = {
    **{
        f"malformed-ref-{name}": {number: absent(op, spoken_length=length) for number, op in enumerate(("head", "get"))}
        for name, length in (("empty", 0), ("newline", 27), ("very-long", 300))
    },
    **{f"malformed-ref-{name}": {number: absent(op) for number, op in enumerate(("head", "get"))} for name in ("null", "number", "object")},
    "deleted-then-read": {1: DELETED},
    "seen-by-raw-store": {0: minted("a"), 1: shown("a"), 3: DELETED},
    "read-expired-then-put-reports-nothing": {2: found_expired("get")},
    "expired-then-read": {4: found_expired("head")},
    "evict-own-parent": {2: put_refused("oversized")},
    "put-crash-reports-nothing": {0: put_refused("parents"), 1: NO_SUCH_ARGUMENT},
    "integrity-no-digest": {
        2: {
            "throws": {"code": "ERR_ARTIFACT_INTEGRITY", "category": "integrity"},
            "events": [refusal("get", "digest-mismatch", ref="a")],
        }
    },
    "origin-absent-caller-kept": {0: minted("a")},
    "caller-cannot-name-scope": {0: NO_SUCH_ARGUMENT, 2: {"rows": [], "more": False, "events": []}},
    "no-sink": {
        0: minted("a"),
        1: shown("a"),
        2: absent("get", ref={"literal": padded("zz")}),
        3: put_refused("kind"),
    },
}


# --- events in the vectors' terms -----------------------------------------------------------------------------------------------------


def fact(world: World, event: Event) -> Facts:
    """An event of ours as the fact that theirs is."""
    if isinstance(event, ArtifactMinted):
        with world.ledger._store.reading() as reads:
            artifact = reads.artifact(event.ref)
        assert artifact is not None
        meta = ArtifactMeta(
            **{name: getattr(event, name) for name in ("ref", "kind", "media_type", "shape", "bytes", "digest", "label", "expires_us")},
            parents=event.parents,
            minted_us=artifact.minted_us,
            run_id=artifact.run_id,
            call_id=artifact.call_id,
        )
        return {"type": "minted", "meta": world.ticket(meta)}
    if isinstance(event, ArtifactRead):
        kind, size = world.kind_and_bytes(event.ref)
        return {"type": "resolved", "ref": world.told(event.ref), "via": event.via, "kind": kind, "bytes": size}
    if isinstance(event, ArtifactRefused):
        spoken = {"ref": world.told(event.ref)} if event.ref is not None else {}
        length = {"spoken_length": event.spoken_length} if event.spoken_length is not None else {}
        return {"type": "refused", "op": event.op, "reason": event.reason, **spoken, **length}
    assert isinstance(event, ArtifactGone), event
    kind, size = world.kind_and_bytes(event.ref)
    left = {"ref": world.told(event.ref), "reason": TTL_CAUSE.get(event.cause, event.cause), "kind": kind, "bytes": size}
    return {"type": "deleted" if event.cause == "deleted" else "expired", "swept": left}


def expected_steps(steps: list[Facts]) -> list[Facts]:
    """What a vector observed. That a fact explains itself in prose is not compared: ours has a cause, and sentences are made from it."""
    told = [decode({**step, "events": []}) for step in steps]
    for facts, step in zip(told, steps, strict=True):
        events = [{key: value for key, value in event.items() if key != "detail"} for event in step["events"]]
        facts["events"] = [event | {"ref": decode(event["ref"])} if "ref" in event else event for event in events]
        facts.pop("swept", None)
    return told


# --- the doors --------------------------------------------------------------------------------------------------------------------------


@contextmanager
def doors(case: Facts, world: World) -> Iterator[Callable[[str, str | None], Any]]:
    """The verbs of a run in each scope, or of a call where the case names one; the bare store where nothing is bound at all."""
    origin = case.get("origin", {})
    if case["id"].startswith("origin-absent"):
        yield through_the_store(world)
        return
    with (
        world.ledger.run(SCOPES["S"], run_id=origin.get("runId")) as mine,
        world.ledger.run(SCOPES["S2"]) as other,
        world.ledger.run(SCOPES["T"]) as third,
        mine.call("tool", call_id=origin.get("toolCallId")) as call,
    ):
        bare, bound = through_the_store(world), {"S": call if "toolCallId" in origin else mine, "S2": other, "T": third}
        if origin:
            world.origin = origin_of
        yield lambda scope, via: bare(scope, via) if via == "store" else bound[scope]


def origin_of(meta: ArtifactMeta) -> Facts:
    return {"runId": meta.run_id} | ({"toolCallId": meta.call_id} if meta.call_id is not None else {})


def observed(case: Facts, world: World) -> list[Facts]:
    with doors(case, world) as door:
        steps, facts = Steps(world, door), []
        world.news()
        for step in case["steps"]:
            came_to = steps.take(step)
            facts.append(came_to | {"events": [fact(world, event) for event in world.news()]})
        return facts


def test_the_vectors_are_all_there() -> None:
    assert (len(CASES), VECTORS["count"], VECTORS["start"], stale(FACTS, CASES)) == (43, 43, START, set())
    assert {name for name in CASES if differs(FACTS, name)} == OUR_STEPS.keys() | NO_STORE | set(CATCHING)


@pytest.mark.parametrize("name", [name for name in CASES if name not in NO_STORE and name not in CATCHING])
def test_a_step_is_answered_and_recorded_as_observed_or_as_decided(
    name: str, tmp_path: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    expected = [expected_steps(steps) for steps in (case["expected"], *case.get("expected_other_stores", {}).values())]
    with opened(empty_log, tmp_path, monkeypatch, case.get("retention")) as world:
        seen = observed(case, world)
    if differs(FACTS, name):
        assert seen == [OUR_STEPS[name].get(number, step) for number, step in enumerate(expected[0])]
    assert (seen in expected) is not differs(FACTS, name)
    note(FACTS, name, verdict_on(FACTS, name, weakness=case.get("known_weakness", False)))


# --- where the record fails -------------------------------------------------------------------------------------------------------------


@contextmanager
def a_failing_record(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing can be appended, as when the disk fails: our log is what their sink is."""

    def fail(*_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("refledger_store.append.move_head", fail)
        yield


def test_what_cannot_be_recorded_is_not_stored(tmp_path: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(empty_log, tmp_path, monkeypatch) as world, world.ledger.run(SCOPES["S"]) as run:
        with a_failing_record(monkeypatch), pytest.raises(StoreFault):
            Steps(world, lambda scope, via: run).take(CASES[CATCHING[0]]["steps"][0])
        assert (run.list().artifacts, world.news()) == ((), [])
    note(FACTS, CATCHING[0], verdict_on(FACTS, CATCHING[0], weakness=True))


def test_a_failing_record_does_not_take_the_place_of_a_refusal(tmp_path: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[CATCHING[1]]
    with opened(empty_log, tmp_path, monkeypatch) as world, world.ledger.run(SCOPES["S"]) as run:
        steps = Steps(world, lambda scope, via: run)
        with a_failing_record(monkeypatch):
            answers = [steps.take(step) for step in case["steps"]]
        assert answers == [{"throws": {"code": "ERR_INVALID_ARTIFACT", "category": "kind"}}, {"value": None}, {"value": None}]
        recorded = [fact(world, event) for event in world.news()]
    assert recorded == [event for step in expected_steps(case["expected"]) for event in step["events"]], "told once it can be"
    note(FACTS, CATCHING[1], verdict_on(FACTS, CATCHING[1], weakness=True))


@pytest.mark.parametrize("name", sorted(NO_STORE))
def test_without_a_store_there_is_a_sentence_and_no_door(name: str) -> None:
    sentence = wants_needs_store_refusal("summarize", {"dataset": "dataset/rows"})
    assert sentence.startswith(REFUSED_PREFIX) and "no-store" not in {literal for literal in get_args(Reason)}
    note(FACTS, name, verdict_on(FACTS, name, weakness=CASES[name].get("known_weakness", False)))
