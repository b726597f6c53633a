"""A JSON payload is stored exactly as it was given (decision 13), or refused; the vectors say how, and where we differ."""

from __future__ import annotations

import datetime
import json
import sys
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refledger_schema import canonical
from refledger_schema.canonical import MAX_PAYLOAD_DEPTH, canonical_json, parse_json, payload_json
from refledger_schema.errors import NotCanonical, TooLarge
from tests.test_canonical_json import (
    INFINITY,
    NAN,
    Celsius,
    Colour,
    Level,
    OldColour,
    Plain,
    Point,
    any_text,
    any_values,
    finite_floats,
    good_values,
    json_values,
    nested,
    refusal,
    text_or_none,
)
from tests.vectors_encoding import UNDEFINED, decode, load

NOT_JSON = "decision: what is no JSON value is refused, never approximated (W18)"
JAVASCRIPT = "an object of the host language only; Python's nearest values are tested by name below"
NO_LONE_SURROGATES = "decision 13: lone surrogates are refused"
NO_NAN = "decision: NaN and infinities are refused, never made null (W18)"
KEY_ORDER = "decision 13: keys keep their order; JavaScript moves integer-like ones to the front"
DEPTH = "decision: a payload has at most 128 levels, unless the caller allows more"

DIFFERENCES = {
    "json-f64--Infinity": NO_NAN,
    "json-nan-nested": NO_NAN,
    "json-integer-like-keys": KEY_ORDER,
    "json-lone-surrogate-value": NO_LONE_SURROGATES,
    "json-nest-array-1000": DEPTH,
    "json-nest-array-3000": DEPTH,
    "json-nest-object-1000": DEPTH,
    "reshaped-array-extra-prop": JAVASCRIPT,
    "reshaped-arraybuffer": NOT_JSON,
    "reshaped-boxed-bool": JAVASCRIPT,
    "reshaped-boxed-string": JAVASCRIPT,
    "reshaped-bytes-nested": NOT_JSON,
    "reshaped-class-instance": NOT_JSON,
    "reshaped-date": NOT_JSON,
    "reshaped-error": NOT_JSON,
    "reshaped-function-member": NOT_JSON,
    "reshaped-inherited": JAVASCRIPT,
    "reshaped-invalid-date": NOT_JSON,
    "reshaped-map": NOT_JSON,
    "reshaped-non-enumerable": JAVASCRIPT,
    "reshaped-null-proto": JAVASCRIPT,
    "reshaped-promise": NOT_JSON,
    "reshaped-regexp": NOT_JSON,
    "reshaped-set": NOT_JSON,
    "reshaped-sparse": JAVASCRIPT,
    "reshaped-symbol-key": JAVASCRIPT,
    "reshaped-tojson-object": JAVASCRIPT,
    "reshaped-uint16array": NOT_JSON,
    "reshaped-uint8clamped": NOT_JSON,
    "reshaped-undefined-member": NOT_JSON,
}
"""The cases of payloads.json that we answer otherwise, each by the decision that says so."""

CASES = {case["id"]: case for case in load("payloads")["cases"] if case["expected"].get("shape", "json") == "json"}
LONGEST_TEXT_GIVEN = 400
"""The vectors leave out longer texts; in bytes."""


def observed(case: dict[str, Any], **options: int) -> dict[str, Any]:
    """What we make of a case's payload, in the vectors' terms."""
    try:
        text = payload_json(decode(case["payload"]), **options)
    except (NotCanonical, TooLarge):
        return {"refused": True}
    data = text.encode()
    outcome = {"bytes": len(data), "digest": "sha-256:" + sha256(data).hexdigest()}
    return outcome | ({"canonical": text} if len(data) <= LONGEST_TEXT_GIVEN else {})


def expected(case: dict[str, Any]) -> dict[str, Any]:
    outcome = case["expected"]
    if "refused" in outcome:
        return {"refused": True}
    return {key: outcome[key] for key in ("bytes", "digest", "canonical") if key in outcome}


def test_the_vectors_are_all_there() -> None:
    assert (load("payloads")["count"], len(CASES), DIFFERENCES.keys() - CASES.keys()) == (115, 85, set())


