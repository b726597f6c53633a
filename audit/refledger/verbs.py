"""The five verbs, recorded: what `Run`, `Call` and the bare store do with a scope in hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

from pydantic import ValidationError

from refledger.contract import ArtifactMeta, Page, StoredArtifact
from refledger.payloads import MEDIA_TYPES, decode, encode
from refledger.recorder import Op, Place, Recorder, idempotency, replayed
from refledger.streams import ArtifactReader, chunks_of
from refledger.wants import spoken_as
from refledger_schema.digests import digest_of
from refledger_schema.envelope import Draft, event_of
from refledger_schema.errors import (
    ArtifactIntegrity,
    InvalidArtifact,
    LogCorrupt,
    NotCanonical,
    OverBudget,
    RefledgerError,
    StoreFault,
    TooLarge,
    UnknownParentRef,
)
from refledger_schema.events import MAX_SAFE_INTEGER, ArtifactGone, ArtifactMinted, ArtifactRead, Idempotency, Parent, Shape
from refledger_schema.reasons import CAUSE_OF_GONE, Cause
from refledger_schema.refs import is_ref, mint_ref
from refledger_schema.scopes import Scope
from refledger_store.append import Decision, Locked
from refledger_store.payloads import Bytes, Payloads, sound
from refledger_store.reads import FROM_THE_END, Artifact, Reads
from refledger_store.retention import evictions, expiry

MAX_LISTED = 10_000
"""The longest page of a listing."""
EVERY_EXPIRED = 2**31
"""No bound: before a put makes room by eviction, all that has expired leaves."""


@dataclass(frozen=True, slots=True)
class Put:
    """What a put says of its payload."""

    kind: str
    media_type: str | None = None
    label: str | None = None
    expires_at: datetime | None = None
    ttl: timedelta | None = None
    parents: Sequence[str] = ()
    key: str | None = None
    """The caller's idempotency key."""


