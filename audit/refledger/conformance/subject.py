"""The store on the stand: how the laws get a new one, and what else can be done to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from refledger.contract import ArtifactStore
from refledger_schema.scopes import Scope
from refledger_store.retention import Retention

Need = Literal["advance", "corrupt", "retained", "reopen", "streaming", "total"]
"""What a law cannot do without: a hook of the subject, or an optional part of the store."""

SECOND = 1_000_000
HOME = Scope(conversation="c-17", tenant="acme", principal="alice")
KIND = "dataset/rows"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Your store, and the hooks that you can offer. Each law asks for stores of its own, and closes none: that is yours to do."""

    fresh: Callable[[], ArtifactStore]
    """A new store that holds nothing, without limits."""
    retained: Callable[[Retention], ArtifactStore] | None = None
    """A new store that holds nothing, under these limits."""
    advance: Callable[[int], None] | None = None
    """Move the clock of all these stores on, by microseconds. Otherwise it must stand still."""
    corrupt: Callable[[ArtifactStore, Scope, str], None] | None = None
    """Damage the stored payload of a ref behind the store's back, and leave its ticket as it is."""
    reopen: Callable[[ArtifactStore], ArtifactStore] | None = None
    """Close a store, and open what it kept anew."""


def lacks(subject: Subject, need: Need) -> str | None:
    """What is not there, in words; None when it is."""
    if need == "streaming":
        store = subject.fresh()
        missing = [name for name in ("put_stream", "get_stream") if not callable(getattr(store, name, None))]
        return f"the store has no {' and no '.join(f'`{name}`' for name in missing)}" if missing else None
    if need == "total":
        return "the store counts no totals" if subject.fresh().list(HOME, kind=KIND).total is None else None
    return f"the subject has no hook `{need}`" if getattr(subject, need) is None else None


def pass_time(subject: Subject, microseconds: int) -> None:
    _hook(subject.advance)(microseconds)


def retained(subject: Subject, retention: Retention) -> ArtifactStore:
    return _hook(subject.retained)(retention)


def damage(subject: Subject, store: ArtifactStore, scope: Scope, ref: str) -> None:
    _hook(subject.corrupt)(store, scope, ref)


def reopened(subject: Subject, store: ArtifactStore) -> ArtifactStore:
    return _hook(subject.reopen)(store)


def _hook(hook: _T | None) -> _T:
    assert hook is not None, "a law is checked only where what it needs is there"
    return hook
