"""The five verbs, recorded: what `Run`, `Call` and the bare store do with a scope in hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError

from refledger.contract import ArtifactMeta, Page, StoredArtifact
from refledger.payloads import decode, encode
from refledger_schema.digests import digest_of
from refledger_schema.envelope import Draft
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, NotCanonical, OverBudget, RefledgerError, TooLarge, UnknownParentRef
from refledger_schema.events import ArtifactGone, ArtifactMinted, ArtifactRead, ArtifactRefused, Event, Parent, Shape
from refledger_schema.reasons import CAUSE_OF_GONE, REASON_OF, Cause
from refledger_schema.refs import is_ref, mint_ref
from refledger_schema.scopes import Scope
from refledger_store.append import Decision, Locked
from refledger_store.payloads import Bytes, Payloads, sound
from refledger_store.reads import FROM_THE_END, Artifact, Reads
from refledger_store.retention import evictions, expiry
from refledger_store.store import Store

Door = Literal["call", "run", "store"]
Op = Literal["put", "head", "get", "stream", "delete", "list"]
MAX_LISTED = 10_000
"""The longest page of a listing."""
EVERY_EXPIRED = 2**31
"""No bound: before a put makes room by eviction, all that has expired leaves."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something happens: whose scope, and which run, call and dispatch, as far as there are any."""

    scope: Scope
    run_id: str | None = None
    call_id: str | None = None
    dispatch: int | None = None
    tool: str | None = None
    door: Door = "store"

    @property
    def key(self) -> str:
        """Under what observations wait: the run, or the scope where there is none."""
        return self.run_id if self.run_id is not None else f"scope {self.scope.key}"

    def draft(self, event: Event) -> Draft:
        return Draft(event, self.scope, run_id=self.run_id, call_id=self.call_id, dispatch=self.dispatch)


