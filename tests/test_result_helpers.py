"""`absent`, `coverage` and `described_result`: what a tool may say of its result, how it travels, and what is refused."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refledger.described import DESCRIBED_NOTE, NOT_GIVEN, described_result, may_count
from refledger.refusals import REFUSED_PREFIX, refusal
from refledger.results import ABSENT_NOTE, COVERAGE_NOTE, MAX_ITEMS, MAX_NESTED, MAX_TEXT, Coverage, Item, Limits, absent, coverage, trimmed
from refledger_schema.errors import DeclarationRefused

PROVENANCE = {"measured_at": "2026-03-01T02:00:00Z", "source": "nightly export"}
FACTS = [{"entity": "fc1/3", "errors": 12}]
POINT = {"t": 1700000000, "entity": "fc1/3", "metric": "iops", "value": 7.5}
PAPER = {"what": "paper invoices", "why": "they are not scanned"}

words = st.text(min_size=1, max_size=60, alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")).filter(trimmed)


def described(**fields: Any) -> Any:
    """Facts that lack nothing, and what a case adds to them."""
    return described_result({"facts": FACTS, "provenance": PROVENANCE, **fields})


# --- what travels ----------------------------------------------------------------------------------------------------------


def test_an_absence_says_what_was_looked_for_where_and_that_a_retry_changes_nothing() -> None:
    assert absent("open invoices", checked=["the ledger of 2026"]).to_wire() == {
        "af_absent": True,
        "outcome": "nothing_found",
        "looked_for": "open invoices",
        "checked": [{"what": "the ledger of 2026"}],
        "retry_returns_the_same": True,
        "note": ABSENT_NOTE,
    }
    assert "Repeating the call with the same arguments returns the same." in ABSENT_NOTE


def test_an_absence_keeps_the_request_and_the_authors_advice_in_fields_of_their_own() -> None:
    declared = absent(
        "open invoices",
        checked=["the ledger of 2026"],
        not_checked=[{"what": "the archive", "why": "it was offline"}],
        cannot_cover=[PAPER],
        looked_for="invoice INV-7",
        try_instead="Ask for another year.",
        note="The ledger is a day old.",
    )
    assert declared.to_wire() == {
        "af_absent": True,
        "outcome": "nothing_found",
        "what": "open invoices",
        "looked_for": "invoice INV-7",
        "checked": [{"what": "the ledger of 2026"}],
        "not_checked": [{"what": "the archive", "why": "it was offline"}],
        "cannot_cover": [PAPER],
        "retry_returns_the_same": True,
        "try_instead": "Ask for another year.",
        "tool_note": "The ledger is a day old.",
        "note": ABSENT_NOTE,
    }


@given(what=words, checked=words, looked_for=words, note=words)
def test_the_note_of_an_absence_is_static_whatever_the_caller_says(what: str, checked: str, looked_for: str, note: str) -> None:
    assert absent(what, checked=[checked], looked_for=looked_for, note=note).to_wire()["note"] == ABSENT_NOTE


def test_a_coverage_stands_before_the_result_it_bounds() -> None:
    wire = coverage({"healthy": True}, checked=["all four arrays"], cannot_cover=[PAPER]).to_wire()
    assert list(wire) == ["af_coverage", "result"]
    assert wire == {
        "af_coverage": {"checked": [{"what": "all four arrays"}], "cannot_cover": [PAPER], "note": COVERAGE_NOTE},
        "result": {"healthy": True},
    }


def test_a_coverage_hands_its_result_through_as_it_is() -> None:
    result = object()
    assert coverage(result, checked=["a"]).result is result


def test_a_coverage_around_another_helpers_value_carries_that_ones_wire_form() -> None:
    inner = absent("x", checked=["a"])
    assert coverage(inner, not_checked=["b"]).to_wire()["result"] == inner.to_wire()


def test_a_described_result_carries_its_caveats_before_its_data() -> None:
    wire = described_result(
        series=[POINT],
        facts=FACTS,
        edges=[{"from": "vm1", "to": "ds1", "kind": "rides"}],
        grain={"interval": "30m", "aggregation": "avg"},
        provenance={**PROVENANCE, "age_seconds": 30},
        coverage={"checked": ["fabric a"], "not_checked": ["fabric b"], "cannot_cover": [PAPER]},
        clarify={"question": "Which port?", "candidates": ["1", "2"]},
        render={"default": "table", "columns": ["entity", "errors"]},
    ).to_wire()
    assert wire == {
        "af_semantics": True,
        "note": DESCRIBED_NOTE,
        "grain": {"interval": "30m", "aggregation": "avg"},
        "provenance": {**PROVENANCE, "age_seconds": 30},
        "coverage": {"checked": [{"what": "fabric a"}], "not_checked": [{"what": "fabric b"}], "cannot_cover": [PAPER]},
        "not_covered": ["fabric b", "paper invoices — they are not scanned"],
        "series": [POINT],
        "facts": FACTS,
        "edges": [{"from": "vm1", "to": "ds1", "kind": "rides"}],
        "render": {"default": "table", "columns": ["entity", "errors"]},
        "clarify": {"question": "Which port?", "candidates": ["1", "2"]},
    }
    assert list(wire).index("not_covered") < list(wire).index("series")


def test_that_nothing_is_ambiguous_is_a_fact_and_differs_from_saying_nothing() -> None:
    stated, silent = described(clarify=None), described()
    assert (stated.clarify, silent.clarify) == (None, NOT_GIVEN)
    assert stated.to_wire() == {**silent.to_wire(), "clarify": None}
    assert described(clarify=NOT_GIVEN) == silent


def test_a_question_alone_is_a_described_result_and_its_candidates_may_be_none() -> None:
    assert described_result(clarify={"question": "Which port?"}).clarify == {"question": "Which port?", "candidates": []}


def test_edges_alone_need_no_provenance() -> None:
    edges = [{"from": "vm1", "to": "ds1", "kind": "rides", "since": 2024}]
    assert described_result(edges=edges).edges == tuple(edges)


def test_rows_are_copied_on_the_way_in_and_on_the_way_out() -> None:
    facts: list[dict[str, Any]] = [{"entity": "fc1/3", "errors": [1]}]
    declared = described_result(facts=facts, provenance=PROVENANCE)
    facts[0]["errors"].append(2)
    declared.to_wire()["facts"][0]["errors"].append(3)
    assert declared.to_wire()["facts"] == [{"entity": "fc1/3", "errors": [1]}]


# --- how it is declared ----------------------------------------------------------------------------------------------------


def test_a_mapping_declares_what_keywords_declare() -> None:
    fields: dict[str, Any] = {"checked": ["a"], "cannot_cover": [PAPER]}
    assert absent({"what": "x", **fields}) == absent("x", **fields)
    assert coverage(1, fields) == coverage(1, **fields)
    facts: dict[str, Any] = {"facts": FACTS, "provenance": PROVENANCE}
    assert described_result(facts) == described_result(**facts)


def test_words_are_trimmed_and_an_item_may_be_words_or_an_object_or_an_item() -> None:
    declared = coverage(None, checked=["  a\n", {"what": "\ufeff b ", "why": " c "}, Item("d"), {"what": "e", "why": None}])
    assert declared.checked == (Item("a"), Item("b", "c"), Item("d"), Item("e"))


def test_a_list_left_out_says_nothing_and_an_empty_one_says_that_there_is_nothing() -> None:
    silent, stated = absent("x", checked=["a"]), absent("x", checked=["a"], not_checked=[])
    assert (silent.not_checked, stated.not_checked) == (None, ())
    assert stated.to_wire() == {**silent.to_wire(), "not_checked": []}


def test_a_value_is_frozen() -> None:
    with pytest.raises(AttributeError):
        absent("x", checked=["a"]).what = "y"  # type: ignore[misc]


def test_blank_is_what_the_house_calls_blank() -> None:
    blank = [chr(code) for code in range(0x110000) if not trimmed(chr(code))]
    assert blank == [char for char in map(chr, range(0x110000)) if char.isspace() or char == "\ufeff"]


@pytest.mark.parametrize("aggregation", ["sum", "Sum", "counts", "total errors", "errors_total", "cumulative", "p95-delta", "COUNT(*)"])
def test_an_aggregation_that_may_be_counting_must_say_whether_it_is(aggregation: str) -> None:
    assert may_count(aggregation)
    assert refused_by(lambda: described(grain={"aggregation": aggregation})).key == "is_counter"
    for stated in (True, False):
        assert described(grain={"aggregation": aggregation, "is_counter": stated}).grain["is_counter"] is stated


@pytest.mark.parametrize("aggregation", ["avg", "max", "summary", "discount", "account", "totally", "sumOfErrors", "\u017fum"])
def test_another_aggregation_need_not_say_so(aggregation: str) -> None:
    assert not may_count(aggregation)
    assert described(grain={"aggregation": aggregation}).grain == {"aggregation": aggregation}


@pytest.mark.parametrize("length", [1, MAX_TEXT])
def test_words_up_to_the_bound_are_taken(length: int) -> None:
    assert coverage(None, checked=[" " + "x" * length]).checked == (Item("x" * length),)


def test_a_list_up_to_the_bound_is_taken() -> None:
    assert len(absent("x", checked=["a"] * MAX_ITEMS).checked or ()) == MAX_ITEMS


def test_coverages_stand_around_each_other_up_to_the_bound() -> None:
    assert nested(MAX_NESTED).to_wire()["result"]["af_coverage"]["checked"] == [{"what": "a"}]


def nested(depth: int) -> Coverage[Any]:
    declared: Any = "data"
    for _ in range(depth):
        declared = coverage(declared, checked=["a"])
    assert isinstance(declared, Coverage)
    return declared


# --- what is refused -------------------------------------------------------------------------------------------------------

Case = tuple[Callable[[], object], str | None, str | None, str]
"""A call, where in the declaration it is refused, at which field, and what the refusal says."""

LISTS = ("checked", "not_checked", "cannot_cover")
ITEM = ("what", "why")

UNKNOWN: Mapping[str, tuple[Callable[[], object], str, str | None, str, str | None, tuple[str, ...]]] = {
    "a list in camelCase": (
        lambda: coverage(1, {"checked": ["a"], "notChecked": ["b"]}),
        "coverage",
        None,
        "notChecked",
        "not_checked",
        LISTS,
    ),
    "the same as a keyword": (
        lambda: coverage(1, **{"checked": ["a"], "cannotCover": [PAPER]}),  # type: ignore[call-overload]
        "coverage",
        None,
        "cannotCover",
        "cannot_cover",
        LISTS,
    ),
    "another word": (lambda: coverage(1, {"checked": ["a"], "skipped": ["b"]}), "coverage", None, "skipped", None, LISTS),
    "a field that is None": (lambda: coverage(1, {"checked": ["a"], "skipped": None}), "coverage", None, "skipped", None, LISTS),
    "a misspelt key of an item": (
        lambda: coverage(1, {"checked": [{"what": "a", "Why": "b"}]}),
        "coverage",
        "checked[0]",
        "Why",
        "why",
        ITEM,
    ),
    "the second item": (
        lambda: absent("x", checked=["a", {"what": "b", "reason": "c"}]),
        "absent",
        "checked[1]",
        "reason",
        None,
        ITEM,
    ),
    "an absence's own key": (
        lambda: absent({"what": "x", "checked": ["a"], "lookedFor": "y"}),
        "absent",
        None,
        "lookedFor",
        "looked_for",
        ("what", *LISTS, "looked_for", "try_instead", "note"),
    ),
    "the marker itself": (
        lambda: absent({"what": "x", "checked": ["a"], "af_absent": True}),
        "absent",
        None,
        "af_absent",
        None,
        ("what", *LISTS, "looked_for", "try_instead", "note"),
    ),
    "a nested object's key": (
        lambda: described(provenance={"measuredAt": "now", "source": "s"}),
        "described_result",
        "provenance",
        "measuredAt",
        "measured_at",
        ("measured_at", "source", "age_seconds", "source_export_date"),
    ),
    "a described result's list": (
        lambda: described(coverage={"checked": ["a"], "not-checked": ["b"]}),
        "described_result",
        "coverage",
        "not-checked",
        "not_checked",
        LISTS,
    ),
    "an item of it": (
        lambda: described(coverage={"checked": [{"What": "a"}]}),
        "described_result",
        "coverage.checked[0]",
        "What",
        "what",
        ITEM,
    ),
    "what is derived": (
        lambda: described(not_covered=["b"]),
        "described_result",
        None,
        "not_covered",
        None,
        ("series", "facts", "edges", "grain", "provenance", "coverage", "clarify", "render"),
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_key_is_refused_with_the_spelling_meant(name: str) -> None:
    call, helper, at, key, meant, known = UNKNOWN[name]
    refused = refused_by(call)
    assert (refused.helper, refused.at, refused.key, refused.meant, refused.known) == (helper, at, key, meant, known)


ABSENT: dict[str, Case] = {
    "no words": (lambda: absent({"checked": ["a"]}), None, "what", "`what` is missing"),
    "blank words": (lambda: absent(" \ufeff\n", checked=["a"]), None, "what", "`what` is blank"),
    "words that are a number": (lambda: absent(7, checked=["a"]), None, "what", "not int"),  # type: ignore[call-overload]
    "nothing checked": (lambda: absent({"what": "x"}), None, "checked", "`checked` must name at least one place"),
    "an empty list of what was checked": (lambda: absent("x", checked=[]), None, "checked", "`checked` must name at least one place"),
    "only what was not": (lambda: absent({"what": "x", "not_checked": ["a"]}), None, "checked", "`checked` must name at least one place"),
    "a list that is a text": (lambda: absent("x", checked="abc"), None, "checked", "must be a list, not str"),
    "a list that is a mapping": (lambda: absent({"what": "x", "checked": {"what": "a"}}), None, "checked", "must be a list, not dict"),
    "a list that is a set": (lambda: absent({"what": "x", "checked": {"a"}}), None, "checked", "must be a list, not set"),
    "a blank item": (lambda: absent("x", checked=["a", " "]), "checked[1]", None, "`checked[1]` is blank"),
    "an item that is None": (
        lambda: absent({"what": "x", "checked": [None]}),
        "checked[0]",
        None,
        "must be text or {what, why}, not NoneType",
    ),
    "an item without words": (lambda: absent("x", checked=[{"why": "a"}]), "checked[0]", "what", "`checked[0].what` is missing"),
    "a blank reason": (lambda: absent("x", checked=[{"what": "a", "why": " "}]), "checked[0]", "why", "`checked[0].why` is blank"),
    "a blind spot in words alone": (lambda: absent("x", checked=["a"], cannot_cover=["b"]), "cannot_cover[0]", "why", "gives no reason"),
    "a blind spot without reason": (
        lambda: absent("x", checked=["a"], cannot_cover=[PAPER, {"what": "b"}]),
        "cannot_cover[1]",
        "why",
        "`cannot_cover[1]` gives no reason",
    ),
    "long words": (lambda: absent("x" * (MAX_TEXT + 1), checked=["a"]), None, "what", "`what` holds 501 characters; at most 500 fit"),
    "a long item": (lambda: absent("x", checked=["y" * 501]), "checked[0]", None, "`checked[0]` holds 501 characters"),
    "a long reason": (lambda: absent("x", checked=[{"what": "a", "why": "y" * 501}]), "checked[0]", "why", "`checked[0].why` holds 501"),
    "a long note": (lambda: absent("x", checked=["a"], note="y" * 501), None, "note", "`note` holds 501 characters"),
    "a long list": (lambda: absent("x", checked=["a"] * 65), None, "checked", "`checked` holds 65 items; at most 64 fit"),
    "a blank request": (lambda: absent("x", checked=["a"], looked_for=""), None, "looked_for", "`looked_for` is blank"),
    "advice that is an object": (lambda: absent({"what": "x", "checked": ["a"], "try_instead": {}}), None, "try_instead", "not dict"),
    "NUL": (lambda: absent("x\x00y", checked=["a"]), None, "what", "no log can keep"),
    "a lone surrogate": (lambda: absent("x", checked=["\ud800"]), "checked[0]", None, "no log can keep"),
    "a mapping and keywords": (lambda: absent({"what": "x"}, checked=["a"]), None, None, "at once"),  # type: ignore[call-overload]
    "nothing at all": (lambda: absent(), None, "what", "`what` is missing"),  # type: ignore[call-overload]
}
COVERAGE: dict[str, Case] = {
    "nothing said": (lambda: coverage(1), None, None, "expected at least one item"),
    "three empty lists": (lambda: coverage(1, checked=[], not_checked=[], cannot_cover=[]), None, None, "expected at least one item"),
    "a declaration that is a list": (lambda: coverage(1, ["a"]), None, None, "must be an object"),  # type: ignore[call-overload]
    "a declaration that is an object of a class": (
        lambda: coverage(1, Limits(checked=())),  # type: ignore[call-overload]
        None,
        None,
        "must be",
    ),
    "a declaration and keywords": (lambda: coverage(1, {"checked": ["a"]}, checked=["a"]), None, None, "at once"),  # type: ignore[call-overload]
    "a bare blind spot": (lambda: coverage(1, cannot_cover=["b"]), "cannot_cover[0]", "why", "gives no reason"),
    "one too many around each other": (lambda: nested(MAX_NESTED + 1), None, None, "at most 8"),
}
DESCRIBED: dict[str, Case] = {
    "nothing": (lambda: described_result({}), None, None, "expected data in `series`"),
    "no question and no data": (lambda: described_result(clarify=None), None, None, "expected data in `series`"),
    "caveats without data": (lambda: described_result(provenance=PROVENANCE), None, None, "expected data in `series`"),
    "not a mapping": (lambda: described_result([POINT]), None, None, "must be an object"),  # type: ignore[call-overload]
    "an empty list of rows": (lambda: described(series=[]), None, "series", "at least one row"),
    "rows that are a mapping": (lambda: described(facts={}), None, "facts", "must be a list"),
    "series without grain": (lambda: described(series=[POINT]), None, "grain", "`grain` is missing"),
    "facts without provenance": (lambda: described_result(facts=FACTS), None, "provenance", "`provenance` is missing"),
    "series without provenance": (lambda: described_result(series=[POINT], grain={"interval": "1h"}), None, "provenance", "is missing"),
    "provenance without its time": (lambda: described(provenance={"source": "s"}), "provenance", "measured_at", "is missing"),
    "provenance without its source": (lambda: described(provenance={"measured_at": "now"}), "provenance", "source", "is missing"),
    "a blank source": (lambda: described(provenance={**PROVENANCE, "source": " "}), "provenance", "source", "is blank"),
    "a negative age": (lambda: described(provenance={**PROVENANCE, "age_seconds": -1}), "provenance", "age_seconds", "a number from 0"),
    "an age that is true": (
        lambda: described(provenance={**PROVENANCE, "age_seconds": True}),
        "provenance",
        "age_seconds",
        "a number from 0",
    ),
    "an age in words": (lambda: described(provenance={**PROVENANCE, "age_seconds": "3"}), "provenance", "age_seconds", "a number from 0"),
    "an endless age": (
        lambda: described(provenance={**PROVENANCE, "age_seconds": float("inf")}),
        "provenance.age_seconds",
        None,
        "expected a finite number",
    ),
    "a grain that says nothing": (lambda: described(grain={}), None, "grain", "says nothing"),
    "a grain of None": (lambda: described(grain={"interval": None}), None, "grain", "says nothing"),
    "a grain in words": (lambda: described(grain="hourly"), "grain", None, "must be an object"),
    "a counter in words": (lambda: described(grain={"is_counter": "yes"}), "grain", "is_counter", "true or false"),
    "a counter as a number": (lambda: described(grain={"is_counter": 1}), "grain", "is_counter", "true or false"),
    "a fact about nothing": (lambda: described(facts=[{"errors": 1}]), "facts[0]", "entity", "must be text"),
    "a fact that is no object": (lambda: described(facts=[*FACTS, 7]), "facts[1]", None, "not int"),
    "a point without time": (lambda: point(t=None), "series[0]", "t", "must be the time"),
    "a point whose time is true": (lambda: point(t=True), "series[0]", "t", "must be the time"),
    "a point without a metric": (lambda: point(metric=" "), "series[0]", "metric", "must be text"),
    "a point without a reading": (
        lambda: described(series=[{"t": 1, "entity": "e", "metric": "m"}], grain={"interval": "1h"}),
        "series[0]",
        "value",
        "`series[0].value` is missing",
    ),
    "an edge to nowhere": (lambda: described_result(edges=[{"from": "a", "kind": "k"}]), "edges[0]", "to", "must be text"),
    "a day in a row": (
        lambda: described(facts=[{"entity": "e", "day": datetime.date(2026, 3, 1)}]),
        "facts",
        None,
        "`facts[0].day`: expected",
    ),
    "a hostile key in a row": (lambda: described(facts=[{"art_" + "a" * 22: {1, 2}}]), "facts", None, "`facts[0].art_…`"),
    "rows without a floor": (lambda: described(facts=[deep(200)]), "facts", None, "nested deeper than 128 levels"),
    "a coverage that names nothing": (lambda: described(coverage={"checked": []}), "coverage", None, "expected at least one item"),
    "a bare blind spot": (lambda: described(coverage={"cannot_cover": ["b"]}), "coverage.cannot_cover[0]", "why", "gives no reason"),
    "a question that asks nothing": (lambda: described(clarify={"candidates": []}), "clarify", "question", "is missing"),
    "candidates in words": (lambda: described(clarify={"question": "?", "candidates": "ab"}), "clarify", "candidates", "must be a list"),
    "hints without a default": (lambda: described(render={"sort": "x"}), "render", "default", "is missing"),
    "columns that name nothing": (lambda: described(render={"default": "table", "columns": [" "]}), "render", "columns", "column names"),
}
CASES = {
    (helper, name): case
    for helper, cases in {"absent": ABSENT, "coverage": COVERAGE, "described_result": DESCRIBED}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("helper", "name"), CASES)
def test_what_cannot_be_honoured_is_refused_by_name(helper: str, name: str) -> None:
    call, at, key, says = CASES[helper, name]
    refused = refused_by(call)
    assert (refused.helper, refused.at, refused.key) == (helper, at, key)
    assert says in str(refused)


@pytest.mark.parametrize("name", [*CASES, *UNKNOWN])
def test_a_refusal_begins_with_the_prefix_once_and_never_names_the_helper(name: Any) -> None:
    refused = refused_by(UNKNOWN[name][0] if name in UNKNOWN else CASES[name][0])
    assert str(refused).startswith(REFUSED_PREFIX)
    assert str(refused).count(REFUSED_PREFIX.strip()) == 1
    assert str(refused.helper) not in str(refused).replace("af_absent", "")


@given(hostile=st.text(min_size=1, max_size=300), place=st.sampled_from(["key", "item", "value"]))
def test_a_refusal_is_short_and_on_one_line_whatever_it_is_given(hostile: str, place: str) -> None:
    declarations: dict[str, dict[str, Any]] = {
        "key": {"checked": ["a"], hostile + "!": 1},
        "item": {"checked": ["a", hostile * (MAX_TEXT + 1)]},
        "value": {"checked": hostile},
    }
    text = str(refused_by(lambda: coverage(1, declarations[place])))
    assert len(text) < 400 and text.isprintable()


def test_a_refusal_can_be_made_with_its_facts_and_keeps_one_prefix() -> None:
    refused = refusal("refused: no such field.", at="coverage", key="cheked", known=["checked"])
    assert (str(refused), refused.at, refused.key, refused.known) == ("refused: no such field.", "coverage", "cheked", ("checked",))
    assert str(refusal("no.")) == "refused: no."


def point(**fields: Any) -> object:
    return described(series=[{**POINT, **fields}], grain={"interval": "1h"})


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"entity": "e"}
    for _ in range(levels):
        value = {"entity": "e", "in": value}
    return value


def refused_by(call: Callable[[], object]) -> DeclarationRefused:
    with pytest.raises(DeclarationRefused) as caught:
        call()
    return caught.value
