from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("measuring.processes")


def test_a_run_is_watched_to_its_end(processes: ModuleType) -> None:
    run = processes.footnote("--help", watch_memory=True)
    assert run.code == 0
    assert "ingest" in run.output
    assert run.peak > 5_000_000
    assert run.seconds > 0
