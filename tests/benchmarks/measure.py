"""What the benchmarks share: medians, and a log that is filled quickly through the append itself."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from refledger import Ledger, Scope
from refledger_schema.digests import digest_of_text
from refledger_schema.envelope import Draft
from refledger_schema.events import ArtifactMinted
from refledger_schema.refs import mint_ref
from refledger_store.append import Decision
from refledger_store.payloads import Bytes

BATCH = 1_000


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the disk of the working directory, since a temporary file system would not sync."""
    with TemporaryDirectory(dir=".", prefix=".benchmark-") as path:
        yield Path(path)


def median_us(act: Callable[[], object], times: int) -> float:
    """The median time of `act` in microseconds."""
    return statistics.median(seconds(act) for _ in range(times)) * 1e6


def seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def fill(ledger: Ledger, scope: Scope, count: int, kinds: int = 10) -> None:
    """Mint `count` artifacts of `kinds` kinds in the scope, a thousand to an append."""
    for start in range(0, count, BATCH):
        texts = [f"payload {number}" for number in range(start, min(start + BATCH, count))]
        drafts = [
            Draft(
                ArtifactMinted(
                    ref=mint_ref(),
                    kind=f"kind/{number % kinds}",
                    media_type="text/plain",
                    shape="text",
                    bytes=len(text),
                    digest=digest_of_text(text),
                    label=f"artifact {number}",
                ),
                scope,
            )
            for number, text in enumerate(texts, start=start)
        ]
        payloads = [Bytes(scope.key, digest_of_text(text), len(text), text.encode()) for text in texts]
        decision: Decision[None] = Decision(None, drafts, payloads=payloads)
        ledger._store.append(lambda state, decision=decision: decision)  # type: ignore[misc]


def fsync_us(path: Path) -> float:
    """What syncing 4 KiB appended to a file in `path` costs here: beside every durable figure stands this one."""
    times = []
    with open(path / "fsync", "wb") as file:
        for _ in range(200):
            file.write(bytes(4096))
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6
