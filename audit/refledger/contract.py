"""The claim-check contract: five verbs, scope first, that our store implements and third parties may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from refledger_schema.events import Parent, Shape
from refledger_schema.scopes import Scope


@dataclass(frozen=True, slots=True)
class ArtifactMeta:
    """A claim ticket: all that is known of an artifact but its payload."""

    ref: str
    kind: str
    media_type: str
    shape: Shape
    bytes: int
    """Length of the payload in bytes."""
    digest: str
    """`sha-256:` and the payload's SHA-256 in hexadecimal."""
    minted_us: int
    """When it was minted, in microseconds since 1970-01-01 UTC."""
    expires_us: int | None = None
    label: str | None = None
    parents: tuple[Parent, ...] | None = None
    """What it was made from; None when nobody said, never empty."""
    run_id: str | None = None
    call_id: str | None = None
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """A ticket, and the payload behind it in the shape it was checked in."""

    meta: ArtifactMeta
    data: Any


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a scope's live artifacts, newest first."""

    artifacts: tuple[ArtifactMeta, ...]
    cursor: str | None = None
    """Where the next page starts; None on the last."""
    total: int | None = None
    """How many are live in all, for a listing by kind; None where the store does not count."""


@runtime_checkable
class ArtifactStore(Protocol):
    """The five verbs. Missing, expired, deleted, foreign and malformed are one absence: None, never an error."""

    def put(
        self,
        scope: Scope,
        data: Any,
        *,
        kind: str,
        media_type: str | None = None,
        label: str | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        parents: Sequence[str] = (),
    ) -> ArtifactMeta:
        """Check a payload in. Raises `InvalidArtifact`, `UnknownParentRef` or `OverBudget`, and then stores nothing."""
        ...

    def head(self, scope: Scope, ref: str) -> ArtifactMeta | None:
        """The ticket alone."""
        ...

    def get(self, scope: Scope, ref: str) -> StoredArtifact | None:
        """The ticket and its payload, checked against its digest. Raises `ArtifactIntegrity`."""
        ...

    def delete(self, scope: Scope, ref: str) -> None:
        """The artifact is gone after this, whether or not it was there."""
        ...

    def list(self, scope: Scope, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """Live artifacts, newest first. With a kind, none that is known to be corrupt."""
        ...
