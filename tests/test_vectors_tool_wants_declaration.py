"""Every vector of tool_wants_declaration.json: what `assert_tool_wants` takes, and what it refuses, about which argument and why."""

from __future__ import annotations

from typing import Any

import pytest

from refledger import RefledgerError, assert_tool_wants
from refledger_schema.errors import InvalidDeclaration, TooLarge
from tests.vector_differences import DECLARATION, DIFFERENCES, HOST, differs, note, stale, verdict_on
from tests.vectors_encoding import UNDEFINED, decode, load

VECTORS = load(DECLARATION)
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in VECTORS["cases"]}
TOOL = VECTORS["toolName"]
Outcome = tuple[str, ...]
ACCEPTED: Outcome = ("accept",)
CATEGORIES = {
    "expected at least one argument": "empty-declaration",
    "expected argument names": "bad-name",
    "expected its kind": "bad-kind",
    "expected the argument among the schema's `properties`": "arg-not-in-schema",
    'expected its schema type to be "string"': "non-string-type",
}

DECIDED: dict[str, Outcome] = {
    "kind-nel": ("refuse", "bad-kind", "dataset"),
    "kind-unit-separator": ("refuse", "bad-kind", "dataset"),
    "arg-empty-name-no-schema": ("refuse", "bad-name"),
    "arg-empty-name-declared": ("refuse", "bad-name"),
    "property-anyof-arrays-no-type": ("refuse", "non-string-type", "dataset"),
    "property-const-number-no-type": ("refuse", "non-string-type", "dataset"),
    "property-false": ("refuse", "non-string-type", "dataset"),
    "kind-bigint": ("refuse", "bad-kind", "dataset"),
    "properties-array-index-name": ("refuse", "arg-not-in-schema", "0"),
    "arg-inherited-name": ("refuse", "arg-not-in-schema", "toString"),
    "arg-proto-name": ("refuse", "arg-not-in-schema", "__proto__"),
    "arg-length-of-array-properties": ("refuse", "arg-not-in-schema", "length"),
    "wants-null": ACCEPTED,
    "wants-string": ("refuse", "empty-declaration"),
    "wants-array": ("refuse", "empty-declaration"),
    "wants-array-with-schema": ("refuse", "empty-declaration"),
}
"""What we answer where the table of differences names a case."""


def answered(wants: Any, input_schema: Any, tool: str = TOOL) -> Outcome:
    """accept; or refuse, its category, and the argument that is refused."""
    try:
        assert_tool_wants(tool, wants, input_schema)
    except InvalidDeclaration as error:
        assert error.tool == tool and f"'{tool}'" in str(error)
        category = next(category for words, category in CATEGORIES.items() if words in str(error))
        return ("refuse", category) if error.argument is None else ("refuse", category, error.argument)
    return ACCEPTED


def observed(case: dict[str, Any]) -> Outcome:
    expected = case["expected"]
    if expected["outcome"] != "refuse":
        return (expected["outcome"],)
    assert expected["names_tool"]
    return ("refuse", expected["category"], *([expected["arg"]] if "arg" in expected else []))


def wants_of(case: dict[str, Any]) -> Any:
    wants = case["wants"]
    if isinstance(wants, dict):
        return None if wants == {"$undefined": True} else decode(wants["raw"])
    return {decode(name): None if (kind := decode(kind_tagged)) is UNDEFINED else kind for name, kind_tagged in wants}


def schema_of(case: dict[str, Any]) -> Any:
    return without_undefined(decode(case["inputSchema"]))


def without_undefined(value: Any) -> Any:
    """An undefined member is an absent one."""
    if isinstance(value, dict):
        return {key: without_undefined(item) for key, item in value.items() if item is not UNDEFINED}
    return None if value is UNDEFINED else value


def test_the_vectors_are_all_there() -> None:
    assert (len(CASES), VECTORS["count"], stale(DECLARATION, CASES)) == (90, 90, set())


@pytest.mark.parametrize("name", CASES)
def test_a_declaration_is_judged_as_observed_or_as_decided(name: str) -> None:
    case = CASES[name]
    ours = DECIDED[name] if differs(DECLARATION, name) else observed(case)
    assert answered(wants_of(case), schema_of(case)) == ours
    assert (ours != observed(case)) is differs(DECLARATION, name)
    note(DECLARATION, name, verdict_on(DECLARATION, name, weakness=case.get("known_weakness", False)))


