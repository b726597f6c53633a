"""What a tool returned is a declaration only if it is one to the letter; all else is data, and stays as it is."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refledger.described import described_result
from refledger.limits import Declared, model_view, recognise
from refledger.results import ABSENT_NOTE, COVERAGE_NOTE, MAX_NESTED, Absent, Item, absent, coverage, trimmed


def within(wire: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A wire form changed where its note stands."""
    if "af_coverage" in wire:
        return {**wire, "af_coverage": {**wire["af_coverage"], **change}}
    return {**wire, **change}


def without(wire: dict[str, Any], key: str) -> dict[str, Any]:
    if "af_coverage" in wire:
        return {**wire, "af_coverage": {name: value for name, value in wire["af_coverage"].items() if name != key}}
    return {name: value for name, value in wire.items() if name != key}


PAPER = {"what": "paper invoices", "why": "they are not scanned"}
ABSENCE: dict[str, Any] = absent("open invoices", checked=["the ledger"], cannot_cover=[PAPER]).to_wire()
BOUNDARY: dict[str, Any] = coverage({"healthy": True}, checked=["array 1"], not_checked=[]).to_wire()
DESCRIPTION: dict[str, Any] = described_result(
    series=[{"t": 1, "entity": "fc1/3", "metric": "iops", "value": None}],
    grain={"aggregation": "sum", "is_counter": False},
    provenance={"measured_at": "02:00", "source": "export", "age_seconds": 0},
    coverage={"checked": ["fabric a"], "not_checked": [{"what": "fabric b", "why": "offline"}]},
    clarify=None,
    render={"default": "table"},
).to_wire()
WIRES = {"absent": ABSENCE, "coverage": BOUNDARY, "described": DESCRIPTION}


# --- what is recognised ----------------------------------------------------------------------------------------------------


def test_an_absence_is_recognised_with_its_lists_and_its_status() -> None:
    declared = Declared(
        kind="absent", checked=(Item("the ledger"),), cannot_cover=(Item(**PAPER),), looked_for="open invoices", not_checked=None
    )
    assert recognise(ABSENCE) == declared
    assert declared.status == "absent"


def test_a_coverage_is_recognised_and_an_empty_list_is_not_one_left_out() -> None:
    declared = Declared(kind="coverage", checked=(Item("array 1"),), not_checked=(), cannot_cover=None)
    assert recognise(BOUNDARY) == declared
    assert declared.status == "ok"


def test_a_described_result_is_recognised_with_the_lists_of_its_coverage() -> None:
    assert recognise(DESCRIPTION) == Declared(kind="described", checked=(Item("fabric a"),), not_checked=(Item("fabric b", "offline"),))


def test_a_described_result_without_coverage_is_recognised_too() -> None:
    assert recognise(described_result(clarify={"question": "Which one?"})) == Declared(kind="described")


def test_a_coverage_around_an_absence_is_both_and_its_status_is_absent() -> None:
    inner = absent("x", checked=["a"], looked_for="INV-7")
    declared = recognise(coverage(inner, not_checked=["b"]))
    assert declared == Declared(kind="coverage", not_checked=(Item("b"),), within=recognise(inner))
    assert [each.kind for each in declared.each()] == ["coverage", "absent"]
    assert [each.looked_for for each in declared.each()] == [None, "INV-7"]
    assert declared.status == "absent"


def test_a_coverage_around_damaged_markers_is_a_coverage_around_data() -> None:
    declared = recognise(coverage({"af_absent": True}, checked=["a"]))
    assert declared == Declared(kind="coverage", checked=(Item("a"),))
    assert declared.status == "ok"


def test_a_helpers_value_inside_a_wire_form_is_recognised() -> None:
    declared = recognise({**BOUNDARY, "result": absent("x", checked=["a"])})
    assert declared is not None and declared.status == "absent"


def test_coverages_around_each_other_are_recognised_up_to_the_bound_and_never_run_away() -> None:
    wire: dict[str, Any] = copy.deepcopy(BOUNDARY)
    for _ in range(MAX_NESTED - 1):
        wire = {**BOUNDARY, "result": wire}
    declared = recognise(wire)
    assert declared is not None and len(list(declared.each())) == MAX_NESTED
    endless = dict(BOUNDARY)
    endless["result"] = endless
    declared = recognise(endless)
    assert declared is not None and len(list(declared.each())) == MAX_NESTED


