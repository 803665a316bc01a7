"""The `Backend` operations on one collection of a Qdrant server.

The library's name is an alias; the collection behind it is called `<name>-build-<hex>`. A rebuild fills another one and
moves the alias, which the server does in one step.

Several processes may write. Chunks that a process left staged when it died are not current, so nobody sees them. They
cannot be told at once from those of a process that is staging right now: they go when their document is next deleted,
when it is replaced an hour later or more, or with a rebuild. Every operation here may be repeated without harm, so
after a passing error it is.
"""

from __future__ import annotations

import contextlib
import re
import uuid
import warnings
from typing import TYPE_CHECKING, Any

from qdrant_client import models

from retrieval.errors import StoreAbsentError, StoreError
from retrieval.points import (
    BM25,
    DENSE,
    KEYWORD_FIELDS,
    META_ID,
    Found,
    LibraryIdentity,
    StoredPoint,
    Where,
    check_identity,
    identity_of,
    meta_point,
)
from retrieval.qdrant_server.connection import CollectionExistsError, Connection
from retrieval.qdrant_server.conversion import (
    filter_of,
    found_of,
    idf_of,
    nearest,
    point_of,
    sparse_of,
    weights_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from qdrant_client import AsyncQdrantClient

    from retrieval.types import SparseVector

_PAGE = 1024


class ServerBackend:
    """The `Backend` operations on one collection."""

    def __init__(self, connection: Connection, *, name: str, alias: str) -> None:
        self._connection = connection
        self._client, self._call = connection.client, connection.call
        self._name = name
        self._alias = alias
        self._identity: LibraryIdentity | None = None
        self._closed = False

    @classmethod
    async def open(
        cls,
        server: str | AsyncQdrantClient,
        identity: LibraryIdentity | None,
        *,
        api_key: str | None,
        collection: str,
        rebuild: bool = False,
    ) -> ServerBackend:
        """Connect; find or make the collection; check the identity (None: take any, make nothing)."""
        connection = Connection(server, collection, api_key=api_key)
        name = _build_name(collection, uuid.uuid4()) if rebuild else collection
        backend = cls(connection, name=name, alias=collection)
        try:
            if rebuild and identity is not None:
                await backend._create(name, identity)
            elif identity is not None:
                await backend._open(identity)
            backend._identity = identity
        except BaseException:  # also when cancelled: the connection must not stay
            await backend.close()
            raise
        return backend

    async def exists(self) -> bool:
        """Whether there is such a library."""
        return await self._meta() is not None

    async def publish(self) -> None:
        """Move the alias to this collection; delete what was behind it and what broken rebuilds left."""
        client = self._client
        old = await self._target()
        moves: list[models.AliasOperations] = []
        if old is not None:
            moves.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self._alias)))
        create = models.CreateAlias(collection_name=self._name, alias_name=self._alias)
        moves.append(models.CreateAliasOperation(create_alias=create))
        await self._call(client.update_collection_aliases, moves)
        built, self._name = self._name, self._alias
        pattern = re.compile(re.escape(self._alias) + r"-build-[0-9a-f]{32}")
        collections = await self._call(client.get_collections)
        for found in collections.collections:
            name = found.name
            if name != built and pattern.fullmatch(name):
                await self._call(client.delete_collection, name)

    async def upsert(self, points: Sequence[StoredPoint]) -> None:
        """Write points; the server has applied them once this returns."""
        structs = [point_of(point) for point in points]
        await self._call(self._client.upsert, self._name, structs, wait=True)

    async def delete(self, where: Where) -> None:
        """Delete the points that match."""
        selector = models.FilterSelector(filter=filter_of(where))
        await self._call(self._client.delete, self._name, selector, wait=True)

    async def delete_point(self, point_id: str) -> None:
        """Delete one point."""
        selector = models.PointIdsList(points=[point_id])
        await self._call(self._client.delete, self._name, selector, wait=True)

    async def set_payload(self, where: Where, payload: dict[str, Any]) -> None:
        """Overwrite these payload fields of the points that match."""
        selector = models.FilterSelector(filter=filter_of(where))
        await self._call(self._client.set_payload, self._name, payload, selector, wait=True)

    async def search(
        self, *, dense: NDArray[np.float32], sparse: SparseVector, terms: Sequence[int], where: Where, limit: int
    ) -> Found:
        """One request, then one for the scores that are missing. A single term's best score / weight is its IDF."""
        vector, words = dense.tolist(), sparse_of(sparse) if sparse.indices else None
        singles = [models.SparseVector(indices=[term], values=[1.0]) for term in terms]
        by_vector, by_words, *of_terms = await self._query(
            nearest(vector, DENSE, limit, where),
            nearest(words, BM25, limit, where),
            *(nearest(single, BM25, 1, None) for single in singles),
        )
        near, worded = {str(point.id) for point in by_vector}, {str(point.id) for point in by_words}
        cosines, scores = await self._query(
            nearest(vector, DENSE, limit, Where(ids=worded - near)),
            nearest(words, BM25, limit, Where(ids=near - worded)),
        )
        return Found(
            dense=[found_of(point) for point in by_vector],
            bm25=[found_of(point) for point in by_words],
            cosines={str(point.id): point.score for point in cosines},
            scores={str(point.id): point.score for point in scores},
            idf={term: idf_of(term, points) for term, points in zip(terms, of_terms, strict=True)},
        )

    async def retrieve(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The payloads of those points that exist, by id.

        The meta point is read along, so that a process notices when another one has rebuilt the library.
        """
        wanted = [*ids, META_ID]
        records = await self._call(self._client.retrieve, self._name, wanted, with_payload=True, with_vectors=False)
        payloads = {str(record.id): record.payload or {} for record in records}
        meta = payloads.pop(META_ID, None)
        if meta is not None and self._identity is not None:
            check_identity(identity_of(meta), self._identity)
        return payloads

    async def terms(self, ids: Sequence[str]) -> dict[str, frozenset[int]]:
        """The terms of those points that exist, by id; none for one without a BM25 vector."""
        if not ids:
            return {}
        records = await self._call(
            self._client.retrieve, self._name, list(ids), with_payload=False, with_vectors=[BM25]
        )
        return {str(record.id): frozenset(weights_of(record.vector)) for record in records}

    async def scroll(self, where: Where) -> list[tuple[str, dict[str, Any]]]:
        """Id and payload of all points that match."""
        found: list[tuple[str, dict[str, Any]]] = []
        offset: Any = None
        condition = filter_of(where)
        while True:
            records, offset = await self._call(
                self._client.scroll,
                self._name,
                scroll_filter=condition,
                limit=_PAGE,
                offset=offset,
                with_payload=True,
                with_vectors=False,
            )
            found += [(str(record.id), record.payload or {}) for record in records]
            if offset is None:
                return found

    async def count(self, where: Where, *, exact: bool = True) -> int:
        """How many points match."""
        condition = filter_of(where)
        result = await self._call(self._client.count, self._name, count_filter=condition, exact=exact)
        return result.count

    async def optimize(self) -> None:
        """Nothing to do: the server optimizes by itself."""

    async def close(self) -> None:
        """Delete a collection that was never published; close a client that is ours."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._name != self._alias:
                await self._call(self._client.delete_collection, self._name)
        finally:
            await self._connection.close()

    async def _open(self, identity: LibraryIdentity) -> None:
        stored = await self._meta()
        if stored is None:
            # The first name is the same for all, so that processes that start together make one collection.
            name = _build_name(self._alias, uuid.uuid5(uuid.NAMESPACE_URL, self._alias))
            await self._create(name, identity)
            create = models.CreateAlias(collection_name=name, alias_name=self._alias)
            operation = models.CreateAliasOperation(create_alias=create)
            with contextlib.suppress(CollectionExistsError):
                await self._call(self._client.update_collection_aliases, [operation])
            stored = await self._meta()
        if stored is None:
            message = (
                f"The library “{self._alias}” could not be made on the Qdrant server at {self._connection.address}."
            )
            raise StoreError(message)
        check_identity(stored, identity)

    async def _create(self, name: str, identity: LibraryIdentity) -> None:
        client = self._client
        with contextlib.suppress(CollectionExistsError):
            await self._call(
                client.create_collection,
                name,
                vectors_config={DENSE: models.VectorParams(size=identity.dimensions, distance=models.Distance.COSINE)},
                sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            )
        for field in KEYWORD_FIELDS:
            await self._index(name, field)
        present = await self._call(client.retrieve, name, [META_ID])
        if not present:
            await self._call(client.upsert, name, [point_of(meta_point(identity))], wait=True)

    async def _index(self, name: str, field: str) -> None:
        with warnings.catch_warnings():
            # The local mode, which only tests use, warns that it has no indexes.
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")
            kind = models.PayloadSchemaType.KEYWORD
            await self._call(self._client.create_payload_index, name, field, kind, wait=True)

    async def _query(self, *requests: models.QueryRequest | None) -> list[list[models.ScoredPoint]]:
        """The points of each request, in one round trip; none where there is nothing to ask for."""
        asked = [request for request in requests if request is not None]
        responses = await self._call(self._client.query_batch_points, self._name, asked) if asked else []
        found = iter(responses)
        return [next(found).points if request is not None else [] for request in requests]

    async def _meta(self) -> LibraryIdentity | None:
        try:
            records = await self._call(self._client.retrieve, self._alias, [META_ID])
        except StoreAbsentError:
            return None
        return identity_of(records[0].payload or {}) if records else None

    async def _target(self) -> str | None:
        aliases = await self._call(self._client.get_aliases)
        return next((item.collection_name for item in aliases.aliases if item.alias_name == self._alias), None)


def _build_name(alias: str, number: uuid.UUID) -> str:
    return f"{alias}-build-{number.hex}"
