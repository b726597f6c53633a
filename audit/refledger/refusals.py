"""How a result helper refuses (seed `refusal.d.ts`): one prefix, one check of keys, whatever the helper."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from refledger_schema.errors import DeclarationRefused
from refledger_schema.wording import MAX_SHOWN, REFUSED_PREFIX

__all__ = ["REFUSED_PREFIX", "refusal", "refuse_unknown_keys", "spelling_meant"]

_SEPARATORS = str.maketrans("", "", "-_. ")
_LOWER_ASCII = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def refusal(
    message: str, *, at: str | None = None, key: str | None = None, meant: str | None = None, known: Sequence[str] = ()
) -> DeclarationRefused:
    """The error that a result helper raises: the prefix once, then what was refused. It never names the helper.

    The facts go with it as attributes: the object of the declaration (`at`), its field (`key`), and the fields it has (`known`).
    """
    text = message if message.startswith(REFUSED_PREFIX) else REFUSED_PREFIX + message
    return DeclarationRefused(text, at=at, key=key, meant=meant, known=known)


def spelling_meant(key: object, known: Sequence[str]) -> str | None:
    """The one known key that `key` spells with another case or other separators, or None: never a guess past the spelling.

    Only ASCII letters are folded, and `-`, `_`, `.` and space dropped; two known keys of one fold are no match.
    """
    if not isinstance(key, str):
        return None
    if key in known:
        return key
    folded = _folded(key)
    meant = {name for name in known if _folded(name) == folded} if folded else set()
    return meant.pop() if len(meant) == 1 else None


def refuse_unknown_keys(value: object, known: Sequence[str], at: str | None = None) -> None:
    """Refuse the first key of `value`, in its own order, that `known` does not list.

    `value` is a mapping, a pydantic model or a dataclass instance; anything else is refused by its shape. `at` names the nested
    object that the keys belong to. Raises `DeclarationRefused` with `at`, `key`, `meant` and `known`.

        refuse_unknown_keys({"checked": ["a"], "notChecked": ["b"]}, ["checked", "not_checked"], "coverage")
    """
    keys = _keys_of(value, at)
    for key in keys:
        if not (isinstance(key, str) and key in known):
            raise _unknown_key(key, keys, known, at or None)


def _keys_of(value: object, at: str | None) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.keys())
    if isinstance(value, BaseModel):
        fields = [name for name in type(value).model_fields if name in value.model_fields_set]
        return [*fields, *(value.model_extra or ())]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [field.name for field in dataclasses.fields(value)]
    where = f"`{at}`" if at else "the declaration"
    raise DeclarationRefused(f"{REFUSED_PREFIX}{where} must be an object with named fields, not {type(value).__name__}.", at=at or None)


def _unknown_key(key: object, keys: Sequence[object], known: Sequence[str], at: str | None) -> DeclarationRefused:
    meant = spelling_meant(key, known)
    name = _printed(key)
    dotted = f"{at}.{name}" if at else name
    already = ", which is there already" if meant in keys else ""
    slip = f" — did you mean `{meant}`{already}?" if meant is not None else "."
    fields = list(dict.fromkeys(known))
    whose = f"The fields of `{at}` are" if at else "The fields are"
    nothing = f"`{at}` has no fields" if at else "There are no fields"
    listing = f"{whose}: {', '.join(fields)}." if fields else f"{nothing}."
    message = f"{REFUSED_PREFIX}'{dotted}' is not a field this vocabulary has{slip} {listing}"
    return DeclarationRefused(message, at=at, key=name, meant=meant, known=fields)


def _printed(key: object) -> str:
    """A key as a model may read it: escaped beyond printable ASCII, so that look-alikes show, and bounded."""
    if not isinstance(key, str):
        return f"{_escaped(repr(key))} ({type(key).__name__})"
    return _escaped(key)


def _escaped(text: str) -> str:
    visible = text[: MAX_SHOWN + 1].replace("\\", "\\\\").encode("ascii", "backslashreplace").decode()
    visible = "".join(char if char.isprintable() else repr(char)[1:-1] for char in visible).replace("'", "\\'")
    return visible if len(visible) <= MAX_SHOWN else visible[: MAX_SHOWN - 1] + "…"


def _folded(key: str) -> str:
    return key.translate(_SEPARATORS).translate(_LOWER_ASCII)
