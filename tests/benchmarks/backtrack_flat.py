"""A backtrack in a log of 1k and of 100k events, the answer's scope alike. Target: flat."""

from __future__ import annotations

import statistics

from refledger import Ledger, Scope
from tests.benchmarks.measure import fill, folder, seconds

SIZES = (1_000, 100_000)
ROUNDS = 15


def main() -> None:
    with folder() as path:
        ledgers, answers = {}, {}
        for size in SIZES:
            ledger = ledgers[size] = Ledger.open(path / f"{size}.db")
            for number in range(10):
                fill(ledger, Scope(conversation=f"other-{number}"), size // 20)
            answers[size] = _answer(ledger)
            for number in range(10):
                fill(ledger, Scope(conversation=f"later-{number}"), size // 20)
        first = {size: seconds(lambda: ledgers[size].backtrack(answers[size])) for size in SIZES}  # noqa: B023
        times: dict[int, list[float]] = {size: [] for size in SIZES}
        for _ in range(ROUNDS):
            for size in SIZES:
                times[size].append(seconds(lambda: ledgers[size].backtrack(answers[size])))  # noqa: B023
        medians = {size: statistics.median(times[size]) * 1e3 for size in SIZES}
        print(", ".join(f"{size:,} events: first {first[size] * 1e3:.0f} ms, then {medians[size]:.1f} ms" for size in SIZES))
        print(f"ratio {medians[SIZES[1]] / medians[SIZES[0]]:.2f} (target: flat, at most 1.5)")
        for ledger in ledgers.values():
            ledger.close()


def _answer(ledger: Ledger) -> str:
    """A run of twenty calls, each fed by the one before, and an answer that cites the last."""
    with ledger.run(Scope(conversation="c"), agent="analyst") as run:
        ref = run.put([1, 2, 3], kind="dataset/rows").ref
        for step in range(20):
            with run.call("transform", args={"dataset": ref}) as call:
                outcome = call.resolve({"dataset": "dataset/rows"})
                assert outcome.ok
                ref = call.put([step], kind="dataset/rows", label=f"step {step}").ref
                call.result(ref)
        return run.answer("done", cites=[ref]).answer_id
