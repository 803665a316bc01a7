"""Store on a Qdrant server or cluster, so that several processes share one library.

The library's name is an alias; the collection behind it is called `<name>-build-<hex>`. A rebuild fills another one and
moves the alias, which the server does in one step.

Several processes may write. Chunks that a process left staged when it died are not current, so nobody sees them. They
cannot be told at once from those of a process that is staging right now: they go when their document is next deleted,
when it is replaced an hour later or more, or with a rebuild. Every operation here may be repeated without harm, so
after a passing error it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
import warnings
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx
import stamina
import stamina.instrumentation
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from retrieval.errors import StoreAbsentError, StoreError, StoreUnavailableError
from retrieval.points import (
    AUDIENCE,
    BM25,
    DENSE,
    DOCUMENT,
    KEYWORD_FIELDS,
    META_ID,
    PLACE,
    STAGED_AT,
    TYPE,
    VERSION,
    Found,
    FoundPoint,
    LibraryIdentity,
    StoredPoint,
    Where,
    check_identity,
    identity_of,
    meta_point,
    scopes,
)
from retrieval.versioned import VersionedStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.types import DocumentRecord, SparseVector

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_COLLECTION = "footnote"
REQUEST_TIMEOUT = 15
"""Seconds that one request may take."""
TOTAL_TIMEOUT = 45.0
"""Seconds that one operation may take, repeats included."""
ATTEMPTS = 3
_PAGE = 1024


class ServerStore(VersionedStore):
    """The store on a server. Make one with `open` or `rebuild`."""

    def __init__(self, backend: ServerBackend) -> None:
        super().__init__(backend)
        self._server = backend

    @classmethod
    async def open(
        cls,
        server: str | AsyncQdrantClient,
        identity: LibraryIdentity | None,
        *,
        api_key: str | None = None,
        collection: str = DEFAULT_COLLECTION,
    ) -> ServerStore:
        """Open the library called `collection` on the server at this URL; an empty one is made when there is none.

        Without an identity, a library of any identity is opened and none is made.

        Raises:
            StoreUnavailableError: The server does not answer, or refuses the key.
            StoreMismatchError: The library was built with another identity.
        """
        return cls(await ServerBackend.open(server, identity, api_key=api_key, collection=collection))

    @classmethod
    async def rebuild(
        cls,
        server: str | AsyncQdrantClient,
        identity: LibraryIdentity,
        *,
        api_key: str | None = None,
        collection: str = DEFAULT_COLLECTION,
    ) -> ServerStore:
        """An empty library with a new identity beside the present one, which stays in use meanwhile.

        `publish` puts it in the old one's place; closing without that leaves the old one as it was.
        """
        return cls(await ServerBackend.open(server, identity, api_key=api_key, collection=collection, rebuild=True))

    async def publish(self) -> None:
        """Make the rebuilt library the library, in one step, and delete the old one."""
        await self._server.publish()


async def read_records(
    server: str | AsyncQdrantClient, *, api_key: str | None = None, collection: str = DEFAULT_COLLECTION
) -> list[DocumentRecord]:
    """All records of the library, whatever it was built with; empty when there is no library."""
    backend = await ServerBackend.open(server, None, api_key=api_key, collection=collection)
    store = VersionedStore(backend)
    try:
        return await store.records(None) if await backend.exists() else []
    finally:
        await store.close()


class ServerBackend:
    """The `Backend` operations on one collection."""

    def __init__(self, client: AsyncQdrantClient, *, name: str, alias: str, address: str, owned: bool) -> None:
        self._client = client
        self._name = name
        self._alias = alias
        self._address = address
        self._owned = owned
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
        client, address = (_connect(server, api_key), _address(server)) if isinstance(server, str) else (server, "here")
        name = _build_name(collection, uuid.uuid4()) if rebuild else collection
        backend = cls(client, name=name, alias=collection, address=address, owned=isinstance(server, str))
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
        structs = [_point(point) for point in points]
        await self._call(self._client.upsert, self._name, structs, wait=True)

    async def delete(self, where: Where) -> None:
        """Delete the points that match."""
        selector = models.FilterSelector(filter=_filter(where))
        await self._call(self._client.delete, self._name, selector, wait=True)

    async def delete_point(self, point_id: str) -> None:
        """Delete one point."""
        selector = models.PointIdsList(points=[point_id])
        await self._call(self._client.delete, self._name, selector, wait=True)

    async def set_payload(self, where: Where, payload: dict[str, Any]) -> None:
        """Overwrite these payload fields of the points that match."""
        selector = models.FilterSelector(filter=_filter(where))
        await self._call(self._client.set_payload, self._name, payload, selector, wait=True)

    async def search(
        self, *, dense: NDArray[np.float32], sparse: SparseVector, terms: Sequence[int], where: Where, limit: int
    ) -> Found:
        """One request, then one for the scores that are missing. A single term's best score / weight is its IDF."""
        vector, words = dense.tolist(), _sparse(sparse) if sparse.indices else None
        singles = [models.SparseVector(indices=[term], values=[1.0]) for term in terms]
        by_vector, by_words, *of_terms = await self._query(
            _nearest(vector, DENSE, limit, where),
            _nearest(words, BM25, limit, where),
            *(_nearest(single, BM25, 1, None) for single in singles),
        )
        near, worded = {str(point.id) for point in by_vector}, {str(point.id) for point in by_words}
        cosines, scores = await self._query(
            _nearest(vector, DENSE, limit, Where(ids=worded - near)),
            _nearest(words, BM25, limit, Where(ids=near - worded)),
        )
        return Found(
            dense=[_found(point) for point in by_vector],
            bm25=[_found(point) for point in by_words],
            cosines={str(point.id): point.score for point in cosines},
            scores={str(point.id): point.score for point in scores},
            idf={term: _idf(term, points) for term, points in zip(terms, of_terms, strict=True)},
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
        return {str(record.id): frozenset(_weights(record.vector)) for record in records}

    async def scroll(self, where: Where) -> list[tuple[str, dict[str, Any]]]:
        """Id and payload of all points that match."""
        found: list[tuple[str, dict[str, Any]]] = []
        offset: Any = None
        condition = _filter(where)
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
        condition = _filter(where)
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
            if self._owned:
                await self._client.close()

    async def _open(self, identity: LibraryIdentity) -> None:
        stored = await self._meta()
        if stored is None:
            # The first name is the same for all, so that processes that start together make one collection.
            name = _build_name(self._alias, uuid.uuid5(uuid.NAMESPACE_URL, self._alias))
            await self._create(name, identity)
            create = models.CreateAlias(collection_name=name, alias_name=self._alias)
            operation = models.CreateAliasOperation(create_alias=create)
            with contextlib.suppress(_ExistsError):
                await self._call(self._client.update_collection_aliases, [operation])
            stored = await self._meta()
        if stored is None:
            message = f"The library “{self._alias}” could not be made on the Qdrant server at {self._address}."
            raise StoreError(message)
        check_identity(stored, identity)

    async def _create(self, name: str, identity: LibraryIdentity) -> None:
        client = self._client
        with contextlib.suppress(_ExistsError):
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
            await self._call(client.upsert, name, [_point(meta_point(identity))], wait=True)

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

    async def _call(self, request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Send a request, again if that may help, and turn every failure into a sentence."""
        try:
            async with asyncio.timeout(TOTAL_TIMEOUT):
                return await _RETRY(_is_passing, request, *args, **kwargs)
        except (ApiException, ResourceExhaustedResponse, httpx.HTTPError, TimeoutError, ValueError) as error:
            raise self._sentence(error) from error

    def _sentence(self, error: Exception) -> StoreError:
        if isinstance(error, UnexpectedResponse):
            return self._status(error.status_code or 0)
        if isinstance(error, ResourceExhaustedResponse):
            return self._status(429)
        if isinstance(error, ValueError) and not self._owned:  # a client in local mode raises these
            local = {"not found": 404, "already exists": 409}
            return self._status(next((status for text, status in local.items() if text in str(error)), 400))
        alien = isinstance(error, ResponseHandlingException) and not isinstance(error.source, httpx.HTTPError)
        if alien or isinstance(error, ValueError):
            return StoreUnavailableError(f"What answers at {self._address} is not a Qdrant server. Check QDRANT_URL.")
        return StoreUnavailableError(
            f"The Qdrant server at {self._address} does not answer. "
            "Check that it runs and that QDRANT_URL is right, then try again."
        )

    def _status(self, status: int) -> StoreError:
        where = f"The Qdrant server at {self._address}"
        if status >= 500 or status == 429:
            return StoreUnavailableError(f"{where} is in trouble (HTTP {status}). Try again later; its log says more.")
        sentences: dict[int, StoreError] = {
            401: StoreUnavailableError(f"{where} refuses access. Check QDRANT_API_KEY."),
            403: StoreUnavailableError(f"{where} refuses access. Check what QDRANT_API_KEY may do."),
            404: StoreAbsentError(f"{where} has no library called “{self._alias}”."),
            409: _ExistsError(f"{where} has a library called “{self._alias}” already."),
        }
        refused = StoreError(
            f"{where} refused a request (HTTP {status}). Check that its version is 1.15 or later; "
            "if the library stays unusable, run `footnote reindex`."
        )
        return sentences.get(status, refused)


class _ExistsError(StoreError):
    """The collection or alias is there already."""


_RETRY = stamina.AsyncRetryingCaller(attempts=ATTEMPTS, timeout=TOTAL_TIMEOUT, wait_initial=0.1, wait_max=2.0)


def _is_passing(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, UnexpectedResponse):
        return (error.status_code or 0) >= 500 or error.status_code == 429
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    return isinstance(error, ResourceExhaustedResponse)


def _connect(url: str, api_key: str | None) -> AsyncQdrantClient:
    # Its log of repeats quotes what failed, and comes on somebody's screen.
    stamina.instrumentation.set_on_retry_hooks([])
    with warnings.catch_warnings():
        # A server inside one's own network often speaks plain HTTP; whether to is the operator's decision.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        # The compatibility check would block on a request of its own.
        return AsyncQdrantClient(url=url, api_key=api_key, timeout=REQUEST_TIMEOUT, check_compatibility=False)


def _address(url: str) -> str:
    """The URL as it may be shown: without user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "the given QDRANT_URL"


def _build_name(alias: str, number: uuid.UUID) -> str:
    return f"{alias}-build-{number.hex}"


def _nearest(
    vector: list[float] | models.SparseVector | None, name: str, limit: int, where: Where | None
) -> models.QueryRequest | None:
    """A search by one vector; without conditions, only the BM25 vectors of what is found are of interest."""
    if vector is None or (where is not None and where.ids is not None and not where.ids):
        return None
    return models.QueryRequest(
        query=vector,
        using=name,
        filter=None if where is None else _filter(where),
        limit=limit,
        with_payload=[*PLACE] if where is not None and where.ids is None else False,
        with_vector=[BM25] if where is None else False,
    )


def _filter(where: Where) -> models.Filter:
    must: list[models.Condition] = [
        models.FieldCondition(key=key, match=models.MatchValue(value=value))
        for key, value in ((TYPE, where.type), (DOCUMENT, where.document_id), (VERSION, where.version))
        if value is not None
    ]
    if where.audience is not None:
        must.append(models.FieldCondition(key=AUDIENCE, match=models.MatchAny(any=scopes(where.audience))))
    if where.staged_before is not None:
        must.append(models.FieldCondition(key=STAGED_AT, range=models.Range(lt=where.staged_before)))
    if where.ids is not None:
        must.append(models.HasIdCondition(has_id=[*sorted(where.ids)]))
    hidden: list[models.Condition] = [
        models.FieldCondition(key=VERSION, match=models.MatchAny(any=sorted(where.not_versions)))
    ]
    return models.Filter(must=must, must_not=hidden if where.not_versions else None)


def _point(point: StoredPoint) -> models.PointStruct:
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = point.dense.tolist()
    if point.sparse is not None and point.sparse.indices:
        vectors[BM25] = _sparse(point.sparse)
    return models.PointStruct(id=point.id, vector=vectors, payload=point.payload)


def _sparse(vector: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def _found(point: models.ScoredPoint) -> FoundPoint:
    return FoundPoint(id=str(point.id), payload=point.payload or {}, score=point.score)


def _weights(vector: object) -> dict[int, float]:
    named = vector.get(BM25) if isinstance(vector, dict) else None
    return dict(zip(named.indices, named.values, strict=True)) if isinstance(named, models.SparseVector) else {}


def _idf(term: int, points: Sequence[models.ScoredPoint]) -> float | None:
    """Score / weight of any point with the term."""
    return points[0].score / _weights(points[0].vector)[term] if points else None