@pytest.mark.parametrize("name", [name for name in CASES if name not in DIFFERENCES])
def test_a_payload_has_the_text_bytes_and_digest_of_its_vector(name: str) -> None:
    assert observed(CASES[name]) == expected(CASES[name])


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_payload_differs_from_its_vector_only_by_decision(name: str) -> None:
    assert observed(CASES[name]) != expected(CASES[name])


@pytest.mark.parametrize("name", [name for name, reason in DIFFERENCES.items() if reason not in (KEY_ORDER, DEPTH)])
def test_where_the_vector_approximates_we_refuse(name: str) -> None:
    assert observed(CASES[name]) == {"refused": True}


@pytest.mark.parametrize("name", [name for name, reason in DIFFERENCES.items() if reason == DEPTH])
def test_a_deep_payload_has_its_vectors_bytes_when_the_caller_allows_it(name: str) -> None:
    assert observed(CASES[name], max_depth=3_000) == expected(CASES[name])


def test_keys_that_look_like_integers_keep_their_place() -> None:
    assert payload_json(decode(CASES["json-integer-like-keys"]["payload"])) == '{"b":1,"10":2,"2":3,"01":4,"-1":5,"1.5":6}'


def test_keys_stand_in_the_values_own_order() -> None:
    value = OrderedDict(a={"z": 1, "y": 2}, b=1)
    value.move_to_end("a")
    assert payload_json([{"b": 1, "a": 2}, value]) == '[{"b":1,"a":2},{"b":1,"a":{"z":1,"y":2}}]'


def test_numbers_are_written_as_ecmascript_writes_them() -> None:
    value = [1.0, 1, -0.0, 0.0, 1e21, 1e20, 1.5, 1e-7, 0.000001, 12345678901234567000.0, True]
    assert payload_json(value) == "[1,1,0,0,1e+21,100000000000000000000,1.5,1e-7,0.000001,12345678901234567000,true]"


def test_integers_of_any_size_keep_all_their_digits() -> None:
    big = 10**5_000 + 7
    assert payload_json([2**53 + 1, -(2**64) - 1, big, -big]) == (
        f"[9007199254740993,-18446744073709551617,1{'0' * 4_998}07,-1{'0' * 4_998}07]"
    )


def test_tuples_are_arrays_and_subclasses_are_their_base() -> None:
    value = (Colour.RED, OldColour.RED, Level.HIGH, Celsius(2.0), {Colour.RED: ()})
    assert payload_json(value) == '["red","red",3,2,{"red":[]}]'


def test_strings_may_hold_nul_and_are_escaped_as_json_stringify_escapes() -> None:
    assert payload_json({"a\x00": '\x00\x1f\x7f\u2028"\\/é\U0001f600'}) == '{"a\\u0000":"\\u0000\\u001f\x7f\u2028\\"\\\\/é\U0001f600"}'


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"rows": [{"price": NAN}]}, "$.rows[0].price", "expected a finite number; found NaN or an infinity."),
        ([1.0, INFINITY], "$[1]", "expected a finite number; found NaN or an infinity."),
        ([Celsius(-INFINITY)], "$[0]", "expected a finite number; found NaN or an infinity."),
        (["a\ud800"], "$[0]", "expected well-formed text; found a lone surrogate."),
        ({"é": {"\udfff": 1}}, '$."\\u00e9"."\\udfff"', "expected well-formed text; found a lone surrogate."),
        ({1: 2}, "$", "expected text keys; found one of type int."),
        ([{("a", "b"): 2}], "$[0]", "expected text keys; found one of type tuple."),
        ([datetime.datetime(2026, 1, 1)], "$[0]", "expected a JSON value; found datetime.datetime."),
        ({"tags": {"a"}}, "$.tags", "expected a JSON value; found set."),
        ({"raw": b"\x00\x01"}, "$.raw", "expected a JSON value; found bytes."),
        ([bytearray(b"x")], "$[0]", "expected a JSON value; found bytearray."),
        ([Decimal("0.1")], "$[0]", "expected a JSON value; found decimal.Decimal."),
        ([Point(1, 2)], "$[0]", f"expected a JSON value; found {Point.__module__}.Point."),
        ([Plain.RED], "$[0]", f"expected a JSON value; found {Plain.__module__}.Plain."),
        ({"x": UNDEFINED}, "$.x", f"expected a JSON value; found {type(UNDEFINED).__module__}.Undefined."),
        ([range(3)], "$[0]", "expected a JSON value; found range."),
        ({"a": {}.keys()}, "$.a", "expected a JSON value; found dict_keys."),
        ([ValueError("x")], "$[0]", "expected a JSON value; found ValueError."),
    ],
)
def test_what_json_cannot_carry_is_refused_at_its_path(value: object, path: str, reason: str) -> None:
    refused_at, why = refusal(payload_json, value)
    assert (refused_at, why[: len(reason)]) == (path, reason)


