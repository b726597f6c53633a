"""Runs the step lists of the vectors on a real ledger, and says what each step came to in the vectors' terms.

A put named `a` mints the ref that the vectors' README gives it, so results are told by names again. Times are milliseconds there,
microseconds here.
"""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from refledger import Ledger, Scope
from refledger.contract import ArtifactMeta
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact, OverBudget, UnknownParentRef
from refledger_schema.events import ArtifactGone, Event
from refledger_store.retention import Retention
from tests.vectors_encoding import UNDEFINED, decode

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = 1_000_000
SCOPES = {
    "S": Scope(conversation="c1"),
    "S2": Scope(conversation="c2"),
    "T": Scope(conversation="c1", tenant="t", principal="p"),
}
CATEGORIES = {"kind": "kind", "media_type": "mediaType", "expires_at": "expiresAt", "data": "payload"}
FIELDS = {"mediaType": "media_type", "expiresAt": "expires_at", "parentRefs": "parents"}
TTL_CAUSE = {"expired": "ttl"}
MOST_PAGES = 30

Facts = dict[str, Any]


class Clock:
    """A clock that stands where it is set, in milliseconds."""

    def __init__(self, now_ms: int = START) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms * 1_000


def padded(name: str) -> str:
    """The ref that the vectors' stores mint for a name."""
    return "art_" + name.ljust(22, "x")


def in_ms(micros: int) -> int | float:
    whole, rest = divmod(micros, 1_000)
    return micros / 1_000 if rest else whole


def retention_of(dials: Any) -> Retention:
    """The retention that a vector's dials name. What is no number of milliseconds is passed on as it is."""
    given = {} if decode(dials) is UNDEFINED else decode(dials)
    ttl, max_bytes, max_count = (None if given.get(dial) is UNDEFINED else given.get(dial) for dial in DIALS)
    if isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl == ttl and abs(ttl) != float("inf"):
        ttl = timedelta(milliseconds=ttl)
    return Retention(ttl=ttl, max_bytes=max_bytes, max_count=max_count)


DIALS = ("ttlMs", "maxBytesPerScope", "maxCountPerScope")


