"""Every vector of retention.json: the plan of a put as `evictions` makes it and as a real ledger carries it out, expiry, and the dials.

Where rows were used at one time, the vectors break the tie by ref. In a log positions never tie, so here the refs' order is that of use.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger
from refledger_schema.errors import InvalidConfiguration, OverBudget
from refledger_schema.events import ArtifactGone
from refledger_store.reads import Totals
from refledger_store.retention import Retention, evictions, expiry
from tests.vector_differences import RETENTION, differs, note, stale, verdict_on
from tests.vectors_encoding import UNDEFINED, decode, load
from tests.vectors_steps import EPOCH, SCOPES, TTL_CAUSE, Clock, Facts, in_ms, retention_of

VECTORS = load(RETENTION)
PLANS: dict[str, Facts] = {case["id"]: case for case in VECTORS["cases"]}
EXPIRIES: dict[str, Facts] = {case["id"]: case for case in VECTORS["resolve_expires_at"]}
DIALS: dict[str, Facts] = {case["id"]: case for case in VECTORS["dial_validation"]}
OUR_DIALS = {"ttl": "ttlMs", "max_bytes": "maxBytesPerScope", "max_count": "maxCountPerScope"}
LONG_AGO = -1_000
INCOMING = "art_" + "9" * 22

REFUSED_DIAL: Facts = {"refused_dial": True}


def by_expiry(name: str) -> Facts:
    """What was observed, but that the expired leave in the order in which they expired."""
    case = PLANS[name]
    expires = {row[0]: row[4] for row in case["rows"]}
    swept = case["expected"]["swept"]
    expired = sorted((pair for pair in swept if pair[1] == "ttl"), key=lambda pair: (expires[pair[0]], pair[0]))
    return {**case["expected"], "swept": expired + [pair for pair in swept if pair[1] != "ttl"]}


OURS: dict[str, Any] = {
    **{name: by_expiry(name) for name in ("expired-order-is-row-order", "mix-1", "mix-2", "mix-24")},
    **dict.fromkeys(["count-zero-unvalidated", "count-fraction-2.5", "bytes-fraction"], REFUSED_DIAL),
    "bytes-oversized-reports-expired": {"refused_oversized": True, "swept": []},
    "ttl-overflow-precision": "ttl",
    "ttlMs-null": {"outcome": "accept"},
    "maxBytesPerScope-half": {"outcome": "refuse", "dial": "maxBytesPerScope"},
    "maxCountPerScope-half": {"outcome": "refuse", "dial": "maxCountPerScope"},
}


def by_use(case: Facts) -> list[list[Any]]:
    return sorted(case["rows"], key=lambda row: (row[3], row[0]))


def planned(case: Facts) -> Facts:
    """The plan: what has expired leaves, first what expired first; then what `evictions` says."""
    try:
        retention = retention_of(case["retention"])
    except InvalidConfiguration:
        return REFUSED_DIAL
    dead = sorted((row for row in case["rows"] if row[4] is not None and row[4] <= case["now"]), key=lambda row: (row[4], row[0]))
    live = [row for row in by_use(case) if row not in dead]
    held = Totals(live_count=len(live), live_bytes=sum(row[2] for row in live))
    try:
        evicted = evictions(retention, held, case["incoming"], ((row[0], row[2]) for row in live), ())
    except OverBudget:
        return {"refused_oversized": True, "swept": []}
    return {"refused_oversized": False, "swept": [[row[0], "ttl"] for row in dead] + [list(pair) for pair in evicted]}


def carried_out(case: Facts, path: Path, monkeypatch: pytest.MonkeyPatch) -> Facts:
    """What a real ledger does: the rows put long ago in the order of their use, and then the put."""
    clock, scope = Clock(LONG_AGO), SCOPES["S"]
    try:
        retention = retention_of(case["retention"])
    except InvalidConfiguration:
        return REFUSED_DIAL
    with Ledger.open(path, durability="process", clock=clock) as ledger:
        for ref, kind, size, _, expires in by_use(case):
            monkeypatch.setattr("refledger.verbs.mint_ref", lambda ref=ref: ref)
            expires_at = None if expires is None else EPOCH + timedelta(milliseconds=expires)
            ledger.store.put(scope, b"x" * size, kind=kind, expires_at=expires_at)
    monkeypatch.setattr("refledger.verbs.mint_ref", lambda: INCOMING)
    clock.now_ms = case["now"]
    with Ledger.open(path, durability="process", clock=clock, retention=retention) as ledger:
        before = ledger.store.list(scope)
        try:
            ledger.store.put(scope, b"x" * case["incoming"], kind="k")
            refused = False
        except OverBudget:
            refused = True
            assert ledger.store.list(scope) == before
        gone = [each.event for each in ledger.events() if isinstance(each.event, ArtifactGone)]
    assert all((event.forced_by is None) == (event.cause == "expired") for event in gone)
    return {"refused_oversized": refused, "swept": [[event.ref, TTL_CAUSE.get(event.cause, event.cause)] for event in gone]}


def resolved_expiry(case: Facts) -> Any:
    caller = decode(case["caller"])
    try:
        dies = expiry(retention_of(case["retention"]), None if caller is UNDEFINED else round(caller * 1_000), case["now"] * 1_000)
    except InvalidConfiguration as error:
        return error.option
    return UNDEFINED if dies is None else in_ms(dies)


def judged_dials(case: Facts) -> Facts:
    try:
        retention = retention_of(case["retention"])
    except InvalidConfiguration as error:
        return {"outcome": "refuse", "dial": OUR_DIALS[error.option]}
    assert isinstance(retention, Retention)
    return {"outcome": "accept"}


def test_the_vectors_are_all_there() -> None:
    assert (len(PLANS), len(EXPIRIES), len(DIALS), VECTORS["count"]) == (62, 14, 28, 62)
    assert stale(RETENTION, PLANS | EXPIRIES | DIALS) == set()
    assert {name for name in (*PLANS, *EXPIRIES, *DIALS) if differs(RETENTION, name)} == OURS.keys()


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_as_observed_or_as_decided_and_is_carried_out(
    name: str, tmp_path: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = PLANS[name]
    path = tmp_path / "log.db"
    shutil.copy(empty_log, path)
    plan = planned(case)
    assert carried_out(case, path, monkeypatch) == plan
    check(f"{RETENTION}: plans", name, plan, case["expected"])


@pytest.mark.parametrize("name", EXPIRIES)
def test_an_expiry_is_as_observed_or_as_decided(name: str) -> None:
    case = EXPIRIES[name]
    check(f"{RETENTION}: expiry", name, resolved_expiry(case), decode(case["expected"]))


@pytest.mark.parametrize("name", DIALS)
def test_a_dial_is_judged_as_observed_or_as_decided(name: str) -> None:
    case = DIALS[name]
    check(f"{RETENTION}: dials", name, judged_dials(case), {key: value for key, value in case["expected"].items() if key != "error"})


def check(section: str, name: str, ours: Any, expected: Any) -> None:
    assert ours == OURS.get(name, expected)
    assert (ours != expected) is differs(RETENTION, name)
    note(section, name, verdict_on(RETENTION, name, weakness=False))