def test_a_container_inside_itself_is_refused_at_any_bound() -> None:
    value: dict[str, Any] = {"a": [1]}
    value["a"].append(value)
    reason = "expected a value that ends; found a container inside itself. Put an id or a copy there."
    assert (refusal(payload_json, value), refusal(lambda it: payload_json(it, max_depth=10**9), value)) == (("$.a[1]", reason),) * 2


def depth_refused(value: object, **options: int) -> tuple[str, int, int]:
    with pytest.raises(TooLarge) as caught:
        payload_json(value, **options)
    return caught.value.what, caught.value.limit, caught.value.found


def test_a_payload_one_level_too_deep_is_too_large() -> None:
    assert (payload_json(nested(MAX_PAYLOAD_DEPTH)), depth_refused(nested(MAX_PAYLOAD_DEPTH + 1))) == (
        "[" * 128 + "]" * 128,
        ("payload depth", 128, 129),
    )


def test_the_bound_is_the_callers() -> None:
    assert (payload_json({"a": []}, max_depth=2), depth_refused({"a": []}, max_depth=1), depth_refused([], max_depth=0)) == (
        '{"a":[]}',
        ("payload depth", 1, 2),
        ("payload depth", 0, 1),
    )


def test_a_hundred_thousand_levels_are_too_large_or_written_but_never_a_recursion_error() -> None:
    deep = nested(100_000, 1.0)
    assert depth_refused(deep) == ("payload depth", 128, 129)
    assert payload_json(deep, max_depth=100_000) == "[" * 100_000 + "1" + "]" * 100_000


def with_little_stack(call: Callable[[], str]) -> str:
    """What `call` returns where the host has left it 60 frames."""
    frame, depth = sys._getframe(), 1
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 60)
    try:
        return call()
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("innermost", ["x", 1.0])
def test_a_hundred_levels_need_few_of_the_hosts_frames(innermost: object) -> None:
    value = nested(100, innermost)
    assert with_little_stack(lambda: payload_json(value)) == "[" * 100 + payload_json(innermost) + "]" * 100


@given(json_values(any_text, st.integers(), st.floats() | finite_floats))
@example([1e16, 9007199254740993.0, -0.0])
@example(-0.0)
@example({"b": 10**639, "a": -(10**640), "c": 1.0})
def test_the_fast_writer_writes_what_the_exact_one_does(value: object) -> None:
    exact = canonical._Writer(canonical._PAYLOAD).text
    assert text_or_none(payload_json, value) == text_or_none(exact, value)


@given(any_values)
def test_what_is_stored_is_read_back_equal_and_in_order(value: object) -> None:
    text = text_or_none(payload_json, value)
    if text is not None:
        assert in_order(parse_json(text)) == in_order(value)


def in_order(value: Any) -> Any:
    """`value` as something that compares order and numbers: pairs for dicts, lists for tuples, floats for large whole numbers."""
    if isinstance(value, dict):
        return [(key, in_order(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [in_order(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and 2**53 <= abs(value) < 10**22:
        return float(value)
    return value


@given(good_values)
def test_a_value_in_canonical_order_has_one_text_in_both_forms(value: object) -> None:
    text = canonical_json(value)
    assert payload_json(parse_json(text)) == text


@given(json_values(st.text(), st.integers(), st.nothing()))
def test_without_floats_the_text_is_that_of_the_standard_library(value: object) -> None:
    assert payload_json(value) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)
