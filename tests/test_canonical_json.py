"""Canonical JSON is RFC 8785, less what our databases cannot hold; reading JSON back is strict."""

from __future__ import annotations

import datetime
import json
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from refledger_schema import canonical
from refledger_schema.canonical import MAX_DEPTH, MAX_SAFE_INTEGER, canonical_json, ecmascript_number, parse_json
from refledger_schema.errors import NotCanonical

NAN, INFINITY = float("nan"), float("inf")

any_text = st.text(st.characters(exclude_categories=()), max_size=8)
storable_text = st.text(max_size=8).filter(lambda text: "\x00" not in text)
order_telling_keys = st.text(st.sampled_from("a\u00e9\u20ac\ud7ff\ue000\ufb33\uffff\U00010000\U0001f600\U0010ffff"), max_size=3)


def json_values(
    texts: st.SearchStrategy[str], integers: st.SearchStrategy[int], floats: st.SearchStrategy[float]
) -> st.SearchStrategy[Any]:
    """Values of at most 25 scalars, with keys that tell UTF-16 order from that of code points, and tuples among the arrays."""
    scalars = st.none() | st.booleans() | integers | floats | texts
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.dictionaries(texts, inner, max_size=5)
            | st.dictionaries(order_telling_keys, inner, max_size=5)
            | st.lists(inner, max_size=3).map(tuple)
        ),
        max_leaves=25,
    )


safe_integers = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
finite_floats = st.floats(allow_nan=False, allow_infinity=False) | safe_integers.map(float) | st.floats(-1e-3, 1e-3)
good_values = json_values(storable_text, safe_integers, finite_floats)
any_values = json_values(any_text, safe_integers | st.integers(), st.floats() | finite_floats)


def refusal(call: Callable[[Any], object], value: object) -> tuple[str, str]:
    """The path and the reason that `call` refuses `value` with."""
    with pytest.raises(NotCanonical) as caught:
        call(value)
    return caught.value.path, caught.value.reason


def nested(depth: int, innermost: object = None) -> Any:
    """`depth` arrays inside each other."""
    value: Any = [] if innermost is None else [innermost]
    for _ in range(depth - 1):
        value = [value]
    return value


class Point(NamedTuple):
    x: int
    y: int


class Colour(StrEnum):
    RED = "red"


class OldColour(str, Enum):  # noqa: UP042 - the spelling that older programs use
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Plain(Enum):
    RED = "red"


class Celsius(float):
    pass


class Pile(list):  # type: ignore[type-arg]
    pass


# RFC 8785 appendix B, the numbers of its table in its order.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def double(bits: str) -> float:
    x: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return x


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_written_as_in_appendix_b(bits: str, text: str) -> None:
    assert (ecmascript_number(double(bits)), canonical_json([double(bits)])) == (text, f"[{text}]")


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_nan_and_infinities_have_no_number(bits: str) -> None:
    path, reason = refusal(ecmascript_number, double(bits))
    assert (path, reason) == ("$", "expected a finite number; found NaN or an infinity. Use None where there is no number.")


@given(finite_floats)
def test_every_finite_number_is_read_back_as_itself(x: float) -> None:
    assert float(ecmascript_number(x)) == x


@given(finite_floats)
def test_every_finite_number_is_written_as_the_reference_writes_it(x: float) -> None:
    assert ecmascript_number(x) == rfc8785.dumps(x).decode()


@pytest.mark.parametrize("exponent", range(-324, 309))
def test_the_point_stands_where_the_reference_puts_it_at_every_power_of_ten(exponent: int) -> None:
    numbers = [float(f"{mantissa}e{exponent}") for mantissa in ("1", "-1", "1.5", "1.7976931348623157", "-1.2345678901234567")]
    assert [ecmascript_number(x) for x in numbers] == [rfc8785.dumps(x).decode() for x in numbers]


def test_the_sample_of_section_3_2_2_is_reproduced() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert canonical_json(value) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_stand_in_the_order_of_section_3_2_3() -> None:
    value = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert list(json.loads(canonical_json(value)).values()) == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


def test_an_astral_key_stands_before_the_end_of_the_basic_plane_and_after_its_surrogates() -> None:
    assert canonical_json({"\uffff": 3, "\U00010000": 2, "\ud7ff": 1}) == '{"\ud7ff":1,"\U00010000":2,"\uffff":3}'


def test_strings_are_escaped_only_where_json_demands_it() -> None:
    value = '"\\/\b\f\n\r\t\x01\x1f\x7f\x80\u2028\u2029\ufeff<\U0001f600'
    assert canonical_json(value) == '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\x80\u2028\u2029\ufeff<\U0001f600"'


def test_unicode_is_not_normalised() -> None:
    assert canonical_json(["\u00e9", "e\u0301"]) == '["\u00e9","e\u0301"]'


def test_a_tuple_is_an_array_and_a_whole_float_is_an_integer() -> None:
    assert canonical_json((1.0, -0.0, True, 1, [], {})) == "[1,0,true,1,[],{}]"


def test_an_instance_of_a_subclass_is_written_as_its_base() -> None:
    value = OrderedDict(b=Colour.RED, a=Level.HIGH, c=Celsius(1.5), d=Pile([OldColour.RED]), e={Colour.RED: None})
    value.move_to_end("b")
    assert canonical_json(value) == '{"a":3,"b":"red","c":1.5,"d":["red"],"e":{"red":null}}'


def test_the_largest_safe_integers_are_written() -> None:
    assert canonical_json([MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER]) == "[9007199254740991,-9007199254740991]"


@given(any_values)
@example({"\U0001f600": 1, "\ufb33": 2})
@example({"label": "❤️ \U0001f600", "b": 1, "a": 2})
@example([{"a\x00": 1}])
@example({"\ud800": None})
@example(["\\u0000"])
@example([-(2**53)])
def test_canonical_json_and_the_reference_differ_only_on_nul(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value).decode()
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):  # the latter is how it refuses a lone surrogate in a key
        expected = None
    if expected is not None and "\x00" in strings_of(value):
        expected = None
    assert text_or_none(canonical_json, value) == expected


