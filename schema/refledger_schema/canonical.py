"""JSON as exact text: the form that events are hashed in, the form that payloads are stored in, and the strict way back.

The two forms share what a digest needs: no space, no escape that JSON does not demand, numbers as ECMAScript writes them (so that 1.0 and 1
are one number), and nothing approximated: a value that JSON cannot carry is refused with `NotCanonical`, which names its path. They differ
in what they are for:

    canonical_json   keys sorted (RFC 8785); integers within ±(2^53−1); no NUL; at most 64 levels
    payload_json     keys in the value's own order; integers of any size; NUL allowed; the caller's bound on levels

Instances of a subclass are written as their base: an `OrderedDict` as its members, and a member of a `StrEnum` or `IntEnum` as its value,
which it equals. Of the tuples only `tuple` itself is an array, since a named one would lose its names. Every other object is refused,
dates and members of a plain `Enum` among them.

A form has one definition, `_Writer`. Where `_fit_for_c_encoder` finds nothing against it, which is nearly always, the C encoder of `json`
writes the same text about three times as fast; the tests hold the two together.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from json.encoder import encode_basestring, encode_basestring_ascii
from math import isfinite
from typing import Any, Literal, TypeAlias

from refledger_schema.errors import NotCanonical, TooLarge

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer of I-JSON (RFC 7493 section 2.2), and so of RFC 8785: up to here a double tells neighbours apart."""

MAX_DEPTH = 64
"""How many arrays and objects of an event value may stand inside each other: a scalar has 0 levels, `[]` has 1."""

MAX_PAYLOAD_DEPTH = 128
"""The same for a payload, unless the caller says otherwise."""

_Key: TypeAlias = str | int | None
_Fit: TypeAlias = Literal["as it is", "but for whole floats"]

_BUILTIN = frozenset({dict, list, tuple, str, int, float, bool, type(None)})
_NEVER_FLOATS = frozenset({str, int, bool, type(None)})
_ONLY_TEXT = frozenset({str})

_PRINTABLE_INTEGER = 10**639
"""Below it Python prints every integer, whatever limit the host has set: 640 digits is the least that may be set."""

_ESCAPED_NUL = "\\u0000"
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_AFTER_SURROGATES = re.compile("[\ue000-\uffff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONGEST_KEY_SHOWN = 64

_c_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False).encode
_c_ordered = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False).encode


def canonical_json(value: object) -> str:
    """The one text of an event value, which is hashed and stored: RFC 8785 (JCS).

    `value` is built of dict with text keys, list, tuple, str, bool, None, int within ±(2^53−1) and finite float. Keys are sorted by UTF-16
    code units (RFC 8785 section 3.2.3), and Unicode is not normalised. A float from 2^53 up to 1e21 is written without a point, and what
    is read back is then an integer too large to be written again.

    Raises `NotCanonical`, with the path, for all else: NaN and infinities, larger integers, lone surrogates and NUL in texts and keys (no
    database of ours keeps them), keys that are not text, other types, more than `MAX_DEPTH` levels, a container that contains itself.
    """
    text = _by_c_encoder(_c_sorted, value, MAX_DEPTH, MAX_SAFE_INTEGER)
    if text is None or _ESCAPED_NUL in text or not (text.isascii() or _sorts_alike(text)):
        return _Writer(_CANONICAL).text(value)
    return text


def payload_json(value: object, *, max_depth: int = MAX_PAYLOAD_DEPTH) -> str:
    """The text that a JSON payload is stored as; its digest is that of the text's UTF-8 bytes (decision 13 of the design).

    Keys keep their order and integers their digits. A float from 2^53 up to 1e21 has no point in ECMAScript's form, so it is read back as
    the integer of those digits, whose nearest float it is.

    Raises `NotCanonical`, with the path, for what JSON cannot carry: NaN and infinities, lone surrogates, keys that are not text, other
    types (dates, sets, bytes, …), a container that contains itself. Raises `TooLarge` for more than `max_depth` levels, whose `found` is
    the first level too many, since the levels below it are not looked at.
    """
    # The look at the value does not notice a cycle, so it goes no deeper than a payload ordinarily may.
    text = _by_c_encoder(_c_ordered, value, min(max_depth, MAX_PAYLOAD_DEPTH), _PRINTABLE_INTEGER)
    if text is None or not (text.isascii() or _is_well_formed(text)):
        return _Writer(replace(_PAYLOAD, max_depth=max_depth)).text(value)
    return text


