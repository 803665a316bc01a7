"""The query path: embed, search densely and by BM25 under the audience filter, fuse, fold, gate, complete."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from retrieval.evidence import E5_SMALL, UNKNOWN_MODEL, Evidence, Weights, deciding, weigh
from retrieval.fusion import Ranked, fold_duplicates, fuse
from retrieval.languages import sure_language
from retrieval.types import Hit, chunk_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.bm25 import Bm25Encoder
    from retrieval.ports import Embedder, Store
    from retrieval.types import Audience, Chunk, ChunkId, Query, SparseVector

CANDIDATES: Final = 100
"""Chunks from each of the two searches."""
_COMPLETED: Final = 3
"""How many of the best hits get their neighbours."""
_SPARE: Final = 4
"""Chunks loaded beyond those asked for, since copies are folded."""
_REPEATS: Final = 2
"""Further searches, at most, when documents are being replaced."""
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
        sparse, asked = await asyncio.to_thread(lambda: (self._bm25.encode_query(text), sure_language(text)))
        found = await self._find(dense, sparse, query)
        for _ in range(_REPEATS):
            if found.whole:
                break
            found = await self._find(dense, sparse, query)
        hits = await self._complete([_hit(item, found.chunks) for item in found.best], query.audience)
        weights = await asyncio.to_thread(self._weights, asked, found.nearest)
        return SearchResult(hits=hits, evidence=weigh(found.ranked, found.idf, found.terms, weights))

    def _weights(self, asked: str | None, nearest: str) -> list[Weights]:
        """The gate's weights, and those across languages when the passage nearest in meaning is in another language."""
        found = sure_language(nearest) if asked is not None else None
        same = asked is None or found is None or asked == found
        usual, across = self._calibration.same_language, self._calibration.other_language
        return [usual] if same else [usual, across]

    async def _find(self, dense: NDArray[np.float32], sparse: SparseVector, query: Query) -> _Found:
        """Search, fuse, and load the texts that matter: those to show, after folding, and the nearest in meaning."""
        candidates = await self._store.search(dense=dense, sparse=sparse, audience=query.audience, limit=CANDIDATES)
        ranked = fuse(candidates.found)
        ids = [item.candidate.id for item in ranked]
        nearest = max(ranked, key=lambda item: item.candidate.cosine or 0.0).candidate.id if ranked else None
        wanted = {nearest} if nearest is not None else set()
        chunks: dict[ChunkId, Chunk] = {}
        end = query.limit + _SPARE
        while True:
            wanted.update(ids[:end])
            chunks |= await self._store.load(wanted - chunks.keys(), query.audience)
            best = fold_duplicates(ranked[:end], chunks, query.limit)
            if len(best) == query.limit or end >= len(ids):
                break
            end *= 2
        judged = {item.id for item in deciding(ranked)}
        terms = await self._store.terms(judged)
        return _Found(
            ranked=ranked,
            idf=candidates.idf,
            terms=terms,
            best=best,
            chunks=chunks,
            nearest=chunks[nearest].text if nearest in chunks else "",
            whole=wanted == chunks.keys() and judged == terms.keys(),
        )

    async def _complete(self, hits: Sequence[Hit], audience: Audience) -> tuple[Hit, ...]:
        """Add to the best hits the chunks before and after in their section: the hit is cut off there.

        No chunk comes twice: not one that is a hit of its own, or a better hit's neighbour.
        """
        seen = {hit.chunk.id for hit in hits}
        places = {hit.chunk.id: _around(hit.chunk) for hit in hits[:_COMPLETED]}
        found = await self._store.load({near for ids in places.values() for near in ids} - seen, audience)
        result = []
        for hit in hits:
            near = [found[place] for place in places.get(hit.chunk.id, ()) if place in found.keys() - seen]
            fresh = tuple(chunk for chunk in near if _same_section(hit.chunk, chunk))
            seen.update(chunk.id for chunk in fresh)
            result.append(replace(hit, neighbours=fresh))
        return tuple(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """All candidates, the terms of those that the gate looks at, the best, chunks by id, the text nearest in meaning.

    `whole`: no chunk went away between the search and the loading.
    """

    ranked: list[Ranked]
    idf: dict[int, float]
    terms: dict[ChunkId, frozenset[int]]
    best: list[Ranked]
    chunks: dict[ChunkId, Chunk]
    nearest: str
    whole: bool


def _around(chunk: Chunk) -> list[ChunkId]:
    return [chunk_id(chunk.version, chunk.ordinal - 1), chunk_id(chunk.version, chunk.ordinal + 1)]


def _same_section(chunk: Chunk, other: Chunk) -> bool:
    return other.heading_path == chunk.heading_path and other.kind == chunk.kind


def _hit(item: Ranked, chunks: Mapping[ChunkId, Chunk]) -> Hit:
    candidate = item.candidate
    return Hit(
        chunk=chunks[candidate.id],
        score=item.score,
        cosine=candidate.cosine,
        bm25=candidate.bm25,
        dense_rank=candidate.dense_rank,
        bm25_rank=candidate.bm25_rank,
    )
