"""A put, a get, a resolve and a teaching refusal with 1k, 10k and 100k live artifacts in the scope. Target: flat within 1.5 times.

Durability is `process` here: with `full`, the disk's sync takes so much of each act that it would hide what grows. The three logs
are measured in turn, block by block, so that the machine's noise falls on all alike.
"""

from __future__ import annotations

import statistics
from collections import defaultdict

from refledger import Ledger, Run, Scope
from tests.benchmarks.measure import fill, folder, seconds

SIZES = (1_000, 10_000, 100_000)
BLOCKS = 12
PER_BLOCK = 15
SCOPE = Scope(conversation="c")
ACTS = ("put", "get", "resolve", "refusal")


def main() -> None:
    with folder() as path:
        ledgers = {}
        for size in SIZES:
            ledgers[size] = Ledger.open(path / f"{size}.db", durability="process")
            fill(ledgers[size], SCOPE, size)
        runs = {size: ledger.run(SCOPE) for size, ledger in ledgers.items()}
        refs = {size: run.put("data", kind="kind/0").ref for size, run in runs.items()}
        times: dict[tuple[str, int], list[float]] = defaultdict(list)
        for _ in range(BLOCKS):
            for size in SIZES:
                for act in ACTS:
                    times[act, size] += [seconds(lambda: _act(act, runs[size], refs[size])) for _ in range(PER_BLOCK)]  # noqa: B023
        for act in ACTS:
            medians = {size: statistics.median(times[act, size]) * 1e6 for size in SIZES}
            printed = ", ".join(f"{size:,}: {medians[size]:.0f} µs" for size in SIZES)
            print(f"{act:8} {printed}; largest to smallest log {medians[SIZES[-1]] / medians[SIZES[0]]:.2f} (target: at most 1.5)")
        for ledger in ledgers.values():
            ledger.close()


def _act(act: str, run: Run, ref: str) -> None:
    if act == "put":
        run.put("data", kind="kind/0", label="a label")
        return
    if act == "get":
        assert run.get(ref) is not None
        return
    spoken = ref if act == "resolve" else "art_" + "0" * 22
    with run.call("tool", args={"dataset": spoken}) as call:
        outcome = call.resolve({"dataset": "kind/0"})
        assert outcome.ok is (act == "resolve")
        call.result("done")
