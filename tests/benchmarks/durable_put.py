"""A durable put beside raw sqlite3 doing the same inserts with the same durability, alternating in one run.

The rival is a straight line of the same statements, on the same tables, with rows made beforehand: no checks, no hashes, no
lock file. Both commit with `synchronous=FULL`.
"""

from __future__ import annotations

import secrets
import sqlite3
import statistics
import time
from typing import Any

from refledger import Ledger, Scope
from refledger_store.sqlite import connect
from refledger_store.statements import statements
from tests.benchmarks.measure import folder, fsync_us

PUTS = 1_500
SIZE = 800


def main() -> None:
    with folder() as path, Ledger.open(path / "ours.db") as ledger:
        Ledger.open(path / "raw.db").close()
        raw = connect(path / "raw.db", 5.0)
        raw.execute("PRAGMA synchronous = FULL")
        run = ledger.run(Scope(conversation="c"))
        ours: list[float] = []
        theirs: list[float] = []
        for position in range(1, PUTS + 1):
            data = secrets.token_hex(SIZE // 2)
            start = time.perf_counter()
            run.put(data, kind="k", label="a label")
            ours.append(time.perf_counter() - start)
            theirs.append(_raw_put(raw, position, data.encode()))
        raw.close()
        print(f"payload {SIZE} bytes, {PUTS} puts each, one writer; fsync about {fsync_us(path):.0f} µs")
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"raw sqlite3 {statistics.median(theirs) * 1e6:.0f} µs, put {statistics.median(ours) * 1e6:.0f} µs")
    print(f"ratio raw/put {ratio:.2f} (1 is as fast as raw)")


def _raw_put(connection: sqlite3.Connection, position: int, data: bytes) -> float:
    steps = _rows(position, data)
    start = time.perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    for sql, parameters in steps:
        connection.execute(sql, parameters)
    connection.execute("COMMIT")
    return time.perf_counter() - start


def _rows(position: int, data: bytes) -> list[tuple[str, dict[str, Any]]]:
    append, project, payloads = statements("append"), statements("projections"), statements("payloads")
    scope, run_id, digest = "_/_/c", "run_" + "a" * 22, "sha-256:" + secrets.token_hex(32)
    event = {
        "position": position, "event_id": secrets.token_hex(18), "type": "artifact.minted", "version": 1, "recorded_us": position,
        "occurred_us": None, "scope": scope, "scope_seq": position, "run_id": run_id, "call_id": None, "dispatch": None,
        "body": "x" * 260, "private": bytes(32), "texts": '{"label":"a label"}', "salt": bytes(16), "leaf_hash": bytes(32),
    }  # fmt: skip
    artifact = {
        "ref": "art_" + secrets.token_hex(11), "scope": scope, "kind": "k", "media_type": "text/plain", "shape": "text",
        "bytes": len(data), "digest": digest, "label": "a label", "expires_us": None, "minted_us": position, "run_id": run_id,
        "call_id": None, "tool": None, "minted": position,
    }  # fmt: skip
    return [
        (append["insert_event"], event),
        (project["count_scope_event"], {"scope": scope, "events": position}),
        (project["mint"], artifact),
        (project["count_live"], {"scope": scope, "count": 1, "bytes": len(data)}),
        (project["count_kind"], {"scope": scope, "kind": "k", "count": 1}),
        (payloads["keep_payload"], {"scope": scope, "digest": digest, "size": len(data), "data": data, "upload": None, "file": None}),
        (append["move_head"], {"position": position, "recorded_us": position, "frontier": bytes(320), "configuration": None}),
    ]
