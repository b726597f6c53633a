"""The pytest fixture `refledger_ledger`. Installing Refledger registers it; nothing heavy is imported until a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from refledger.testing import TemporaryLedger


@pytest.fixture
def refledger_ledger() -> Iterator[TemporaryLedger]:
    """A ledger over real SQLite in a temporary folder: seeded refs, a clock that stands still, faults on demand."""
    from refledger.testing import temporary_ledger

    with temporary_ledger(seed=0) as ledger:
        yield ledger
