"""Each benchmark runs, at a size that says nothing of speed: one that is broken would be found only when somebody asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import backtrack_flat, durable_put, durable_resolve, import_cost, live_artifacts, streaming

SMALL: dict[str, tuple[Any, dict[str, Any]]] = {
    "durable_put": (durable_put, {"PUTS": 3}),
    "durable_resolve": (durable_resolve, {"ROUNDS": 3}),
    "live_artifacts": (live_artifacts, {"SIZES": (10, 20), "BLOCKS": 1, "PER_BLOCK": 1}),
    "backtrack_flat": (backtrack_flat, {"SIZES": (40, 80), "ROUNDS": 1}),
    "import_cost": (import_cost, {"ROUNDS": 1}),
    "streaming": (streaming, {"SIZE": 2}),
}


@pytest.mark.parametrize("name", SMALL)
def test_it_runs_and_prints_a_figure(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark, sizes = SMALL[name]
    monkeypatch.chdir(tmp_path)
    for constant, value in sizes.items():
        monkeypatch.setattr(benchmark, constant, value)
    benchmark.main()
    assert any(character.isdigit() for character in capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == []
