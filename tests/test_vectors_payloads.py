"""Every vector of payloads.json through `put` and `get` of a real ledger: shape, length, digest, and what comes back.

The texts of JSON payloads, and what stands in for the values of another language, are tested in `test_payload_json.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from refledger import Ledger, Scope
from refledger.payloads import encode
from refledger_schema.errors import InvalidArtifact, TooLarge
from tests.vector_differences import PAYLOADS, differs, note, stale, verdict_on
from tests.vectors_encoding import decode, load

VECTORS = load(PAYLOADS)
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in VECTORS["cases"]}
SCOPE = Scope(conversation="c1")
PYTHONS = {"subarray": memoryview(b"\x00\x01\x02\x03\x04")[1:4], "buffer": bytearray(b"\x00\xff\x80")}
"""Python's counterparts of a view and of a subclass of bytes."""
SHAPES = {"text": "text", "bytes": "binary", "json": "json"}
LONGEST_CANONICAL = 400
REFUSED = {"refused": "ERR_INVALID_ARTIFACT"}


def payload_of(case: dict[str, Any]) -> Any:
    tagged = case["payload"]
    js = tagged.get("$js") if isinstance(tagged, dict) else None
    return PYTHONS[js] if js in PYTHONS else decode(tagged)


def expected(case: dict[str, Any]) -> list[dict[str, Any]]:
    """What the stores there observed. Where what came back depends on the store, each answer that one of them gave."""
    facts = case["expected"]
    if "refused" in facts:
        return [{"refused": facts["refused"]}]
    told = {key: facts[key] for key in ("shape", "bytes", "digest", "canonical") if key in facts}
    trips = facts["roundtrip"]
    by_store = trips.values() if isinstance(trips, dict) and "memory" in trips else [trips]
    return [told | {"roundtrip": trip} for trip in by_store]


def observed(case: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    payload = payload_of(case)
    try:
        meta = ledger.store.put(SCOPE, payload, kind="k")
    except (InvalidArtifact, TooLarge):
        return REFUSED
    facts: dict[str, Any] = {"shape": SHAPES[meta.shape], "bytes": meta.bytes, "digest": meta.digest}
    if meta.shape == "json" and meta.bytes <= LONGEST_CANONICAL:
        facts["canonical"] = encode(payload).data.decode()
    found = ledger.store.get(SCOPE, meta.ref)
    streamed = ledger.store.get_stream(SCOPE, meta.ref)
    assert found is not None and streamed is not None and found.meta == meta == ledger.store.head(SCOPE, meta.ref)
    assert streamed.read_all() == encode(payload).data and streamed.verified
    return facts | {"roundtrip": "same" if came_back(payload, found.data) else {"changed_to": found.data}}


def came_back(payload: Any, data: Any) -> bool:
    """Whether the same value came back. JavaScript has one type of number and tells -0 from 0; text and bytes are no lists."""
    if isinstance(payload, bytes | bytearray | memoryview):
        return type(data) is bytes and data == bytes(payload)
    if isinstance(payload, float):
        # Beyond 2^53 ECMAScript writes fewer digits than the double has, which Python reads as an integer.
        data = float(data)
    return bool(data == payload) and isinstance(data, str) == isinstance(payload, str) and repr(payload) != "-0.0"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Ledger.open(tmp_path_factory.mktemp("payloads") / "log.db", durability="process") as ledger:
        yield ledger


def test_the_vectors_are_all_there() -> None:
    assert (len(CASES), VECTORS["count"], stale(PAYLOADS, CASES)) == (115, 115, set())


@pytest.mark.parametrize("name", CASES)
def test_a_payload_is_kept_as_observed_or_as_decided(name: str, ledger: Ledger) -> None:
    case = CASES[name]
    before = ledger.store.list(SCOPE, limit=1)
    seen = observed(case, ledger)
    agrees = seen in expected(case)
    if seen == REFUSED:
        assert ledger.store.list(SCOPE, limit=1) == before
    if differs(PAYLOADS, name):
        assert seen == (KEYS_IN_ORDER if name == "json-integer-like-keys" else REFUSED)
    assert agrees is not differs(PAYLOADS, name)
    note(PAYLOADS, name, verdict_on(PAYLOADS, name, weakness=case.get("known_weakness", False)))


KEYS_IN_ORDER = {
    "shape": "json",
    "bytes": 42,
    "digest": encode({"b": 1, "10": 2, "2": 3, "01": 4, "-1": 5, "1.5": 6}).digest,
    "canonical": '{"b":1,"10":2,"2":3,"01":4,"-1":5,"1.5":6}',
    "roundtrip": "same",
}
