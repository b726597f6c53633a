"""Reads the vectors of `tests/vectors`: their tagged values become Python's, as the README there describes them."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent / "vectors"


class Undefined(Enum):
    """The type of `UNDEFINED`, which stands for a value that is absent."""

    UNDEFINED = "undefined"


UNDEFINED = Undefined.UNDEFINED


@dataclass(frozen=True)
class JsOnly:
    """A value of the host language that has no Python counterpart: a function, a Date, a bigint beside numbers, …"""

    name: str


def load(name: str) -> dict[str, Any]:
    """One file of vectors, its values still tagged."""
    vectors: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return vectors


def decode(value: Any) -> Any:
    """The Python value that `value` stands for: tags are resolved at every level, mappings keep their order."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if not tag.startswith("$"):
        return {key: decode(item) for key, item in value.items()}
    return _TAGS[tag](value[tag])


def _float(digits: str) -> float:
    return float(digits)  # NaN, Infinity and -0 among them


def _bytes_repeat(pair: list[int]) -> bytes:
    byte, count = pair
    return bytes([byte]) * count


def _utf16(units: list[int]) -> str:
    return struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "surrogatepass")


def _obj(pairs: list[list[Any]]) -> dict[Any, Any]:
    return {decode(key): decode(item) for key, item in pairs}


def _repeat(pair: list[Any]) -> str:
    text, count = pair
    repeated: str = decode(text) * count
    return repeated


def _nest_array(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _nest_object(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def _cyclic(which: str) -> Any:
    if which == "array":
        array: list[Any] = []
        array.append(array)
        return array
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle if which == "object" else {"inner": [cycle]}
    return cycle


def _shared(value: Any) -> list[Any]:
    one = decode(value)
    return [one, one]


_TAGS: dict[str, Callable[[Any], Any]] = {
    "$undefined": lambda _: UNDEFINED,
    "$f64": _float,
    "$bytes": base64.b64decode,
    "$bytes_repeat": _bytes_repeat,
    "$utf16": _utf16,
    "$obj": _obj,
    "$repeat": _repeat,
    "$range": lambda count: list(range(count)),
    "$nest_array": _nest_array,
    "$nest_object": _nest_object,
    "$cyclic": _cyclic,
    "$shared": _shared,
    "$function": lambda _: JsOnly("function"),
    "$symbol": lambda _: JsOnly("symbol"),
    "$bigint": lambda _: JsOnly("bigint"),
    "$js": JsOnly,
}
