"""What every test run has: no log that the environment names, and at its end how far the vectors agree."""

from __future__ import annotations

import os

import pytest

from tests.vector_differences import counts


def pytest_configure() -> None:
    os.environ.pop("REFLEDGER_LOG", None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = counts()
    if lines:
        terminalreporter.section("vectors: cases by how we answer them")
        for line in lines:
            terminalreporter.write_line(line)
