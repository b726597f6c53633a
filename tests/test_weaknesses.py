"""The table of W1 to W34 in docs/contract.md is whole, and each test it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (TESTS.parent / "docs" / "contract.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| W")
]
NOT_A_STORES_TO_MEND = {"W33"}


def test_every_weakness_has_one_row_in_order() -> None:
    assert [row[0] for row in ROWS] == [f"W{number}" for number in range(1, 35)]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_test_that_a_row_names_exists(row: list[str]) -> None:
    name, _, here, shown_by = row
    if name in NOT_A_STORES_TO_MEND:
        assert here.startswith("Not a store's to mend")
        return
    file, test = shown_by.strip("`").split("::")
    assert re.search(rf"^def {test}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE), f"{file} has no {test}"