def parse_json(text: str | bytes) -> JsonValue:
    """The value of one JSON text, read strictly: what two readers could take for different values is refused.

    Bytes are UTF-8. Integers are exact at any size; a number with a point or an exponent is its nearest float.

    Raises `NotCanonical` for a key that stands twice in one object, NaN and Infinity, numbers beyond every float, lone surrogates, a byte
    order mark, text after the value, every other breach of RFC 8259, and nesting deeper than the interpreter follows. The path is that of
    the value refused; where the text itself is at fault it is `$`, and the reason names the character or byte, counted from 0.
    """
    source = _decoded(text)
    if _ESCAPED_SURROGATE.search(source):
        return _parsed_with_care(source)
    try:
        value: JsonValue = _READER.decode(source)
    except (ValueError, RecursionError):
        return _parsed_with_care(source)
    return value


def ecmascript_number(x: float) -> str:
    """`x` as ECMAScript's Number::toString writes it, and RFC 8785 with it (section 3.2.2.3): `1`, `0.000001`, `1e+21`; -0.0 is `0`.

    Python too prints the fewest digits that read back as `x`, so only the place of the point is ours to find.

    Raises `NotCanonical` for NaN and infinities.
    """
    magnitude = abs(x)
    if 1e-4 <= magnitude < 1e16:  # neither language writes an exponent
        return float.__repr__(x).removesuffix(".0")
    if not isfinite(x):
        raise NotCanonical("$", "expected a finite number; found NaN or an infinity. Use None where there is no number.")
    if x == 0:
        return "0"
    mantissa, _, exponent = float.__repr__(magnitude).partition("e")
    return ("-" if x < 0 else "") + _positional(mantissa, int(exponent))


def _positional(mantissa: str, exponent: int) -> str:
    """The number written out, unless ECMAScript too gives it an exponent: from 1e+21 up and from 1e-7 down."""
    if not -7 < exponent < 21:
        return f"{mantissa}e{exponent:+d}"
    digits = mantissa.replace(".", "")
    return digits.ljust(exponent + 1, "0") if exponent > 0 else "0." + "0" * (-exponent - 1) + digits


def _by_c_encoder(encode: Callable[[object], str], value: object, max_depth: int, max_integer: int) -> str | None:
    """The C encoder's text of `value`, or None where it may not be ours. The strings in it are still to be judged."""
    fit = _fit_for_c_encoder(value, max_depth, max_integer)
    if fit is None:
        return None
    try:
        return encode(value if fit == "as it is" else _whole_floats_as_integers(value))
    except RecursionError:  # the host has left us little of its stack
        return None


def _fit_for_c_encoder(root: object, max_depth: int, max_integer: int) -> _Fit | None:
    """Whether the C encoder writes `root` as we do, its strings aside.

    This is the one look at every value that an ordinary event costs, hence the tests in line, the commonest first.
    """
    fit: _Fit = "as it is"
    pending: list[tuple[Iterable[Any], int]] = [((root,), 0)]  # Any: `kind` tells the type, in a way the checker cannot follow
    while pending:
        values, depth = pending.pop()
        for value in values:
            kind = type(value)
            if kind is str or value is None or kind is bool:
                continue
            if kind is int and -max_integer <= value <= max_integer:
                continue
            if kind is float and (1e-4 <= abs(value) < 1e16 or value == 0):  # Python's form is ours, but for the `.0`
                if value.is_integer():
                    fit = "but for whole floats"
            elif depth >= max_depth:
                return None
            elif kind is list or kind is tuple:
                pending.append((value, depth + 1))
            elif kind is dict and _ONLY_TEXT.issuperset(map(type, value)):
                pending.append((value.values(), depth + 1))
            else:
                return None
    return fit


