"""The five verbs with the scope bound, as `Run` and `Call` have them: a tool cannot widen it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, BinaryIO

from pydantic import ValidationError

from refledger.contract import ArtifactMeta, Page, StoredArtifact
from refledger.present import Presented, present
from refledger.recorder import Place
from refledger.streams import ArtifactReader
from refledger.verbs import Put, Verbs, invalid
from refledger_schema.errors import InvalidArtifact

MAX_ID = 200
"""The longest run, call or answer id, in characters."""


class ScopedVerbs:
    """The verbs for one place. Streaming stands beside `put` and `get`, `present` beside `head`."""

    def __init__(self, verbs: Verbs, place: Place) -> None:
        self._verbs = verbs
        self._recorder = verbs.recorder
        self._place = place

    def put(
        self,
        data: Any,
        *,
        kind: str,
        media_type: str | None = None,
        label: str | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        parents: Sequence[str] = (),
        key: str | None = None,
    ) -> ArtifactMeta:
        """Check a payload in and get its ticket. Text, bytes, a pyarrow Table, or what JSON carries exactly.

        `expires_at` (with a time zone) or `ttl` says when it dies at the latest. The same idempotency `key` with the same
        payload and words gives the first ticket again. Raises `InvalidArtifact`, `UnknownParentRef`, `OverBudget` or
        `IdempotencyConflict`, and then stores nothing.
        """
        words = Put(kind, media_type, label, expires_at, ttl, parents, key)
        return self._verbs.put(self._place, data, words, self._resolved_refs())

    def put_stream(
        self,
        source: BinaryIO | Iterable[bytes],
        *,
        kind: str,
        media_type: str | None = None,
        label: str | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        parents: Sequence[str] = (),
        key: str | None = None,
    ) -> ArtifactMeta:
        """Check in the bytes of a binary file or an iterable, of any size, a piece at a time; see `put`."""
        words = Put(kind, media_type, label, expires_at, ttl, parents, key)
        return self._verbs.put_stream(self._place, source, words, self._resolved_refs())

    def head(self, ref: str) -> ArtifactMeta | None:
        """The ticket alone; None for every absence."""
        return self._verbs.head(self._place, ref)

    def get(self, ref: str) -> StoredArtifact | None:
        """The ticket and its payload, verified; None for every absence. Raises `ArtifactIntegrity`."""
        return self._verbs.get(self._place, ref)

    def get_stream(self, ref: str) -> ArtifactReader | None:
        """The payload's bytes a piece at a time, its digest checked at the end; None for every absence."""
        return self._verbs.get_stream(self._place, ref)

    def delete(self, ref: str, *, by: str | None = None, why: str | None = None) -> None:
        """The artifact is gone after this, whether or not it was there."""
        self._verbs.delete(self._place, ref, by=by, why=why)

    def list(self, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        """The scope's live artifacts, newest first."""
        return self._verbs.list(self._place, kind=kind, limit=limit, cursor=cursor)

    def present(self, ref: str, shown_as: str, *, label: str | None = None) -> Presented:
        """Hand an artifact to the screen: its ticket is snapshot into the result, so that it can be named after it has expired.

        `label` stands in for the mint's. Look at `ok`: a ref that is not there gives a sentence for the model instead.
        """
        return present(self._recorder, self._place, ref, shown_as, label)

    def _resolved_refs(self) -> Sequence[str]:
        """The refs that were resolved here, which become parents of what is put."""
        return ()


def checked_id(name: str, value: object) -> str:
    """An id from outside, if it can stand in the log."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID or not value.isprintable():
        raise InvalidArtifact(
            name, f"expected `{name}` to be 1 to {MAX_ID} printable characters. Give such an id, or none to have one minted."
        )
    return value


def valid(event: Any, /, **fields: Any) -> Any:
    """An event of those fields. Raises `InvalidArtifact` that names the field."""
    try:
        return event(**fields)
    except ValidationError as error:
        raise invalid(error) from None
