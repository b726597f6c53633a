"""Rows of data that say what they mean: `described_result`.

A number without its grain, its age and its source gets summed, compared and believed. This helper refuses data that does not
state them, and keeps them beside the data, on the wire and in what the model reads.
"""

from __future__ import annotations

import copy
import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, overload

from refledger.refusals import refusal
from refledger.results import LIST_FIELDS, NO_ITEM, Fields, HelperValue, Limits, one_declaration, refused_by, trimmed
from refledger_schema.canonical import parse_json, payload_json
from refledger_schema.errors import DeclarationRefused, NotCanonical, TooLarge
from refledger_schema.wording import harmless

DESCRIBED_MARKER = "af_semantics"

DESCRIBED_FIELDS = ("series", "facts", "edges", "grain", "provenance", "coverage", "clarify", "render")
GRAIN_FIELDS = ("interval", "aggregation", "is_counter", "collapsed")
PROVENANCE_FIELDS = ("measured_at", "source", "age_seconds", "source_export_date")
CLARIFY_FIELDS = ("question", "candidates")
RENDER_FIELDS = ("default", "columns", "sort", "filter_note", "chart_hint")

DESCRIBED_NOTE = (
    "Read the data with what stands beside it: `grain` says what one value means, `provenance` when and where it was measured, "
    "and `not_covered` what the data says nothing of."
)

COUNTER_WORDS = frozenset({"sum", "count", "total", "cumulative", "counter", "delta"})
"""Aggregations whose values may be counters. Such values must not be added up, and no number shows whether it is one."""

Row: TypeAlias = Mapping[str, Any]


class NotGiven(enum.Enum):
    """The one value that says: nothing was said."""

    NOT_GIVEN = "not given"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedResult(HelperValue):
    """Data and what it means. Made by `described_result`. Its lists are those of the declaration's `coverage`."""

    series: tuple[Row, ...] | None = None
    """Points `{t, entity, metric, value}`."""
    facts: tuple[Row, ...] | None = None
    """Rows, each about its `entity`."""
    edges: tuple[Row, ...] | None = None
    """Relations `{from, to, kind}`."""
    grain: Row | None = None
    """What one value means."""
    provenance: Row | None = None
    """When and where the world was measured."""
    clarify: Row | None | Literal[NotGiven.NOT_GIVEN] = NOT_GIVEN
    """The question to put back, with its candidates. None: it was looked into, and there is none."""
    render: Row | None = None
    """Hints for a screen. The model does not read them."""

    def to_wire(self) -> dict[str, Any]:
        """Under `af_semantics: true`; the caveats first, then the data."""
        wire: dict[str, Any] = {
            DESCRIBED_MARKER: True,
            "note": DESCRIBED_NOTE,
            "grain": self.grain,
            "provenance": self.provenance,
            "coverage": self.lists_to_wire() or None,
            "not_covered": not_covered(self) or None,
            "series": None if self.series is None else list(self.series),
            "facts": None if self.facts is None else list(self.facts),
            "edges": None if self.edges is None else list(self.edges),
            "render": self.render,
        }
        said = {key: copy.deepcopy(value) for key, value in wire.items() if value is not None}
        return said if self.clarify is NOT_GIVEN else {**said, "clarify": copy.deepcopy(self.clarify)}


