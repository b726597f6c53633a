"""Bytes beside the log: payloads once a scope and digest; and content, the texts of a run.

A payload lives in its row, in chunks under an upload, or in a file of a folder. Whatever is larger than a row should hold is
written first, in transactions of its own, and linked by the append.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from refledger_schema.digests import digest_of
from refledger_store.folder import Folder
from refledger_store.reads import Connection, Reads
from refledger_store.statements import statements

INLINE = 1024 * 1024
"""The largest payload that is written inside the append, and the size of a chunk of a larger one."""
STALE_US = 24 * 3600 * 1_000_000
"""After how long an upload that nothing links to is swept."""

_SQL = statements("payloads")


@dataclass(frozen=True, slots=True)
class Bytes:
    """A payload on its way into an append: its bytes, or where they already are. Exactly one of the last three is set."""

    scope: str
    digest: str
    size: int
    data: bytes | None
    upload: str | None = None
    """The chunks under this upload."""
    file: str | None = None
    """The file of this name in the folder."""


class Payloads:
    """Payloads and content over one connection."""

    def __init__(self, connection: Connection, folder: Folder | None = None) -> None:
        self._connection = connection
        self._folder = folder
        self.orphaned: list[str] = []
        """Files that no row names any more: to be removed once the transaction is committed."""

    # --- writing -----------------------------------------------------------------------------------------------------------

    def keep(self, payload: Bytes) -> None:
        """Link a payload to its scope and digest. The same bytes again take the place of what may have been damaged."""
        self._drop_place(payload.scope, payload.digest)
        self._run(
            "keep_payload",
            scope=payload.scope,
            digest=payload.digest,
            size=payload.size,
            data=payload.data,
            upload=payload.upload,
            file=payload.file,
        )

    def free(self, scope: str, ref: str) -> None:
        """Drop the payload of an artifact that left, unless a live one of its scope has the same bytes."""
        reads = Reads(self._connection)
        artifact = reads.artifact(ref)
        if artifact is None or artifact.scope != scope or reads.digest_is_live(scope, artifact.digest):
            return
        self.drop(scope, artifact.digest)

    def drop(self, scope: str, digest: str) -> None:
        self._drop_place(scope, digest)
        self._run("drop_payload", scope=scope, digest=digest)

    def keep_chunk(self, upload: str, chunk: int, data: bytes) -> None:
        self._run("keep_chunk", upload=upload, chunk=chunk, data=data)

    def drop_upload(self, upload: str) -> None:
        self._run("drop_chunks", upload=upload)

    def sweep_uploads(self, now_us: int) -> int:
        """Drop some uploads that were begun long ago and never linked; says how many."""
        stale = [upload for (upload,) in self._run("stale_uploads", before=oldest_fresh(now_us))]
        for upload in stale:
            self._run("drop_chunks", upload=upload)
        return len(stale)

    def links_to_upload(self, upload: str) -> bool:
        return bool(self._run("links_to_upload", upload=upload))

    def links_to_file(self, file: str) -> bool:
        return bool(self._run("links_to_file", file=file))

    def _drop_place(self, scope: str, digest: str) -> None:
        for _, _, upload, file in self._run("payload", scope=scope, digest=digest):
            if upload is not None:
                self._run("drop_chunks", upload=upload)
            if file is not None:
                self.orphaned.append(file)

    # --- reading -----------------------------------------------------------------------------------------------------------

    def chunks(self, scope: str, digest: str) -> Iterator[bytes] | None:
        """The bytes of a payload, a piece at a time; None when there are none."""
        found = self._run("payload", scope=scope, digest=digest)
        if not found:
            return None
        size, data, upload, file = found[0]
        if file is not None:
            return None if self._folder is None else self._folder.read(file, INLINE)
        return iter((data,)) if upload is None else self._upload_chunks(upload, size)

    def chunk(self, scope: str, digest: str, number: int) -> bytes | None:
        """One piece of a payload in the database, by its number; None past its end, or when it is gone."""
        found = self._run("payload", scope=scope, digest=digest)
        if not found:
            return None
        _, data, upload, _ = found[0]
        if upload is None:
            return data if number == 0 else None
        piece = self._run("chunk", upload=upload, chunk=number)
        return bytes(piece[0][0]) if piece else None

    def file_of(self, scope: str, digest: str) -> str | None:
        """The name of the file that holds a payload, where one does."""
        found = self._run("payload", scope=scope, digest=digest)
        return found[0][3] if found else None

    def load(self, scope: str, digest: str) -> bytes | None:
        chunks = self.chunks(scope, digest)
        return None if chunks is None else b"".join(chunks)

    def digest(self, scope: str, digest: str) -> str | None:
        """The digest that the stored bytes have, computed a piece at a time; None when they are missing."""
        chunks = self.chunks(scope, digest)
        if chunks is None:
            return None
        hashed = hashlib.sha256()
        for chunk in chunks:
            # A damaged row may hold anything; what is no bytes has no digest, so it matches none.
            hashed.update(chunk if isinstance(chunk, bytes) else repr(chunk).encode())
        return "sha-256:" + hashed.hexdigest()

    def _upload_chunks(self, upload: str, size: int) -> Iterator[bytes]:
        for chunk in range(-(-size // INLINE)):
            found = self._run("chunk", upload=upload, chunk=chunk)
            if not found:
                return
            yield bytes(found[0][0])

    # --- content -----------------------------------------------------------------------------------------------------------

    def keep_content(self, scope: str, digest: str, data: bytes) -> None:
        self._run("keep_content", scope=scope, digest=digest, data=data)

    def content(self, scope: str, digest: str) -> bytes | None:
        found = self._run("content", scope=scope, digest=digest)
        return bytes(found[0][0]) if found else None

    def _run(self, name: str, /, **parameters: Any) -> list[Any]:
        return self._connection.execute(_SQL[name], parameters).fetchall()


def sound(data: bytes, digest: str) -> bool:
    """Whether bytes are what their digest says."""
    return digest_of(data) == digest


def pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of `INLINE`, the last one shorter; nothing for no bytes."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= INLINE:
            yield bytes(held[:INLINE])
            del held[:INLINE]
    if held:
        yield bytes(held)


def oldest_fresh(now_us: int) -> str:
    """What every upload begun within `STALE_US` sorts after: uploads are named by UUIDv7, whose first 48 bits are milliseconds."""
    milliseconds = max(0, (now_us - STALE_US) // 1000)
    text = f"{milliseconds:012x}"
    return f"{text[:8]}-{text[8:]}"
