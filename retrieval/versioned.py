"""Documents with versions on top of a plain point store: one algorithm for the embedded and the server store.

Writing: the new version's chunks are staged in batches, where no reader takes them into account because no record names
their version; one write to the record makes them current; then the old version's chunks are deleted. A crash before
that one write leaves the old version, a crash after it the new one.

Reading: a search reads the records after its query and keeps only chunks whose version is current and whose document
the asker may see. When something was dropped, the query runs again without the versions that are not current, so that a
reader who raced a switch still gets the whole of one version, and staged chunks don't take up places of the limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING

from retrieval.errors import StoreError
from retrieval.points import (
    AUDIENCE,
    CHUNK_TYPE,
    DOCUMENT,
    ORDINAL,
    RECORD_TYPE,
    VERSION,
    Backend,
    Found,
    FoundPoint,
    Where,
    audience_of,
    chunk_of,
    chunk_point,
    record_of,
    record_point,
    scopes,
)
from retrieval.ports import Candidate, Candidates
from retrieval.types import ChunkId, SparseVector, chunk_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.ports import IndexedChunk
    from retrieval.types import Audience, Chunk, DocumentId, DocumentRecord, VersionId

BATCH = 32
"""Chunks a write: small enough that searches and other writes get their turn in between."""
MAX_TERMS = 256
"""Terms of a query that are searched; of a longer one, a fixed sample (the lowest hashes) is taken."""
STAGING_SECONDS = 3600
"""Chunks older than this that no record names were left by a process that died."""
_RERUNS = 3


class VersionedStore:
    """`retrieval.ports.Store` on a `Backend`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._switching = asyncio.Lock()
        """Held while a document's record is switched to another version."""

    async def replace(self, record: DocumentRecord, chunks: Sequence[IndexedChunk]) -> None:
        """Make `chunks` the document's content; all must carry the record's id and version.

        Raises:
            ValueError: A chunk belongs to another document or version.
            StoreError: The document was deleted meanwhile, or the store failed; the old version stands.
        """
        if any(item.chunk.version != record.version or item.chunk.document_id != record.id for item in chunks):
            message = "a chunk belongs to another document or version"
            raise ValueError(message)
        backend = self._backend
        previous = await self.record(record.id)
        if previous is not None and previous.version == record.version:
            message = "this version is the current one already"
            raise ValueError(message)
        now = int(time.time())
        mine = Where(type=CHUNK_TYPE, document_id=record.id, version=record.version)
        try:
            for start in range(0, len(chunks), BATCH):
                await backend.upsert([chunk_point(item, now) for item in chunks[start : start + BATCH]])
            await self._require(mine, len(chunks), record)
        except BaseException:  # also when cancelled
            # What cannot be removed now is invisible, and is removed later.
            await self._discard(mine)
            raise
        async with self._switching:
            await backend.upsert([record_point(record)])
        if previous is not None:
            await backend.delete(Where(type=CHUNK_TYPE, document_id=record.id, version=previous.version))
        abandoned = Where(
            type=CHUNK_TYPE,
            document_id=record.id,
            not_versions=(record.version,),
            staged_before=now - STAGING_SECONDS,
        )
        await backend.delete(abandoned)
        try:
            await self._require(mine, len(chunks), record)
        except StoreError:
            # Another process deleted the document between our count and our record.
            await backend.delete_point(record.id)
            raise

    async def delete(self, document_id: DocumentId) -> bool:
        """Forget a document at once: the record goes first, and without it no chunk counts."""
        known = await self.record(document_id) is not None
        await self._backend.delete_point(document_id)
        await self._backend.delete(Where(document_id=document_id))
        return known

    async def set_audience(self, document_id: DocumentId, audience: Audience) -> bool:
        """Change who may see a document, record and chunks in one operation."""
        if await self.record(document_id) is None:
            return False
        await self._backend.set_payload(Where(document_id=document_id), {AUDIENCE: scopes(audience)})
        return True

    async def search(
        self, *, dense: NDArray[np.float32], sparse: SparseVector, audience: Audience, limit: int
    ) -> Candidates:
        """Both searches, `limit` chunks from each, of current versions and that the audience may see only.

        The first round reads without a lock. Where documents are being replaced so fast that it met a version that is
        no longer current, the next rounds hold up the switches of this process, so that no document is missed.
        """
        sparse = _bounded(sparse)
        terms: Sequence[int] = sparse.indices
        idf: dict[int, float] = {}
        suspects: dict[str, str] = {}  # version → document, of versions that were not current when last looked at
        hidden: frozenset[str] = frozenset()
        async with contextlib.AsyncExitStack() as stack:
            for attempt in range(1 + _RERUNS):
                if attempt == 1:
                    await stack.enter_async_context(self._switching)
                where = Where(audience=audience, not_versions=hidden)
                found = await self._backend.search(dense=dense, sparse=sparse, terms=terms, where=where, limit=limit)
                if attempt == 0:
                    idf = await self._idf(found.idf)
                    terms = ()
                points = (*found.dense, *found.bm25)
                suspects |= {point.payload[VERSION]: point.payload[DOCUMENT] for point in points}
                visible = await self._visible(suspects.values(), audience)
                suspects = {version: document for version, document in suspects.items() if version not in visible}
                settled = not (hidden & visible) and all(point.payload[VERSION] in visible for point in points)
                if settled or attempt == _RERUNS:
                    return Candidates(found=_candidates(found, visible), idf=idf)
                hidden = frozenset(suspects)
        raise AssertionError  # the last round returns

    async def load(self, ids: Collection[ChunkId], audience: Audience) -> dict[ChunkId, Chunk]:
        """Those of these chunks that belong to a current version and that the audience may see, by id."""
        if not ids:
            return {}
        found = await self._backend.scroll(Where(type=CHUNK_TYPE, audience=audience, ids=frozenset(ids)))
        visible = await self._visible((payload[DOCUMENT] for _, payload in found), audience)
        return {ChunkId(point): chunk_of(point, payload) for point, payload in found if payload[VERSION] in visible}

    async def terms(self, ids: Collection[ChunkId]) -> dict[ChunkId, frozenset[int]]:
        """The BM25 indices that occur in those of these chunks that exist, by id, whoever may see them."""
        found = await self._backend.terms(sorted(ids))
        return {ChunkId(point): terms for point, terms in found.items()}

    async def chunks(self, version: VersionId, ordinals: Sequence[int], audience: Audience) -> list[Chunk]:
        """The same for a version's chunks with these ordinals, in that order."""
        found = await self.load({chunk_id(version, ordinal) for ordinal in ordinals}, audience)
        return sorted(found.values(), key=lambda chunk: chunk.ordinal)

    async def record(self, document_id: DocumentId) -> DocumentRecord | None:
        """A document's record, whoever may see it."""
        payload = (await self._backend.retrieve([document_id])).get(document_id)
        return record_of(payload) if payload is not None else None

    async def records(self, audience: Audience | None) -> list[DocumentRecord]:
        """All records that the audience may see (None: all), newest first, then by title."""
        found = await self._backend.scroll(Where(type=RECORD_TYPE, audience=audience))
        records = [record_of(payload) for _, payload in found]
        return sorted(records, key=lambda record: (-record.ingested_at.timestamp(), record.title, record.id))

    async def count(self, audience: Audience | None) -> int:
        """How many documents the audience may see (None: all)."""
        return await self._backend.count(Where(type=RECORD_TYPE, audience=audience))

    async def optimize(self) -> None:
        """Build indexes after many changes."""
        await self._backend.optimize()

    async def close(self) -> None:
        """Write all that is pending and let go; may be called twice."""
        await self._backend.close()

    async def _visible(self, documents: Iterable[str], audience: Audience) -> set[str]:
        """The current versions of these documents, where the audience may see them."""
        records = await self._backend.retrieve(sorted(set(documents)))
        return {payload[VERSION] for payload in records.values() if audience_of(payload).scopes & audience.scopes}

    async def _idf(self, known: dict[int, float | None]) -> dict[int, float]:
        if all(value is not None for value in known.values()):
            return {term: value for term, value in known.items() if value is not None}
        total = await self._backend.count(Where(type=CHUNK_TYPE), exact=False)
        absent = math.log1p((total + 0.5) / 0.5)
        return {term: absent if value is None else value for term, value in known.items()}

    async def _require(self, staged: Where, expected: int, record: DocumentRecord) -> None:
        if await self._backend.count(staged) != expected:
            message = f"“{record.title}” was deleted while it was being indexed. Ingest it again if you want it back."
            raise StoreError(message)

    async def _discard(self, where: Where) -> None:
        with contextlib.suppress(StoreError):
            await asyncio.shield(self._backend.delete(where))


