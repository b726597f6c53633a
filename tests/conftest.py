"""What every test run has: no log that the environment names, and at its end how far the vectors agree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from refledger import Ledger
from tests.vector_differences import counts


def pytest_configure() -> None:
    os.environ.pop("REFLEDGER_LOG", None)


@pytest.fixture(scope="session")
def empty_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log that holds nothing, to be copied: making one costs more than most tests do. Copies share its log_id."""
    path = tmp_path_factory.mktemp("empty") / "log.db"
    Ledger.open(path).close()
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = counts()
    if lines:
        terminalreporter.section("vectors: cases by how we answer them")
        for line in lines:
            terminalreporter.write_line(line)