def _whole_floats_as_integers(value: object) -> object:
    """A copy of `value` in which 1.0 is 1 and -0.0 is 0, so that Python writes no point either."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: item if type(item) in _NEVER_FLOATS else _whole_floats_as_integers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item if type(item) in _NEVER_FLOATS else _whole_floats_as_integers(item) for item in value]
    return value


def _sorts_alike(text: str) -> bool:
    """Whether `text` is well-formed, and its keys stand in UTF-16 order when they stand in the C encoder's, which is by code point.

    The orders part only where a character beyond U+FFFF, written as surrogates, meets one of U+E000 to U+FFFF.
    """
    try:
        units = len(text.encode("utf-16-le")) // 2
    except UnicodeEncodeError:
        return False
    return units == len(text) or _AFTER_SURROGATES.search(text) is None


def _is_well_formed(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Form:
    """What makes one form of JSON: how each type of scalar is written, in which order members stand, how deep it goes."""

    scalars: Mapping[type, Callable[..., str]]
    members: Callable[[dict[str, object]], Iterable[tuple[str, object]]]
    max_depth: int
    too_deep: Callable[[int], Exception]


class _Open:
    """A container that is being written. `key` is that of its member at hand: a step of the path."""

    __slots__ = ("closing", "key", "members", "separator", "value")

    def __init__(self, value: object, members: Iterator[tuple[_Key, object]], closing: str) -> None:
        self.value = value
        self.members = members
        self.closing = closing
        self.separator = ""
        self.key: _Key = None


class _Writer:
    """Writes one value in a form, exactly or not at all.

    The stack is ours, so how deep a value may be is the form's to say and not the host's. Functions that see a value alone refuse it at
    `$`; the writer, which knows the way there, says where that is.
    """

    def __init__(self, form: _Form) -> None:
        self._form = form
        self._out: list[str] = []
        self._stack: list[_Open] = []
        self._open_ids: set[int] = set()

    def text(self, root: object) -> str:
        self._stack.append(_Open(None, iter([(None, root)]), ""))
        try:
            while self._stack:
                self._write_members(self._stack[-1])
        except NotCanonical as refusal:
            raise NotCanonical(_path(open_.key for open_ in self._stack), refusal.reason) from None
        return "".join(self._out)

    def _write_members(self, here: _Open) -> None:
        """Go on until `here` ends, or until one of its members is a container, which is then to be written first."""
        scalars = self._form.scalars
        for key, value in here.members:
            here.key = key
            label = f"{here.separator}{scalars[str](key)}:" if isinstance(key, str) else here.separator
            here.separator = ","
            plain = value if type(value) in scalars else _builtin(value)
            scalar = scalars.get(type(plain))
            if scalar is None:
                self._out.append(label)
                self._open(value, plain)
                return
            self._out.append(label + scalar(plain))
        self._out.append(here.closing)
        self._open_ids.discard(id(here.value))
        self._stack.pop()

    def _open(self, value: object, plain: object) -> None:
        if id(value) in self._open_ids:
            raise NotCanonical("$", "expected a value that ends; found a container inside itself. Put an id or a copy there.")
        if len(self._stack) > self._form.max_depth:
            raise self._form.too_deep(self._form.max_depth)
        self._open_ids.add(id(value))
        self._out.append("{" if isinstance(plain, dict) else "[")
        if isinstance(plain, dict):
            self._stack.append(_Open(value, iter(self._form.members(_with_text_keys(plain))), "}"))
        elif isinstance(plain, list | tuple):
            self._stack.append(_Open(value, enumerate(plain), "]"))


def _builtin(value: object) -> object:
    """The builtin value that `value` is written as: itself, or the base of an instance of a subclass."""
    if type(value) in _BUILTIN:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return list(value)
    if isinstance(value, _Repeated):
        raise NotCanonical("$", f"expected every key once; {_shown(value.key)} stands twice.")
    raise NotCanonical("$", f"expected a JSON value; found {_type_name(value)}. Make text or numbers of it first.")


def _with_text_keys(value: dict[str, object]) -> dict[str, object]:
    if _ONLY_TEXT.issuperset(map(type, value)):
        return value
    plain = {_text_key(key): item for key, item in value.items()}
    if len(plain) < len(value):
        raise NotCanonical("$", "expected every key once; found two keys of the same text.")
    return plain


def _text_key(key: object) -> str:
    if not isinstance(key, str):
        raise NotCanonical("$", f"expected text keys; found one of type {_type_name(key)}. Make text of it first.")
    return str.__str__(key)


def _payload_text(text: str) -> str:
    if not (text.isascii() or _is_well_formed(text)):
        raise NotCanonical("$", "expected well-formed text; found a lone surrogate. Decode the text properly, or pass bytes.")
    return encode_basestring(text)


def _canonical_text(text: str) -> str:
    if "\x00" in text:
        raise NotCanonical("$", "expected text that a database can hold; found NUL (U+0000). Take it out.")
    return _payload_text(text)


def _payload_integer(value: int) -> str:
    if -_PRINTABLE_INTEGER <= value <= _PRINTABLE_INTEGER:
        return int.__repr__(value)
    return str(Decimal(value))  # Decimal knows no limit on digits


def _canonical_integer(value: int) -> str:
    if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        raise NotCanonical("$", "expected an integer within ±(2^53−1); found a larger one. Pass it as text.")
    return int.__repr__(value)


def _sorted_members(value: dict[str, object]) -> Iterable[tuple[str, object]]:
    return sorted(value.items(), key=lambda member: member[0].encode("utf-16-be", "surrogatepass"))


def _past_event_depth(limit: int) -> Exception:
    return NotCanonical("$", f"expected at most {limit} levels; found more. Flatten the value, or check it in as a payload.")


def _past_payload_depth(limit: int) -> Exception:
    return TooLarge("payload depth", limit, limit + 1)


_WORDS: dict[object, str] = {True: "true", False: "false", None: "null"}
_COMMON: dict[type, Callable[..., str]] = {float: ecmascript_number, bool: _WORDS.__getitem__, type(None): _WORDS.__getitem__}
_CANONICAL = _Form({**_COMMON, str: _canonical_text, int: _canonical_integer}, _sorted_members, MAX_DEPTH, _past_event_depth)
_PAYLOAD = _Form({**_COMMON, str: _payload_text, int: _payload_integer}, dict.items, MAX_PAYLOAD_DEPTH, _past_payload_depth)
_JUDGED = replace(_PAYLOAD, scalars={**_PAYLOAD.scalars, int: lambda value: "0"}, max_depth=sys.maxsize)
"""A payload read, whose text nobody asks for: any integer will do, and long ones are slow to print."""


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Stands for an object in which `key` stands twice, until a writer meets it and refuses it."""

    key: str