class Verbs:
    """The five verbs over one store, for a place that the caller gives."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._store = recorder.store

    # --- put ---------------------------------------------------------------------------------------------------------------

    def put(self, place: Place, data: Any, words: Put, resolved: Iterable[str] = ()) -> ArtifactMeta:
        """Check a payload in, in one transaction with its event. `resolved` are the refs that the call was given."""

        def receive() -> tuple[Shape, str, Bytes]:
            encoded = encode(data, words.media_type)
            return encoded.shape, encoded.media_type, self._store.receive(place.scope.key, (encoded.data,))

        return self._check_in(place, words, resolved, receive)

    def put_stream(self, place: Place, source: BinaryIO | Iterable[bytes], words: Put, resolved: Iterable[str] = ()) -> ArtifactMeta:
        """Check in bytes of any size, a piece at a time; memory holds no more than a piece."""

        def receive() -> tuple[Shape, str, Bytes]:
            payload = self._store.receive(place.scope.key, chunks_of(source))
            return "bytes", words.media_type or MEDIA_TYPES["bytes"], payload

        return self._check_in(place, words, resolved, receive)

    def _check_in(self, place: Place, words: Put, resolved: Iterable[str], receive: Callable[[], tuple[Shape, str, Bytes]]) -> ArtifactMeta:
        payload: Bytes | None = None
        try:
            _check_words(words.kind, words.media_type, words.label)
            stated_us = _stated_expiry(words.expires_at, words.ttl, self._store.clock)
            declared = _declared(words.parents)
            lineage = _lineage(declared, resolved)
            shape, media_type, payload = receive()
            request = (words.kind, media_type, words.label or "", shape, payload.digest)
            used = idempotency(words.key, request)
            minted = _Mint(place, words.kind, words.label, shape, media_type, stated_us, declared, lineage, payload, used)
            meta, is_new = self.recorder.append(lambda state: self._mint(state, minted), place)
        except BaseException as error:
            if payload is not None:
                self._store.discard(payload)
            if isinstance(error, InvalidArtifact | TooLarge):
                self.recorder.refused(place, "put", _cause_of(error), None)
            raise
        if not is_new:
            self._store.discard(payload)
        return meta

    def _mint(self, state: Locked, wanted: _Mint) -> Decision[tuple[ArtifactMeta, bool]]:
        place, scope = wanted.place, wanted.place.scope
        before = replayed(state, scope, "put", wanted.idempotency)
        if before is not None:
            return Decision((_minted_at(state, before), False))
        if wanted.stated_us is not None and wanted.stated_us <= state.now_us:
            raise InvalidArtifact("expires_at", "expected an expiry in the future; it is past or now. Give a later one, or none.")
        _prove_parents(state, scope.key, wanted.declared)
        ref = mint_ref()
        expires_us = expiry(self._store.configuration.retention, wanted.stated_us, state.now_us)
        leaving = self._room(state, wanted, ref)
        event = _event(
            ref=ref,
            kind=wanted.kind,
            media_type=wanted.media_type,
            shape=wanted.shape,
            bytes=wanted.payload.size,
            digest=wanted.payload.digest,
            label=wanted.label or None,
            expires_us=expires_us,
            parents=wanted.lineage or None,
            tool=place.tool,
            idempotency=wanted.idempotency,
        )
        event = self.recorder.clean(event)
        meta = _meta_of_mint(event, place, state.now_us)
        return Decision((meta, True), [*leaving, place.draft(event)], payloads=[wanted.payload])

    def _room(self, state: Locked, wanted: _Mint, ref: str) -> list[Draft]:
        """The departures that make room: all that has expired, then the least recently used, never the parents just proved."""
        retention = self._store.configuration.retention
        if not retention.bounded:
            return []
        scope = wanted.place.scope
        expired = state.expired(scope.key, now_us=state.now_us, limit=EVERY_EXPIRED)
        held = state.totals(scope.key)
        held = type(held)(held.events, held.live_count - len(expired), held.live_bytes - sum(size for _, _, size in expired))
        gone = {dead for dead, _, _ in expired}
        candidates = (row for row in _by_use(state, scope.key) if row[0] not in gone)
        protected = {parent.ref for parent in wanted.lineage}
        evicted = evictions(retention, held, wanted.payload.size, candidates, protected)
        return [
            *(
                Draft(ArtifactGone(ref=dead, cause="expired", stated_us=stated, observed_us=state.now_us), scope)
                for dead, stated, _ in expired
            ),
            *(wanted.place.draft(ArtifactGone(ref=victim, cause=cause, forced_by=ref)) for victim, cause in evicted),
        ]

    # --- head, get, delete, list ---------------------------------------------------------------------------------------------

    def head(self, place: Place, ref: str) -> ArtifactMeta | None:
        with self._store.reading() as reads:
            meta, cause = found(reads, place.scope, ref, self._store.clock())
        if meta is None:
            self._absent(place, "head", cause, ref)
            return None
        self.recorder.observe(place, ArtifactRead(ref=ref, via="head", door=place.door, verified=False))
        return meta

    def get(self, place: Place, ref: str) -> StoredArtifact | None:
        with self._store.reading() as reads:
            meta, cause = found(reads, place.scope, ref, self._store.clock())
            delivered = None if meta is None else deliver(reads, place.scope, meta)
        if meta is None or delivered is None:
            self._absent(place, "get", cause, ref)
            return None
        if delivered.damage is not None:
            self._damaged(place, "get", delivered.damage, ref)
            raise ArtifactIntegrity(ref, meta.digest, delivered.actual)
        self.recorder.observe(place, ArtifactRead(ref=ref, via="get", door=place.door, verified=True))
        return StoredArtifact(meta, delivered.data)

    def get_stream(self, place: Place, ref: str) -> ArtifactReader | None:
        with self._store.reading() as reads:
            meta, cause = found(reads, place.scope, ref, self._store.clock())
        if meta is None:
            self._absent(place, "stream", cause, ref)
            return None

        def ended(verified: bool, actual: str | None) -> None:
            if actual is not None:
                self._damaged(place, "stream", "corrupt", ref)
            else:
                self.recorder.observe(place, ArtifactRead(ref=ref, via="stream", door=place.door, verified=verified))

        return ArtifactReader(self._store, place.scope, meta, ended)

    def _absent(self, place: Place, op: Op, cause: Cause | None, ref: object) -> None:
        """Record that a ref was not there. One that a read finds expired leaves now, with what else of its scope has expired."""
        self.recorder.refused(place, op, cause, ref)
        if cause != "expired":
            return

        def decide(state: Locked) -> Decision[None]:
            artifact = state.artifact(str(ref))
            if artifact is None or artifact.gone is not None or artifact.live(state.now_us):
                return Decision(None)
            gone = ArtifactGone(ref=artifact.ref, cause="expired", stated_us=artifact.expires_us, observed_us=state.now_us)
            return Decision(None, [Draft(gone, place.scope)])

        with suppress(StoreFault):
            self._store.append(decide, key=place.key)

    def _damaged(self, place: Place, op: Op, cause: Cause, ref: str) -> None:
        """Record damage at once, so that nothing offers the ref from here on."""
        self.recorder.refused(place, op, cause, ref)
        self._store.flush_quietly(place.key)

    def delete(self, place: Place, ref: str, *, by: str | None = None, why: str | None = None) -> None:
        def decide(state: Locked) -> Decision[None]:
            meta, _ = found(state, place.scope, ref, state.now_us)
            if meta is None:
                return Decision(None)
            return Decision(None, [self.recorder.draft(place, _gone(ref, by, why))])

        self.recorder.append(decide, place)

    def list(self, place: Place, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LISTED:
            raise InvalidArtifact("limit", f"expected `limit` to be an int from 1 to {MAX_LISTED:,}. Give one, or leave it out.")
        if kind is not None:
            _check_words(kind, None, None)
        scope = place.scope.key
        now_us = self._store.clock()
        with self._store.reading() as reads:
            before = FROM_THE_END if cursor is None else _place_of(reads, cursor, scope, kind)
            rows = reads.live(scope, kind, now_us=now_us, limit=limit + 1, before=before)
            total = None if kind is None else reads.live_total(scope, kind, now_us=now_us)
            metas = tuple(meta_of(reads, row) for row in rows[:limit])
        more = _cursor(rows[limit - 1].ref, scope, kind) if len(rows) > limit else None
        return Page(metas, more, total)


@dataclass(frozen=True, slots=True)
class _Mint:
    """A put as far as it is known before the lock."""

    place: Place
    kind: str
    label: str | None
    shape: Shape
    media_type: str
    stated_us: int | None
    declared: tuple[str, ...]
    lineage: tuple[Parent, ...]
    payload: Bytes
    idempotency: Idempotency | None


# --- finding and delivering, shared with dispatch ----------------------------------------------------------------------------


def found(reads: Reads, scope: Scope, ref: object, now_us: int) -> tuple[ArtifactMeta | None, Cause | None]:
    """The ticket of a ref that is live in the scope; or None, and the operator's cause."""
    if not isinstance(ref, str) or not is_ref(ref):
        return None, "malformed"
    artifact = reads.artifact(ref)
    cause = absence(artifact, scope, now_us)
    return (None, cause) if artifact is None or cause is not None else (meta_of(reads, artifact), None)


