"""A durable resolve of one argument beside raw sqlite3 appending the same row, alternating in one run. Target: at least 0.6.

The rival inserts the `dispatch.resolved` row, and what the append does for it (the use of the artifact, the scope's count and
the head), in one transaction with `synchronous=FULL`. Beside that, a resolve reads the payload, checks its digest and decodes it.
"""

from __future__ import annotations

import secrets
import sqlite3
import statistics
import time

from refledger import Ledger, Scope
from refledger_store.sqlite import connect
from refledger_store.statements import statements
from tests.benchmarks.measure import folder, fsync_us

ROUNDS = 1_000


def main() -> None:
    with folder() as path, Ledger.open(path / "ours.db") as ledger:
        Ledger.open(path / "raw.db").close()
        raw = connect(path / "raw.db", 5.0)
        raw.execute("PRAGMA synchronous = FULL")
        run = ledger.run(Scope(conversation="c"))
        rows = [{"day": day, "sold": day * 7, "region": "north"} for day in range(20)]
        ref = run.put(rows, kind="dataset/rows").ref
        _mint(raw, ref)
        ours: list[float] = []
        theirs: list[float] = []
        for position in range(1, ROUNDS + 1):
            call = run.call("sum", args={"dataset": ref})
            start = time.perf_counter()
            outcome = call.resolve({"dataset": "dataset/rows"})
            ours.append(time.perf_counter() - start)
            assert outcome.ok
            theirs.append(_raw_append(raw, position, ref))
        raw.close()
        print(f"{ROUNDS} resolves each, one writer; fsync about {fsync_us(path):.0f} µs")
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"raw sqlite3 {statistics.median(theirs) * 1e6:.0f} µs, resolve {statistics.median(ours) * 1e6:.0f} µs")
    print(f"ratio raw/resolve {ratio:.2f} (target: at least 0.6)")


def _mint(connection: sqlite3.Connection, ref: str) -> None:
    """The artifact that the rival's appends use, so that both sides touch the same rows and indexes."""
    project = statements("projections")
    artifact = {
        "ref": ref, "scope": "_/_/c", "kind": "dataset/rows", "media_type": "application/json", "shape": "json", "bytes": 800,
        "digest": "sha-256:" + "0" * 64, "label": None, "expires_us": None, "minted_us": 0, "run_id": None, "call_id": None,
        "tool": None, "minted": 0,
    }  # fmt: skip
    connection.execute(project["mint"], artifact)


def _raw_append(connection: sqlite3.Connection, position: int, ref: str) -> float:
    append, project = statements("append"), statements("projections")
    event = {
        "position": position, "event_id": secrets.token_hex(18), "type": "dispatch.resolved", "version": 1, "recorded_us": position,
        "occurred_us": None, "scope": "_/_/c", "scope_seq": position, "run_id": "run_" + "a" * 22, "call_id": "call_" + "a" * 22,
        "dispatch": 1, "body": "x" * 280, "private": bytes(32), "texts": None, "salt": bytes(16), "leaf_hash": bytes(32),
    }  # fmt: skip
    start = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(append["insert_event"], event)
    connection.execute(project["count_scope_event"], {"scope": "_/_/c", "events": position})
    connection.execute(project["use"], {"ref": ref, "scope": "_/_/c", "position": position})
    connection.execute(append["move_head"], {"position": position, "recorded_us": position, "frontier": bytes(320), "configuration": None})
    connection.execute("COMMIT")
    return time.perf_counter() - start