def _decoded(text: str | bytes) -> str:
    try:
        source = text.decode() if isinstance(text, bytes) else text
        source.encode()
    except UnicodeDecodeError as error:
        raise NotCanonical("$", f"expected UTF-8; it goes wrong at byte {error.start:,}.") from None
    except UnicodeEncodeError as error:
        raise NotCanonical("$", f"expected well-formed text; found a lone surrogate at character {error.start:,}.") from None
    if source.startswith("\ufeff"):
        raise NotCanonical("$", "expected JSON without a byte order mark; found one. Take it off.")
    return source


def _parsed_with_care(source: str) -> JsonValue:
    """The value of a text that may hold something to refuse: it is read whatever it says, and then judged by a writer, who knows paths."""
    try:
        value: JsonValue = _TOLERANT_READER.decode(source)
    except json.JSONDecodeError as error:
        raise NotCanonical("$", f"expected one JSON text; it goes wrong at character {error.pos:,}.") from None
    except RecursionError:
        raise NotCanonical("$", "expected a text that can be read; it is nested too deeply.") from None
    _Writer(_JUDGED).text(value)
    return value


def _members_once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key stands twice")
    return members


def _members_or_repeated(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue] | _Repeated:
    members: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in members:
            return _Repeated(key)
        members[key] = value
    return members


def _finite(number: str) -> float:
    x = float(number)
    if not isfinite(x):
        raise ValueError("no float holds this number")
    return x


def _integer_of_any_length(digits: str) -> int:
    """int(digits) past the limit that the host sets, by halves: the time then grows less than with the square of the length."""
    if len(digits) < 640:
        return int(digits)
    if digits.startswith("-"):
        return -_integer_of_any_length(digits[1:])
    half = len(digits) // 2
    power: int = 10**half
    return _integer_of_any_length(digits[:-half]) * power + _integer_of_any_length(digits[-half:])


# What the first reader stops at, the second reads for the writer to name.
_READER = json.JSONDecoder(object_pairs_hook=_members_once, parse_float=_finite, parse_constant=_finite)
_TOLERANT_READER = json.JSONDecoder(object_pairs_hook=_members_or_repeated, parse_int=_integer_of_any_length, parse_constant=float)


def _path(keys: Iterable[_Key]) -> str:
    """The JSONPath of the value under `keys`, such as `$.a[3]."odd key"`. The root has no key."""
    return "$" + "".join(_step(key) for key in keys if key is not None)


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f".{_shown(key)}"


def _shown(key: str) -> str:
    """`key` quoted, in ASCII and cut where it is long: an error text can be printed whatever a payload holds."""
    return encode_basestring_ascii(key if len(key) <= _LONGEST_KEY_SHOWN else key[:_LONGEST_KEY_SHOWN] + "...")


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
