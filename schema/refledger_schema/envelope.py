"""Where an event stands in the log, and the bytes that are hashed for it.

The leaf of an event is the canonical JSON (RFC 8785) of

    {body, call_id, dispatch, event_id, log_id, occurred_us, position, private, recorded_us, run_id, scope_seq, type, version}

with absent keys left out. `body` sorts first, so a leaf is the stored body text between a fixed head and a tail that is a
pure function of the other columns: it is checked without parsing anything. Texts and the names of the scope do not enter
it as themselves; `private` commits to them with a salt, so that erasing both leaves the leaf as it was.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, replace
from typing import Any, cast

from refledger_schema import events as _events
from refledger_schema.canonical import MAX_SAFE_INTEGER, canonical_json, parse_json
from refledger_schema.errors import InvalidScope, LogCorrupt, NotCanonical, TooLarge
from refledger_schema.events import Event
from refledger_schema.merkle import leaf_hash
from refledger_schema.scopes import Scope, scope_of

MAX_LEAF = 65_535
"""The longest leaf in bytes (C2SP tlog-tiles keeps an entry's length in 16 bits)."""
_SALT = 16
_LONGEST = MAX_SAFE_INTEGER
"""No number of a row is longer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that is to be recorded, and where: the store adds what only the lock can give."""

    event: Event
    scope: Scope | None = None
    """None for events of the log itself."""
    run_id: str | None = None
    call_id: str | None = None
    dispatch: int | None = None
    """1 when the call was dispatched for the first time, …"""
    occurred_us: int | None = None
    """When it happened, by the writer's claim; absent when nobody knows."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event as the database holds it, a field a column, in the columns' order."""

    position: int
    event_id: str
    type: str
    version: int
    recorded_us: int
    occurred_us: int | None
    scope: str | None
    scope_seq: int | None
    run_id: str | None
    call_id: str | None
    dispatch: int | None
    body: str
    private: bytes
    texts: str | None
    salt: bytes | None
    leaf_hash: bytes


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event read back. Nothing is invented: a field is what the row says, or absent."""

    log_id: str
    position: int
    event_id: str
    recorded_us: int
    occurred_us: int | None
    scope: Scope | None
    scope_seq: int | None
    run_id: str | None
    call_id: str | None
    dispatch: int | None
    event: Event
    erased: bool
    """Whether its texts were erased: what is absent from the event's texts may have been there."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft, encoded: everything about it that does not depend on where it will stand."""

    draft: Draft
    event_id: str
    body: str
    texts: str | None
    salt: bytes
    private: bytes


def prepare(draft: Draft, event_id: str) -> Prepared:
    """Encode a draft, outside any lock.

    Raises `NotCanonical` for a value that no leaf can carry, and `TooLarge` for a draft whose leaf could be past its bound: what is
    prepared must not fail later, under the lock, in front of somebody else's event.
    """
    body, texts = draft.event.split()
    body_text = canonical_json(body)
    texts_text = canonical_json(texts) if texts else None
    salt = secrets.token_bytes(_SALT)
    private = private_hash(salt, draft.scope, texts_text)
    prepared = Prepared(draft, event_id, body_text, texts_text, salt, private)
    if len(body_text) > MAX_LEAF // 8:
        placed(prepared, log_id=event_id, position=_LONGEST, recorded_us=-_LONGEST, scope_key=None, scope_seq=_LONGEST)
    return prepared


def placed(prepared: Prepared, *, log_id: str, position: int, recorded_us: int, scope_key: str | None, scope_seq: int | None) -> Row:
    """The row of a prepared draft at its place. Raises `TooLarge` for a leaf past its bound."""
    draft = prepared.draft
    row = Row(
        position=position,
        event_id=prepared.event_id,
        type=draft.event.type,
        version=draft.event.version,
        recorded_us=recorded_us,
        occurred_us=draft.occurred_us,
        scope=scope_key,
        scope_seq=scope_seq,
        run_id=draft.run_id,
        call_id=draft.call_id,
        dispatch=draft.dispatch,
        body=prepared.body,
        private=prepared.private,
        texts=prepared.texts,
        salt=prepared.salt,
        leaf_hash=b"",
    )
    leaf = leaf_bytes(row, log_id)
    if len(leaf) > MAX_LEAF:
        raise TooLarge(f"the leaf of {draft.event.type}, in bytes", MAX_LEAF, len(leaf))
    return replace(row, leaf_hash=leaf_hash(leaf))


def leaf_bytes(row: Row, log_id: str) -> bytes:
    """The bytes that are hashed for `row`: stored body text, then a tail made of the columns."""
    parts = ['{"body":', row.body]
    if row.call_id is not None:
        parts += [',"call_id":', _quoted(row.call_id)]
    if row.dispatch is not None:
        parts += [',"dispatch":', str(row.dispatch)]
    parts += [',"event_id":', _quoted(row.event_id), ',"log_id":', _quoted(log_id)]
    if row.occurred_us is not None:
        parts += [',"occurred_us":', str(row.occurred_us)]
    parts += [',"position":', str(row.position), ',"private":"', row.private.hex(), '","recorded_us":', str(row.recorded_us)]
    if row.run_id is not None:
        parts += [',"run_id":', _quoted(row.run_id)]
    if row.scope_seq is not None:
        parts += [',"scope_seq":', str(row.scope_seq)]
    parts += [',"type":', _quoted(row.type), ',"version":', str(row.version), "}"]
    return "".join(parts).encode()


def private_hash(salt: bytes, scope: Scope | None, texts: str | None) -> bytes:
    """SHA-256(salt ‖ canonical JSON of {conversation, principal, tenant, texts}), absent keys left out."""
    names = scope.names() if scope is not None else {}
    members = [f'"{name}":{_quoted(value)}' for name, value in names.items()]
    if texts is not None:
        members.append(f'"texts":{texts}')
    return hashlib.sha256(salt + ("{" + ",".join(members) + "}").encode()).digest()


def recorded(row: Row, log_id: str) -> Recorded:
    """Read a row back. Raises `LogCorrupt` for an event that this software does not know or cannot read."""
    return Recorded(
        log_id=log_id,
        position=row.position,
        event_id=row.event_id,
        recorded_us=row.recorded_us,
        occurred_us=row.occurred_us,
        scope=_scope_of(row),
        scope_seq=row.scope_seq,
        run_id=row.run_id,
        call_id=row.call_id,
        dispatch=row.dispatch,
        event=event_of(row),
        erased=row.salt is None,
    )


def _scope_of(row: Row) -> Scope | None:
    try:
        return None if row.scope is None else scope_of(row.scope)
    except (InvalidScope, TooLarge):
        raise LogCorrupt(
            row.position,
            f"position {row.position}: expected a readable scope key; the stored one is damaged. "
            "Run `refledger verify` for all damage, and restore the log from a backup.",
        ) from None


def event_of(row: Row) -> Event:
    """The event in `row`, its remaining texts put back in their fields."""
    kind = _events.KINDS.get((row.type, row.version))
    if kind is None:
        raise LogCorrupt(
            row.position,
            f"position {row.position}: expected an event that this Refledger knows; found {row.type} version {row.version}. "
            "Install the version that wrote it, or a newer one.",
        )
    try:
        fields = cast(dict[str, Any], parse_json(row.body))
        if row.texts is not None:
            fields |= cast(dict[str, Any], parse_json(row.texts))
        # Lists become the tuples that frozen models hold; JSON mode does that without loosening any other check.
        return kind.model_validate_json(json.dumps(fields))
    except (NotCanonical, ValueError, TypeError):
        # Without a cause: pydantic's message may quote what stands in the row.
        raise _unreadable(row) from None


def _unreadable(row: Row) -> LogCorrupt:
    return LogCorrupt(
        row.position,
        f"position {row.position}: expected a readable {row.type} event; its stored body or texts are damaged. "
        "Run `refledger verify` for all damage, and restore the log from a backup.",
    )


def _quoted(text: str) -> str:
    """The RFC 8785 form of a string, which is what the C encoder writes."""
    return json.dumps(text, ensure_ascii=False)