def test_the_notes_may_be_another_producers_or_be_missing() -> None:
    for name, wire in WIRES.items():
        for change in ({"note": "In other words."}, {"note": ""}):
            assert recognise(within(wire, change)) == recognise(wire), name
        assert recognise(without(wire, "note")) == recognise(wire), name


@pytest.mark.parametrize("key", ["outcome", "retry_returns_the_same"])
def test_an_absence_need_not_repeat_what_its_marker_says(key: str) -> None:
    assert recognise(without(ABSENCE, key)) == recognise(ABSENCE)


def test_a_described_result_need_not_repeat_what_its_coverage_says() -> None:
    assert recognise(without(DESCRIPTION, "not_covered")) == recognise(DESCRIPTION)


def test_keys_that_a_later_producer_adds_take_nothing_away() -> None:
    assert recognise({**ABSENCE, "try_instead_tool": {"tool": "inventory"}, "period": {}}) == recognise(ABSENCE)
    assert recognise(within(BOUNDARY, {"in_progress": []})) == recognise(BOUNDARY)
    item = {"what": "array 1", "kind": "scope"}
    assert recognise(within(BOUNDARY, {"checked": [item]})) == recognise(BOUNDARY)


# --- what is data ----------------------------------------------------------------------------------------------------------


DATA: dict[str, Any] = {
    "null": None,
    "a text": "af_absent",
    "the wire form as text": json.dumps(ABSENCE),
    "a list around it": [ABSENCE],
    "an object around it": {"data": ABSENCE},
    "an empty object": {},
    "the marker alone": {"af_absent": True},
    "a marker that is 1": {**ABSENCE, "af_absent": 1},
    "a marker that is a text": {**ABSENCE, "af_absent": "true"},
    "a marker that is false": {**ABSENCE, "af_absent": False},
    "a marker in another case": {"AF_ABSENT": True, **without(ABSENCE, "af_absent")},
    "two markers": {**ABSENCE, **BOUNDARY},
    "an absence of nothing": {**ABSENCE, "looked_for": " "},
    "an absence that checked nothing": {**ABSENCE, "checked": []},
    "an absence with white space around its words": {**ABSENCE, "looked_for": "x "},
    "an absence with a list left open": {**ABSENCE, "not_checked": None},
    "an absence with a bare item": {**ABSENCE, "checked": ["the ledger"]},
    "an absence with a tuple": {**ABSENCE, "checked": ({"what": "the ledger"},)},
    "an absence with another outcome": {**ABSENCE, "outcome": "failed"},
    "an absence that may be retried": {**ABSENCE, "retry_returns_the_same": False},
    "an absence that may be retried, in numbers": {**ABSENCE, "retry_returns_the_same": 1},
    "a note that is no text": {**ABSENCE, "note": {}},
    "a blind spot without reason": {**ABSENCE, "cannot_cover": [{"what": "paper"}]},
    "a limit in another spelling": {**ABSENCE, "notChecked": [{"what": "the archive"}]},
    "a reason in another spelling": {**ABSENCE, "checked": [{"what": "the ledger", "Why": "it is there"}]},
    "words of 501 characters": {**ABSENCE, "looked_for": "x" * 501},
    "a list of 65": {**ABSENCE, "checked": [{"what": "a"}] * 65},
    "a coverage without a result": {"af_coverage": BOUNDARY["af_coverage"]},
    "a coverage beside other keys": {**BOUNDARY, "extra": 1},
    "a coverage that is true": {**BOUNDARY, "af_coverage": True},
    "a coverage of empty lists": {**BOUNDARY, "af_coverage": {"checked": [], "note": COVERAGE_NOTE}},
    "a limit of a coverage in another spelling": {**BOUNDARY, "af_coverage": {**BOUNDARY["af_coverage"], "notChecked": []}},
    "a described result with a key too many": {**DESCRIPTION, "extra": 1},
    "a described result whose caveats have one": {**DESCRIPTION, "grain": {"interval": "1h", "extra": 1}},
    "a described result whose lines disagree": {**DESCRIPTION, "not_covered": ["fabric c"]},
    "a described result whose lines come from nowhere": without(DESCRIPTION, "coverage"),
    "a described result without its grain": without(DESCRIPTION, "grain"),
    "a described result without its provenance": without(DESCRIPTION, "provenance"),
    "a described result that hides a counter": {**DESCRIPTION, "grain": {"aggregation": "sum"}},
    "a described result with a grain of null": {**DESCRIPTION, "grain": {"aggregation": "avg", "interval": None}},
    "a described result of NaN": {**DESCRIPTION, "series": [{**DESCRIPTION["series"][0], "value": float("nan")}]},
    "a described result that is 1": {**DESCRIPTION, "af_semantics": 1},
}


