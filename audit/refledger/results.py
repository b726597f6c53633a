"""What a tool says of its own result: that it looked and found nothing (`absent`), or how far the result reaches (`coverage`).

`described_result` (in `refledger.described`) does the same for rows of data. A tool returns what a helper gives back, and
`Call.result` recognises it. A helper appends nothing. What it cannot honour it refuses with `DeclarationRefused`, whose text
the model reads in place of the result.

A declaration is spelled in snake_case, as keywords or as one mapping, and so is the wire form that `to_wire` gives: camelCase
(`notChecked`) is how JavaScript authors write theirs, and it never travels. An unknown key is refused and never dropped, since
a limit could be lost with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeAlias, TypeVar, overload

from refledger.refusals import refusal, refuse_unknown_keys
from refledger_schema.errors import DeclarationRefused

MAX_TEXT = 500
"""The longest text of a declaration, in characters."""
MAX_ITEMS = 64
"""The longest list of a declaration."""
MAX_NESTED = 8
"""How many coverages may stand around each other."""

ABSENT_MARKER = "af_absent"
COVERAGE_MARKER = "af_coverage"

LIST_FIELDS = ("checked", "not_checked", "cannot_cover")
ITEM_FIELDS = ("what", "why")
ABSENT_FIELDS = ("what", *LIST_FIELDS, "looked_for", "try_instead", "note")

ABSENT_NOTE = (
    "This lookup ran to its end, and nothing is what it found: no error, and nothing put in the place of what was asked for. "
    "Repeating the call with the same arguments returns the same. The finding holds for what `checked` lists; of the rest, "
    "`not_checked` and `cannot_cover` included, it says nothing."
)
"""Static, so that no words of a caller come back as if the tool had found them."""

COVERAGE_NOTE = (
    "The result holds for what `checked` lists. Of what `not_checked` and `cannot_cover` list it says nothing, good or bad, and "
    "no repetition reaches what `cannot_cover` lists. An answer that rests on this result should say so."
)

_T = TypeVar("_T")
_WHITE_SPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f"
    "\u3000\ufeff"
)
"""What `str.isspace` says yes to, and the byte order mark."""


# --- the values ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was checked, or was not: a source, a window of time, a filter, a population."""

    what: str
    why: str | None = None
    """Why it stands in its list; always there for what cannot be covered."""

    def to_wire(self) -> dict[str, str]:
        return {"what": self.what} if self.why is None else {"what": self.what, "why": self.why}


