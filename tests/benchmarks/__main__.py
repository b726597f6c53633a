"""`python -m tests.benchmarks [NAME …]`: run the benchmarks, all or by name. Each prints ratios of what was measured in one run.

The machines are shared and noisy: medians and ratios are what to read, never a single time.
"""

from __future__ import annotations

import importlib
import sys

NAMES = ("import_cost", "durable_put", "durable_resolve", "live_artifacts", "streaming", "backtrack_flat", "imported_runs")


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"expected names among {', '.join(NAMES)}; found {', '.join(unknown)}")
    for name in names or NAMES:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"tests.benchmarks.{name}").main()


main(sys.argv[1:])
