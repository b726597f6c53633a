"""A pyarrow Table goes in and comes out as a Table, and pyarrow is loaded only then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from refledger import Ledger
from tests.ledgers import SCOPE, new_log

TABLE = pa.table({"day": ["mon", None, "wed"], "sold": [1, 2, 3]})


def test_a_table_comes_back_as_the_same_table(tmp_path: Path) -> None:
    with Ledger.open(new_log(tmp_path)) as ledger, ledger.run(SCOPE) as run:
        first, second = (run.put(TABLE, kind="dataset/rows") for _ in range(2))
        stored = run.get(first.ref)
        with run.call("sum", args={"dataset": second.ref}) as call:
            outcome = call.resolve({"dataset": "dataset/rows"})
        assert ledger.verify().ok
    assert stored is not None and stored.data.equals(TABLE)
    assert outcome.ok and outcome.args["dataset"].equals(TABLE)
    assert (first.shape, first.media_type, first.digest) == ("arrow", "application/vnd.apache.arrow.stream", second.digest)


def test_payloads_of_other_shapes_load_no_pyarrow(tmp_path: Path) -> None:
    program = (
        "import sys; from refledger import Ledger, Scope\n"
        "with Ledger.open(sys.argv[1]) as ledger, ledger.run(Scope(conversation='c')) as run:\n"
        "    run.get(run.put([1], kind='k').ref)\n"
        "print([name for name in ('pyarrow', 'duckdb', 'sqlmodel', 'alembic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(new_log(tmp_path))], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_ledger_loads_neither_duckdb_nor_pyarrow_nor_a_runtime() -> None:
    program = "import sys; from refledger import Ledger; print(sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not [name for name in ("duckdb", "pyarrow", "alembic", "sqlmodel", "typer", "rich", "asyncio") if f"'{name}'" in loaded]
