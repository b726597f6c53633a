"""What does `from refledger import Ledger` cost beside `import sqlmodel`? Target: at most 1.2 times."""

from __future__ import annotations

import statistics
import subprocess
import sys

ROUNDS = 15
CODE = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def main() -> None:
    theirs, ours = [], []
    for _ in range(ROUNDS):
        theirs.append(_seconds("import sqlmodel"))
        ours.append(_seconds("from refledger import Ledger"))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"import sqlmodel {statistics.median(theirs) * 1e3:.0f} ms, from refledger import Ledger {statistics.median(ours) * 1e3:.0f} ms")
    print(f"ratio {ratio:.2f} (target: at most 1.2)")


def _seconds(statement: str) -> float:
    done = subprocess.run([sys.executable, "-c", CODE.format(statement)], capture_output=True, text=True, check=True)
    return float(done.stdout)