@overload
def described_result(
    *,
    series: Sequence[Mapping[str, object]] | None = None,
    facts: Sequence[Mapping[str, object]] | None = None,
    edges: Sequence[Mapping[str, object]] | None = None,
    grain: Mapping[str, object] | None = None,
    provenance: Mapping[str, object] | None = None,
    coverage: Mapping[str, object] | None = None,
    clarify: Mapping[str, object] | None | Literal[NotGiven.NOT_GIVEN] = NOT_GIVEN,
    render: Mapping[str, object] | None = None,
) -> DescribedResult: ...
@overload
def described_result(declaration: Mapping[str, object], /) -> DescribedResult: ...
def described_result(declaration: object = None, /, **fields: object) -> DescribedResult:
    """Return data together with what it means: `series`, `facts`, `edges`, or a question in `clarify`; one of them at least.

    A series states its `grain`; series and facts state their `provenance`: `measured_at`, when the world was measured and not when the
    tool ran, and `source`. An `aggregation` that may be counting states `is_counter`. `clarify=None` states that nothing is ambiguous, which
    leaving it out does not. `coverage` takes the three lists of `coverage()`. Rows are JSON data, and are copied.

        return described_result(facts=[{"entity": "fc1/3", "errors": 12}], grain={"aggregation": "sum", "is_counter": True},
                                provenance={"measured_at": "2026-03-01T02:00:00Z", "source": "nightly export"})
    """
    with refused_by("described_result"):
        declared = Fields.of(one_declaration(declaration, fields), DESCRIBED_FIELDS)
        given = {key: value for key, value in declared.values.items() if value is not NOT_GIVEN}
        described = DescribedResult(
            series=_rows(given, "series"),
            facts=_rows(given, "facts"),
            edges=_rows(given, "edges"),
            grain=_grain(given),
            provenance=_provenance(given),
            clarify=_clarify(given) if "clarify" in given else NOT_GIVEN,
            render=_render(given),
            **_lists(given),
        )
        _judge(described)
        return described


def not_covered(limits: Limits) -> list[str]:
    """What data says nothing of, a line each: made from the lists, so that the two cannot disagree."""
    items = [*(limits.not_checked or ()), *(limits.cannot_cover or ())]
    return [item.what if item.why is None else f"{item.what} — {item.why}" for item in items]


# --- the fields, one by one ------------------------------------------------------------------------------------------------

_Given: TypeAlias = Mapping[str, object]
_ROW_TEXTS: Mapping[str, tuple[str, ...]] = {"series": ("entity", "metric"), "facts": ("entity",), "edges": ("from", "to", "kind")}
"""What every row of a list must say in words."""


def _rows(given: _Given, key: str) -> tuple[Row, ...] | None:
    value = given.get(key)
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or not value:
        raise _refused(key, "must be a list with at least one row. Leave it out to say nothing.")
    rows = _plain(value, key)
    for index, row in enumerate(rows):
        _judge_row(row, key, f"{key}[{index}]")
    return tuple(rows)


def _judge_row(row: object, key: str, at: str) -> None:
    known = _ROW_TEXTS[key] if key != "series" else ("t", *_ROW_TEXTS[key], "value")
    if not isinstance(row, Mapping):
        raise refusal(f"`{at}` must be an object with named fields, not {type(row).__name__}.", at=at, known=known)
    fields = Fields(row, known, at)
    for name in _ROW_TEXTS[key]:
        if not _is_words(row.get(name)):
            raise fields.refused(name, "must be text that is not blank. Every row says what it is about.")
    if key == "series":
        if isinstance(row.get("t"), bool) or not isinstance(row.get("t"), (str, int, float)):
            raise fields.refused("t", "must be the time of the measurement, as text or a number.")
        if "value" not in row:
            raise fields.refused("value", "is missing. A point without a reading is no point; null is a reading that was not to be had.")


def _grain(given: _Given) -> Row | None:
    fields = _object(given, "grain", GRAIN_FIELDS)
    if fields is None:
        return None
    for key in ("interval", "aggregation", "collapsed"):
        fields.text(key, limit=None)
    if not fields.values:
        raise _refused("grain", "says nothing. Give one of its fields, or leave it out.")
    counter = fields.values.get("is_counter")
    if counter is not None and not isinstance(counter, bool):
        raise fields.refused("is_counter", f"must be true or false, not {type(counter).__name__}.")
    aggregation = fields.values.get("aggregation")
    if counter is None and isinstance(aggregation, str) and may_count(aggregation):
        raise fields.refused(
            "is_counter",
            "is missing, and the `aggregation` may be counting. State true or false: counters must not be added up, and a number "
            "does not show whether it is one.",
        )
    return fields.values


def may_count(aggregation: str) -> bool:
    """Whether an aggregation's name has a counting word in it, whole and in singular or plural: `Total errors`, not `summary`."""
    words = re.findall("[a-z]+", aggregation.lower())
    return any(word in COUNTER_WORDS or word.removesuffix("s") in COUNTER_WORDS for word in words)


