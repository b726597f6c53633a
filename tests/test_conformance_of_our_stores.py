"""Our own stores keep every law of the contract, and nothing is left out for want of a hook."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest

from refledger import ArtifactStore, Ledger, Retention, Scope
from refledger.conformance import LAWS, Law, Need, Subject
from refledger.conformance.subject import lacks
from refledger_store.store import PayloadHome
from tests.ledgers import Clock, ask, change, new_log


class OurStores:
    """A subject over real ledgers, each in a file of its own."""

    def __init__(self, folder: Path, payloads: PayloadHome) -> None:
        self._folder = folder
        self._payloads = payloads
        self._clock = Clock()
        self._paths: dict[int, Path] = {}
        self._open: dict[int, Ledger] = {}
        self._kept: list[ArtifactStore] = []

    def subject(self) -> Subject:
        return Subject(fresh=self.fresh, retained=self.fresh, advance=self.advance, corrupt=self.corrupt, reopen=self.reopen)

    def fresh(self, retention: Retention | None = None) -> ArtifactStore:
        return self._opened(new_log(self._folder, f"{len(self._kept)}.db"), retention)

    def advance(self, us: int) -> None:
        self._clock.advance(timedelta(microseconds=us))

    def corrupt(self, store: ArtifactStore, scope: Scope, ref: str) -> None:
        path = self._paths[id(store)]
        ((digest, file),) = ask(
            path,
            "SELECT p.digest, p.file FROM artifacts AS a JOIN payloads AS p ON p.scope = a.scope AND p.digest = a.digest WHERE a.ref = ?",
            ref,
        )
        if file is not None:
            (found,) = Path(f"{path}.payloads").glob(f"??/{file}")
            found.write_bytes(b"?" + found.read_bytes()[1:])
        else:
            change(path, "UPDATE payloads SET data = ? WHERE scope = ? AND digest = ?", b"?", scope.key, digest)

    def reopen(self, store: ArtifactStore) -> ArtifactStore:
        self._open.pop(id(store)).close()
        return self._opened(self._paths[id(store)], None)

    def close(self) -> None:
        for ledger in self._open.values():
            ledger.close()

    def _opened(self, path: Path, retention: Retention | None) -> ArtifactStore:
        ledger = Ledger.open(path, clock=self._clock, retention=retention, payloads=self._payloads, durability="process")
        store = ledger.store
        self._paths[id(store)], self._open[id(store)] = path, ledger
        self._kept.append(store)
        return store


@contextlib.contextmanager
def our_stores(folder: Path, payloads: PayloadHome) -> Iterator[OurStores]:
    stores = OurStores(folder, payloads)
    try:
        yield stores
    finally:
        stores.close()


@pytest.mark.parametrize("payloads", ["database", "folder"])
@pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])
def test_our_store_keeps_the_law(law: Law, payloads: PayloadHome, tmp_path: Path) -> None:
    with our_stores(tmp_path, payloads) as stores:
        law.check(stores.subject())


@pytest.mark.parametrize("payloads", ["database", "folder"])
def test_no_law_is_left_out_for_want_of_a_hook_or_a_member(payloads: PayloadHome, tmp_path: Path) -> None:
    with our_stores(tmp_path, payloads) as stores:
        subject = stores.subject()
        assert {need: lacks(subject, need) for law in LAWS for need in law.needs} == dict.fromkeys(get_args(Need))