def test_what_we_answer_otherwise_is_stated_for_each_difference_and_for_nothing_else() -> None:
    assert set(DECIDED) == {case for file, case in DIFFERENCES if file == DECLARATION}


def test_only_javascripts_own_cases_count_as_its_own() -> None:
    ours = {case for (file, case), (decided_by, _) in DIFFERENCES.items() if file == DECLARATION and decided_by == HOST}
    assert ours - {case["id"] for case in CASES.values() if "js_specific" in case} == {"wants-array-with-schema"}


@pytest.mark.parametrize(
    ("schema", "outcome"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ACCEPTED),
        ({"anyOf": [{"type": ["string", "null"]}]}, ACCEPTED),
        ({"anyOf": []}, ACCEPTED),
        ({"oneOf": [{"type": "array"}, {"type": "object"}]}, ("refuse", "non-string-type", "dataset")),
        ({"oneOf": [{"type": "array"}, {"$ref": "#/elsewhere"}]}, ACCEPTED),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, ACCEPTED),
        ({"allOf": [{"minLength": 1}, {"type": "number"}]}, ("refuse", "non-string-type", "dataset")),
        ({"anyOf": [{"allOf": [{"const": None}]}]}, ("refuse", "non-string-type", "dataset")),
        ({"enum": [1, 2]}, ("refuse", "non-string-type", "dataset")),
        ({"enum": [1, "art"]}, ACCEPTED),
        ({"const": "art"}, ACCEPTED),
        ({"anyOf": "nonsense", "enum": 5}, ACCEPTED),
    ],
)
def test_a_property_that_no_text_can_pass_is_refused_however_it_says_so(schema: dict[str, Any], outcome: Outcome) -> None:
    assert answered({"dataset": "dataset/rows"}, {"properties": {"dataset": schema}}) == outcome


def test_a_schema_nested_without_end_is_judged_all_the_same() -> None:
    endless: dict[str, Any] = {}
    endless["anyOf"] = [endless, endless]
    assert answered({"dataset": "dataset/rows"}, {"properties": {"dataset": endless}}) == ACCEPTED


@pytest.mark.parametrize(
    ("tool", "wants", "refused"),
    [
        ("t", {f"a{i}": "k" for i in range(33)}, (TooLarge, "the wants of tool 't'", 32, 33)),
        ("t", {"a": "k" * 101}, (TooLarge, "the kind of argument 'a', in characters", 100, 101)),
        ("t", {"a" * 201: "k"}, (InvalidDeclaration,)),
        ("t", {5: "k"}, (InvalidDeclaration,)),
        ("t" * 201, {"a": "k"}, (InvalidDeclaration,)),
        ("", {"a": "k"}, (InvalidDeclaration,)),
    ],
)
def test_what_no_event_could_hold_is_refused_where_it_is_declared(tool: str, wants: dict[str, str], refused: tuple[Any, ...]) -> None:
    with pytest.raises(RefledgerError) as caught:
        assert_tool_wants(tool, wants)
    error = caught.value
    facts = (error.what, error.limit, error.found) if isinstance(error, TooLarge) else ()
    assert (type(error), *facts) == refused


def test_the_largest_declaration_that_an_event_can_hold_is_taken() -> None:
    wants = {f"{i:02}".ljust(200, "a"): "k" * 100 for i in range(32)}
    assert answered(wants, {"properties": {name: {"type": "string"} for name in wants}}, tool="t" * 200) == ACCEPTED


def test_a_refused_declaration_says_what_was_expected_and_what_to_do() -> None:
    with pytest.raises(InvalidDeclaration) as caught:
        assert_tool_wants("summarize", {"dataset": "dataset/rows"}, {"properties": {"dataset": {"type": ["string", "null"]}}})
    assert str(caught.value) == (
        "wants of tool 'summarize', argument 'dataset': expected its schema type to be \"string\", since the model passes a ref and "
        "never the data. Change the type."
    )
