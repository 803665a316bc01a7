"""The query path: embed, search densely and by BM25 under the audience filter, fuse, fold, gate, complete."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from retrieval.evidence import E5_SMALL, UNKNOWN_MODEL, Evidence, Weights, weigh
from retrieval.fusion import Ranked, fold_duplicates, fuse
from retrieval.languages import sure_language
from retrieval.types import Hit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.bm25 import Bm25Encoder
    from retrieval.ports import Embedder, Store
    from retrieval.types import Audience, Chunk, Query

CANDIDATES: Final = 100
"""Chunks from each of the two searches."""
_COMPLETED: Final = 3
"""How many of the best hits get their neighbours."""
_LONGEST_QUERY: Final = 2000
"""Characters of a query that are searched with; a longer one is a document, not a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits, best first, and the gate's verdict on them."""

    hits: tuple[Hit, ...]
    evidence: Evidence


class Searcher:
    """Searches one library."""

    def __init__(self, store: Store, embedder: Embedder, bm25: Bm25Encoder) -> None:
        """Use these three; the gate's weights go with the embedder's model."""
        self._store = store
        self._embedder = embedder
        self._bm25 = bm25
        self._calibration = E5_SMALL if "e5-small" in embedder.model else UNKNOWN_MODEL

    async def search(self, query: Query) -> SearchResult:
        """Find what the query's audience may see. Raises EmbeddingError, StoreError."""
        text = query.text[:_LONGEST_QUERY]
        dense = await self._embedder.embed_query(text)
        sparse = await asyncio.to_thread(self._bm25.encode_query, text)
        found = await self._store.search(dense=dense, sparse=sparse, audience=query.audience, limit=CANDIDATES)
        ranked = fuse(found.found)
        evidence = weigh(ranked, found.idf, *await asyncio.to_thread(self._weights, text, ranked))
        best = [_hit(item) for item in fold_duplicates(ranked, query.limit)]
        completed = await asyncio.gather(*(self._complete(hit, query.audience) for hit in best[:_COMPLETED]))
        return SearchResult(hits=_without_repeats([*completed, *best[_COMPLETED:]]), evidence=evidence)

    def _weights(self, question: str, ranked: Sequence[Ranked]) -> list[Weights]:
        """The gate's weights, and those across languages when the passage nearest in meaning is in another language."""
        nearest = max(ranked, key=lambda item: item.candidate.cosine or 0.0, default=None)
        asked = sure_language(question)
        found = sure_language(nearest.candidate.chunk.text) if nearest is not None else None
        same = asked is None or found is None or asked == found
        usual, across = self._calibration.same_language, self._calibration.other_language
        return [usual] if same else [usual, across]

    async def _complete(self, hit: Hit, audience: Audience) -> Hit:
        """Add the chunks before and after when they belong to the same section: the hit is cut off there."""
        chunk = hit.chunk
        around = await self._store.chunks(
            chunk.document_id, chunk.version, [chunk.ordinal - 1, chunk.ordinal + 1], audience
        )
        neighbours = tuple(other for other in around if _same_section(chunk, other))
        return replace(hit, neighbours=neighbours)


def _same_section(chunk: Chunk, other: Chunk) -> bool:
    return other.heading_path == chunk.heading_path and other.kind == chunk.kind


def _hit(item: Ranked) -> Hit:
    candidate = item.candidate
    return Hit(
        chunk=candidate.chunk,
        score=item.score,
        cosine=candidate.cosine,
        bm25=candidate.bm25,
        dense_rank=candidate.dense_rank,
        bm25_rank=candidate.bm25_rank,
    )


def _without_repeats(hits: list[Hit]) -> tuple[Hit, ...]:
    """Take neighbours away that are hits of their own, or a better hit's neighbours."""
    seen = {hit.chunk.id for hit in hits}
    result = []
    for hit in hits:
        fresh = tuple(chunk for chunk in hit.neighbours if chunk.id not in seen)
        seen.update(chunk.id for chunk in fresh)
        result.append(replace(hit, neighbours=fresh))
    return tuple(result)
