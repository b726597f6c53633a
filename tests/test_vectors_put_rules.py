"""Every vector of put_rules.json: what a put accepts, which of its faults wins, who leaves for it, and that nobody changes it later.

`OURS` and `OUR_STEPS` hold what we answer otherwise; `tests/vector_differences.py` says why, case by case.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger
from tests.vector_differences import PUTS, differs, note, stale, verdict_on
from tests.vectors_encoding import decode, load
from tests.vectors_steps import SCOPES, START, Bound, Facts, Steps, World, opened, padded, through_the_store

VECTORS = load(PUTS)
CASES: dict[str, Facts] = {case["id"]: case for case in VECTORS["cases"]}
SEQUENCES: dict[str, Facts] = {case["id"]: case for case in VECTORS["sequences"]}
ALIASING: dict[str, Facts] = {case["id"]: case for case in VECTORS["aliasing"]}
PARENTS: dict[str, str] = VECTORS["parents"]
MINTED = padded("minted")


def accepted(**meta: Any) -> Facts:
    return {"accepted": True, "meta": {"kind": "k", "mediaType": "text/plain", "bytes": 1, "createdAt": START} | meta, "ref_drawn": True}


def refused(category: str, ref_drawn: bool = False) -> Facts:
    refusal = {"code": "ERR_INVALID_ARTIFACT", "category": category}
    return {"accepted": False, **refusal, "stored_nothing": True, "ref_drawn": ref_drawn}


NO_SUCH_FIELD: Facts = {"accepted": False, "crash": {"error": "TypeError", "code": None}, "stored_nothing": True, "ref_drawn": False}
FULL = {
    "kind": "dataset/rows",
    "mediaType": "application/json",
    "bytes": 7,
    "label": "L",
    "digest": "sha-256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",
    "expiresAt": 1_000_500,
    "parentRefs": ["live1"],
}
OURS: dict[str, Facts] = {
    **dict.fromkeys(
        [
            "one-bad-digest",
            "two-bad-kind-digest",
            "two-bad-mediaType-digest",
            "two-bad-expiresAt-digest",
            "two-bad-digest-parents",
            "two-bad-digest-payload",
            "two-bad-digest-oversized",
            "all-bad-from-kind",
            "all-bad-from-mediaType",
            "all-bad-from-expiresAt",
            "all-bad-from-digest",
            "digest-upper",
            "digest-sha256",
            "digest-empty",
            "digest-sha-512",
            "digest-padded",
            "caller-ref-ignored",
            "unknown-keys-ignored",
            "kind-undefined",
            "data-missing",
            "input-empty",
        ],
        NO_SUCH_FIELD,
    ),
    **dict.fromkeys(["two-bad-expiresAt-payload", "two-bad-parents-payload", "all-bad-from-parents"], refused("payload")),
    **dict.fromkeys(["kind-unit-separator", "kind-nel"], refused("kind")),
    **dict.fromkeys(["mediaType-unit-separator", "mediaType-nel"], refused("mediaType")),
    **dict.fromkeys(["parents-null", "parents-set"], refused("parents")),
    "parents-null-element": refused("unknown-parent") | {"code": "ERR_UNKNOWN_PARENT_REF", "unresolved": ["'NoneType'"]},
    "label-object": refused("label"),
    "label-nul": refused("label"),
    **dict.fromkeys(
        [
            "mediaType-undefined",
            "mediaType-null",
            "expiresAt-null",
            "label-empty",
            "label-null",
            "origin-empty",
            "origin-extra",
            "origin-null",
        ],
        accepted(),
    ),
    "full": accepted(**FULL),
}


def ticket(ref: str, created: int = START, **more: Any) -> Facts:
    return {"ref": ref, "kind": "k", "mediaType": "text/plain", "bytes": 1, "createdAt": created} | more


OUR_STEPS: dict[str, dict[int, Facts]] = {
    "proving-a-parent-does-not-refresh-it": {
        4: {"meta": ticket("c", START + 2, parentRefs=["p"]), "swept": [["x", "max-count", "k", 1]]},
        5: {"value": ticket("p")},
        6: {"value": None},
    },
    "recency-tie-by-ref": {
        2: {"meta": ticket("c"), "swept": [["b", "max-count", "k", 1]]},
        3: {"rows": ["c", "a"], "more": False},
    },
}


# --- one put ----------------------------------------------------------------------------------------------------------------------


def set_up(world: World) -> None:
    """The parents that the cases without retention start with."""
    mine, theirs = Bound(world.ledger, SCOPES["S"]), Bound(world.ledger, SCOPES["S2"])
    for name, expires_at in (("live1", None), ("live2", None), ("live1_soon", START + 1), ("expired", START), ("deleted", None)):
        world.clock.now_ms = START - 1
        expiry = {} if expires_at is None else {"expiresAt": expires_at}
        assert "meta" in world.put(mine, name, PARENTS[name], {"kind": "k", "data": "x", **expiry})
    assert "meta" in world.put(theirs, "foreign", PARENTS["foreign"], {"kind": "k", "data": "x"})
    mine.delete(PARENTS["deleted"])
    world.names[PARENTS["never"]] = "never"
    world.clock.now_ms = START


def put_observed(case: Facts, world: World) -> Facts:
    """What a case's put comes to, in the vectors' terms."""
    if "retention" not in case:
        set_up(world)
    mine = Bound(world.ledger, SCOPES["S"])
    before = (mine.list(), stored_payloads(world.ledger))
    world.names[PARENTS["never"]] = "never"
    world.news()
    came_to = world.put(mine, "minted", MINTED, decode_top(case["input"]))
    swept = world.swept(world.news())
    if "meta" in came_to:
        meta = came_to["meta"]
        assert mine.head(MINTED) == mine.list(limit=1).artifacts[0] and world.ticket(mine.head(MINTED)) == meta
        del meta["ref"]
        return {"accepted": True, "meta": meta, **({"swept": swept} if "retention" in case else {}), "ref_drawn": world.drawn}
    refusal = came_to["throws"]
    facts: Facts = {"accepted": False, **({"crash": refusal} if "error" in refusal else refusal)}
    if "unresolved" in came_to:
        facts["unresolved"] = [told["literal"] if isinstance(told, dict) else told for told in came_to["unresolved"]]
    nothing = (mine.list(), stored_payloads(world.ledger)) == before and not swept
    return {**facts, "stored_nothing": nothing, "ref_drawn": world.drawn}


def decode_top(given: Any) -> Facts:
    """A put's input; None and undefined stand for none."""
    return given if isinstance(given, dict) and not next(iter(given), "").startswith("$") else {}


