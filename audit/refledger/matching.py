"""Where did a value come from? A guess from equal values, for runs that were recorded without exact edges.

    matcher = Matcher()
    matcher.observe("message", "2", "Hi, I am mia@example.com")
    matcher.match_arguments({"email": "mia@example.com"})     # (Match(argument="email", source="message", id="2"),)

The rule. A value came from the first place that held it, word for word: what later places repeat, they did not bring. So every value
names at most one place, and an id that a user spelled stays the user's when results echo it. The value of an argument is looked for
whole. If it has several words, and was seen nowhere or was put together in a message, what stands in it is looked for too: ids, numbers,
and values of several words that stood alone in a JSON result. Of an answer's text, these only. Values that say too little are left out:
booleans and null; whole values below three letters or digits; within a text, plain words, numbers below three digits and ids below four
characters.

Words are equal whatever their case, since people do not type as systems store; words with a digit in them, as ids are, only to the
letter. Numbers are equal by value: 1095.5 is the "$1,095.50" of a text. An outer mark that is no part of a word is not seen, so that
"#W123" and "W123" are one. JSON within texts is read as JSON, its keys as values, as a key is often an id or the name of a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from refledger_schema.canonical import parse_json, payload_json
from refledger_schema.errors import NotCanonical
from refledger_schema.events import MAX_MATCHES, MAX_NAME, Match

Source = Literal["call", "artifact", "message"]

MAX_WORDS = 200_000
"""How many words of one text are looked at."""
MAX_MATCH_BYTES = 24_576
"""How many bytes the names in the matches of one event take at most, so that its leaf stays within its bound, escapes included."""
_LONGEST_VALUE = 8
"""The longest value, in words, that is looked for within a text."""
_COMMON = 10_000
"""A value whose rarest word was seen so often says nothing, and would cost a look at each."""

_GROUPED = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])"
_WORD = r"\w+(?:[-.@'’+]\w+)*"
_WORDS = re.compile(_WORD)
_WORDS_OR_GROUPED = re.compile(rf"(?<![\w.,-]){_GROUPED}|{_WORD}")
_GROUPED_NUMBERS = re.compile(rf"(?<![\w.,-]){_GROUPED}")
_PARTS = re.compile(r"[-,+]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class _Place(NamedTuple):
    source: Source
    id: str


class Matcher:
    """What one run has seen so far, and where it saw it first."""

    def __init__(self) -> None:
        self.cut = 0
        """How many texts were longer than `MAX_WORDS`: what stands beyond was not looked at."""
        # All words ever seen, in one row, with a gap after every value; and for each word, its places in that row.
        self._words: list[str | None] = []
        self._places: list[_Place] = []
        self._at: dict[str, list[int]] = {}
        self._values: set[tuple[str, ...]] = set()

    def observe(self, source: Source, id: str, value: object) -> None:
        """Something was seen: the arguments of a call, a result, a message. Call it in the order in which things were seen.

        `value` is text, or any JSON value. Of a call's arguments the values count, not their names.
        """
        place = _Place(source, id)
        whole = isinstance(value, str) and _container(value) is None
        left = MAX_WORDS
        for text in _texts(list(value.values()) if source == "call" and isinstance(value, dict) else value):
            words = [_folded(word) for word in _some(_WORDS, text, left + 1)]
            if len(words) > left:
                self.cut += 1
                words = words[:left]
            self._keep(words, place)
            if not whole and 2 <= len(words) <= _LONGEST_VALUE:
                self._values.add(tuple(words))
            for number in _some(_GROUPED_NUMBERS, text, left):
                self._keep([_folded(number)], place)
            left -= len(words)
            if left <= 0:
                break

    def match_arguments(self, args: object) -> tuple[Match, ...]:
        """Where the values of a call's arguments were first seen, argument by argument. At most `MAX_MATCHES`."""
        if not isinstance(args, Mapping):
            return _bounded((None, place) for place in self._of_value(args))
        return _bounded((_name(name), place) for name, value in args.items() for place in self._of_value(value))

    def match_text(self, text: str) -> tuple[Match, ...]:
        """Where the ids, numbers and longer values in a text were first seen. At most `MAX_MATCHES`."""
        return _bounded((None, place) for place in self._in_text(text))

    def _keep(self, words: Sequence[str], place: _Place) -> None:
        for word in words:
            self._at.setdefault(word, []).append(len(self._words))
            self._words.append(word)
            self._places.append(place)
        self._words.append(None)
        self._places.append(place)

    def _of_value(self, value: object) -> Iterator[_Place]:
        for text in _texts(value, keys=False):
            words = [_folded(word) for word in _some(_WORDS_OR_GROUPED, text, MAX_WORDS)]
            place = self._first(words) if len(words) > 1 or any(_says_something(word) for word in words) else None
            if place is not None:
                yield place
            if len(words) > 1 and (place is None or place.source == "message"):
                yield from self._in_text(text)

    def _in_text(self, text: str) -> Iterator[_Place]:
        spoken = _some(_WORDS_OR_GROUPED, text, MAX_WORDS)
        words = [_folded(word) for word in spoken]
        start = 0
        while start < len(words):
            length = self._value_at(words, start)
            found = self._first(words[start : start + length]) if length > 1 else self._telling(spoken[start])
            yield from () if found is None else (found,)
            if length == 1 and found is None:
                yield from filter(None, map(self._telling, _PARTS.split(spoken[start])))
            start += length

    def _value_at(self, words: Sequence[str], start: int) -> int:
        """The length of the longest known value of several words that begins at `start`; 1 where none does."""
        for length in range(min(_LONGEST_VALUE, len(words) - start), 1, -1):
            if tuple(words[start : start + length]) in self._values:
                return length
        return 1

    def _telling(self, word: str) -> _Place | None:
        """The first place of a word that means something by itself, within a text: an id or a number."""
        word = _folded(word)
        return self._first([word]) if _is_telling(word) else None

    def _first(self, words: Sequence[str]) -> _Place | None:
        """The first place that holds `words` in a row, within one value."""
        rarest = min(range(len(words)), key=lambda index: len(self._at.get(words[index], ())))
        places = self._at.get(words[rarest], [])
        if len(words) > 1 and len(places) > _COMMON:
            return None
        for at in places:
            start = at - rarest
            if start >= 0 and self._words[start : start + len(words)] == words:
                return self._places[start]
        return None