def strings_of(value: Any) -> str:
    """All texts and keys of `value`, joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(map(strings_of, [*value, *value.values()]))
    return "".join(map(strings_of, value)) if isinstance(value, list | tuple) else ""


def text_or_none(write: Callable[[object], str], value: object) -> str | None:
    try:
        return write(value)
    except NotCanonical:
        return None


@given(any_values)
@example([1e16, 9007199254740993.0, -0.0])
@example(1.0)
@example({"version": "2.0, 3.0]", "x": 1.0})
def test_the_fast_writer_writes_what_the_exact_one_does(value: object) -> None:
    exact = canonical._Writer(canonical._CANONICAL).text
    assert text_or_none(canonical_json, value) == text_or_none(exact, value)


@given(json_values(storable_text, safe_integers, finite_floats.filter(lambda x: not 2**53 <= abs(x) < 1e21)))
def test_what_is_read_back_is_written_as_the_same_text(value: object) -> None:
    text = canonical_json(value)
    assert canonical_json(parse_json(text)) == text


def test_a_float_past_the_safe_integers_is_read_back_as_an_integer_that_is_refused() -> None:
    text = canonical_json(2.0**53)
    path, _ = refusal(canonical_json, parse_json(text))
    assert (text, path) == ("9007199254740992", "$")


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": [0, 1, 2, {"odd key": NAN}]}, '$.a[3]."odd key"', "expected a finite number; found NaN or an infinity."),
        ([INFINITY], "$[0]", "expected a finite number; found NaN or an infinity."),
        (-INFINITY, "$", "expected a finite number; found NaN or an infinity."),
        ({"a": "x\ud800"}, "$.a", "expected well-formed text; found a lone surrogate."),
        ({"a": {"\udc00": 1}}, '$.a."\\udc00"', "expected well-formed text; found a lone surrogate."),
        (["é", "\ude00\ud83d"], "$[1]", "expected well-formed text; found a lone surrogate."),
        (["a", "b\x00"], "$[1]", "expected text that a database can hold; found NUL (U+0000)."),
        ({"\x00": 1}, '$."\\u0000"', "expected text that a database can hold; found NUL (U+0000)."),
        ({"n": MAX_SAFE_INTEGER + 1}, "$.n", "expected an integer within ±(2^53−1); found a larger one."),
        ({"n": -MAX_SAFE_INTEGER - 1}, "$.n", "expected an integer within ±(2^53−1); found a larger one."),
        ({"n": 10**5000}, "$.n", "expected an integer within ±(2^53−1); found a larger one."),
        ({"a": {1: 2}}, "$.a", "expected text keys; found one of type int."),
        ({"a": 1, None: 2}, "$", "expected text keys; found one of type NoneType."),
        ({True: 1}, "$", "expected text keys; found one of type bool."),
        ([{1, 2}], "$[0]", "expected a JSON value; found set."),
        (b"x", "$", "expected a JSON value; found bytes."),
        ({"at": datetime.date(2026, 1, 1)}, "$.at", "expected a JSON value; found datetime.date."),
        ([Decimal("1.5")], "$[0]", "expected a JSON value; found decimal.Decimal."),
        ([1j], "$[0]", "expected a JSON value; found complex."),
        ([Plain.RED], "$[0]", f"expected a JSON value; found {__name__}.Plain."),
        ([Point(1, 2)], "$[0]", f"expected a JSON value; found {__name__}.Point."),
        (object, "$", "expected a JSON value; found type."),
    ],
)
def test_what_has_no_canonical_form_is_refused_at_its_path(value: object, path: str, reason: str) -> None:
    refused_at, why = refusal(canonical_json, value)
    assert (refused_at, why[: len(reason)]) == (path, reason)


def test_a_refusal_says_what_was_expected_what_was_found_and_what_to_do() -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical_json({"rows": [{"price": NAN}]})
    assert str(caught.value) == "$.rows[0].price: expected a finite number; found NaN or an infinity. Use None where there is no number."


@pytest.mark.parametrize("value", ["hunter2\x00", ["hunter2\ud800"], [b"hunter2"], {"k": {"hunter2"}}, [31337 * 10**20]])
def test_a_refusal_never_quotes_the_value(value: object) -> None:
    path, reason = refusal(canonical_json, value)
    assert not any(secret in path + reason for secret in ("hunter2", "31337"))


def test_a_long_or_unprintable_key_is_cut_and_escaped_in_the_path() -> None:
    path, _ = refusal(canonical_json, {"k" * 1_000: {"\x1b[31m\n": NAN}})
    assert path == '$."' + "k" * 64 + '..."."\\u001b[31m\\n"'


def test_64_levels_are_written_and_65_are_refused() -> None:
    path, reason = refusal(canonical_json, nested(MAX_DEPTH + 1))
    assert (canonical_json(nested(MAX_DEPTH)), path, reason) == (
        "[" * 64 + "]" * 64,
        "$" + "[0]" * 64,
        "expected at most 64 levels; found more. Flatten the value, or check it in as a payload.",
    )


def test_a_scalar_in_the_deepest_level_is_no_level_of_its_own() -> None:
    assert canonical_json(nested(MAX_DEPTH, "x")) == "[" * 64 + '"x"' + "]" * 64


def test_a_container_inside_itself_is_refused_where_it_first_comes_again() -> None:
    row: dict[str, Any] = {"id": 1}
    row["links"] = [None, {"self": row}]
    array: list[Any] = []
    array.append(array)
    ordered: OrderedDict[str, Any] = OrderedDict()
    ordered["self"] = ordered
    reason = "expected a value that ends; found a container inside itself. Put an id or a copy there."
    assert [refusal(canonical_json, value) for value in (row, array, ordered)] == [
        ("$.links[1].self", reason),
        ("$[0]", reason),
        ("$.self", reason),
    ]


def test_one_container_in_two_places_is_no_cycle() -> None:
    shared = {"a": 1.0}
    assert canonical_json([shared, shared, OrderedDict(a=shared)]) == '[{"a":1},{"a":1},{"a":{"a":1}}]'


def test_two_keys_of_one_text_are_refused() -> None:
    class Key(str):
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    assert refusal(canonical_json, {Key("a"): 1, Key("a"): 2}) == ("$", "expected every key once; found two keys of the same text.")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"b": [1, 2.5, "x"], "a": null}\n', {"b": [1, 2.5, "x"], "a": None}),
        ('"\\ud83d\\ude00 \\u0041"', "\U0001f600 A"),
        ('"\\u0000"', "\x00"),
        ("12345678901234567890123", 12345678901234567890123),
        (b'{"caf\xc3\xa9": true}', {"café": True}),
        ('["NaN", "\\\\ud800"]', ["NaN", "\\ud800"]),
    ],
)
def test_a_well_formed_text_is_read(text: str | bytes, value: object) -> None:
    assert parse_json(text) == value


def test_keys_are_read_in_their_order() -> None:
    value = parse_json('{"b":1,"a":2,"c":{}}')
    assert isinstance(value, dict) and list(value) == ["b", "a", "c"]


def test_an_integer_is_read_exactly_however_long() -> None:
    big = 7**12_000
    assert parse_json(f'{{"n": [{Decimal(big)}, {Decimal(-big)}]}}') == {"n": [big, -big]}


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "$.a", 'expected every key once; "b" stands twice.'),
        ('[{"a": 1, "\\u0061": 1}]', "$[0]", 'expected every key once; "a" stands twice.'),
        ('{"a": {"x": 1, "x": 1}, "a": 2}', "$", 'expected every key once; "a" stands twice.'),
        ('{"a": [NaN]}', "$.a[0]", "expected a finite number; found NaN or an infinity."),
        ("[1, -Infinity]", "$[1]", "expected a finite number; found NaN or an infinity."),
        ('{"big": 1e400}', "$.big", "expected a finite number; found NaN or an infinity."),
        ('{"a": "\\ud800"}', "$.a", "expected well-formed text; found a lone surrogate."),
        ('{"\\udfff": 1}', '$."\\udfff"', "expected well-formed text; found a lone surrogate."),
        ('["\\ude00\\ud83d"]', "$[0]", "expected well-formed text; found a lone surrogate."),
        ('["\ud800"]', "$", "expected well-formed text; found a lone surrogate at character 2."),
        ("\ufeff{}", "$", "expected JSON without a byte order mark; found one."),
        (b"\xef\xbb\xbf{}", "$", "expected JSON without a byte order mark; found one."),
        ('{"a":1} {"b":2}', "$", "expected one JSON text; it goes wrong at character 8."),
        ('{"a":1,}', "$", "expected one JSON text; it goes wrong at character"),
        ("", "$", "expected one JSON text; it goes wrong at character 0."),
        ('["a\nb"]', "$", "expected one JSON text; it goes wrong at character 3."),
        ("[01]", "$", "expected one JSON text; it goes wrong at character 2."),
        ("['a']", "$", "expected one JSON text; it goes wrong at character 1."),
        ('{"a":1,"a":1} x', "$", "expected one JSON text; it goes wrong at character 14."),
        (b'{"a": "\xff"}', "$", "expected UTF-8; it goes wrong at byte 7."),
        ("{}".encode("utf-16"), "$", "expected UTF-8; it goes wrong at byte 0."),
        ("[" * 100_000, "$", "expected a text that can be read; it is nested too deeply."),
        ('[{"a":1,"a":1},' + "[" * 100_000, "$", "expected a text that can be read; it is nested too deeply."),
    ],
)
def test_a_text_that_two_readers_could_take_differently_is_refused(text: str | bytes, path: str, reason: str) -> None:
    refused_at, why = refusal(parse_json, text)
    assert (refused_at, why[: len(reason)]) == (path, reason)


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused_by_name(text: str | bytes) -> None:
    try:
        value = parse_json(text)
    except NotCanonical:
        return
    assert value == json.loads(text)


@given(any_values)
def test_what_json_dumps_writes_is_read_as_json_loads_reads_it_or_refused(value: object) -> None:
    text = json.dumps(value)
    try:
        read = parse_json(text)
    except NotCanonical:
        assert "NaN" in text or "Infinity" in text or "\\ud" in text
        return
    assert read == json.loads(text)


def test_the_hosts_limit_on_digits_is_left_as_it_is() -> None:
    before = sys.get_int_max_str_digits()
    parse_json("9" * 5_000)
    assert sys.get_int_max_str_digits() == before
