"""Real ledgers for tests: a clock that stands still until it is set, and the file's contents as somebody with a hex editor sees them."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from refledger import Ledger, Scope

NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)
"""When the clocks of the tests start, in microseconds."""
SECOND = 1_000_000
SCOPE = Scope(conversation="c-17", tenant="acme", principal="alice")
ELSEWHERE = Scope(conversation="c-18", tenant="globex", principal="bob")

Rows = list[tuple[Any, ...]]


@dataclass
class Clock:
    """A clock that stands still until it is set."""

    now_us: int = NOON

    def __call__(self) -> int:
        return self.now_us

    def advance(self, span: timedelta) -> None:
        self.now_us += span // timedelta(microseconds=1)


@functools.cache
def _empty_log() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        Ledger.open(Path(folder) / "agent.db").close()
        return (Path(folder) / "agent.db").read_bytes()


def new_log(folder: Path, name: str = "agent.db") -> Path:
    """The path of a log without events. Copying one is cheaper than migrating to it each time."""
    path = folder / name
    path.write_bytes(_empty_log())
    return path


def property_settings(examples: int, nightly: int) -> settings:
    """How much a property draws: the same examples each time under REFLEDGER_CI, many more under REFLEDGER_NIGHTLY."""
    return settings(
        max_examples=nightly if os.environ.get("REFLEDGER_NIGHTLY") else examples,
        derandomize=bool(os.environ.get("REFLEDGER_CI")),
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )


def types(ledger: Ledger) -> list[str]:
    """The types of the log's events, in its order."""
    return [recorded.event.type for recorded in ledger.events()]


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, as anybody may open it who has it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def ask(path: Path, question: str, *values: object) -> Rows:
    with database(path) as connection:
        return connection.execute(question, values).fetchall()


def change(path: Path, statement: str, *values: object) -> None:
    """Change the file behind the ledger's back; at least one row of it."""
    with database(path) as connection:
        assert connection.execute(statement, values).rowcount > 0, statement


def tables(path: Path) -> list[str]:
    return [name for (name,) in ask(path, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def contents(path: Path, *, but: Collection[str] = ()) -> dict[str, Rows]:
    """Every row of every table, as committed, but for some tables."""
    with database(path) as connection:
        names = [name for name in tables(path) if name not in but]
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in names}


def squeezed(sql: str) -> str:
    """A statement without what its meaning does not depend on: line breaks, runs of space, needless quotes."""
    return re.sub(r"\s*([(),])\s*", r"\1", " ".join(sql.replace('"', "").split()))


def start_python(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process at work; it is talked to over its standard input and output."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_python(script: str, *arguments: object) -> str:
    """What another process prints, which must end well."""
    process = start_python(script, *arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out
