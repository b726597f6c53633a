"""A small store that keeps the contract, in memory; and stores that each break it in one way."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from refledger import ArtifactMeta, Page, Retention, Scope, StoredArtifact
from refledger.payloads import Encoded, decode, encode
from refledger_schema.digests import digest_of
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, OverBudget, UnknownParentRef
from refledger_schema.events import Parent
from refledger_schema.refs import mint_ref

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DEFAULT_LIMIT = 50


@dataclass
class Row:
    """One artifact; `minted` and `used` count acts of the store."""

    meta: ArtifactMeta
    data: bytes
    minted: int
    used: int
    damaged: bool = False


Rows = list[Row]


class MemoryStore:
    """A correct `ArtifactStore` with streams. Each step is a method, so that a broken one differs in one of them."""

    def __init__(self, clock: Callable[[], int], retention: Retention | None = None) -> None:
        self.clock = clock
        self.retention = retention or Retention()
        self.rows: dict[str, dict[str, Row]] = {}
        self.acts = itertools.count(1)

    # --- the verbs ---------------------------------------------------------------------------------------------------------

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
        check_words(kind, media_type, label)
        now = self.now()
        expires_us = self.expiry(now, expires_at, ttl)
        self.prove(scope, parents)
        encoded = self.encode(data, media_type)
        self.make_room(scope, len(encoded.data), parents)
        meta = ArtifactMeta(
            ref=self.mint(encoded),
            kind=kind,
            media_type=encoded.media_type,
            shape=encoded.shape,
            bytes=len(encoded.data),
            digest=self.digest(encoded.data),
            minted_us=now,
            expires_us=expires_us,
            label=label,
            parents=self.lineage(parents),
        )
        act = next(self.acts)
        self.of(scope)[meta.ref] = Row(meta, encoded.data, act, act)
        return meta

    def head(self, scope: Scope, ref: str) -> ArtifactMeta | None:
        row = self.used(self.find(scope, ref))
        return None if row is None else row.meta

    def get(self, scope: Scope, ref: str) -> StoredArtifact | None:
        row = self.used(self.find(scope, ref))
        if row is None:
            return None
        self.verify(row)
        return StoredArtifact(row.meta, self.decode(row))

    def delete(self, scope: Scope, ref: str) -> None:
        self.of(scope).pop(ref, None)

    def list(self, scope: Scope, *, kind: str | None = None, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page:
        self.check_limit(limit)
        listed = self.listed(scope, kind)
        rest = listed if cursor is None else self.behind(listed, scope, kind, cursor)
        shown = rest[:limit]
        more = self.cursor(scope, kind, listed, shown) if len(rest) > limit else None
        return Page(tuple(row.meta for row in shown), more, self.total(scope, kind))

    def put_stream(self, scope: Scope, source: Any, *, kind: str, **words: Any) -> ArtifactMeta:
        pieces = iter(lambda: source.read(4096), b"") if hasattr(source, "read") else source
        check_words(kind, words.get("media_type"), words.get("label"))
        return self.put(scope, b"".join(map(piece_of, pieces)), kind=kind, **words)

    def get_stream(self, scope: Scope, ref: str) -> Iterable[bytes] | None:
        row = self.used(self.find(scope, ref))
        return None if row is None else self.pieces(row)

    # --- what only a test does to it -----------------------------------------------------------------------------------------

    def damage(self, scope: Scope, ref: str) -> None:
        row = self.of(scope)[ref]
        row.data = b"?" + row.data[1:]

    def reopened(self) -> MemoryStore:
        again = type(self)(self.clock, self.retention)
        again.rows, again.acts = self.rows, self.acts
        return again

    # --- the steps ---------------------------------------------------------------------------------------------------------

    def now(self) -> int:
        return self.clock()

    def key(self, scope: Scope) -> str:
        return scope.key

    def of(self, scope: Scope) -> dict[str, Row]:
        return self.rows.setdefault(self.key(scope), {})

    def dead(self, meta: ArtifactMeta) -> bool:
        return meta.expires_us is not None and meta.expires_us <= self.clock()

    def find(self, scope: Scope, ref: str) -> Row | None:
        row = self.of(scope).get(ref)
        return None if row is None or self.dead(row.meta) else row

    def used(self, row: Row | None) -> Row | None:
        if row is not None:
            row.used = next(self.acts)
        return row

    def verify(self, row: Row) -> None:
        actual = self.digest(row.data)
        if actual != row.meta.digest:
            row.damaged = True
            raise ArtifactIntegrity(row.meta.ref, row.meta.digest, actual)

    def pieces(self, row: Row) -> Iterator[bytes]:
        yield row.data
        self.verify(row)

    def mint(self, encoded: Encoded) -> str:
        return mint_ref()

    def digest(self, data: bytes) -> str:
        return digest_of(data)

    def encode(self, data: Any, media_type: str | None) -> Encoded:
        return encode(data, media_type)

    def decode(self, row: Row) -> Any:
        return decode(row.meta.shape, row.data)

    def lineage(self, parents: Sequence[str]) -> tuple[Parent, ...] | None:
        return tuple(Parent(ref=ref, how="declared") for ref in parents) or None

    def expiry(self, now: int, expires_at: datetime | None, ttl: timedelta | None) -> int | None:
        stated = self.stated(now, expires_at, ttl)
        limits = [limit for limit in (stated, None if self.retention.ttl is None else now + self.retention.ttl // MICROSECOND) if limit]
        return min(limits, default=None)

    def stated(self, now: int, expires_at: datetime | None, ttl: timedelta | None) -> int | None:
        if expires_at is not None and ttl is not None:
            raise InvalidArtifact("expires_at", "expected one of `expires_at` and `ttl`; found both.")
        if ttl is not None:
            if not isinstance(ttl, timedelta) or ttl <= timedelta(0):
                raise InvalidArtifact("ttl", "expected a timedelta above zero.")
            return now + ttl // MICROSECOND
        return None if expires_at is None else self.instant(now, expires_at)

    def instant(self, now: int, expires_at: datetime) -> int:
        if not isinstance(expires_at, datetime) or expires_at.tzinfo is None:
            raise InvalidArtifact("expires_at", "expected a datetime with a time zone.")
        instant = (expires_at - EPOCH) // MICROSECOND
        if instant <= now:
            raise InvalidArtifact("expires_at", "expected an expiry in the future.")
        return instant

    def prove(self, scope: Scope, parents: Sequence[str]) -> None:
        if isinstance(parents, str) or not isinstance(parents, Sequence):
            raise InvalidArtifact("parents", "expected a sequence of refs.")
        unresolved = [ref for ref in parents if self.find(scope, ref) is None]
        if unresolved:
            raise UnknownParentRef(unresolved)

    def make_room(self, scope: Scope, incoming: int, parents: Sequence[str]) -> None:
        """Evict what must leave, once it is known that room can be made."""
        held = self.of(scope)
        staying = {ref: row for ref, row in held.items() if not self.dead(row.meta)}
        victims = self.victims(staying, parents)
        while not self.fits(staying, incoming):
            victim = next(victims, None)
            if victim is None or (self.retention.max_bytes or incoming) < incoming:
                raise OverBudget("data", "expected room in the scope; there is none.")
            del staying[victim]
        for ref in held.keys() - staying.keys():
            del held[ref]

    def fits(self, staying: dict[str, Row], incoming: int) -> bool:
        count, size = len(staying) + 1, sum(row.meta.bytes for row in staying.values()) + incoming
        limits = self.retention
        return (limits.max_count is None or count <= limits.max_count) and (limits.max_bytes is None or size <= limits.max_bytes)

    def victims(self, staying: dict[str, Row], parents: Sequence[str]) -> Iterator[str]:
        return iter([ref for ref in sorted(staying, key=lambda ref: staying[ref].used) if ref not in set(parents)])

    def check_limit(self, limit: object) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidArtifact("limit", "expected an int from 1.")

    def listed(self, scope: Scope, kind: str | None) -> Rows:
        live = [row for row in self.of(scope).values() if not self.dead(row.meta)]
        of_kind = [row for row in live if kind is None or (self.is_kind(row.meta.kind, kind) and not row.damaged)]
        return sorted(of_kind, key=lambda row: -row.minted)

    def is_kind(self, kind: str, wanted: str) -> bool:
        return kind == wanted

    def total(self, scope: Scope, kind: str | None) -> int | None:
        return None if kind is None else len(self.listed(scope, kind))

    def behind(self, listed: Rows, scope: Scope, kind: str | None, cursor: str) -> Rows:
        below = read_cursor(scope, kind, cursor)
        return [row for row in listed if row.minted < below]

    def cursor(self, scope: Scope, kind: str | None, listed: Rows, shown: Rows) -> str:
        return make_cursor(scope, kind, shown[-1].minted)


def check_words(kind: object, media_type: object, label: object) -> None:
    for field, value, blank in (("kind", kind, False), ("media_type", media_type, False), ("label", label, True)):
        if value is None and field != "kind":
            continue
        if not isinstance(value, str) or not (blank or value.strip()):
            raise InvalidArtifact(field, f"expected `{field}` to be text that says something.")


def piece_of(piece: object) -> bytes:
    if not isinstance(piece, bytes):
        raise InvalidArtifact("data", "expected pieces of bytes.")
    return piece


def make_cursor(scope: Scope, kind: str | None, number: int) -> str:
    return f"{number}." + hashlib.sha256(repr((scope.key, kind, number)).encode()).hexdigest()


def read_cursor(scope: Scope, kind: str | None, cursor: str) -> int:
    number = cursor.partition(".")[0]
    if not number.isdecimal() or len(number) > 18 or cursor != make_cursor(scope, kind, int(number)):
        raise InvalidArtifact("cursor", "expected a cursor of this listing.")
    return int(number)


# --- broken: scopes --------------------------------------------------------------------------------------------------------


class IgnoresTheTenant(MemoryStore):
    def key(self, scope: Scope) -> str:
        return f"{scope.principal!r} {scope.conversation!r}"


class FoldsCase(MemoryStore):
    def key(self, scope: Scope) -> str:
        return scope.key.lower()


class JoinsNamesWithASlash(MemoryStore):
    def key(self, scope: Scope) -> str:
        return f"{scope.tenant or '_'}/{scope.principal or '_'}/{scope.conversation or '_'}"


class CutsLongNames(MemoryStore):
    def key(self, scope: Scope) -> str:
        return scope.key[:190]


class DeletesForNeighbours(MemoryStore):
    def delete(self, scope: Scope, ref: str) -> None:
        for rows in self.rows.values():
            rows.pop(ref, None)


# --- broken: refs, digests, payloads ---------------------------------------------------------------------------------------


class DerivesRefs(MemoryStore):
    def mint(self, encoded: Encoded) -> str:
        return "art_" + hashlib.sha256(encoded.data + b"%d" % next(self.acts)).hexdigest()[:22]


class MintsAShortRefForNothing(MemoryStore):
    def mint(self, encoded: Encoded) -> str:
        return mint_ref() if encoded.data else "art_empty"


class ShoutsItsDigests(MemoryStore):
    def digest(self, data: bytes) -> str:
        return digest_of(data).upper()


class DigestsWithoutOrder(MemoryStore):
    def digest(self, data: bytes) -> str:
        return digest_of(bytes(sorted(data)) if data.startswith((b"[", b"{")) else data)


class RoundsItsClock(MemoryStore):
    def now(self) -> int:
        return self.clock() // 1_000_000 * 1_000_000


class IgnoresTheMediaType(MemoryStore):
    def encode(self, data: Any, media_type: str | None) -> Encoded:
        return super().encode(data, None)


class TrimsBytes(MemoryStore):
    def decode(self, row: Row) -> Any:
        return row.data.rstrip(b"\x00") if row.meta.shape == "bytes" else super().decode(row)


class CutsLargePayloads(MemoryStore):
    def encode(self, data: Any, media_type: str | None) -> Encoded:
        return super().encode(data[: 2**20] if isinstance(data, bytes) else data, media_type)


class SpreadsDamage(MemoryStore):
    def damage(self, scope: Scope, ref: str) -> None:
        digest = self.of(scope)[ref].meta.digest
        for row in (row for rows in self.rows.values() for row in rows.values() if row.meta.digest == digest):
            row.data = b"?" + row.data[1:]


class ForgetsOnRestart(MemoryStore):
    def reopened(self) -> MemoryStore:
        return type(self)(self.clock, self.retention)


class ChecksNoDigest(MemoryStore):
    def verify(self, row: Row) -> None:
        pass


class ReadsTextAsJson(MemoryStore):
    def decode(self, row: Row) -> Any:
        try:
            return json.loads(row.data) if row.meta.shape == "text" else super().decode(row)
        except ValueError:
            return super().decode(row)


class SortsKeys(MemoryStore):
    def encode(self, data: Any, media_type: str | None) -> Encoded:
        encoded = encode(data, media_type)
        if not isinstance(data, dict):
            return encoded
        return encode(json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":")), media_type or "application/json")

    def decode(self, row: Row) -> Any:
        return decode("json" if row.meta.media_type == "application/json" else row.meta.shape, row.data)


class TakesNoneForAnAbsence(MemoryStore):
    def get(self, scope: Scope, ref: str) -> StoredArtifact | None:
        found = super().get(scope, ref)
        return None if found is None or found.data is None else found


class ApproximatesJson(MemoryStore):
    def encode(self, data: Any, media_type: str | None) -> Encoded:
        try:
            return super().encode(data, media_type)
        except InvalidArtifact:
            if isinstance(data, str):
                raise
            return super().encode(json.loads(json.dumps(str(data).encode("ascii", "replace").decode())), media_type)


class KeepsTheCallersObject(MemoryStore):
    def __init__(self, clock: Callable[[], int], retention: Retention | None = None) -> None:
        super().__init__(clock, retention)
        self.given: dict[tuple[str, bytes], Any] = {}

    def encode(self, data: Any, media_type: str | None) -> Encoded:
        encoded = super().encode(data, media_type)
        if encoded.shape == "json":
            self.given["json", encoded.data] = data
        return encoded

    def decode(self, row: Row) -> Any:
        key = row.meta.shape, row.data
        return copy.deepcopy(self.given[key]) if key in self.given else super().decode(row)


class HandsOutOneObject(MemoryStore):
    def __init__(self, clock: Callable[[], int], retention: Retention | None = None) -> None:
        super().__init__(clock, retention)
        self.decoded: dict[str, Any] = {}

    def decode(self, row: Row) -> Any:
        return self.decoded.setdefault(row.meta.ref, super().decode(row))


# --- broken: absence and expiry --------------------------------------------------------------------------------------------


class RaisesOnMalformedRefs(MemoryStore):
    def head(self, scope: Scope, ref: str) -> ArtifactMeta | None:
        if not ref.startswith("art_"):
            raise ValueError("not a ref")
        return super().head(scope, ref)


class RaisesOnDeletedRefs(MemoryStore):
    def delete(self, scope: Scope, ref: str) -> None:
        del self.of(scope)[ref]


class LivesAtItsExpiry(MemoryStore):
    def dead(self, meta: ArtifactMeta) -> bool:
        return meta.expires_us is not None and meta.expires_us < self.clock()


class ListsTheExpired(MemoryStore):
    def listed(self, scope: Scope, kind: str | None) -> Rows:
        return sorted(
            (row for row in self.of(scope).values() if kind in (None, row.meta.kind) and not row.damaged), key=lambda row: -row.minted
        )


class IgnoresTheTimeZone(MemoryStore):
    def instant(self, now: int, expires_at: datetime) -> int:
        super().instant(now, expires_at)
        return (expires_at.replace(tzinfo=UTC) - EPOCH) // MICROSECOND


class CutsTtlsToSeconds(MemoryStore):
    def stated(self, now: int, expires_at: datetime | None, ttl: timedelta | None) -> int | None:
        stated = super().stated(now, expires_at, ttl)
        return stated if ttl is None or stated is None else stated // 1_000_000 * 1_000_000


class TakesNaiveExpiries(MemoryStore):
    def instant(self, now: int, expires_at: datetime) -> int:
        aware = isinstance(expires_at, datetime) and expires_at.tzinfo is None
        return super().instant(now, expires_at.replace(tzinfo=UTC) if aware else expires_at)


class TakesPastExpiries(MemoryStore):
    def instant(self, now: int, expires_at: datetime) -> int:
        instant = super().instant(-(2**60), expires_at)
        return max(instant, now)


class ExtendsExpiries(MemoryStore):
    def expiry(self, now: int, expires_at: datetime | None, ttl: timedelta | None) -> int | None:
        stated = self.stated(now, expires_at, ttl)
        return stated if stated is not None else super().expiry(now, None, None)


# --- broken: puts ----------------------------------------------------------------------------------------------------------


class ProvesNoParents(MemoryStore):
    def prove(self, scope: Scope, parents: Sequence[str]) -> None:
        super().prove(scope, parents if isinstance(parents, str) or not isinstance(parents, Sequence) else ())

    def lineage(self, parents: Sequence[str]) -> tuple[Parent, ...] | None:
        return tuple(Parent.model_construct(ref=ref, how="declared") for ref in parents) or None


class NamesAParentOnce(MemoryStore):
    def lineage(self, parents: Sequence[str]) -> tuple[Parent, ...] | None:
        return super().lineage(list(dict.fromkeys(parents)))


class NamesTheFirstUnknownParent(MemoryStore):
    def prove(self, scope: Scope, parents: Sequence[str]) -> None:
        try:
            super().prove(scope, parents)
        except UnknownParentRef as refusal:
            raise UnknownParentRef(refusal.unresolved[:1]) from None


class StoresWhatItRefuses(MemoryStore):
    def prove(self, scope: Scope, parents: Sequence[str]) -> None:
        try:
            super().prove(scope, parents)
        except UnknownParentRef:
            super().put(scope, "left behind", kind="dataset/rows")
            raise


class QuotesWhatItRefuses(MemoryStore):
    def encode(self, data: Any, media_type: str | None) -> Encoded:
        try:
            return super().encode(data, media_type)
        except InvalidArtifact as refusal:
            raise InvalidArtifact("data", f"{refusal} Found: {ascii(data)}.") from None


class BlamesTheWrongField(MemoryStore):
    def put(self, scope: Scope, data: Any, **words: Any) -> ArtifactMeta:
        try:
            return super().put(scope, data, **words)
        except InvalidArtifact as refusal:
            if refusal.field == "media_type":
                raise InvalidArtifact("kind", str(refusal)) from None
            raise


# --- broken: listings ------------------------------------------------------------------------------------------------------


class ListsOldestFirst(MemoryStore):
    def listed(self, scope: Scope, kind: str | None) -> Rows:
        return super().listed(scope, kind)[::-1]

    def behind(self, listed: Rows, scope: Scope, kind: str | None, cursor: str) -> Rows:
        below = read_cursor(scope, kind, cursor)
        return [row for row in listed if row.minted > below]


class ListsByTheClock(MemoryStore):
    def listed(self, scope: Scope, kind: str | None) -> Rows:
        return sorted(super().listed(scope, kind), key=lambda row: (-row.meta.minted_us, -row.minted))


class PagesByOffset(MemoryStore):
    def behind(self, listed: Rows, scope: Scope, kind: str | None, cursor: str) -> Rows:
        return listed[read_cursor(scope, kind, cursor) :]

    def cursor(self, scope: Scope, kind: str | None, listed: Rows, shown: Rows) -> str:
        return make_cursor(scope, kind, listed.index(shown[-1]) + 1)


class RestartsOnABadCursor(MemoryStore):
    def behind(self, listed: Rows, scope: Scope, kind: str | None, cursor: str) -> Rows:
        try:
            return super().behind(listed, scope, kind, cursor)
        except InvalidArtifact:
            return listed


class AlwaysHasAnotherPage(MemoryStore):
    def list(self, scope: Scope, *, kind: str | None = None, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page:
        page = super().list(scope, kind=kind, limit=limit, cursor=cursor)
        full = len(page.artifacts) == limit
        return replace(page, cursor=make_cursor(scope, kind, self.of(scope)[page.artifacts[-1].ref].minted) if full else page.cursor)


class PagesAreLonger(MemoryStore):
    def list(self, scope: Scope, *, kind: str | None = None, limit: int = 100, cursor: str | None = None) -> Page:
        return super().list(scope, kind=kind, limit=limit, cursor=cursor)


class TakesAnyLimit(MemoryStore):
    def check_limit(self, limit: object) -> None:
        pass


class ListsNoParents(MemoryStore):
    def list(self, scope: Scope, *, kind: str | None = None, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page:
        page = super().list(scope, kind=kind, limit=limit, cursor=cursor)
        return replace(page, artifacts=tuple(replace(meta, parents=None) for meta in page.artifacts))


class MatchesKindsByTheirStart(MemoryStore):
    def is_kind(self, kind: str, wanted: str) -> bool:
        return kind.startswith(wanted)


class CountsThePage(MemoryStore):
    def list(self, scope: Scope, *, kind: str | None = None, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page:
        page = super().list(scope, kind=kind, limit=limit, cursor=cursor)
        return page if kind is None else replace(page, total=len(page.artifacts))


# --- broken: retention and streams -----------------------------------------------------------------------------------------


class EvictsParents(MemoryStore):
    def victims(self, staying: dict[str, Row], parents: Sequence[str]) -> Iterator[str]:
        return super().victims(staying, ())


class EvictsTheOldest(MemoryStore):
    def used(self, row: Row | None) -> Row | None:
        return row


class ListingIsAUse(MemoryStore):
    def list(self, scope: Scope, *, kind: str | None = None, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> Page:
        page = super().list(scope, kind=kind, limit=limit, cursor=cursor)
        for meta in page.artifacts if kind is not None else ():
            self.used(self.of(scope)[meta.ref])
        return page


class CountsNoIncomingBytes(MemoryStore):
    def fits(self, staying: dict[str, Row], incoming: int) -> bool:
        return super().fits(staying, 0)


class EvictsBeforeItRefuses(MemoryStore):
    def make_room(self, scope: Scope, incoming: int, parents: Sequence[str]) -> None:
        try:
            super().make_room(scope, incoming, parents)
        except OverBudget:
            for ref in self.of(scope).keys() - set(parents):
                del self.of(scope)[ref]
            raise


class LetsTheExpiredHoldRoom(MemoryStore):
    def make_room(self, scope: Scope, incoming: int, parents: Sequence[str]) -> None:
        alive, self.dead = self.dead, lambda meta: False  # type: ignore[method-assign]
        try:
            super().make_room(scope, incoming, parents)
        finally:
            self.dead = alive  # type: ignore[method-assign]


class StreamsOneWay(MemoryStore):
    get_stream = None  # type: ignore[assignment]


class StreamsUnverified(MemoryStore):
    def pieces(self, row: Row) -> Iterator[bytes]:
        yield row.data


class StreamsTheExpired(MemoryStore):
    def get_stream(self, scope: Scope, ref: str) -> Iterable[bytes] | None:
        row = self.of(scope).get(ref)
        return None if row is None else self.pieces(row)