def absence(artifact: Artifact | None, scope: Scope, now_us: int) -> Cause | None:
    """Why an artifact is not there for a scope, or None when it is."""
    if artifact is None:
        return "never_minted"
    if artifact.scope != scope.key:
        return "other_scope"
    if artifact.gone_cause is not None:
        return CAUSE_OF_GONE[artifact.gone_cause]  # type: ignore[index]
    return None if artifact.live(now_us) else "expired"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A payload, or what is the matter with its bytes."""

    data: Any = None
    damage: Cause | None = None
    actual: str | None = None
    """The digest that the stored bytes have; None when they are missing."""


def deliver(reads: Reads, scope: Scope, meta: ArtifactMeta) -> Delivery:
    """Load a payload, check it against its digest, and give it its shape."""
    data = Payloads(reads.connection, reads.folder).load(scope.key, meta.digest)
    if data is None or not sound(data, meta.digest):
        return Delivery(damage="corrupt", actual=None if data is None else digest_of(data))
    try:
        return Delivery(decode(meta.shape, data))
    except (NotCanonical, ValueError, OSError):
        return Delivery(damage="undecodable", actual=meta.digest)


def meta_of(reads: Reads, artifact: Artifact) -> ArtifactMeta:
    """The ticket of an artifact."""
    parents = tuple(Parent(ref=ref, how=how) for ref, how in reads.parents(artifact.ref))  # type: ignore[arg-type]
    shape: Shape = artifact.shape  # type: ignore[assignment]
    return ArtifactMeta(
        ref=artifact.ref,
        kind=artifact.kind,
        media_type=artifact.media_type,
        shape=shape,
        bytes=artifact.bytes,
        digest=artifact.digest,
        minted_us=artifact.minted_us,
        expires_us=artifact.expires_us,
        label=artifact.label,
        parents=parents or None,
        run_id=artifact.run_id,
        call_id=artifact.call_id,
        tool=artifact.tool,
    )


# --- checks of a put -----------------------------------------------------------------------------------------------------------


def _check_words(kind: object, media_type: object, label: object) -> None:
    if not isinstance(kind, str) or spoken_as(kind) != "text" or not _is_storable(kind):
        raise InvalidArtifact("kind", "expected `kind` to be a non-blank text, such as 'dataset/rows'. Name what the data is.")
    if media_type is not None and (not isinstance(media_type, str) or spoken_as(media_type) != "text"):
        raise InvalidArtifact(
            "media_type", "expected `media_type` to be a non-blank text, such as 'text/csv', or None to have it inferred."
        )
    if label is not None and (not isinstance(label, str) or not _is_storable(label)):
        raise InvalidArtifact("label", "expected `label` to be storable text or None. Pass a few words, without NUL.")


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _stated_expiry(expires_at: datetime | None, ttl: timedelta | None, clock: Any) -> int | None:
    if expires_at is not None and ttl is not None:
        raise InvalidArtifact("expires_at", "expected one of `expires_at` and `ttl`; found both. Give the one you mean.")
    if ttl is not None:
        if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
            raise InvalidArtifact("ttl", "expected `ttl` to be a timedelta above zero. Give one, or none.")
        return _storable_time("ttl", int(clock()) + ttl // timedelta(microseconds=1))
    if expires_at is None:
        return None
    if not isinstance(expires_at, datetime) or expires_at.tzinfo is None:
        raise InvalidArtifact("expires_at", "expected `expires_at` to be a datetime with a time zone. Add one, such as timezone.utc.")
    return _storable_time("expires_at", (expires_at - _EPOCH) // timedelta(microseconds=1))


def _storable_time(field: str, micros: int) -> int:
    if abs(micros) > MAX_SAFE_INTEGER:
        raise InvalidArtifact(field, f"expected `{field}` within what the log can hold, up to the year 2255. Give an earlier one, or none.")
    return micros


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _declared(parents: object) -> tuple[str, ...]:
    if isinstance(parents, (str, bytes)) or not isinstance(parents, Sequence):
        raise InvalidArtifact("parents", "expected `parents` to be a sequence of refs. Pass a list, even for one.")
    return tuple(parents)


def _lineage(declared: Sequence[object], resolved: Iterable[str]) -> tuple[Parent, ...]:
    """Declared parents verbatim, then what the call resolved and nobody declared, once each (design, decision 9).

    What is declared and is no ref is left to `_prove_parents`, which names all that does not resolve at once.
    """
    stated = [Parent(ref=ref, how="declared") for ref in declared if isinstance(ref, str) and is_ref(ref)]
    rest = [Parent(ref=ref, how="call") for ref in dict.fromkeys(resolved) if ref not in set(declared)]
    return (*stated, *rest)


def _prove_parents(state: Locked, scope: str, declared: Sequence[object]) -> None:
    """Raises `UnknownParentRef` with all that does not resolve, in the order given."""

    def lives(parent: object) -> bool:
        artifact = state.artifact(parent) if isinstance(parent, str) and is_ref(parent) else None
        return artifact is not None and artifact.scope == scope and artifact.live(state.now_us)

    unresolved = [parent if isinstance(parent, str) else repr(type(parent).__name__) for parent in declared if not lives(parent)]
    if unresolved:
        raise UnknownParentRef(unresolved)


def _event(**fields: Any) -> ArtifactMinted:
    try:
        return ArtifactMinted(**fields)
    except ValidationError as error:
        raise invalid(error) from None


def invalid(error: ValidationError) -> InvalidArtifact:
    """Pydantic's complaint as ours: the field and its bound, never the value."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "data"
    # A pattern says nothing to whoever passed the value; all other complaints name a bound or a type.
    complaint = "its form is not allowed" if first["type"] == "string_pattern_mismatch" else first["msg"].lower()
    return InvalidArtifact(field, f"expected a valid `{field}`: {complaint}. Shorten or correct it.")