Items: TypeAlias = Sequence[str | Mapping[str, object] | Item]
"""A list as an author writes it: words alone, or `{what, why?}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a result reaches. A list that is None was left out and says nothing; an empty one says that there is nothing."""

    checked: tuple[Item, ...] | None = None
    """What the result stands on."""
    not_checked: tuple[Item, ...] | None = None
    """What this call left out, and a wider one could reach."""
    cannot_cover: tuple[Item, ...] | None = None
    """What no call of this tool will ever reach."""

    def say_something(self) -> bool:
        """Whether any of the lists has an item."""
        return bool(self.checked or self.not_checked or self.cannot_cover)

    def lists(self) -> dict[str, tuple[Item, ...]]:
        """The lists that were given, by name."""
        lists = {"checked": self.checked, "not_checked": self.not_checked, "cannot_cover": self.cannot_cover}
        return {name: items for name, items in lists.items() if items is not None}

    def lists_to_wire(self) -> dict[str, list[dict[str, str]]]:
        return {name: [item.to_wire() for item in items] for name, items in self.lists().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperValue(Limits):
    """What a result helper gives back, for a tool to return."""

    def to_wire(self) -> dict[str, Any]:
        """The value as JSON data, under its reserved key."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent(HelperValue):
    """A lookup that ran and found nothing. Made by `absent`."""

    what: str
    looked_for: str | None = None
    try_instead: str | None = None
    note: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """Under `af_absent: true`. `looked_for` holds `what`, unless both were given; `note` is ours, and the author's is `tool_note`."""
        wire: dict[str, Any] = {
            ABSENT_MARKER: True,
            "outcome": "nothing_found",
            "what": self.what if self.looked_for is not None else None,
            "looked_for": self.looked_for if self.looked_for is not None else self.what,
            **self.lists_to_wire(),
            "retry_returns_the_same": True,
            "try_instead": self.try_instead,
            "tool_note": self.note,
            "note": ABSENT_NOTE,
        }
        return {key: value for key, value in wire.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage(HelperValue, Generic[_T]):
    """A result, and how far it reaches. Made by `coverage`."""

    result: _T

    def to_wire(self) -> dict[str, Any]:
        """`{af_coverage: {checked, not_checked, cannot_cover, note}, result}`: the limits first, where a reader meets them."""
        result = self.result.to_wire() if isinstance(self.result, HelperValue) else self.result
        return {COVERAGE_MARKER: {**self.lists_to_wire(), "note": COVERAGE_NOTE}, "result": result}


# --- the helpers -----------------------------------------------------------------------------------------------------------


@overload
def absent(
    what: str,
    *,
    checked: Items,
    not_checked: Items | None = None,
    cannot_cover: Items | None = None,
    looked_for: str | None = None,
    try_instead: str | None = None,
    note: str | None = None,
) -> Absent: ...
@overload
def absent(what: Mapping[str, object]) -> Absent: ...
def absent(what: object = None, **fields: object) -> Absent:
    """Say that the tool looked, and that there is nothing. A tool that could not look raises an error instead.

    `what` names what is not there, and `checked` where it was looked for: both always. `not_checked` and `cannot_cover` bound
    the finding; `looked_for` keeps the request in its own words; `try_instead` and `note` speak to the model.

        return absent("open invoices of customer 7", checked=["the ledger of 2026"],
                      cannot_cover=[{"what": "paper invoices", "why": "they are not scanned"}])
    """
    with refused_by("absent"):
        declared = one_declaration(what, fields) if isinstance(what, Mapping) or what is None else {"what": what, **fields}
        given = Fields.of(declared, ABSENT_FIELDS)
        named = given.required_text("what", "Say what was looked for.")
        lists = given.lists()
        if not lists.get("checked"):
            raise given.refused(
                "checked",
                "must name at least one place that was searched; found none. Name it. If nothing could be searched, let the tool "
                "fail instead: not having looked is no finding.",
            )
        return Absent(
            what=named,
            looked_for=given.text("looked_for"),
            try_instead=given.text("try_instead"),
            note=given.text("note"),
            **lists,
        )


@overload
def coverage(
    result: _T, /, *, checked: Items | None = None, not_checked: Items | None = None, cannot_cover: Items | None = None
) -> Coverage[_T]: ...
@overload
def coverage(result: _T, declaration: Mapping[str, object], /) -> Coverage[_T]: ...
def coverage(result: _T, declaration: object = None, /, **fields: object) -> Coverage[_T]:
    """Say what a result stands on, what was left out, and what no call can reach: at least one item over the three lists.

    An item is words alone, or `{what, why?}`; in `cannot_cover` the `why` is a must. `result` is whatever the tool would have
    returned, what `absent` or `described_result` gave included.

        return coverage(verdict, checked=["all four arrays"], not_checked=[{"what": "migrations", "why": "timed out"}])
    """
    with refused_by("coverage"):
        given = Fields.of(one_declaration(declaration, fields), LIST_FIELDS)
        covered = Coverage(result=result, **given.lists())
        if not covered.say_something():
            raise refusal(f"{NO_ITEM} Name one, or return the result as it is.", known=LIST_FIELDS)
        if _nested(covered) > MAX_NESTED:
            raise refusal(f"at most {MAX_NESTED} of these may stand around each other; found one more. Name all the limits in one.")
        return covered


NO_ITEM = "expected at least one item in `checked`, `not_checked` or `cannot_cover`; found none."


def _nested(value: object) -> int:
    depth = 0
    while isinstance(value, Coverage):
        value, depth = value.result, depth + 1
    return depth


# --- a declaration, field by field -----------------------------------------------------------------------------------------


@contextmanager
def refused_by(helper: str) -> Iterator[None]:
    """What is refused in this block bears the helper's name for the record. Its text does not."""
    try:
        yield
    except DeclarationRefused as refused:
        refused.helper = helper
        raise


def one_declaration(mapping: object, keywords: Mapping[str, object]) -> object:
    """A declaration that was given as one mapping or as keywords, and not as both."""
    if mapping is None:
        return keywords
    if keywords:
        raise refusal("a mapping and keywords were given at once. Put all the fields into one of them.")
    return mapping


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one object of a declaration. Each is given back in order, or refused by its name."""

    values: Mapping[str, object]
    known: tuple[str, ...]
    at: str | None = None
    """Where the object stands in the declaration; None for the declaration itself."""

    @classmethod
    def of(cls, value: object, known: tuple[str, ...], at: str | None = None) -> Self:
        """The fields of a mapping that has no others than the known ones."""
        given = value.to_wire() if isinstance(value, Item) else value
        refuse_unknown_keys(given, known, at)
        if not isinstance(given, Mapping):
            raise refusal(f"{f'`{at}`' if at else 'the declaration'} must be a mapping, not {type(value).__name__}.", at=at, known=known)
        return cls(given, known, at)

    def path(self, key: str) -> str:
        return key if self.at is None else f"{self.at}.{key}"

    def refused(self, key: str, problem: str) -> DeclarationRefused:
        return refusal(f"`{self.path(key)}` {problem}", at=self.at, key=key, known=self.known)

    def text(self, key: str, *, limit: int | None = MAX_TEXT) -> str | None:
        """The field's words, trimmed; None where it was not given."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.refused(key, f"must be text, not {type(value).__name__}. Say it in words, or leave it out.")
        problem = _problem_of(value, limit)
        if problem is not None:
            raise self.refused(key, problem)
        return trimmed(value)

    def required_text(self, key: str, advice: str, *, limit: int | None = MAX_TEXT) -> str:
        text = self.text(key, limit=limit)
        if text is None:
            raise self.refused(key, f"is missing. {advice}")
        return text

    def lists(self) -> dict[str, tuple[Item, ...]]:
        """Those of the three lists that were given."""
        return {name: self._items(name) for name in LIST_FIELDS if self.values.get(name) is not None}

    def _items(self, key: str) -> tuple[Item, ...]:
        value = self.values[key]
        if not isinstance(value, (list, tuple)):
            raise self.refused(key, f"must be a list, not {type(value).__name__}. Put brackets around it, or leave it out.")
        if len(value) > MAX_ITEMS:
            raise self.refused(key, f"holds {len(value):,} items; at most {MAX_ITEMS} fit. Sum some of them up.")
        return tuple(_item(item, f"{self.path(key)}[{index}]", reasoned=key == "cannot_cover") for index, item in enumerate(value))


def _item(value: object, at: str, *, reasoned: bool) -> Item:
    """One item of a list, whose `why` is a must where it is to be `reasoned`."""
    if isinstance(value, str):
        problem = _problem_of(value, MAX_TEXT)
        if problem is not None:
            raise refusal(f"`{at}` {problem}", at=at, known=ITEM_FIELDS)
        item = Item(trimmed(value))
    elif isinstance(value, (Mapping, Item)):
        fields = Fields.of(value, ITEM_FIELDS, at)
        item = Item(fields.required_text("what", "Say which source, window or population it is."), fields.text("why"))
    else:
        raise refusal(f"`{at}` must be text or {{what, why}}, not {type(value).__name__}. Say it in words.", at=at, known=ITEM_FIELDS)
    if reasoned and item.why is None:
        raise refusal(
            f"`{at}` gives no reason. Write {{what, why}} and say why no call can reach it. What a wider call could reach belongs "
            "in `not_checked`.",
            at=at,
            key="why",
            known=ITEM_FIELDS,
        )
    return item


def _problem_of(text: str, limit: int | None) -> str | None:
    """What is wrong with a text where words belong, or None."""
    words = trimmed(text)
    if not words:
        return "is blank. Say it in words, or leave it out."
    if limit is not None and len(words) > limit:
        return f"holds {len(words):,} characters; at most {limit} fit. Shorten it."
    if "\x00" in words or any("\ud800" <= char <= "\udfff" for char in words):
        return "holds a character that no log can keep (NUL, or half of a surrogate pair). Take it out."
    return None


def trimmed(text: str) -> str:
    """A text without white space, or byte order marks, at its ends: of a blank one nothing is left."""
    return text.strip(_WHITE_SPACE)
