"""Payloads of any size, a piece at a time: bytes in by `put_stream`, bytes out by `get_stream`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator
from types import TracebackType
from typing import BinaryIO, Self

from refledger.contract import ArtifactMeta
from refledger_schema.errors import ArtifactIntegrity, InvalidArtifact
from refledger_schema.scopes import Scope
from refledger_store.payloads import INLINE
from refledger_store.store import Store


class ArtifactReader:
    """A payload on its way out: iterate over it, once. Made by `get_stream`; use it as a context manager.

        with call.get_stream(ref) as reader:
            for piece in reader:
                file.write(piece)

    The digest is checked at the end: until the iteration is over without `ArtifactIntegrity`, what was read is not vouched for,
    and `verified` says so. No lock is held and no transaction stays open between pieces.
    """

    def __init__(self, store: Store, scope: Scope, meta: ArtifactMeta, ended: Callable[[bool, str | None], None]) -> None:
        self.meta = meta
        self.verified = False
        """Whether the whole payload was read and is what its digest says."""
        self._store = store
        self._scope = scope
        self._ended: Callable[[bool, str | None], None] | None = ended
        self._pieces = self._read()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def read_all(self) -> bytes:
        """The rest of the payload, in one piece."""
        return b"".join(self)

    def close(self) -> None:
        """Stop reading. What was read so far is recorded as a read that nothing verified."""
        self._pieces.close()
        self._end(False, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _read(self) -> Generator[bytes, None, None]:
        hashed = hashlib.sha256()
        for piece in self._stored():
            hashed.update(piece)
            yield piece
        actual = "sha-256:" + hashed.hexdigest()
        self.verified = actual == self.meta.digest
        self._end(self.verified, None if self.verified else actual)
        if not self.verified:
            raise ArtifactIntegrity(self.meta.ref, self.meta.digest, actual)

    def _stored(self) -> Iterator[bytes]:
        scope, digest = self._scope.key, self.meta.digest
        with self._store.bytes() as payloads:
            in_file = payloads.file_of(scope, digest) is not None
            pieces = payloads.chunks(scope, digest) if in_file else None
        if pieces is not None:
            yield from pieces
            return
        for number in range(max(1, -(-self.meta.bytes // INLINE))):
            with self._store.bytes() as payloads:
                piece = payloads.chunk(scope, digest, number)
            if piece is None:
                return
            yield piece

    def _end(self, verified: bool, actual: str | None) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(verified, actual)


def chunks_of(source: BinaryIO | Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of a binary file or of an iterable of bytes, a piece at a time."""
    read = getattr(source, "read", None)
    if callable(read):
        while piece := read(INLINE):
            yield _bytes(piece)
        return
    if isinstance(source, str | bytes | bytearray) or not isinstance(source, Iterable):
        raise InvalidArtifact("data", "expected a binary file or an iterable of bytes. For a payload in memory use `put`.")
    for piece in source:
        yield _bytes(piece)


def _bytes(piece: object) -> bytes:
    if isinstance(piece, bytes | bytearray | memoryview):
        return bytes(piece)
    raise InvalidArtifact(
        "data", f"expected pieces of bytes; found {type(piece).__name__}. Open the file in binary mode, or encode the text."
    )
