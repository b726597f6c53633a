"""Identifiers: minted from a secure random source, never derived from what they name."""

from __future__ import annotations

import re
import secrets
import string

import uuid_utils

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SUFFIX = 22
"""22 base62 characters hold 130 random bits."""
_REF = re.compile(r"art_[0-9A-Za-z]{22}")
_REF_IN_TEXT = re.compile(r"(?<![0-9A-Za-z_])art_[0-9A-Za-z]{22}(?![0-9A-Za-z])")


def mint_ref() -> str:
    """A new claim ticket: `art_` and 22 random base62 characters."""
    return "art_" + _random_base62()


def mint_run_id() -> str:
    return "run_" + _random_base62()


def mint_call_id() -> str:
    return "call_" + _random_base62()


def mint_answer_id() -> str:
    return "ans_" + _random_base62()


def mint_event_id() -> str:
    """A UUIDv7 (RFC 9562) in its lower-case text form, so that an index over event ids grows at its end."""
    return str(uuid_utils.uuid7())


def is_ref(text: str) -> bool:
    """Whether `text` has the grammar of a ref. Case matters; nothing is trimmed."""
    return _REF.fullmatch(text) is not None


def refs_in(text: str) -> tuple[str, ...]:
    """The refs that `text` spells, in the order of their first mention."""
    return tuple(dict.fromkeys(_REF_IN_TEXT.findall(text)))


def _random_base62() -> str:
    number = secrets.randbelow(62**_SUFFIX)
    characters = []
    for _ in range(_SUFFIX):
        number, digit = divmod(number, 62)
        characters.append(_BASE62[digit])
    return "".join(characters)
