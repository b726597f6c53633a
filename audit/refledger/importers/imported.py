"""What an importer makes of one run, whatever the trace's format: drafts for one append, and the bytes beside them."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass

from refledger_schema.canonical import JsonValue, payload_json
from refledger_schema.digests import digest_of_text
from refledger_schema.envelope import Draft
from refledger_schema.scopes import Scope

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SUFFIX = 22


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One run, ready to be appended in one transaction."""

    run_id: str
    """Derived from `source`: the same run has the same id in every log."""
    source: str
    """Digest of the run as the trace holds it."""
    scope: Scope
    """Where it will stand."""
    drafts: tuple[Draft, ...]
    """`import.noted` first, whose idempotency key makes a second import change nothing."""
    payloads: Mapping[str, bytes]
    """By digest: the bytes of its artifacts."""
    content: Mapping[str, bytes]
    """By digest: the texts of its messages, arguments, results and answers."""
    steps: int
    """How many messages it has."""


def source_of(record: Mapping[str, JsonValue]) -> str:
    """The digest that a run is known by: of its payload form with sorted keys.

    RFC 8785 would refuse what real traces hold, such as integers beyond 2^53; the payload form writes them exactly. White space, the
    order of keys, and 1.0 for 1 make no difference.

    Raises `NotCanonical` or `TooLarge`, as `payload_json` does.
    """
    payload_json(record)  # judges the depth, before sorting goes down it
    return digest_of_text(payload_json(_sorted(record)))


def named_after(prefix: str, source: str) -> str:
    """An id in the grammar of a minted one, and derived from a digest: `prefix` and 22 base62 characters."""
    number = int(source.removeprefix("sha-256:"), 16)
    characters = []
    for _ in range(_SUFFIX):
        number, digit = divmod(number, 62)
        characters.append(_BASE62[digit])
    return prefix + "".join(characters)


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    return value
