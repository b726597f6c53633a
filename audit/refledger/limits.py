"""The limits that results declare: recognised in what a tool returned, shown to the model, and carried along with the answer.

Recognition is strict. A value is a declaration exactly if a helper gave it, or if it is the wire form that a helper would give
for what it says; the notes may be another producer's. All else is ordinary data and stays as it is, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from refledger.described import DESCRIBED_MARKER, described_result, not_covered
from refledger.refusals import spelling_meant
from refledger.results import (
    ABSENT_MARKER,
    COVERAGE_MARKER,
    ITEM_FIELDS,
    LIST_FIELDS,
    MAX_NESTED,
    HelperValue,
    Item,
    Limits,
    absent,
    coverage,
)
from refledger_schema.errors import DeclarationRefused
from refledger_schema.wording import shown

DeclaredKind: TypeAlias = Literal["absent", "coverage", "described"]

MAX_SHOWN_ITEMS = 12
"""How many items of a section the block of limits shows."""
HEADING = "Limits of this answer, as stated by the tools it rests on:"
SECTIONS = {"checked": "Checked:", "not_checked": "Not checked:", "cannot_cover": "Cannot cover:"}

MARKERS = (ABSENT_MARKER, COVERAGE_MARKER, DESCRIBED_MARKER)
ABSENT_WIRE = (
    ABSENT_MARKER,
    "outcome",
    "what",
    "looked_for",
    *LIST_FIELDS,
    "retry_returns_the_same",
    "try_instead",
    "tool_note",
    "note",
)
_UNREAD = (DESCRIBED_MARKER, "coverage", "not_covered", "render")
"""What the model does not read of a described result. The lists of its coverage come as lines of `not_covered`."""

_Wire: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared(Limits):
    """What one result declares."""

    kind: DeclaredKind
    looked_for: str | None = None
    """What an absence says was looked for."""
    within: Declared | None = None
    """What the result that a coverage stands around declares in its turn."""

    @property
    def status(self) -> Literal["absent", "ok"]:
        """`absent` for an absence, and for a coverage around one: neither a success nor a failure."""
        return "absent" if any(declared.kind == "absent" for declared in self.each()) else "ok"

    def each(self) -> Iterator[Declared]:
        """This declaration, then those within, the outer before the inner."""
        declared: Declared | None = self
        while declared is not None:
            yield declared
            declared = declared.within


def recognise(value: object) -> Declared | None:
    """What a tool's result declares; None for ordinary data. `value` is what a helper gave, or its wire form.

    What a helper would refuse is ordinary data. One concession to other producers: an absence, a coverage and an item may have keys
    that we do not know, unless one respells a key that we do, since a limit would be lost.
    """
    return _recognised(_to_wire(value), 0)


def model_view(value: object) -> Any:
    """A result as the model is to read it: without what only machines read. Ordinary data is given back as it is."""
    wire = _to_wire(value)
    declared = recognise(wire)
    return wire if declared is None else _view(wire, declared)


def limits_block(declared: Sequence[Declared]) -> str:
    """The limits of an answer, from what the calls before it declared, in the order of the run. Empty where they state none.

    What several calls say in the same words stands once. Every word of a tool is shown harmless, quoted and cut at 80 characters.
    """
    limits = [limit for declaration in declared for limit in declaration.each()]
    sections = [_section(heading, [limit.lists().get(name, ()) for limit in limits]) for name, heading in SECTIONS.items()]
    said = [section for section in sections if section]
    return "\n\n".join([HEADING, *said]) if said else ""


# --- recognising -----------------------------------------------------------------------------------------------------------


def _to_wire(value: object) -> Any:
    return value.to_wire() if isinstance(value, HelperValue) else value


def _recognised(wire: object, depth: int) -> Declared | None:
    if not isinstance(wire, Mapping) or sum(marker in wire for marker in MARKERS) != 1:
        return None
    try:
        if ABSENT_MARKER in wire:
            return _absence(wire)
        if DESCRIBED_MARKER in wire:
            return _description(wire)
        return _boundary(wire, depth)
    except DeclarationRefused:
        return None


def _absence(wire: _Wire) -> Declared | None:
    known = _known_part(wire, ABSENT_WIRE)
    if known is None or known[ABSENT_MARKER] is not True or known.get("retry_returns_the_same", True) is not True:
        return None
    asked = known.get("looked_for")
    fields = {name: known[name] for name in (*LIST_FIELDS, "try_instead") if name in known}
    words = {"what": known.get("what", asked), "looked_for": asked if "what" in known else None, "note": known.get("tool_note")}
    minted = absent({**fields, **words})
    return _declared("absent", minted, looked_for=asked) if _says(minted.to_wire(), known) else None


def _description(wire: _Wire) -> Declared | None:
    if wire[DESCRIBED_MARKER] is not True:
        return None
    known = dict(wire)
    if isinstance(wire.get("coverage"), Mapping):
        known["coverage"] = _with_known_items(wire["coverage"])
    derived = (DESCRIBED_MARKER, "note", "not_covered")
    minted = described_result({key: value for key, value in known.items() if key not in derived})
    return _declared("described", minted) if _says(minted.to_wire(), known) else None


def _boundary(wire: _Wire, depth: int) -> Declared | None:
    inside = wire[COVERAGE_MARKER]
    if set(wire) != {COVERAGE_MARKER, "result"} or not isinstance(inside, Mapping) or depth >= MAX_NESTED:
        return None
    known = _known_part(inside, (*LIST_FIELDS, "note"))
    if known is None:
        return None
    minted = coverage(None, {name: known[name] for name in LIST_FIELDS if name in known})
    if not _says(minted.to_wire()[COVERAGE_MARKER], known):
        return None
    return _declared("coverage", minted, within=_recognised(_to_wire(wire["result"]), depth + 1))


def _known_part(wire: _Wire, known: Sequence[str]) -> dict[str, Any] | None:
    """The keys of a wire form that we know; None where another one respells one of them, since it may be a limit."""
    if any(key not in known and spelling_meant(key, known) is not None for key in wire):
        return None
    return _with_known_items({key: wire[key] for key in known if key in wire})


def _with_known_items(wire: _Wire) -> dict[str, Any]:
    return {key: _known_items(value) if key in LIST_FIELDS and isinstance(value, list) else value for key, value in wire.items()}


def _known_items(items: list[Any]) -> list[Any]:
    return [_known_part(item, ITEM_FIELDS) if isinstance(item, Mapping) else item for item in items]


def _says(minted: _Wire, known: _Wire) -> bool:
    """Whether all that the wire form says is what a helper would say, the words of its note aside."""
    if not isinstance(known.get("note", ""), str):
        return False
    return all(key in minted and minted[key] == value for key, value in known.items() if key != "note")


def _declared(kind: DeclaredKind, minted: HelperValue, *, looked_for: str | None = None, within: Declared | None = None) -> Declared:
    return Declared(kind=kind, looked_for=looked_for, within=within, **minted.lists())


# --- showing ---------------------------------------------------------------------------------------------------------------


def _view(wire: _Wire, declared: Declared) -> dict[str, Any]:
    if declared.kind == "coverage":
        inner = _to_wire(wire["result"])
        return {"coverage": dict(wire[COVERAGE_MARKER]), "result": inner if declared.within is None else _view(inner, declared.within)}
    if declared.kind == "absent":
        return {key: value for key, value in wire.items() if key != ABSENT_MARKER}
    lines = not_covered(declared)
    lead = {"not_covered": lines} if lines else {}
    return {**lead, **{key: value for key, value in wire.items() if key not in _UNREAD and not (key == "clarify" and value is None)}}


def _section(heading: str, lists: Sequence[Sequence[Item]]) -> str:
    """The items of one list over all calls, each once; empty where there are none."""
    items = list(dict.fromkeys(item for items in lists for item in items))
    lines = [f"- {_line(item)}" for item in items[:MAX_SHOWN_ITEMS]]
    if len(items) > len(lines):
        lines.append(f"- and {len(items) - len(lines):,} more")
    return "\n".join([heading, *lines]) if lines else ""


def _line(item: Item) -> str:
    return shown(item.what) if item.why is None else f"{shown(item.what)}, because {shown(item.why)}"
