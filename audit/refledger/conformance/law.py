"""A law, and the few ways in which a check states what it expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from refledger.conformance.subject import Need, Subject
from refledger.contract import ArtifactMeta, ArtifactStore
from refledger_schema.scopes import Scope

_LONGEST_SHOWN = 120
_MOST_PAGES = 100
"""More than any law's listing has: a cursor that runs in a circle must not hold up the others."""
_E = TypeVar("_E", bound=Exception)


class Broken(AssertionError):
    """A law does not hold. The text says what was expected and what was found."""


@dataclass(frozen=True, slots=True)
class Law:
    """One thing that every store must do."""

    name: str
    statement: str
    """The law, in a sentence or two."""
    needs: tuple[Need, ...]
    """Without these it is not applicable."""
    check: Callable[[Subject], None]
    """Raises `Broken`, or what the store raised. Returns when the law holds. Call it only where `needs` are there."""


def law(statement: str, *, needs: tuple[Need, ...] = ()) -> Callable[[Callable[[Subject], None]], Law]:
    """Make a law of a check; the function's name is the law's."""
    return lambda check: Law(check.__name__.replace("_", "-"), statement, needs, check)


def expect(holds: bool, expected: str, found: object) -> None:
    if not holds:
        raise Broken(f"expected {expected}; found {found}.")


def expect_same(found: object, expected: object, what: str) -> None:
    """Equal, and of the same types all the way down: True is not 1. Of mappings the order of the keys counts."""
    expect(alike(found, expected), f"{what} to be {shown(expected)}", shown(found))


def expect_refused(kind: type[_E], act: Callable[[], object], what: str) -> _E:
    """The refusal that the act must raise."""
    try:
        found = act()
    except kind as refusal:
        return refusal
    except Exception as error:
        raise Broken(f"expected {what} to raise {kind.__name__}; found {told(error)}.") from error
    raise Broken(f"expected {what} to raise {kind.__name__}; found {shown(found)}.")


def expect_absent(store: ArtifactStore, scope: Scope, ref: str, what: str) -> None:
    """None from head and get, and no error."""
    for verb, ask in (("head", store.head), ("get", store.get)):
        try:
            found = ask(scope, ref)
        except Exception as error:
            raise Broken(f"expected `{verb}` of {what} to be None; found {told(error)}.") from error
        expect(found is None, f"`{verb}` of {what} to be None", shown(found))


def expect_live(store: ArtifactStore, scope: Scope, ref: str, what: str) -> ArtifactMeta:
    found = store.head(scope, ref)
    if found is None:
        raise Broken(f"expected {what} to be live; found None from `head`.")
    return found


def payload_of(store: ArtifactStore, scope: Scope, ref: str) -> object:
    """What `get` gives back of an artifact that must be there."""
    found = store.get(scope, ref)
    if found is None:
        raise Broken("expected the payload of what was just put; found None from `get`.")
    return found.data


def walk(
    store: ArtifactStore, scope: Scope, *, limit: int = 1_000, kind: str | None = None, between: Callable[[], None] = lambda: None
) -> list[ArtifactMeta]:
    """A whole listing, page by page, with something happening between the pages."""
    found: list[ArtifactMeta] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = store.list(scope, kind=kind, limit=limit, cursor=cursor)
        rows = len(page.artifacts)
        expect(rows > 0 or cursor is None, "no cursor to an empty page", "one")
        found, cursor = [*found, *page.artifacts], page.cursor
        expect(rows <= limit, f"a page of at most {limit}", f"one of {rows}")
        if cursor is None:
            return found
        expect(rows == limit, f"a page of {limit} where another one follows", f"one of {rows}")
        between()
    raise Broken(f"expected a listing that ends within {_MOST_PAGES} pages; found no end.")


def tried(store: ArtifactStore, scope: Scope, data: Any, words: Mapping[str, Any]) -> str | None:
    """Try a put that should be refused: None when it was, else the ref, whose being there is another law's to judge."""
    try:
        return store.put(scope, data, **words).ref
    except Exception:
        return None


def refs_of(metas: Iterable[ArtifactMeta]) -> list[str]:
    return [meta.ref for meta in metas]


def alike(found: object, expected: object) -> bool:
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict) and isinstance(found, dict):
        return list(found) == list(expected) and all(alike(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        return len(found) == len(expected) and all(map(alike, found, expected))
    return found == expected


def shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


def told(error: BaseException) -> str:
    return f"{type(error).__name__}: {shown(str(error))}"
