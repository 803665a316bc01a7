"""Two ranked lists → one, by scores; and near-duplicates folded. Pure functions.

Fusion is the sum of z-scores over the union of both lists: every candidate has both scores, wherever it was found, so
that none is punished for a rank just outside the other list. Ranks would throw away how far apart two candidates are
(figures: docs/decisions/0004-score-fusion.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from retrieval.ports import Candidate
    from retrieval.types import Chunk, ChunkId

DENSE_WEIGHT: Final = 0.45
_SHINGLE: Final = 5
"""Characters of a shingle in text without spaces; elsewhere it is two words."""
_UNSPACED: Final = re.compile(r"[぀-ヿ㐀-鿿]")
_DUPLICATE_SHARE: Final = 0.85
_LENGTHS: Final = 0.5
"""Texts whose lengths differ more are not compared."""
_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its fused score."""

    candidate: Candidate
    score: float


def fuse(candidates: Sequence[Candidate], dense_weight: float = DENSE_WEIGHT) -> list[Ranked]:
    """All candidates by descending fused score; equal scores in document order, so that results are repeatable.

    The score is `w · z(cosine) + (1 - w) · z(bm25)`, z over all candidates. A candidate without a dense vector counts
    as similar as the least similar of the others.
    """
    if not candidates:
        return []
    # In one order, so that the sums below do not depend on the order of the searches.
    candidates = sorted(candidates, key=lambda item: (item.document_id, item.ordinal))
    known = [item.cosine for item in candidates if item.cosine is not None]
    floor = min(known, default=0.0)
    cosine = np.array([floor if item.cosine is None else item.cosine for item in candidates])
    bm25 = np.array([item.bm25 for item in candidates])
    scores = dense_weight * _z(cosine) + (1 - dense_weight) * _z(bm25)
    # Rounded, so that equal ones are not parted by the last bits of a sum.
    ranked = [
        Ranked(candidate=item, score=round(float(score), 9)) for item, score in zip(candidates, scores, strict=True)
    ]
    return sorted(ranked, key=lambda item: -item.score)


def _z(values: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def fold_duplicates(ranked: Iterable[Ranked], chunks: Mapping[ChunkId, Chunk], limit: int) -> list[Ranked]:
    """The first `limit` of those in `chunks` that do not repeat a better one: nearly the same text in a copy.

    Texts that differ in a number say different things, whatever else they share, and are both kept.
    """
    kept: list[Ranked] = []
    seen: list[_Text] = []
    for item in ranked:
        if len(kept) >= limit:
            break
        chunk = chunks.get(item.candidate.id)
        if chunk is None:
            continue
        text = _Text(chunk.text)
        if any(text.repeats(other) for other in seen):
            continue
        kept.append(item)
        seen.append(text)
    return kept


class _Text:
    """A text to be compared; what is dear is computed when it is needed."""

    def __init__(self, text: str) -> None:
        self._words = text.casefold().split()
        self._length = sum(map(len, self._words))
        self._numbers = sorted(_NUMBER.findall(text))

    @cached_property
    def _shingles(self) -> frozenset[str] | frozenset[tuple[str, str]]:
        words = self._words
        text = "".join(words)
        if not _UNSPACED.search(text):
            return frozenset(pairwise(words)) or frozenset(words)
        return frozenset(text[start : start + _SHINGLE] for start in range(max(1, len(text) - _SHINGLE + 1)))

    def repeats(self, other: _Text) -> bool:
        """Shared shingles over all (Jaccard, Broder 1997): a short passage inside a long one is no duplicate of it."""
        lengths = sorted((self._length, other._length))
        if self._numbers != other._numbers or lengths[0] < _LENGTHS * lengths[1]:
            return False
        one, two = self._shingles, other._shingles
        shared = len(one & two)
        return shared >= _DUPLICATE_SHARE * (len(one) + len(two) - shared)
