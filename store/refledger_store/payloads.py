"""Bytes beside the log: payloads once a scope and digest, large ones in chunks; and content, the texts of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import uuid_utils

from refledger_schema.digests import digest_of
from refledger_store.reads import Connection, Reads
from refledger_store.statements import statements

INLINE = 1024 * 1024
"""The largest payload that is written inside the append, and the size of a chunk of a larger one."""
STALE_US = 24 * 3600 * 1_000_000
"""After how long an upload that nothing links to is swept."""

_SQL = statements("payloads")


@dataclass(frozen=True, slots=True)
class Bytes:
    """A payload on its way into an append: its bytes, or the upload that already holds them."""

    scope: str
    digest: str
    size: int
    data: bytes | None
    upload: str | None = None


class Payloads:
    """Payloads and content over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def keep(self, payload: Bytes) -> None:
        """Link a payload to its scope and digest. A former upload of the same bytes is dropped."""
        if payload.upload is not None:
            former = self._run("payload", scope=payload.scope, digest=payload.digest)
            if former and former[0][2] not in (None, payload.upload):
                self._run("drop_chunks", upload=former[0][2])
        self._run(
            "keep_payload",
            scope=payload.scope,
            digest=payload.digest,
            size=payload.size,
            data=payload.data,
            upload=payload.upload,
        )

    def free(self, scope: str, ref: str) -> None:
        """Drop the payload of an artifact that left, unless a live one of its scope has the same bytes."""
        reads = Reads(self._connection)
        artifact = reads.artifact(ref)
        if artifact is None or artifact.scope != scope or reads.digest_is_live(scope, artifact.digest):
            return
        self.drop(scope, artifact.digest)

    def drop(self, scope: str, digest: str) -> None:
        for _, _, upload in self._run("payload", scope=scope, digest=digest):
            if upload is not None:
                self._run("drop_chunks", upload=upload)
        self._run("drop_payload", scope=scope, digest=digest)

    def chunks(self, scope: str, digest: str) -> Iterator[bytes] | None:
        """The bytes of a payload, a chunk at a time; None when there are none."""
        found = self._run("payload", scope=scope, digest=digest)
        if not found:
            return None
        size, data, upload = found[0]
        return iter((data,)) if upload is None else self._upload_chunks(upload, size)

    def load(self, scope: str, digest: str) -> bytes | None:
        chunks = self.chunks(scope, digest)
        return None if chunks is None else b"".join(chunks)

    def digest(self, scope: str, digest: str) -> str | None:
        """The digest that the stored bytes have, computed a chunk at a time; None when they are missing."""
        chunks = self.chunks(scope, digest)
        if chunks is None:
            return None
        hashed = hashlib.sha256()
        for chunk in chunks:
            hashed.update(chunk)
        return "sha-256:" + hashed.hexdigest()

    def keep_content(self, scope: str, digest: str, data: bytes) -> None:
        self._run("keep_content", scope=scope, digest=digest, data=data)

    def content(self, scope: str, digest: str) -> bytes | None:
        found = self._run("content", scope=scope, digest=digest)
        return bytes(found[0][0]) if found else None

    def keep_chunk(self, upload: str, chunk: int, data: bytes) -> None:
        self._run("keep_chunk", upload=upload, chunk=chunk, data=data)

    def sweep_uploads(self, now_us: int) -> int:
        """Drop some uploads that were begun long ago and never linked; says how many."""
        stale = [upload for (upload,) in self._run("stale_uploads", before=_oldest_fresh_upload(now_us))]
        for upload in stale:
            self._run("drop_chunks", upload=upload)
        return len(stale)

    def _upload_chunks(self, upload: str, size: int) -> Iterator[bytes]:
        for chunk in range(-(-size // INLINE)):
            found = self._run("chunk", upload=upload, chunk=chunk)
            if not found:
                return
            yield bytes(found[0][0])

    def _run(self, name: str, /, **parameters: Any) -> list[Any]:
        return self._connection.execute(_SQL[name], parameters).fetchall()


def mint_upload() -> str:
    """The name of an upload: a UUIDv7, whose first 48 bits say in milliseconds when it was begun."""
    return str(uuid_utils.uuid7())


def sound(data: bytes, digest: str) -> bool:
    """Whether bytes are what their digest says."""
    return digest_of(data) == digest


def _oldest_fresh_upload(now_us: int) -> str:
    milliseconds = max(0, (now_us - STALE_US) // 1000)
    text = f"{milliseconds:012x}"
    return f"{text[:8]}-{text[8:]}"