def _provenance(given: _Given) -> Row | None:
    fields = _object(given, "provenance", PROVENANCE_FIELDS)
    if fields is None:
        return None
    fields.required_text("measured_at", "Say when the world was measured: when it was exported, read, or sampled last.", limit=None)
    fields.required_text("source", "Name the system that the values were read from.", limit=None)
    fields.text("source_export_date", limit=None)
    age = fields.values.get("age_seconds")
    if age is not None and (isinstance(age, bool) or not isinstance(age, (int, float)) or age < 0):
        raise fields.refused("age_seconds", "must be a number from 0, in seconds. Leave it out where the age is not known.")
    return fields.values


def _clarify(given: _Given) -> Row | None:
    fields = _object(given, "clarify", CLARIFY_FIELDS)
    if fields is None:
        return None
    fields.required_text("question", "Ask something, or state with None that nothing is ambiguous.", limit=None)
    candidates = fields.values.get("candidates", [])
    if not isinstance(candidates, list):
        raise fields.refused("candidates", f"must be a list, not {type(candidates).__name__}. It may be empty.")
    return {"question": fields.values["question"], "candidates": candidates}


def _render(given: _Given) -> Row | None:
    fields = _object(given, "render", RENDER_FIELDS)
    if fields is None:
        return None
    fields.required_text("default", "Name the presentation: a table, a chart, prose.", limit=None)
    for key in ("sort", "filter_note", "chart_hint"):
        fields.text(key, limit=None)
    columns = fields.values.get("columns")
    if columns is not None and not (isinstance(columns, list) and columns and all(_is_words(name) for name in columns)):
        raise fields.refused("columns", "must be a list of column names, one at least. Leave it out to say nothing.")
    return fields.values


def _lists(given: _Given) -> dict[str, Any]:
    if given.get("coverage") is None:
        return {}
    lists = Fields.of(given["coverage"], LIST_FIELDS, "coverage").lists()
    if not Limits(**lists).say_something():
        raise refusal(f"`coverage`: {NO_ITEM} Name one, or leave it out.", at="coverage", known=LIST_FIELDS)
    return dict(lists)


def _judge(described: DescribedResult) -> None:
    """Refuse what each field alone does not show: that nothing was said, or a caveat that the data needs was not."""
    series, facts, edges = described.series, described.facts, described.edges
    if series is None and facts is None and edges is None and described.clarify in (None, NOT_GIVEN):
        raise refusal(
            "expected data in `series`, `facts` or `edges`, or a question in `clarify`; found none of them. Give one.",
            known=DESCRIBED_FIELDS,
        )
    if series is not None and described.grain is None:
        raise _refused("grain", "is missing. Say what one value of the `series` means: its interval, or how it was aggregated.")
    if (series is not None or facts is not None) and described.provenance is None:
        raise _refused("provenance", "is missing. Say when the world was measured (`measured_at`) and where it was read (`source`).")


def _object(given: _Given, at: str, known: tuple[str, ...]) -> Fields | None:
    """The fields of a nested object that were given, as plain JSON data."""
    if given.get(at) is None:
        return None
    fields = Fields.of(given[at], known, at)
    return Fields({key: _plain(value, fields.path(key)) for key, value in fields.values.items() if value is not None}, known, at)


def _is_words(value: object) -> bool:
    return isinstance(value, str) and trimmed(value) != ""


def _plain(value: object, at: str) -> Any:
    """A copy as plain JSON data, which no later change of the caller's reaches."""
    try:
        return parse_json(payload_json(value))
    except NotCanonical as error:
        raise refusal(f"`{harmless(at + error.path.removeprefix('$'))}`: {error.reason}", at=at) from None
    except TooLarge as error:
        raise refusal(f"`{at}` is nested deeper than {error.limit} levels. Flatten it.", at=at) from None


def _refused(key: str, problem: str) -> DeclarationRefused:
    return Fields({}, DESCRIBED_FIELDS).refused(key, problem)
