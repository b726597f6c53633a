"""Every vector of scopes.json: the scope key is the contract's namespace string, and no scope reads what another one holds.

The directory segments, object keys and key roots there belong to stores that keep artifacts in folders and buckets. We have none, so
they are counted and not run.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refledger import Ledger, Scope
from refledger_schema.errors import InvalidScope
from refledger_schema.scopes import scope_of
from tests.vector_differences import SCOPES, differs, note, stale, verdict_on
from tests.vectors_encoding import UNDEFINED, decode, load

VECTORS = load(SCOPES)
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in VECTORS["cases"]}
PAIRS: dict[str, dict[str, Any]] = {pair["id"]: pair for pair in VECTORS["pairs"]}
FIELDS = {"tenant": "tenant", "principal": "principal", "conversationId": "conversation"}
REFUSED = "refused"


def scope_named(names: dict[str, Any]) -> Scope:
    """The scope that a vector names; what it has besides is no field of ours."""
    fields = {FIELDS.get(name, name): value for name, tagged in names.items() if (value := decode(tagged)) is not UNDEFINED}
    return Scope(**fields)


def key_of(names: dict[str, Any]) -> str:
    try:
        return scope_named(names).key
    except (InvalidScope, TypeError):
        return REFUSED


def observed(expected: Any) -> str:
    """The namespace of a vector, or that it is refused without a word of the value."""
    value = decode(expected)
    if isinstance(value, dict):
        assert (value["error"], value["quotes_value"]) == ("TypeError", False)
        return REFUSED
    assert isinstance(value, str)
    return value


def test_the_vectors_are_all_there() -> None:
    assert (len(CASES), len(PAIRS), VECTORS["count"], stale(SCOPES, CASES | PAIRS)) == (127, 30, 127, set())


@pytest.mark.parametrize("name", CASES)
def test_a_scope_key_is_the_namespace_as_observed_or_the_scope_is_refused_by_decision(name: str) -> None:
    case = CASES[name]
    ours = REFUSED if differs(SCOPES, name) else observed(case["expected"]["namespace"])
    assert key_of(case["scope"]) == ours
    assert (ours != observed(case["expected"]["namespace"])) is differs(SCOPES, name)
    note(f"{SCOPES}: namespaces", name, verdict_on(SCOPES, name, weakness=False))
    note(f"{SCOPES}: folders and object keys", name, "another store")


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("extra-fields-ignored",)])
def test_a_key_gives_its_scope_back(name: str) -> None:
    names = CASES[name]["scope"]
    if key_of(names) != REFUSED:
        assert scope_of(key_of(names)) == scope_named(names)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Ledger.open(tmp_path_factory.mktemp("scopes") / "log.db", durability="process") as ledger:
        yield ledger


@pytest.mark.parametrize("name", PAIRS)
def test_the_right_scope_reads_what_the_left_one_holds_only_if_they_are_one(name: str, ledger: Ledger) -> None:
    pair = PAIRS[name]
    keys = (key_of(pair["left"]), key_of(pair["right"]))
    if differs(SCOPES, name):
        assert REFUSED in keys
    else:
        left, right = scope_named(pair["left"]), scope_named(pair["right"])
        meta = ledger.store.put(left, f"of {name}", kind="text")
        seen = ledger.store.get(right, meta.ref)
        ledger.store.delete(right, meta.ref)
        reads = seen is not None and seen.data == f"of {name}"
        still_there = ledger.store.head(left, meta.ref) is not None
        expected = pair["expected"]
        assert (keys[0] == keys[1], reads) == (expected["same_namespace"], expected["right_reads_left"]["memory"])
        assert (reads, still_there) in ((True, False), (False, True))
    note(f"{SCOPES}: pairs", name, verdict_on(SCOPES, name, weakness=pair.get("known_weakness", False)))


@pytest.mark.parametrize("case", VECTORS["key_roots"], ids=lambda case: case["id"])
def test_key_roots_belong_to_stores_that_we_do_not_have(case: dict[str, Any]) -> None:
    assert set(case) == {"id", "root", "expected"}
    note(f"{SCOPES}: key roots", case["id"], "another store")


fields = st.text(st.characters(codec="utf-8", exclude_characters="\x00") | st.sampled_from("%/_25F"), max_size=12)
scopes = st.builds(Scope, conversation=fields, tenant=fields, principal=fields)


@given(scopes)
@example(Scope(conversation="_", tenant="%5F", principal="%25_%2F/"))
@example(Scope(conversation="%252F", tenant="a%/b"))
def test_scope_of_is_the_left_inverse_of_the_key(scope: Scope) -> None:
    assert scope_of(scope.key) == scope


@given(scopes, scopes)
def test_two_scopes_share_a_key_only_if_they_are_equal(left: Scope, right: Scope) -> None:
    assert (left.key == right.key) == (left == right)