def _gone(ref: str, by: str | None, why: str | None) -> ArtifactGone:
    try:
        return ArtifactGone(ref=ref, cause="deleted", by=by, why=why)
    except ValidationError as error:
        raise invalid(error) from None


def _cause_of(error: RefledgerError) -> Cause:
    if isinstance(error, UnknownParentRef):
        return "unknown_parent"
    return "over_budget" if isinstance(error, OverBudget) else "refused_input"


def _meta_of_mint(event: ArtifactMinted, place: Place, minted_us: int) -> ArtifactMeta:
    return ArtifactMeta(
        ref=event.ref,
        kind=event.kind,
        media_type=event.media_type,
        shape=event.shape,
        bytes=event.bytes,
        digest=event.digest,
        minted_us=minted_us,
        expires_us=event.expires_us,
        label=event.label,
        parents=event.parents,
        run_id=place.run_id,
        call_id=place.call_id,
        tool=event.tool,
    )


def _minted_at(state: Locked, position: int) -> ArtifactMeta:
    """The ticket that the event at a position minted, as it stands now."""
    row = state.event(position)
    event = None if row is None else event_of(row)
    artifact = state.artifact(event.ref) if isinstance(event, ArtifactMinted) else None
    if artifact is None:
        raise LogCorrupt(position, f"position {position}: expected the mint that a receipt speaks of. Run `refledger verify`.")
    return meta_of(state, artifact)


def _by_use(state: Locked, scope: str) -> Iterator[tuple[str, int]]:
    """The scope's live artifacts, the least recently used first, read only as far as somebody asks."""
    offset, page = 0, 64
    while rows := state.least_used(scope, limit=page, offset=offset):
        yield from rows
        offset += page


# --- cursors -----------------------------------------------------------------------------------------------------------------


def _cursor(ref: str, scope: str, kind: str | None) -> str:
    """A place in a listing: the ref it goes on behind, bound to the listing it belongs to. It says nothing of other scopes."""
    return f"{ref}.{_listing(scope, kind, ref)}"


def _place_of(reads: Reads, cursor: object, scope: str, kind: str | None) -> int:
    """The position that a listing goes on below."""
    ref, _, tail = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    artifact = reads.artifact(ref) if is_ref(ref) and tail == _listing(scope, kind, ref) else None
    if artifact is None or artifact.scope != scope:
        raise InvalidArtifact("cursor", "expected a cursor that a listing of the same scope and kind handed out. Start again without one.")
    return artifact.minted


def _listing(scope: str, kind: str | None, ref: str) -> str:
    return hashlib.sha256(f"{scope}\n{kind!r}\n{ref}".encode()).hexdigest()[:16]
