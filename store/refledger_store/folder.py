"""A folder as the home of payloads: one file a payload, written and synced before the event that speaks of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from refledger_schema.refs import mint_event_id
from refledger_store.sqlite import translated

ABOVE = 16 * 1024
"""Smaller payloads stay in the database: a file costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of one log's payloads. Names are UUIDv7, new for every write, so that no file is ever written twice."""

    root: Path

    def write(self, chunks: Iterable[bytes]) -> str:
        """Write a payload and sync it, then give it its name; says the name. Until then no reader can find it."""
        name = mint_event_id()
        target = self._path(name)
        partial = target.with_suffix(".partial")
        try:
            with translated(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                file = partial.open("xb")
            with file:
                for chunk in chunks:
                    # What the caller's own source raises is the caller's, and goes through as it is.
                    with translated(target):
                        file.write(chunk)
                with translated(target):
                    file.flush()
                    os.fsync(file.fileno())
            with translated(target):
                partial.rename(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
        return name

    def read(self, name: str, piece: int) -> Iterator[bytes] | None:
        """The payload in pieces; None when the file is not there."""
        path = self._path(name)
        return _pieces(path, piece) if path.is_file() else None

    def remove(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def names_before(self, name: str) -> Iterator[str]:
        """The files that were begun before the time that a UUIDv7 names, whole or partial."""
        for path in self.root.glob("??/*"):
            if path.stem < name:
                yield path.stem

    def discard(self, name: str) -> None:
        """Remove a file that nothing links to, and what an interrupted write left of it."""
        self.remove(name)
        self._path(name).with_suffix(".partial").unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        # The last digits of a UUIDv7 are random, so the files spread evenly over 256 folders.
        return self.root / name[-2:] / name


def _pieces(path: Path, piece: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(piece):
            yield data


def _sync_folder(path: Path) -> None:
    """Make the new name durable. Some systems cannot sync a folder; then the rename alone must do."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
