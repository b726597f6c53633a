"""Scopes: who may see what. A ref opens nothing outside the scope that it was minted in."""

from __future__ import annotations

from dataclasses import dataclass, field

from refledger_schema.errors import InvalidScope, TooLarge

ABSENT = "_"
MAX_FIELD = 1_024
"""The longest scope field, in characters."""


@dataclass(frozen=True, slots=True)
class Scope:
    """(tenant?, principal?, conversation). Missing and empty are the same absence.

    Nothing is trimmed, folded or normalised: `Acme` is not `acme`. The names are pseudonyms by contract, since they stand
    beside every event and outlive the erasure of its texts.

    Raises `InvalidScope` for a field that is not text, or that no database can hold (NUL, lone surrogates).
    """

    conversation: str = ""
    tenant: str = ""
    principal: str = ""
    key: str = field(init=False, repr=False, compare=False)
    """The scope as one string: the contract's namespace `t/p/c`."""

    def __post_init__(self) -> None:
        for name in ("conversation", "tenant", "principal"):
            object.__setattr__(self, name, _field(name, getattr(self, name)))
        # Every append asks for it several times.
        object.__setattr__(self, "key", "/".join(_escaped(part) for part in (self.tenant, self.principal, self.conversation)))

    def names(self) -> dict[str, str]:
        """The names that are present, as the private part of a leaf holds them."""
        names = {"conversation": self.conversation, "principal": self.principal, "tenant": self.tenant}
        return {name: value for name, value in names.items() if value}


def scope_of(key: str) -> Scope:
    """The scope that `key` names; the inverse of `Scope.key`. No other spelling of a scope is read: a scope has one key."""
    parts = key.split("/")
    if len(parts) != 3:
        raise InvalidScope("key", "expected a scope key of three segments joined by '/'; use `Scope.key` to make one.")
    tenant, principal, conversation = (_unescaped(part) for part in parts)
    scope = Scope(conversation=conversation, tenant=tenant, principal=principal)
    if scope.key != key:
        raise InvalidScope("key", "expected a scope key as `Scope.key` spells it; found another spelling. Use `Scope.key` to make one.")
    return scope


def _field(name: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidScope(name, f"expected the scope's {name} to be text or nothing; found {type(value).__name__}. Pass a str.")
    if len(value) > MAX_FIELD:
        raise TooLarge(f"the scope's {name}, in characters", MAX_FIELD, len(value))
    if "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise InvalidScope(name, f"expected the scope's {name} to be storable text; found NUL or a lone surrogate. Encode it first.")
    return value


def _escaped(part: str) -> str:
    """One segment of the key: `%` is escaped before `/`, so that the joined string has one reading."""
    if not part:
        return ABSENT
    if part == ABSENT:
        return "%5F"
    return part.replace("%", "%25").replace("/", "%2F")


def _unescaped(segment: str) -> str:
    if segment == ABSENT:
        return ""
    return segment.replace("%5F", ABSENT).replace("%2F", "/").replace("%25", "%")