def _bounded(sparse: SparseVector) -> SparseVector:
    return SparseVector(indices=sparse.indices[:MAX_TERMS], values=sparse.values[:MAX_TERMS])


def _candidates(found: Found, visible: set[str]) -> tuple[Candidate, ...]:
    """Both lists as one, each chunk with both scores and its rank in each list."""
    dense, bm25 = _ranked(found.dense, visible), _ranked(found.bm25, visible)
    cosines = found.cosines | {point.id: point.score for point in found.dense}
    scores = found.scores | {point.id: point.score for point in found.bm25}
    return tuple(
        Candidate(
            id=ChunkId(point_id),
            document_id=point.payload[DOCUMENT],
            version=point.payload[VERSION],
            ordinal=point.payload[ORDINAL],
            cosine=cosines.get(point_id),
            bm25=scores.get(point_id, 0.0),
            dense_rank=dense[point_id][1] if point_id in dense else None,
            bm25_rank=bm25[point_id][1] if point_id in bm25 else None,
        )
        for point_id, (point, _) in (bm25 | dense).items()
    )


def _ranked(points: list[FoundPoint], visible: set[str]) -> dict[str, tuple[FoundPoint, int]]:
    """Points and ranks by id. Equal scores come in any order; document order makes answers repeatable."""
    kept = [point for point in points if point.payload[VERSION] in visible]
    kept.sort(key=lambda point: (-point.score, point.payload[DOCUMENT], point.payload[ORDINAL]))
    return {point.id: (point, rank) for rank, point in enumerate(kept, start=1)}
