"""Every vector of listing.json: pages newest first, by a cursor that is bound to a position.

`OURS` holds the steps that we answer otherwise; `tests/vector_differences.py` says why, case by case.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.vector_differences import LISTING, differs, note, stale, verdict_on
from tests.vectors_encoding import load
from tests.vectors_steps import START, Facts, Steps, opened, through_the_store

VECTORS = load(LISTING)
CASES: dict[str, Facts] = {case["id"]: case for case in VECTORS["cases"]}


def refused(field: str) -> Facts:
    return {"throws": {"code": "ERR_INVALID_ARTIFACT", "field": field}}


def page(rows: str, more: bool = False) -> Facts:
    return {"rows": rows.split(), "more": more}


END: Facts = {"no_cursor_to_follow": True}
OURS: dict[str, dict[int, Facts]] = {
    "ties-by-ref": {3: page("b a c"), 4: {"pages": [["b"], ["a"], ["c"]]}, 5: {"pages": [["b", "a"], ["c"]]}},
    "ties-case-order": {4: page("x4 x3 x2 x1")},
    "ties-across-page-boundary": {1: {"pages": [["r6", "r5", "r4"], ["r3", "r2", "r1"], ["r0"]]}},
    "mixed-ties": {5: page("d c b a")},
    "order-is-createdAt-not-insertion": {5: page("c b a")},
    "insert-newest-while-paging": {3: page("r1 r0"), 4: END},
    "insert-three-while-paging": {3: page("r3 r2", more=True), 4: page("r1 r0"), 5: END, 6: END},
    "insert-oldest-while-paging": {4: page("r1 r0"), 5: END},
    "insert-in-seen-part": {4: page("r1 r0"), 5: END},
    "insert-tie-before-position": {3: page("z n", more=True), 5: page("m")},
    "insert-between-every-page": {4: page("r2", more=True), 7: page("r1", more=True), 10: page("r0")},
    "delete-two-seen-while-paging": {4: page("r3 r2", more=True), 5: page("r1 r0")},
    "delete-last-seen-while-paging": {3: page("r2 r1", more=True), 4: page("r0")},
    "eviction-between-pages": {3: page("r1")},
    "cursor-from-another-scope": {3: refused("cursor")},
    **{
        f"limit-{limit}": {1: refused("limit")}
        for limit in [
            "null",
            "zero",
            "neg-zero",
            "half",
            "1.5",
            "nan",
            "inf",
            "minus-inf",
            "1e9",
            "2pow53",
            "1e300",
            "string-2",
            "string-word",
            "string-empty",
            "true",
            "array",
            "nan-walk",
            "zero-walk",
            "negative-walk",
        ]
    },
    **{
        f"cursor-{cursor}": {1: refused("cursor")}
        for cursor in [
            "space",
            "word",
            "two",
            "fraction",
            "negative",
            "hex",
            "exponent",
            "nan",
            "end",
            "past-end",
            "huge",
            "true",
            "underscore",
        ]
    },
}


def observed(case: Facts, folder: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch) -> list[Facts]:
    """What each step comes to: of a listing its rows, of a put who left by it."""
    with opened(empty_log, folder, monkeypatch, case.get("retention"), VECTORS["start"]) as world:
        steps, facts = Steps(world, through_the_store(world)), []
        for step in case["steps"]:
            came_to, swept = steps.take(step), world.swept(world.news())
            listed = {key: value for key, value in came_to.items() if key in ("rows", "more", "pages", "never_terminates", "throws")}
            if "no_cursor_to_follow" in came_to:
                listed["no_cursor_to_follow"] = True
            facts.append(listed | ({"swept": swept} if swept else {}))
        return facts


def without_tokens(steps: list[Facts]) -> list[Facts]:
    """What a vector observed, without the other stores' literal cursors."""
    return [{key: value for key, value in step.items() if key != "ts_cursor"} for step in steps]


def test_the_vectors_are_all_there() -> None:
    assert (len(CASES), VECTORS["count"], VECTORS["start"], stale(LISTING, CASES)) == (80, 80, START, set())
    assert {case for case in CASES if differs(LISTING, case)} == OURS.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_listing_is_as_observed_or_as_decided(name: str, tmp_path: Path, empty_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    expected = without_tokens(case["expected"])
    ours = [OURS.get(name, {}).get(number, step) for number, step in enumerate(expected)]
    seen: Any = observed(case, tmp_path, empty_log, monkeypatch)
    others = map(without_tokens, case.get("expected_other_stores", {}).values())
    agrees = seen == expected or seen in others
    if differs(LISTING, name):
        assert seen == ours
    assert agrees is not differs(LISTING, name)
    weakness = case.get("known_weakness", False) or case.get("ts_cursor_specific", False)
    note(LISTING, name, verdict_on(LISTING, name, weakness=weakness))