class World:
    """A ledger, its clock, and the names of what was minted in it."""

    def __init__(self, ledger: Ledger, clock: Clock, path: Path) -> None:
        self.ledger, self.clock, self.path = ledger, clock, path
        self.names: dict[str, str] = {}
        self.digest_asked: set[str] = set()
        self.drawn = False
        self.origin: Callable[[ArtifactMeta], Facts | None] = lambda meta: None
        self._next_ref = ""
        self._position = ledger_size(ledger)

    def mint_ref(self) -> str:
        self.drawn = True
        return self._next_ref

    # --- the verbs, in the vectors' terms --------------------------------------------------------------------------------------

    def put(self, door: Any, name: str, ref: str, given: Any) -> Facts:
        """A put's ticket, or how it was refused."""
        self._next_ref, self.drawn = ref, False
        words = self.words(given)
        try:
            meta = door.put(**words)
        except UnknownParentRef as error:
            return {"throws": refusal_of(error), "unresolved": [self.told(parent) for parent in error.unresolved]}
        except (InvalidArtifact, TypeError) as error:
            return {"throws": refusal_of(error)}
        self.names[meta.ref] = name
        if decode(given.get("digest")) == "sha-256":
            self.digest_asked.add(meta.ref)
        return {"meta": self.ticket(meta)}

    def words(self, given: Any) -> Facts:
        """A put's arguments. A digest is not asked for, since there always is one; `origin` is never the caller's (decisions 7, 12)."""
        words = {FIELDS.get(name, name): value for name, tagged in (given or {}).items() if (value := decode(tagged)) is not UNDEFINED}
        words.pop("origin", None)
        if words.get("digest") == "sha-256":
            del words["digest"]
        expires_at = words.get("expires_at")
        if isinstance(expires_at, int | float) and not isinstance(expires_at, bool) and expires_at == expires_at:
            words["expires_at"] = EPOCH + timedelta(milliseconds=expires_at)
        if isinstance(words.get("parents"), list):
            words["parents"] = [self.ref(parent) if isinstance(parent, str | dict) else parent for parent in words["parents"]]
        return words

    def ticket(self, meta: ArtifactMeta) -> Facts:
        facts: Facts = {
            "ref": self.names[meta.ref],
            "kind": meta.kind,
            "mediaType": meta.media_type,
            "bytes": meta.bytes,
            "createdAt": in_ms(meta.minted_us),
        }
        if meta.label is not None:
            facts["label"] = meta.label
        if meta.ref in self.digest_asked:
            facts["digest"] = meta.digest
        if meta.expires_us is not None:
            facts["expiresAt"] = in_ms(meta.expires_us)
        if (origin := self.origin(meta)) is not None:
            facts["origin"] = origin
        if meta.parents is not None:
            facts["parentRefs"] = [self.told(parent.ref) for parent in meta.parents]
        return facts

    def read(self, door: Any, verb: str, ref: Any) -> Facts:
        try:
            found = getattr(door, verb)(ref)
        except ArtifactIntegrity as error:
            return {"throws": refusal_of(error)}
        if found is None:
            return {"value": None}
        return {"value": self.ticket(found) if verb == "head" else {"meta": self.ticket(found.meta), "data": found.data}}

    def page(self, door: Any, options: Facts) -> tuple[Facts, str | None]:
        try:
            page = door.list(**options)
        except InvalidArtifact as error:
            return {"throws": {"code": "ERR_INVALID_ARTIFACT", "field": error.field}}, None
        return {"rows": [self.names[meta.ref] for meta in page.artifacts], "more": page.cursor is not None}, page.cursor

    def walk(self, door: Any, options: Facts) -> Facts:
        pages: list[list[str]] = []
        cursor = None
        while len(pages) < MOST_PAGES:
            page, cursor = self.page(door, {**options, "cursor": cursor})
            if "throws" in page:
                return page
            pages.append(page["rows"])
            if cursor is None:
                return {"pages": pages}
        return {"pages": pages, "never_terminates": True}

    # --- what they are told by --------------------------------------------------------------------------------------------------

    def ref(self, named: Any) -> Any:
        """The ref of a name, or what stands there instead of one."""
        if isinstance(named, dict):
            return padded(named["unminted"]) if "unminted" in named else decode(named["literal"])
        return next((ref for ref, name in self.names.items() if name == named), named)

    def told(self, ref: Any) -> Any:
        """A ref by its name, or as it is."""
        return self.names.get(ref, {"literal": ref})

    def news(self) -> list[Event]:
        """The events of artifacts since the last time."""
        self.ledger.flush()
        recorded = list(self.ledger.events(after=self._position))
        self._position += len(recorded)
        return [each.event for each in recorded if each.event.type.startswith("artifact.")]

    def swept(self, events: list[Event]) -> list[list[Any]]:
        """Who left by retention, in order: [name, reason, kind, bytes]."""
        gone = [event for event in events if isinstance(event, ArtifactGone) and event.cause != "deleted"]
        return [[self.names[event.ref], TTL_CAUSE.get(event.cause, event.cause), *self.kind_and_bytes(event.ref)] for event in gone]

    def kind_and_bytes(self, ref: str) -> tuple[str, int]:
        with self.ledger._store.reading() as reads:
            artifact = reads.artifact(ref)
        assert artifact is not None
        return artifact.kind, artifact.bytes

    def damage(self, ref: str, data: bytes) -> None:
        """Other bytes where those of an artifact stood."""
        with self.ledger._store.reading() as reads:
            artifact = reads.artifact(ref)
        assert artifact is not None
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("UPDATE payloads SET data = ? WHERE digest = ?", (data, artifact.digest))


def ledger_size(ledger: Ledger) -> int:
    with ledger._store.reading() as reads:
        return reads.size()