class Verbs:
    """The five verbs over one store, for a place that the caller gives."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- put ---------------------------------------------------------------------------------------------------------------

    def put(
        self,
        place: Place,
        data: Any,
        *,
        kind: str,
        media_type: str | None = None,
        label: str | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        parents: Sequence[str] = (),
        resolved: Iterable[str] = (),
    ) -> ArtifactMeta:
        """Check a payload in, in one transaction with its event. `resolved` are the refs that the call was given."""
        payload: Bytes | None = None
        try:
            _check_words(kind, media_type, label)
            stated_us = _stated_expiry(expires_at, ttl, self._store.clock)
            declared = _declared(parents)
            lineage = _lineage(declared, resolved)
            encoded = encode(data, media_type)
            payload = self._store.receive(place.scope.key, (encoded.data,))
            minted = _Mint(place, kind, label, encoded.shape, encoded.media_type, stated_us, declared, lineage, payload)
            return self._store.append(lambda state: self._mint(state, minted), key=place.key).result
        except BaseException as error:
            if payload is not None:
                self._store.discard(payload)
            if not isinstance(error, InvalidArtifact | TooLarge | NotCanonical):
                raise
            self._refused(place, "put", _cause_of(error), None)
            raise _put_refusal(error) from None

    def _mint(self, state: Locked, wanted: _Mint) -> Decision[ArtifactMeta]:
        place, scope = wanted.place, wanted.place.scope
        _prove_parents(state, scope.key, wanted.declared)
        if wanted.stated_us is not None and wanted.stated_us <= state.now_us:
            raise InvalidArtifact("expires_at", "expected an expiry in the future; it is past or now. Give a later one, or none.")
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
        )
        meta = _meta_of_mint(event, place, state.now_us)
        return Decision(meta, [*leaving, place.draft(event)], payloads=[wanted.payload])

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
            self._refused(place, "head", cause, ref)
            return None
        self._observe(place, ArtifactRead(ref=ref, via="head", door=place.door, verified=False))
        return meta

    def get(self, place: Place, ref: str) -> StoredArtifact | None:
        with self._store.reading() as reads:
            meta, cause = found(reads, place.scope, ref, self._store.clock())
            delivered = None if meta is None else deliver(reads, place.scope, meta)
        if meta is None or delivered is None:
            self._refused(place, "get", cause, ref)
            return None
        if delivered.damage is not None:
            self._refused(place, "get", delivered.damage, ref)
            raise ArtifactIntegrity(ref, meta.digest, delivered.actual)
        self._observe(place, ArtifactRead(ref=ref, via="get", door=place.door, verified=True))
        return StoredArtifact(meta, delivered.data)

    def delete(self, place: Place, ref: str, *, by: str | None = None, why: str | None = None) -> None:
        def decide(state: Locked) -> Decision[None]:
            meta, _ = found(state, place.scope, ref, state.now_us)
            if meta is None:
                return Decision(None)
            return Decision(None, [place.draft(_gone(ref, by, why))])

        self._store.append(decide, key=place.key)

    def list(self, place: Place, *, kind: str | None = None, limit: int = 50, cursor: str | None = None) -> Page:
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LISTED:
            raise InvalidArtifact("limit", f"expected `limit` to be an int from 1 to {MAX_LISTED:,}. Give one, or leave it out.")
        if kind is not None:
            _check_words(kind, None, None)
        scope = place.scope.key
        before = FROM_THE_END if cursor is None else _read_cursor(cursor, scope, kind)
        now_us = self._store.clock()
        with self._store.reading() as reads:
            rows = reads.live(scope, kind, now_us=now_us, limit=limit + 1, before=before)
            total = None if kind is None else reads.live_total(scope, kind, now_us=now_us)
            metas = tuple(meta_of(reads, row) for row in rows[:limit])
        more = _cursor(rows[limit - 1].minted, scope, kind) if len(rows) > limit else None
        return Page(metas, more, total)

    # --- observations --------------------------------------------------------------------------------------------------------

    def _observe(self, place: Place, event: Event) -> None:
        self._store.observe(place.key, place.draft(event))

    def _refused(self, place: Place, op: Op, cause: Cause | None, spoken: object) -> None:
        cause = cause or "never_minted"
        ref = spoken if isinstance(spoken, str) and is_ref(spoken) else None
        text = spoken if isinstance(spoken, str) and ref is None else None
        event = ArtifactRefused(
            op=op,
            reason=REASON_OF[cause],
            cause=cause,
            ref=ref,
            spoken_length=None if text is None else len(text),
            spoken_digest=None if text is None else digest_of(text.encode(errors="surrogatepass")),
        )
        self._observe(place, event)


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
    except (NotCanonical, UnicodeDecodeError):
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
    if not isinstance(kind, str) or not kind.strip() or not _is_storable(kind):
        raise InvalidArtifact("kind", "expected `kind` to be a non-blank text, such as 'dataset/rows'. Name what the data is.")
    if media_type is not None and (not isinstance(media_type, str) or not media_type.strip()):
        raise InvalidArtifact(
            "media_type", "expected `media_type` to be a non-blank text, such as 'text/csv', or None to have it inferred."
        )
    if label is not None and not isinstance(label, str):
        raise InvalidArtifact("label", "expected `label` to be text or None. Pass a few words.")


def _is_storable(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _stated_expiry(expires_at: datetime | None, ttl: timedelta | None, clock: Any) -> int | None:
    if expires_at is not None and ttl is not None:
        raise InvalidArtifact("expires_at", "expected one of `expires_at` and `ttl`; found both. Give the one you mean.")
    if ttl is not None:
        if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
            raise InvalidArtifact("ttl", "expected `ttl` to be a timedelta above zero. Give one, or none.")
        return int(clock()) + ttl // timedelta(microseconds=1)
    if expires_at is None:
        return None
    if not isinstance(expires_at, datetime) or expires_at.tzinfo is None:
        raise InvalidArtifact("expires_at", "expected `expires_at` to be a datetime with a time zone. Add one, such as timezone.utc.")
    return (expires_at - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _declared(parents: object) -> tuple[str, ...]:
    if isinstance(parents, (str, bytes)) or not isinstance(parents, Iterable):
        raise InvalidArtifact("parents", "expected `parents` to be a sequence of refs. Pass a list, even for one.")
    return tuple(parents)


def _lineage(declared: Sequence[object], resolved: Iterable[str]) -> tuple[Parent, ...]:
    """Declared parents verbatim, then what the call resolved and nobody declared, once each (design, decision 9)."""
    unresolved = [parent if isinstance(parent, str) else repr(type(parent).__name__) for parent in declared if not _ref_like(parent)]
    if unresolved:
        raise UnknownParentRef(unresolved)
    stated = [Parent(ref=ref, how="declared") for ref in declared if isinstance(ref, str)]
    rest = [Parent(ref=ref, how="call") for ref in dict.fromkeys(resolved) if ref not in set(declared)]
    return (*stated, *rest)


def _ref_like(parent: object) -> bool:
    return isinstance(parent, str) and is_ref(parent)


def _prove_parents(state: Locked, scope: str, declared: Sequence[str]) -> None:
    def lives(ref: str) -> bool:
        artifact = state.artifact(ref)
        return artifact is not None and artifact.scope == scope and artifact.live(state.now_us)

    unresolved = [ref for ref in declared if not lives(ref)]
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
    return InvalidArtifact(field, f"expected a valid `{field}`: {first['msg'].lower()}. Shorten or correct it.")


def _gone(ref: str, by: str | None, why: str | None) -> ArtifactGone:
    try:
        return ArtifactGone(ref=ref, cause="deleted", by=by, why=why)
    except ValidationError as error:
        raise invalid(error) from None


def _put_refusal(error: RefledgerError) -> RefledgerError:
    """What the caller of a put is told: a text that no log can hold is an argument to correct."""
    if not isinstance(error, NotCanonical):
        return error
    field = error.path.removeprefix("$.")
    return InvalidArtifact(field, f"expected `{field}` to be text that the log can hold: {error.reason}. Correct it.")


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


def _by_use(state: Locked, scope: str) -> Iterator[tuple[str, int]]:
    """The scope's live artifacts, the least recently used first, read only as far as somebody asks."""
    offset, page = 0, 64
    while rows := state.least_used(scope, limit=page, offset=offset):
        yield from rows
        offset += page


# --- cursors -----------------------------------------------------------------------------------------------------------------


def _cursor(position: int, scope: str, kind: str | None) -> str:
    """A place in a listing: the position it goes on below, bound to the listing it belongs to."""
    return f"{position}.{_listing(scope, kind, position)}"


def _read_cursor(cursor: object, scope: str, kind: str | None) -> int:
    head, _, tail = cursor.partition(".") if isinstance(cursor, str) else ("", "", "")
    if not (head.isascii() and head.isdigit() and len(head) < 19) or tail != _listing(scope, kind, int(head)):
        raise InvalidArtifact("cursor", "expected a cursor that a listing of the same scope and kind handed out. Start again without one.")
    return int(head)


def _listing(scope: str, kind: str | None, position: int) -> str:
    return hashlib.sha256(f"{scope}\n{kind!r}\n{position}".encode()).hexdigest()[:16]
