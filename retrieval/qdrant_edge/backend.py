"""The `Backend` operations on one shard of Qdrant Edge.

The binding lets other Python threads run during queries, but not during writes, so writes are kept short. Queries run
in a small pool of threads, writes one after the other in a thread of their own. Dense search compares with every vector
(exact, a few milliseconds at 20,000 chunks): building a graph would hold the interpreter for half a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import qdrant_edge as edge

from retrieval.errors import StoreAbsentError, StoreError
from retrieval.library_folder import LibraryFolder, guarded
from retrieval.memo import Memo
from retrieval.points import (
    BM25,
    CHUNK_TYPE,
    DENSE,
    KEYWORD_FIELDS,
    META_ID,
    PLACE,
    RECORD_TYPE,
    VERSION,
    Found,
    FoundPoint,
    LibraryIdentity,
    StoredPoint,
    Where,
    check_identity,
    identity_of,
    meta_point,
)
from retrieval.qdrant_edge.conversion import filter_of, point_of, shard_config, sparse_of, weights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.types import SparseVector

T = TypeVar("T")
_Vector: TypeAlias = "list[float] | edge.SparseVector"

MIN_FREE_BYTES = 128 * 1024 * 1024
"""Writes are refused below this much free disk space: the engine maps its files, and a full disk would kill us."""
MIN_FREE_TO_OPEN = 32 * 1024 * 1024
"""The same for opening, which may have to finish what the write-ahead log holds."""
FLUSH_EVERY = 4096
"""Points written between two flushes; the write-ahead log covers what lies in between."""
PLACES = 50_000
"""Chunks whose document, version and ordinal are kept at hand: some 30 MB."""
READ_TIMEOUT = 30.0
WRITE_TIMEOUT = 300.0
_READERS = 2
_PAGE = 1024


class EdgeBackend:
    """The `Backend` operations on one shard."""

    def __init__(self, home: LibraryFolder) -> None:
        self._home = home
        self._shard: edge.EdgeShard | None = None
        self._read = ThreadPoolExecutor(_READERS, "store-read")
        self._write = ThreadPoolExecutor(1, "store-write")
        self._unflushed = 0
        self._records: Memo[str, dict[str, Any]] = Memo()
        self._idfs: Memo[int, float | None] = Memo()
        # Never cleared: a chunk's place is part of its identity. Reading a payload takes longer than finding its point.
        self._places: Memo[str, dict[str, Any]] = Memo(PLACES)

    @classmethod
    async def open(cls, path: Path, identity: LibraryIdentity | None, *, rebuild: bool = False) -> EdgeBackend:
        """Lock the folder, load or make the shard, check the identity (None: take any), remove what a crash left."""
        backend = cls(LibraryFolder(path))
        try:
            await backend._in_writer(lambda: backend._open(identity, rebuild=rebuild))
        except BaseException:  # also when cancelled: the lock must not stay
            await backend.close()
            raise
        backend._read_ahead()
        return backend

    async def publish(self) -> None:
        """Point `current` at this shard."""

        def publish() -> None:
            self._live.flush()
            self._home.publish()

        await self._in_writer(publish)

    async def upsert(self, points: Sequence[StoredPoint]) -> None:
        """Write points; the write-ahead log has them once this returns."""

        def upsert() -> None:
            self._home.require_space(MIN_FREE_BYTES)
            self._live.update(edge.UpdateOperation.upsert_points([point_of(point) for point in points]))
            self._unflushed += len(points)
            if self._unflushed >= FLUSH_EVERY:
                self._live.flush()
                self._unflushed = 0

        await self._in_writer(upsert)

    async def delete(self, where: Where) -> None:
        """Delete the points that match."""
        operation = edge.UpdateOperation.delete_points_by_filter(filter_of(where))
        await self._in_writer(lambda: self._live.update(operation))

    async def delete_point(self, point_id: str) -> None:
        """Delete one point."""
        operation = edge.UpdateOperation.delete_points([point_id])
        await self._in_writer(lambda: self._live.update(operation))

    async def set_payload(self, where: Where, payload: dict[str, Any]) -> None:
        """Overwrite these payload fields of the points that match."""
        operation = edge.UpdateOperation.set_payload_by_filter(filter_of(where), payload)
        await self._in_writer(lambda: self._live.update(operation))

    async def search(
        self, *, dense: NDArray[np.float32], sparse: SparseVector, terms: Sequence[int], where: Where, limit: int
    ) -> Found:
        """Both searches, then the scores that are missing. A single term's best score / weight is its IDF.

        One query after the other, in one thread: the binding's batches of different queries take twice as long, and so
        do two threads, which wait for each other to let go of the interpreter.
        """
        vector, words = dense.tolist(), sparse_of(sparse) if sparse.indices else None

        def find(query: _Vector | None, name: str) -> list[FoundPoint]:
            scores = {str(point.id): point.score for point in self._query(query, name, limit, where)}
            places = self._places.get(scores, self._load_places)
            return [
                FoundPoint(payload=places[id_], id=id_, score=score) for id_, score in scores.items() if id_ in places
            ]

        def rate(query: _Vector | None, name: str, points: set[str]) -> dict[str, float]:
            found = self._query(query, name, len(points), Where(ids=points)) if points else []
            return {str(point.id): point.score for point in found}

        def search() -> Found:
            by_vector, by_words = find(vector, DENSE), find(words, BM25)
            near, worded = {point.id for point in by_vector}, {point.id for point in by_words}
            return Found(
                dense=by_vector,
                bm25=by_words,
                cosines=rate(vector, DENSE, worded - near),
                scores=rate(words, BM25, near - worded),
                idf=self._idfs.get(terms, lambda missing: {term: self._idf(term) for term in missing}),
            )

        return await self._in_reader(search)

    async def retrieve(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The payloads of those points that exist, by id; not to be changed."""

        def load(missing: list[str]) -> dict[str, dict[str, Any]]:
            records = self._live.retrieve([*missing], with_payload=True, with_vector=False)
            return {str(record.id): record.payload or {} for record in records}

        known = self._records.known(ids)
        return known if len(known) == len(ids) else await self._in_reader(lambda: self._records.get(ids, load))

    async def terms(self, ids: Sequence[str]) -> dict[str, frozenset[int]]:
        """The terms of those points that exist, by id; none for one without a BM25 vector."""
        if not ids:
            return {}
        records = await self._in_reader(lambda: self._live.retrieve(list(ids), with_payload=False, with_vector=[BM25]))
        return {str(record.id): frozenset(weights_of(record.vector)) for record in records}

    async def scroll(self, where: Where) -> list[tuple[str, dict[str, Any]]]:
        """Id and payload of all points that match."""
        return await self._in_reader(lambda: self._scroll(where))

    async def count(self, where: Where, *, exact: bool = True) -> int:
        """How many points match."""
        request = edge.CountRequest(exact=exact, filter=filter_of(where))
        return await self._in_reader(lambda: self._live.count(request))

    async def optimize(self) -> None:
        """Reclaim the space of deleted points and write everything out."""

        def optimize() -> None:
            self._live.optimize()
            self._live.flush()
            self._unflushed = 0

        await self._in_writer(optimize)
        self._read_ahead()

    async def close(self) -> None:
        """Flush, close the shard, free the lock."""

        def close() -> None:
            shard, self._shard = self._shard, None
            try:
                if shard is not None:
                    shard.flush()
                    shard.close()
            finally:
                self._home.leave()

        try:
            # A closed pool means that this is the second call.
            with contextlib.suppress(_ClosedError):
                await self._in_writer(close)
        finally:
            self._read.shutdown(wait=False)
            self._write.shutdown(wait=False)

    @property
    def _live(self) -> edge.EdgeShard:
        if self._shard is None:
            message = "The library is closed."
            raise StoreError(message)
        return self._shard

    def _read_ahead(self) -> None:
        # Closed meanwhile: then there is nothing to read ahead for.
        with contextlib.suppress(RuntimeError):
            self._read.submit(self._home.read_ahead)

    def _open(self, identity: LibraryIdentity | None, *, rebuild: bool) -> None:
        if identity is None and not self._home.holds_library():
            message = f"There is no library in {self._home.path} yet. Ingest something first."
            raise StoreAbsentError(message)
        folder = self._home.enter(rebuild=rebuild)
        self._home.require_space(MIN_FREE_TO_OPEN)
        if folder.is_dir():
            self._shard = edge.EdgeShard.load(str(folder))
            stored = self._live.retrieve([META_ID], with_payload=True, with_vector=False)
            if not stored:
                message = f"The library in {self._home.path} is damaged. Run `footnote reindex` to rebuild it."
                raise StoreError(message)
            if identity is not None:
                check_identity(identity_of(stored[0].payload or {}), identity)
                self._remove_orphans()
        elif identity is not None:
            self._shard = self._create(folder, identity)
            if not rebuild:
                self._home.publish()

    def _create(self, folder: Path, identity: LibraryIdentity) -> edge.EdgeShard:
        folder.mkdir()
        shard = edge.EdgeShard.create(str(folder), shard_config(identity.dimensions))
        for field in KEYWORD_FIELDS:
            shard.update(edge.UpdateOperation.create_field_index(field, edge.PayloadSchemaType.Keyword))
        shard.update(edge.UpdateOperation.upsert_points([point_of(meta_point(identity))]))
        shard.flush()
        return shard

    def _remove_orphans(self) -> None:
        """Chunks of versions that no record names: a process died while it staged or deleted them."""
        facet = edge.FacetRequest(VERSION, limit=1_000_000, exact=True, filter=filter_of(Where(type=CHUNK_TYPE)))
        present = {str(hit.value) for hit in self._live.facet(facet).hits}
        current = {payload[VERSION] for _, payload in self._scroll(Where(type=RECORD_TYPE))}
        for version in sorted(present - current):
            self._live.update(edge.UpdateOperation.delete_points_by_filter(filter_of(Where(version=version))))

    def _scroll(self, where: Where) -> list[tuple[str, dict[str, Any]]]:
        found: list[tuple[str, dict[str, Any]]] = []
        offset = None
        while True:
            request = edge.ScrollRequest(
                offset=offset, limit=_PAGE, filter=filter_of(where), with_payload=True, with_vector=False
            )
            records, offset = self._live.scroll(request)
            found += [(str(record.id), record.payload or {}) for record in records]
            if offset is None:
                return found

    def _query(self, vector: _Vector | None, name: str, limit: int, where: Where | None) -> list[edge.ScoredPoint]:
        """Points nearest to the vector; with their BM25 vectors when there are no conditions."""
        if vector is None:
            return []
        request = edge.QueryRequest(
            limit=limit,
            query=edge.Query.Nearest(vector, using=name),
            filter=None if where is None else filter_of(where),
            with_payload=False,
            with_vector=[BM25] if where is None else False,
        )
        return self._live.query(request)

    def _load_places(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        records = self._live.retrieve([*ids], with_payload=[*PLACE], with_vector=False)
        return {str(record.id): record.payload or {} for record in records}

    def _idf(self, term: int) -> float | None:
        """Score / weight of any point with the term."""
        points = self._query(edge.SparseVector([term], [1.0]), BM25, 1, None)
        return points[0].score / weights_of(points[0].vector)[term] if points else None

    async def _in_reader(self, work: Callable[[], T]) -> T:
        return await self._run(self._read, work, READ_TIMEOUT)

    async def _in_writer(self, work: Callable[[], T]) -> T:
        def write() -> T:
            try:
                return work()
            finally:
                self._records.clear()
                self._idfs.clear()

        return await self._run(self._write, write, WRITE_TIMEOUT)

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T], limit: float) -> T:
        try:
            future = asyncio.get_running_loop().run_in_executor(pool, guarded, work, self._home.path)
        except RuntimeError as error:
            message = "The library is closed."
            raise _ClosedError(message) from error
        try:
            return await asyncio.wait_for(future, limit)
        except TimeoutError as error:
            message = f"The library in {self._home.path} did not answer within {limit:.0f} seconds. Try again."
            raise StoreError(message) from error


class _ClosedError(StoreError):
    """The store was used after `close`."""