def stored_payloads(ledger: Ledger) -> int:
    with ledger._store.reading() as reads:
        return len(reads.connection.execute("SELECT digest FROM payloads").fetchall())


def told_by_name(expected: Facts) -> Facts:
    return {**expected, "meta": decode(expected["meta"])} if "meta" in expected else expected


def test_the_vectors_are_all_there() -> None:
    assert (len(CASES), len(SEQUENCES), len(ALIASING), VECTORS["count"]) == (100, 21, 9, 100)
    assert stale(PUTS, CASES | SEQUENCES | ALIASING) == set()
    assert {name for name in CASES if differs(PUTS, name)} == OURS.keys()
    assert {name for name in SEQUENCES if differs(PUTS, name)} == OUR_STEPS.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_put_is_as_observed_or_as_decided(name: str, tmp_path: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    expected = [told_by_name(facts) for facts in (case["expected"], *case.get("expected_other_stores", {}).values())]
    with opened(empty_log, tmp_path, monkeypatch, case.get("retention")) as world:
        seen = put_observed(case, world)
    if differs(PUTS, name):
        assert seen == OURS[name]
    assert (seen in expected) is not differs(PUTS, name)
    note(f"{PUTS}: cases", name, verdict_on(PUTS, name, weakness=case.get("known_weakness", False)))


def test_an_origin_is_not_the_callers_to_give(empty_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(empty_log, tmp_path, monkeypatch) as world, pytest.raises(TypeError):
        Bound(world.ledger, SCOPES["S"]).put("x", kind="k", origin={"runId": "spoof"})


# --- sequences ------------------------------------------------------------------------------------------------------------------------


def steps_observed(case: Facts, world: World) -> list[Facts]:
    """What each step of a sequence comes to; of a put that was accepted, also who left for it."""
    steps, facts = Steps(world, through_the_store(world)), []
    for step in case["steps"]:
        came_to, swept = steps.take(step), world.swept(world.news())
        facts.append(came_to | ({"swept": swept} if "meta" in came_to else {}))
        assert "meta" in came_to or step["op"] in ("get", "head") or not swept, (
            "only a put makes others leave, and a read what it finds expired"
        )
    return facts


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_is_as_observed_or_as_decided(name: str, tmp_path: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = SEQUENCES[name]
    expected = [decode(facts) for facts in (case["expected"], *case.get("expected_other_stores", {}).values())]
    with opened(empty_log, tmp_path, monkeypatch, case.get("retention")) as world:
        seen = steps_observed(case, world)
    if differs(PUTS, name):
        assert seen == [OUR_STEPS[name].get(number, step) for number, step in enumerate(expected[0])]
    assert (seen in expected) is not differs(PUTS, name)
    note(f"{PUTS}: sequences", name, verdict_on(PUTS, name, weakness=case.get("known_weakness", False)))


# --- aliasing -----------------------------------------------------------------------------------------------------------------------


S = SCOPES["S"]


def set_kind(meta: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        meta.kind = "changed"


def mutate_input_object(ledger: Ledger) -> str:
    data = {"rows": [1]}
    ref = ledger.store.put(S, data, kind="k").ref
    data["rows"].append(2)
    return ref


def mutate_input_bytes(ledger: Ledger) -> str:
    data = bytearray(b"abc")
    ref = ledger.store.put(S, data, kind="k").ref
    data[0] = 0
    return ref


def mutate_returned_data(ledger: Ledger) -> str:
    ref = ledger.store.put(S, {"rows": [1]}, kind="k").ref
    found = ledger.store.get(S, ref)
    assert found is not None
    found.data["rows"].append(2)
    return ref


def mutate_returned_bytes(ledger: Ledger) -> str:
    ref = ledger.store.put(S, b"abc", kind="k").ref
    found = ledger.store.get(S, ref)
    assert found is not None and type(found.data) is bytes, "bytes do not change"
    return ref


def mutate_meta_from_put(ledger: Ledger) -> str:
    meta = ledger.store.put(S, "x", kind="k")
    set_kind(meta)
    return meta.ref


def mutate_meta_from_head(ledger: Ledger) -> str:
    ref = ledger.store.put(S, "x", kind="k").ref
    set_kind(ledger.store.head(S, ref))
    return ref


def mutate_meta_from_list(ledger: Ledger) -> str:
    ref = ledger.store.put(S, "x", kind="k").ref
    set_kind(ledger.store.list(S).artifacts[0])
    return ref


def mutate_input_parents(ledger: Ledger) -> str:
    parents = [ledger.store.put(S, "p", kind="k").ref]
    ref = ledger.store.put(S, "x", kind="k", parents=parents).ref
    parents.append("art_" + "z" * 22)
    return ref


EXPECTED_DATA: dict[str, tuple[Callable[[Ledger], str], Any]] = {
    "mutate-input-data-object": (mutate_input_object, {"rows": [1]}),
    "mutate-input-bytes": (mutate_input_bytes, b"abc"),
    "mutate-returned-data": (mutate_returned_data, {"rows": [1]}),
    "mutate-returned-bytes": (mutate_returned_bytes, b"abc"),
    "mutate-meta-from-put": (mutate_meta_from_put, "x"),
    "mutate-meta-from-head": (mutate_meta_from_head, "x"),
    "mutate-meta-from-list": (mutate_meta_from_list, "x"),
    "mutate-input-parentRefs": (mutate_input_parents, "x"),
}


@pytest.mark.parametrize("name", ALIASING)
def test_what_a_caller_changes_later_does_not_reach_the_store(name: str, tmp_path: Path, empty_log: Path) -> None:
    case = ALIASING[name]
    if differs(PUTS, name):
        assert name == "mutate-input-origin", "no put takes an origin, so there is none to change"
    else:
        mutate, data = EXPECTED_DATA[name]
        path = tmp_path / "log.db"
        path.write_bytes(empty_log.read_bytes())
        with Ledger.open(path, durability="process") as ledger:
            ref = mutate(ledger)
            found = ledger.store.get(S, ref)
            assert found is not None and (found.data, found.meta.kind, len(found.meta.parents or ())) == (data, "k", "parent" in name)
        # SQLite is the store there that is like ours.
        assert case["expected"]["store_changed"]["sqlite"] is False
    note(f"{PUTS}: aliasing", name, verdict_on(PUTS, name, weakness=case.get("known_weakness", False)))