def refusal_of(error: Exception) -> Facts:
    """An error by its code and category, as the vectors have them."""
    if isinstance(error, UnknownParentRef):
        return {"code": "ERR_UNKNOWN_PARENT_REF", "category": "unknown-parent"}
    if isinstance(error, ArtifactIntegrity):
        return {"code": "ERR_ARTIFACT_INTEGRITY", "category": "integrity"}
    if isinstance(error, OverBudget):
        return {"code": "ERR_INVALID_ARTIFACT", "category": "oversized"}
    if isinstance(error, InvalidArtifact):
        return {"code": "ERR_INVALID_ARTIFACT", "category": CATEGORIES.get(error.field, error.field)}
    return {"error": type(error).__name__, "code": None}


class Steps:
    """Takes the steps of a case, one after the other. `door(scope name, via)` gives the verbs with the scope bound."""

    def __init__(self, world: World, door: Callable[[str, str | None], Any]) -> None:
        self.world, self.door = world, door
        self._cursor: str | None = None

    def take(self, step: Facts) -> Facts:
        """What the step came to."""
        take: Callable[[Facts, Any], Facts] = getattr(self, "_" + step["op"].replace("-", "_"))
        return take(step, self.door(step.get("scope", "S"), step.get("via")))

    def _put(self, step: Facts, door: Any) -> Facts:
        fixed = step.get("ref_fixed", "h" + step["as"])
        return self.world.put(door, step["as"], padded(fixed), step["input"])

    def _fill(self, step: Facts, door: Any) -> Facts:
        for number in range(step["count"]):
            name = f"{step['prefix']}{number}"
            words = {"kind": "k", "mediaType": "text/plain", "data": "x"}
            expiry = {"expiresAt": step["expiresAt"]} if "expiresAt" in step else {}
            assert "meta" in self.world.put(door, name, padded("h" + name), words | expiry)
            self.world.clock.now_ms += step["gap_ms"]
        return {}

    def _head(self, step: Facts, door: Any) -> Facts:
        return self.world.read(door, "head", self.world.ref(step["ref"]))

    def _get(self, step: Facts, door: Any) -> Facts:
        return self.world.read(door, "get", self.world.ref(step["ref"]))

    def _delete(self, step: Facts, door: Any) -> Facts:
        door.delete(self.world.ref(step["ref"]))
        return {"value": UNDEFINED}

    def _list(self, step: Facts, door: Any) -> Facts:
        if step.get("cursor") == "$prev" and self._cursor is None:
            return {"no_cursor_to_follow": True}
        page, self._cursor = self.world.page(door, self._options(step))
        return page

    def _list_all(self, step: Facts, door: Any) -> Facts:
        return self.world.walk(door, self._options(step))

    def _options(self, step: Facts) -> Facts:
        options = {name: decode(step[name]) for name in ("limit", "cursor") if name in step}
        if options.get("cursor") == "$prev":
            options["cursor"] = self._cursor
        return {name: value for name, value in options.items() if value is not UNDEFINED}

    def _advance(self, step: Facts, door: Any) -> Facts:
        self.world.clock.now_ms += step["ms"]
        return {"now": self.world.clock.now_ms}

    def _corrupt(self, step: Facts, door: Any) -> Facts:
        self.world.damage(self.world.ref(step["ref"]), step["to"].encode())
        return {}


class Bound:
    """The bare store's verbs with the scope bound."""

    def __init__(self, ledger: Ledger, scope: Scope) -> None:
        self._store, self._scope = ledger.store, scope

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return lambda *args, **words: getattr(self._store, verb)(self._scope, *args, **words)


_numbers = itertools.count()


@contextmanager
def opened(empty_log: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, retention: Any = None, start: int = START) -> Iterator[World]:
    """A new ledger of a case."""
    path, clock = folder / f"log-{next(_numbers)}.db", Clock(start)
    shutil.copy(empty_log, path)
    with Ledger.open(path, durability="process", clock=clock, retention=retention_of(retention or {})) as ledger:
        world = World(ledger, clock, path)
        monkeypatch.setattr("refledger.verbs.mint_ref", world.mint_ref)
        yield world


def through_the_store(world: World) -> Callable[[str, str | None], Any]:
    return lambda scope, via: Bound(world.ledger, SCOPES[scope])
