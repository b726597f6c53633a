"""Where a value came from: the first place that held it, word for word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refledger import matching
from refledger.matching import MAX_MATCH_BYTES, Matcher, Source
from refledger_schema.events import MAX_MATCHES, Match

Seen = tuple[Source, str, Any]

USER: Seen = ("message", "2", "Hi! I am yusuf rossi (yusuf@example.com), zip 19122. Order #W2378156 cost $1,095.55.")
DETAILS: Seen = (
    "artifact",
    "details",
    json.dumps({"user_id": "yusuf_rossi_9620", "email": "yusuf@example.com", "orders": ["#W2378156", "#W9711842"], "points": 1200}),
)
ORDER: Seen = (
    "artifact",
    "order",
    json.dumps({"order_id": "#W9711842", "status": "pending (item modified)", "items": {"4602305039": {"price": 466.75}}, "gift": True}),
)


def matcher(*seen: Seen) -> Matcher:
    made = Matcher()
    for source, id, value in seen:
        made.observe(source, id, value)
    return made


def of(argument: str | None, place: Seen) -> Match:
    return Match(argument=argument, source=place[0], id=place[1])


@pytest.mark.parametrize(
    ("seen", "value", "place"),
    [
        pytest.param([USER, DETAILS], "yusuf@example.com", USER, id="what the user said and a result echoes came from the user"),
        pytest.param([USER, DETAILS], "#W2378156", USER, id="the same for an id"),
        pytest.param([DETAILS, USER], "#W2378156", DETAILS, id="an id that a result showed first came from it, whoever repeats it"),
        pytest.param([DETAILS, ORDER], "#W9711842", DETAILS, id="the first of two results"),
        pytest.param([USER, DETAILS], "yusuf_rossi_9620", DETAILS, id="an id with underscores is one word"),
        pytest.param([USER], "Yusuf Rossi", USER, id="words whatever their case"),
        pytest.param([USER], "Rossi", USER, id="a plain word, where it is the whole value"),
        pytest.param([USER], "W2378156", USER, id="a mark around a word is no part of it"),
        pytest.param([USER], 1095.55, USER, id="a number that a text writes with commas"),
        pytest.param([USER], "$1,095.55", USER, id="the same as text"),
        pytest.param([DETAILS], 1200, DETAILS, id="a number"),
        pytest.param([DETAILS], 1200.0, DETAILS, id="a number by value"),
        pytest.param([DETAILS], "1,200", DETAILS, id="a number however it is written"),
        pytest.param([ORDER], "4602305039", ORDER, id="a key of a result"),
        pytest.param([ORDER], "466.750", ORDER, id="zeros behind the point say nothing"),
        pytest.param([ORDER], "pending (item modified)", ORDER, id="several words"),
        pytest.param([USER], "rossi yusuf", None, id="not in another order"),
        pytest.param([USER], "order cost", None, id="not with a word between"),
        pytest.param([DETAILS], "9620", None, id="not a part of a word"),
        pytest.param([("artifact", "a", '["Fort", "Worth"]')], "Fort Worth", None, id="not across two values"),
        pytest.param([USER], "w2378156", None, id="ids only to the letter"),
        pytest.param([("message", "1", "code AB-12x")], "ab-12X", None, id="and whatever else holds a digit"),
        pytest.param([ORDER], True, None, id="booleans say nothing"),
        pytest.param([("artifact", "a", "null")], None, None, id="null says nothing"),
        pytest.param([("artifact", "a", '{"n": 7, "s": "x", "e": ""}')], 7, None, id="nor do tiny numbers"),
        pytest.param([("artifact", "a", '{"n": 7, "s": "ab", "e": ""}')], "ab", None, id="nor short texts"),
        pytest.param([("artifact", "a", '{"n": 7, "s": "ab", "e": ""}')], "", None, id="nor empty ones"),
        pytest.param([], "anything", None, id="nothing was seen"),
    ],
)
def test_an_argument_came_from_the_first_place_that_held_its_value(seen: list[Seen], value: object, place: Seen | None) -> None:
    assert matcher(*seen).match_arguments({"given": value}) == (() if place is None else (of("given", place),))


def test_matches_stand_in_the_order_of_the_arguments_each_place_once_per_argument() -> None:
    args = {"new": {"items": ["4602305039", "466.75"]}, "order": "#W9711842", "names": ["Yusuf", "Rossi"], "none": ["unheard of"]}
    assert matcher(USER, DETAILS, ORDER).match_arguments(args) == (
        of("new", ORDER),
        of("order", DETAILS),
        of("names", USER),
    )


def test_a_long_argument_that_was_seen_nowhere_is_searched_for_ids_numbers_and_values_of_several_words() -> None:
    summary = "The user wants order W9711842 changed for 466.75, which is 'pending (item modified)'; 10 days, a long story, pending."
    assert matcher(USER, DETAILS, ORDER).match_arguments({"summary": summary}) == (of("summary", DETAILS), of("summary", ORDER))


def test_a_text_that_was_copied_whole_came_from_its_one_place() -> None:
    note: Seen = ("artifact", "note", "Refund #W9711842 to paypal_3024827 within 10 days, says Mia.")
    assert matcher(DETAILS, note).match_arguments({"text": note[2]}) == (Match(argument="text", source="artifact", id="note"),)


def test_a_text_that_a_message_put_together_came_from_there_and_so_did_its_parts_from_where_they_were_first() -> None:
    price: Seen = ("artifact", "price", '{"price": 54.84}')
    message: Seen = ("message", "9", "You save $54.84 - $46.85 = $7.99.")
    assert matcher(price, message).match_arguments({"sum": "54.84 - 46.85"}) == (of("sum", message), of("sum", price))


def test_numbers_of_an_expression_are_found_with_and_without_spaces() -> None:
    prices = [("artifact", name, json.dumps({"price": price})) for name, price in (("a", 544.29), ("b", 471.82), ("c", 208.07))]
    seen: list[Seen] = [("artifact", name, text) for _, name, text in prices]
    found = matcher(*seen).match_arguments({"expression": "(544.29-471.82) + 208.07 + 12"})
    assert [match.id for match in found] == ["a", "b", "c"]


def test_an_answer_is_searched_likewise_and_its_plain_words_say_nothing() -> None:
    answer = "Your order #W9711842 is pending, dear Yusuf. You have 1,200 points; expect it in 3 to 5 days."
    assert matcher(USER, DETAILS, ORDER).match_text(answer) == (of(None, DETAILS),)


def test_what_says_too_little_among_other_words_is_not_looked_for() -> None:
    seen = matcher(("artifact", "size", '{"days": 10, "resolution": "4K", "state": "open"}'), ("message", "2", "No thanks."))
    assert seen.match_text("No thanks. It is open for 10 days in 4K.") == ()


def test_a_value_that_a_call_brought_in_came_from_the_call_and_names_of_arguments_are_no_values() -> None:
    seen = matcher(("call", "t1", {"region_code": "EMEA-7x"}), ("artifact", "rows", '[{"region": "EMEA-7x"}]'))
    assert seen.match_arguments({"where": "EMEA-7x"}) == (Match(argument="where", source="call", id="t1"),)
    assert seen.match_arguments({"column": "region_code"}) == ()


def test_json_within_json_is_read_as_json() -> None:
    parts = [{"type": "text", "text": json.dumps({"city": "Fort Worth", "rows": [{"id": "A-4711"}]})}]
    seen = matcher(("artifact", "mcp", json.dumps(parts)))
    assert seen.match_text("Ship A-4711 to Fort Worth.") == (Match(source="artifact", id="mcp"),)
    assert seen.match_text("Ship it to Fort Worth.") == (Match(source="artifact", id="mcp"),)


def test_arguments_that_are_no_object_match_without_a_name() -> None:
    assert matcher(DETAILS).match_arguments("order W9711842") == (of(None, DETAILS),)
    assert matcher(DETAILS).match_arguments(["W9711842"]) == (of(None, DETAILS),)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\0b", "\ud800"])
def test_an_argument_whose_name_no_event_can_carry_matches_without_it(name: str) -> None:
    assert matcher(DETAILS).match_arguments({name: "W9711842"}) == (of(None, DETAILS),)


def test_an_event_carries_so_many_matches_and_no_more() -> None:
    ids = [f"id{number:05}" for number in range(MAX_MATCHES + 50)]
    seen: list[Seen] = [("artifact", id, id) for id in ids]
    found = matcher(*seen).match_arguments({"ids": ids})
    assert [match.id for match in found] == ids[:MAX_MATCHES]
    assert [match.id for match in matcher(*seen).match_text(" ".join(ids))] == ids[:MAX_MATCHES]


def test_long_names_take_no_more_room_than_an_event_has() -> None:
    seen: list[Seen] = [("artifact", f"ref{number}", f"id{number:05}") for number in range(MAX_MATCHES)]
    found = matcher(*seen).match_arguments({"é" * 190 + f"{number:05}": f"id{number:05}" for number in range(MAX_MATCHES)})
    assert 0 < sum(len((match.argument or "").encode()) for match in found) <= MAX_MATCH_BYTES


def test_a_value_that_is_repeated_takes_room_once() -> None:
    place = "p" * 200
    found = matcher(("artifact", place, "id00001"), ("artifact", "b", "id00002")).match_arguments({"ids": ["id00001"] * 500 + ["id00002"]})
    assert [match.id for match in found] == [place, "b"]


def test_a_text_past_the_bound_is_looked_at_as_far_as_the_bound_and_said_to_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MAX_WORDS", 3)
    seen = matcher(("artifact", "a", "id0001 id0002 id0003 id0004"), ("artifact", "b", "id0005 id0006 id0007"))
    assert seen.cut == 1
    assert [match.id for match in seen.match_arguments({"ids": ["id0003", "id0004", "id0007"]})] == ["a", "b"]


def test_a_value_of_words_that_are_everywhere_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_COMMON", 2)
    rare: Seen = ("artifact", "b", "green tea")
    seen = matcher(("message", "1", "new york, new york, new york"), rare)
    assert seen.match_arguments({"city": "new york", "drink": "green tea"}) == (of("drink", rare),)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_no_value_is_too_odd_to_be_seen_or_matched(value: object) -> None:
    seen = Matcher()
    assert seen.match_arguments({"x": value}) == ()
    seen.observe("artifact", "a", value)
    assert seen.match_arguments({"x": value}) in ((), (Match(argument="x", source="artifact", id="a"),))


@given(st.lists(st.from_regex(r"[a-z]{2}[0-9]{4}", fullmatch=True), min_size=1, max_size=30))
def test_every_id_is_traced_to_its_first_place(ids: list[str]) -> None:
    seen = Matcher()
    first: dict[str, str] = {}
    for number, id in enumerate(ids):
        seen.observe("artifact", str(number), json.dumps({"id": id}))
        first.setdefault(id, str(number))
    assert {id: seen.match_arguments({"x": id})[0].id for id in ids} == first
