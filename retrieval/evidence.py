"""The evidence gate: can these hits answer the question at all? Decided in code, before any language model is asked.

A logistic model on four features that mean the same in every corpus and language. No single score does: cosines depend
on the model and the language, BM25 on the number and rarity of the question's words. The weights come from
`bench/calibrate_gate.py`, which fits them on questions asked of the right and of the wrong corpora.

A question in another language than the passages shares few words with them; there the cosine alone may decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from retrieval.fusion import Ranked
    from retrieval.ports import Candidate
    from retrieval.types import ChunkId

THRESHOLD: Final = 0.45
"""Probability below which we abstain: a wrong refusal is as bad as a wrong answer, but an answer shows its sources."""
_TOP: Final = 5
_LEAST_IDF: Final = 1.0
"""A term weighs at least this much: in a library of a few chunks every term that occurs seems to be a common one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What the gate looks at.

    `cosine`: the best cosine (-1 to 1). `bm25`: the best BM25 score over the sum of the question's IDF (0 to about
    2.6). `coverage`: the largest share of the question's IDF found in one of the five best hits (0 to 1). `agreement`:
    1 when BM25's first hit is among the three first of the dense search, else 0.
    """

    cosine: float
    bm25: float
    coverage: float
    agreement: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The logistic model: `bias + Σ weight · feature`."""

    bias: float
    cosine: float
    bm25: float
    coverage: float
    agreement: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The weights that go with one embedding model, for passages in the question's language and in another."""

    same_language: Weights
    other_language: Weights


E5_SMALL: Final = Calibration(
    same_language=Weights(bias=-59.26, cosine=64.18, bm25=3.78, coverage=5.22, agreement=1.45),
    # Even at a cosine of .812: above 95 of 100 questions asked of a corpus in another language that cannot answer them.
    other_language=Weights(bias=-97.64, cosine=120.0, bm25=0.0, coverage=0.0, agreement=0.0),
)
UNKNOWN_MODEL: Final = Calibration(
    same_language=Weights(bias=-4.0, cosine=0.0, bm25=3.0, coverage=4.5, agreement=1.4),
    other_language=Weights(bias=0.0, cosine=0.0, bm25=0.0, coverage=0.0, agreement=0.0),
)
"""For embedding models whose cosines nobody has calibrated: words decide, and across languages the language model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The gate's verdict. `probability` that the hits can answer (0 to 1)."""

    features: Features
    probability: float

    @property
    def sufficient(self) -> bool:
        """Whether to go on and answer."""
        return self.probability >= THRESHOLD


def deciding(ranked: Sequence[Ranked]) -> list[Candidate]:
    """The candidates whose terms `weigh` looks at."""
    candidates = [item.candidate for item in ranked]
    return [*candidates[:_TOP], max(candidates, key=lambda item: item.bm25)] if candidates else []


def weigh(
    ranked: Sequence[Ranked],
    idf: Mapping[int, float],
    terms: Mapping[ChunkId, Collection[int]],
    weights: Sequence[Weights],
) -> Evidence:
    """Judge the fused candidates (best first) of a question whose terms have these inverse document frequencies.

    `terms` has the BM25 indices that occur in the `deciding` candidates; a missing one counts as without any. Where
    several weights apply, the one that finds more evidence decides.
    """
    features = _features(ranked, idf, terms)
    logit = max(
        (
            one.bias
            + one.cosine * features.cosine
            + one.bm25 * features.bm25
            + one.coverage * features.coverage
            + one.agreement * features.agreement
        )
        for one in weights
    )
    probability = 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))
    return Evidence(features=features, probability=probability if ranked else 0.0)


def _features(ranked: Sequence[Ranked], idf: Mapping[int, float], terms: Mapping[ChunkId, Collection[int]]) -> Features:
    candidates = [item.candidate for item in ranked]
    matched = {item.id: idf.keys() & terms.get(item.id, ()) for item in deciding(ranked)}
    weight = {term: max(value, _LEAST_IDF) for term, value in idf.items()}
    total = sum(weight.values())
    shares = {chunk: sum(weight[term] for term in some) / total if total else 0.0 for chunk, some in matched.items()}
    best = max(candidates, key=lambda item: item.bm25, default=None)
    first = next((item for item in candidates if item.bm25_rank == 1), None)
    agreement = first is not None and first.dense_rank is not None and first.dense_rank <= 3
    return Features(
        cosine=max((item.cosine for item in candidates if item.cosine is not None), default=0.0),
        bm25=_saturation(best.bm25, matched[best.id], idf) * shares[best.id] if best is not None else 0.0,
        coverage=max((shares[item.id] for item in candidates[:_TOP]), default=0.0),
        agreement=float(agreement),
    )


def _saturation(score: float, matched: Collection[int], idf: Mapping[int, float]) -> float:
    """How strongly the terms that occur do so: the BM25 score over their IDF (0 to about 2.6)."""
    most = sum(idf[term] for term in matched)
    return score / most if most else 0.0