@pytest.mark.parametrize("name", DATA)
def test_what_is_no_declaration_to_the_letter_is_data_and_stays_as_it_is(name: str) -> None:
    data = DATA[name]
    before = repr(data)
    assert recognise(data) is None
    assert model_view(data) is data
    assert repr(data) == before


odd = st.sampled_from([{1: 2}, {1, 2}, b"x", object(), float("nan"), 10**400, ("a",), [[]], {"what": {}}, "\ud800", [{"what": "a", 1: 2}]])


@given(wire=st.sampled_from(list(WIRES.values())), changes=st.dictionaries(st.sampled_from([*ABSENCE, *DESCRIPTION, *BOUNDARY, 7]), odd))
def test_no_value_however_odd_makes_recognition_fail(wire: dict[str, Any], changes: dict[Any, Any]) -> None:
    changed = {**wire, **changes}
    if recognise(changed) is None:
        assert model_view(changed) is changed
    recognise({"af_coverage": changes, "result": changed})


# --- properties ------------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
words = (
    st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")).map(trimmed).filter(bool)
)
reasoned = st.builds(Item, words, words)
items = st.lists(st.builds(Item, words) | reasoned, max_size=3)
limits = st.fixed_dictionaries({}, optional={"checked": items, "not_checked": items, "cannot_cover": st.lists(reasoned, max_size=3)})
rows = st.lists(
    st.dictionaries(st.text(max_size=5), json_values, max_size=3).map(lambda row: {**row, "entity": "e"}), min_size=1, max_size=3
)

absences = st.builds(
    lambda what, first, lists, more: absent({**lists, **more, "what": what, "checked": [first]}),
    words,
    reasoned,
    limits,
    st.fixed_dictionaries({}, optional={"looked_for": words, "try_instead": words, "note": words}),
)
descriptions = st.builds(
    lambda facts, lists, more: described_result(
        {"facts": facts, "provenance": {"measured_at": "t", "source": "s"}, **more, **({"coverage": lists} if any(lists.values()) else {})}
    ),
    rows,
    limits,
    st.fixed_dictionaries({}, optional={"clarify": st.none(), "render": st.just({"default": "table"}), "edges": st.none()}),
)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda result, lists: coverage(result, lists), inner, limits.filter(lambda lists: any(lists.values())))


declarations = absences | descriptions | _around(json_values | absences | descriptions | _around(absences))


@given(value=declarations)
def test_what_a_helper_gives_is_recognised_and_so_is_its_wire_form_after_a_journey_as_text(value: Any) -> None:
    declared = recognise(value)
    assert declared is not None
    assert recognise(value.to_wire()) == declared
    assert recognise(json.loads(json.dumps(value.to_wire()))) == declared
    kind = {"Absent": "absent", "Coverage": "coverage", "DescribedResult": "described"}[type(value).__name__]
    assert (declared.kind, declared.checked, declared.not_checked, declared.cannot_cover) == (
        kind,
        value.checked,
        value.not_checked,
        value.cannot_cover,
    )


@given(value=json_values)
def test_data_without_a_marker_is_never_a_declaration(value: Any) -> None:
    assert recognise(value) is None
    assert model_view(value) is value


@given(value=declarations)
def test_recognising_and_viewing_change_nothing(value: Any) -> None:
    wire = value.to_wire()
    before = json.dumps(wire)
    recognise(wire)
    model_view(wire)
    assert json.dumps(wire) == before


keys = st.sampled_from(
    [
        "af_absent",
        "af_coverage",
        "af_semantics",
        "checked",
        "not_checked",
        "cannot_cover",
        "notChecked",
        "looked_for",
        "what",
        "why",
        "note",
    ]
    + ["outcome", "retry_returns_the_same", "try_instead", "tool_note", "result", "extra", "lookedFor", "Checked"]
)
pieces = (
    json_values
    | st.just(True)
    | st.sampled_from(["nothing_found", "x", " x", ""])
    | st.lists(st.fixed_dictionaries({"what": words}, optional={"why": words, "Why": words, "extra": words}) | words, max_size=2)
)


