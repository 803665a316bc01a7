"""How good a ranking is, given graded relevance. Pure functions over ids, each figure from 0 to 1.

`ranking` holds distinct ids, best first. `grades` gives ids their relevance: over 0 is relevant, absent is 0; at least
one has to be relevant.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002) of the first `depth`.

    Gains are `2^grade - 1`, as in Burges et al. 2005, discounts `log2(rank + 1)`. With grades of 0 and 1 only, this is
    the same as with linear gains; with finer ones it is not, so figures compare only where gains are alike.
    """
    ideal = _discounted(sorted(grades.values(), reverse=True)[:depth])
    return _discounted([grades.get(item, 0.0) for item in ranking[:depth]]) / ideal


def _discounted(grades: Iterable[float]) -> float:
    return math.fsum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def reciprocal_rank(ranking: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """One over the rank of the first relevant one; 0 when none is among the first `depth`."""
    return next(
        (1 / rank for rank, item in enumerate(ranking[:depth], start=1) if grades.get(item, 0.0) > 0),
        0.0,
    )


def recall(ranking: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Share of all relevant ones that are among the first `depth`."""
    relevant = {item for item, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:depth])) / len(relevant)


def hit(ranking: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """1 when any relevant one is among the first `depth`, else 0."""
    return float(any(grades.get(item, 0.0) > 0 for item in ranking[:depth]))