def _name(argument: object) -> str | None:
    """The argument's name as a match can carry it. The match of an argument that is named otherwise stands without a name."""
    return argument if isinstance(argument, str) and 0 < len(argument) <= MAX_NAME and argument.isprintable() else None


def _bounded(found: Iterable[tuple[str | None, _Place]]) -> tuple[Match, ...]:
    """Matches without repetition, in the order found, as many as one event can carry."""
    matches: dict[tuple[str | None, _Place], Match] = {}
    left = MAX_MATCH_BYTES
    for key in found:
        if key in matches:
            continue
        argument, place = key
        left -= len((argument or "").encode()) + len(place.id.encode())
        if left < 0 or len(matches) == MAX_MATCHES:
            break
        matches[key] = Match(argument=argument, source=place.source, id=place.id)
    return tuple(matches.values())


def _texts(value: object, *, keys: bool = True) -> Iterator[str]:
    """The texts and numbers in a JSON value, in its order, as texts; JSON within a text is opened. Booleans and null are none."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            inner = _container(item)
            if inner is None:
                yield item
            else:
                pending.append(inner)
        elif isinstance(item, Mapping):
            for name, member in reversed(list(item.items())):
                pending += [member, name] if keys else [member]
        elif isinstance(item, list | tuple):
            pending.extend(reversed(item))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield payload_json(item)


def _container(text: str) -> object | None:
    """The object or array that `text` is as JSON, if it is one."""
    stripped = text.strip()
    if (stripped[:1], stripped[-1:]) not in (("{", "}"), ("[", "]")):
        return None
    try:
        return parse_json(stripped)
    except NotCanonical:
        return None


def _some(pattern: re.Pattern[str], text: str, count: int) -> list[str]:
    """The first `count` finds of `pattern` in `text`."""
    return [found.group() for _, found in zip(range(count), pattern.finditer(text), strict=False)]


def _folded(word: str) -> str:
    """One spelling for words that are equal: numbers by value, words without a digit whatever their case."""
    number = word.replace(",", "")
    if _NUMBER.fullmatch(number):
        return number.rstrip("0").rstrip(".") if "." in number else number
    return word if any(map(str.isdigit, word)) else word.casefold()


def _says_something(word: str) -> bool:
    """Whether `word` can be looked for where it is a whole value."""
    return sum(map(str.isalnum, word)) >= 3


def _is_telling(word: str) -> bool:
    """Whether `word` can be looked for where it stands among others."""
    if _NUMBER.fullmatch(word):
        return sum(map(str.isdigit, word)) >= 3
    return any(map(str.isdigit, word)) and sum(map(str.isalnum, word)) >= 4