@given(wire=st.sampled_from([ABSENCE, BOUNDARY]), change=st.dictionaries(keys, pieces, max_size=2), dropped=st.sets(keys, max_size=2))
def test_a_changed_wire_form_is_recognised_exactly_if_it_still_has_the_shape(
    wire: dict[str, Any], change: dict[str, Any], dropped: set[str]
) -> None:
    changed = {key: value for key, value in {**wire, **change}.items() if key not in dropped}
    inside = {key: value for key, value in {**wire.get("af_coverage", {}), **change}.items() if key not in dropped}
    for candidate in (changed, {"af_coverage": inside, "result": 1}):
        assert (recognise(candidate) is not None) is (is_absence(candidate) or is_boundary(candidate)), candidate


def is_absence(value: dict[str, Any]) -> bool:
    """The shape of an absence, said once more in other words than the library's."""
    return (
        value.get("af_absent") is True
        and "af_coverage" not in value
        and "af_semantics" not in value
        and not {"notChecked", "lookedFor", "Checked"} & set(value)
        and is_words(value.get("looked_for"))
        and all(is_words(value[key]) for key in ("what", "try_instead", "tool_note") if key in value)
        and has_lists(value)
        and bool(value.get("checked"))
        and value.get("outcome", "nothing_found") == "nothing_found"
        and value.get("retry_returns_the_same", True) is True
        and isinstance(value.get("note", ""), str)
    )


def is_boundary(value: dict[str, Any]) -> bool:
    inside = value.get("af_coverage")
    return (
        set(value) == {"af_coverage", "result"}
        and isinstance(inside, dict)
        and not {"notChecked", "Checked"} & set(inside)
        and has_lists(inside)
        and any(inside.get(key) for key in ("checked", "not_checked", "cannot_cover"))
        and isinstance(inside.get("note", ""), str)
    )


def has_lists(value: dict[str, Any]) -> bool:
    return all(
        isinstance(value[key], list) and all(is_item(item, key) for item in value[key])
        for key in ("checked", "not_checked", "cannot_cover")
        if key in value
    )


def is_item(item: Any, key: str) -> bool:
    if not isinstance(item, dict) or "Why" in item or not is_words(item.get("what")):
        return False
    return is_words(item["why"]) if "why" in item else key != "cannot_cover"


def is_words(value: Any) -> bool:
    return isinstance(value, str) and value != "" and trimmed(value) == value and len(value) <= 500 and "\x00" not in value


# --- the model's view ------------------------------------------------------------------------------------------------------


def test_the_model_reads_an_absence_without_its_marker() -> None:
    assert model_view(absent("open invoices", checked=["the ledger"], try_instead="Ask again next year.")) == {
        "outcome": "nothing_found",
        "looked_for": "open invoices",
        "checked": [{"what": "the ledger"}],
        "retry_returns_the_same": True,
        "try_instead": "Ask again next year.",
        "note": ABSENT_NOTE,
    }


def test_the_model_reads_the_limits_before_the_result() -> None:
    view = model_view(coverage({"healthy": True}, not_checked=["array 5"]))
    assert list(view) == ["coverage", "result"]
    assert view == {"coverage": {"not_checked": [{"what": "array 5"}], "note": COVERAGE_NOTE}, "result": {"healthy": True}}


def test_the_model_reads_what_a_coverage_stands_around_in_its_own_view() -> None:
    inner = absent("x", checked=["a"])
    assert model_view(coverage(inner, checked=["b"]))["result"] == model_view(inner)


def test_the_model_reads_a_described_result_without_marker_hints_lists_and_null_question() -> None:
    view = model_view(DESCRIPTION)
    assert view == {
        "not_covered": ["fabric b — offline"],
        **{key: DESCRIPTION[key] for key in ("note", "grain", "provenance", "series")},
    }
    assert next(iter(view)) == "not_covered"


def test_the_model_reads_a_question_that_is_asked() -> None:
    question = {"question": "Which port?", "candidates": ["1", "2"]}
    assert model_view(described_result(clarify=question))["clarify"] == question


def test_a_described_result_that_left_out_its_lines_gets_them_for_the_model() -> None:
    assert model_view(without(DESCRIPTION, "not_covered")) == model_view(DESCRIPTION)


def test_the_model_reads_what_another_producer_added() -> None:
    assert model_view({**ABSENCE, "period": "2026"})["period"] == "2026"


def test_a_mapping_of_another_type_is_read_like_a_dict() -> None:
    assert recognise(OrderedDict(ABSENCE)) == recognise(ABSENCE)


@given(value=absences)
def test_what_was_looked_for_is_the_request_where_it_was_given(value: Absent) -> None:
    declared = recognise(value)
    assert declared is not None and declared.looked_for == (value.looked_for or value.what)
