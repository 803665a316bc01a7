from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("calibrate_gate")


def rows(seed: int, count: int, shift: float) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 4)) + shift


def test_the_fit_finds_the_weights_that_made_the_labels(gate: ModuleType) -> None:
    features = np.random.default_rng(1).normal([0.8, 1.0, 0.5, 0.2], [0.1, 0.5, 0.3, 0.4], (20_000, 4))
    weights = np.array([12.0, 3.0, 4.0, -1.0])
    likely = 1 / (1 + np.exp(-(features @ weights - 14.0)))
    labels = (np.random.default_rng(2).random(len(features)) < likely).astype(float)
    model = gate.fit(features, labels, np.full(len(features), 1.0))
    assert model.weights == pytest.approx(weights, abs=0.6)
    assert model.bias == pytest.approx(-14.0, abs=1.0)


def test_each_pair_counts_the_same_however_long(gate: ModuleType) -> None:
    def pairs(times: int) -> list[object]:
        foreign = np.repeat(rows(3, 40, -0.5), times, axis=0)
        return [
            gate.Pair("a", "a", rows(1, 50, 0.5), np.full(50, fill_value=True)),
            gate.Pair("a", "b", foreign, np.full(len(foreign), fill_value=False)),
            gate.Pair("b", "a", rows(4, 50, -1.0), np.full(50, fill_value=False)),
        ]

    once, often = gate.fit_pairs(pairs(1), []), gate.fit_pairs(pairs(7), [])
    # The features' spread, which scales the ridge, does depend on how many there are.
    assert often.weights == pytest.approx(once.weights, rel=0.05)


def test_near_misses_are_no_examples(gate: ModuleType) -> None:
    answerable = np.array([True] * 50 + [False] * 50)
    mixed = np.concatenate([rows(1, 50, 0.5), rows(2, 50, 0.5)])
    pairs = [
        gate.Pair("a", "a", mixed, answerable),
        gate.Pair("a", "b", rows(3, 50, -0.5), np.full(50, fill_value=False)),
    ]
    without = [gate.Pair("a", "a", mixed[:50], answerable[:50]), pairs[1]]
    assert gate.fit_pairs(pairs, ["a"]).weights == pytest.approx(gate.fit_pairs(without, []).weights)
    assert gate.fit_pairs(pairs, []).weights != pytest.approx(gate.fit_pairs(without, []).weights)


async def test_features_come_from_the_cache(gate: ModuleType, tmp_path: Path) -> None:
    questions = SimpleNamespace(
        name="a", questions=[SimpleNamespace(answerable=True), SimpleNamespace(answerable=False)]
    )
    stored = [[0.9, 1.0, 0.8, 1.0], [0.8, 0.2, 0.1, 0.0]]
    gate._cached(tmp_path, questions, questions).write_text(json.dumps(stored))
    (pair,) = await gate.gather([questions], None, tmp_path)
    assert pair.features.tolist() == stored
    assert pair.answerable.tolist() == [True, False]
