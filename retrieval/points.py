"""How the library lies in a vector store: points, payloads, names. Pure, shared by every store.

Three sorts of points share one collection:

- a *chunk* (id: the chunk's id) with the vectors `dense` (unit length, cosine; absent for chunks that only BM25 should
  find) and `bm25` (sparse, the store multiplies by the inverse document frequency);
- a *record* (id: the document's id), no vectors: which version of the document is current, and what is known of it;
- one *meta* point (a fixed id), no vectors: what the library was built with.

A chunk counts only while its document's record names its version. So one write to one point switches a whole document.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from retrieval.errors import StoreError, StoreMismatchError
from retrieval.types import (
    Audience,
    Chunk,
    ChunkId,
    ChunkKind,
    DocumentId,
    DocumentRecord,
    Scope,
    SparseVector,
    VersionId,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.ports import IndexedChunk

DENSE = "dense"
BM25 = "bm25"
TYPE = "type"
DOCUMENT = "document_id"
VERSION = "version"
AUDIENCE = "audience"
ORDINAL = "ordinal"
STAGED_AT = "staged_at"
"""When a chunk was written, in seconds since 1970: tells what a dead process left from what is being written."""
KEYWORD_FIELDS = (TYPE, DOCUMENT, VERSION, AUDIENCE)
"""The fields with a payload index; conditions on others only narrow down one document's chunks."""
PLACE = (DOCUMENT, VERSION, ORDINAL)
"""What a search reads of the payloads; most of what it finds is never shown."""
CHUNK_TYPE = "chunk"
RECORD_TYPE = "record"
META_TYPE = "meta"

SCHEMA_VERSION = "1"
"""Changes when points, payloads or vector names change, so that an older library is refused instead of misread."""

META_ID = str(uuid.uuid5(uuid.NAMESPACE_URL, "footnote:library"))

_UNREADABLE = (KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryIdentity:
    """What a library was built with. Two libraries with equal identities understand each other's points."""

    model: str
    """The embedding model's name and revision."""
    dimensions: int
    chunker: str
    """The chunker's version."""
    bm25: str
    """The BM25 encoder's version."""
    schema: str = SCHEMA_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPoint:
    """A point on its way into a store."""

    id: str
    payload: dict[str, Any]
    dense: NDArray[np.float32] | None = None
    sparse: SparseVector | None = None


class FoundPoint(NamedTuple):
    """A chunk point that a search returned; `payload` has the fields of `PLACE`."""

    payload: dict[str, Any]
    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search brings: both lists, best first, and for each term asked for its IDF or None.

    `cosines` has the cosine, by id, of the points that only BM25 returned and that have a dense vector; `scores` the
    BM25 score of those that only the dense search returned and that have a term of the query.
    """

    dense: list[FoundPoint]
    bm25: list[FoundPoint]
    cosines: dict[str, float]
    scores: dict[str, float]
    idf: dict[int, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which points; all conditions that are given must hold. A store translates it into its own filter."""

    type: str | None = None
    document_id: str | None = None
    version: str | None = None
    not_versions: Collection[str] = ()
    audience: Audience | None = None
    staged_before: int | None = None
    ids: Collection[str] | None = None


class Backend(Protocol):
    """The few operations that a store of versioned documents is made of. All raise StoreError only."""

    async def upsert(self, points: Sequence[StoredPoint]) -> None:
        """Write points; they survive a crash once this returns."""
        ...

    async def delete(self, where: Where) -> None:
        """Delete the points that match."""
        ...

    async def delete_point(self, point_id: str) -> None:
        """Delete one point; nothing happens when there is none."""
        ...

    async def set_payload(self, where: Where, payload: dict[str, Any]) -> None:
        """Overwrite these payload fields of the points that match."""
        ...

    async def search(
        self, *, dense: NDArray[np.float32], sparse: SparseVector, terms: Sequence[int], where: Where, limit: int
    ) -> Found:
        """Both searches, and the IDF of `terms` over all points (None: no point has the term)."""
        ...

    async def retrieve(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The payloads of those points that exist, by id; not to be changed."""
        ...

    async def terms(self, ids: Sequence[str]) -> dict[str, frozenset[int]]:
        """The terms of those points that exist, by id; none for one without a BM25 vector."""
        ...

    async def scroll(self, where: Where) -> list[tuple[str, dict[str, Any]]]:
        """Id and payload of all points that match."""
        ...

    async def count(self, where: Where, *, exact: bool = True) -> int:
        """How many points match; not exact: as the index estimates it, much faster."""
        ...

    async def optimize(self) -> None:
        """Build indexes."""
        ...

    async def close(self) -> None:
        """Let go of files and connections; may be called twice."""
        ...


def chunk_point(indexed: IndexedChunk, staged_at: int) -> StoredPoint:
    """A chunk and its vectors as a point, written at that time (seconds since 1970)."""
    chunk = indexed.chunk
    payload = {
        TYPE: CHUNK_TYPE,
        DOCUMENT: chunk.document_id,
        VERSION: chunk.version,
        ORDINAL: chunk.ordinal,
        "kind": chunk.kind.value,
        "text": chunk.text,
        "title": chunk.title,
        "uri": chunk.uri,
        "heading_path": list(chunk.heading_path),
        "page": chunk.page,
        "last_page": chunk.last_page,
        "start": chunk.start,
        "end": chunk.end,
        "tokens": chunk.tokens,
        "page_starts": [list(start) for start in chunk.page_starts],
        AUDIENCE: scopes(chunk.audience),
        STAGED_AT: staged_at,
    }
    return StoredPoint(id=chunk.id, payload=payload, dense=indexed.dense, sparse=indexed.sparse)


def chunk_of(point_id: str, payload: dict[str, Any]) -> Chunk:
    """The chunk in a payload. Raises StoreError when the payload is not one."""
    try:
        return Chunk(
            id=ChunkId(point_id),
            document_id=DocumentId(payload[DOCUMENT]),
            version=VersionId(payload[VERSION]),
            ordinal=payload[ORDINAL],
            kind=ChunkKind(payload["kind"]),
            text=payload["text"],
            title=payload["title"],
            uri=payload["uri"],
            heading_path=tuple(payload["heading_path"]),
            page=payload["page"],
            last_page=payload["last_page"],
            start=payload["start"],
            end=payload["end"],
            tokens=payload["tokens"],
            audience=audience_of(payload),
            page_starts=tuple((int(offset), int(page)) for offset, page in payload["page_starts"]),
        )
    except _UNREADABLE as error:
        raise StoreError(_DAMAGED) from error


def record_point(record: DocumentRecord) -> StoredPoint:
    """A record as a point. It carries its document's id, so that one filter reaches a document with its chunks."""
    payload = {
        TYPE: RECORD_TYPE,
        DOCUMENT: record.id,
        VERSION: record.version,
        "uri": record.uri,
        "title": record.title,
        "media_type": record.media_type,
        "digest": record.digest,
        "page_count": record.page_count,
        "chunk_count": record.chunk_count,
        "language": record.language,
        AUDIENCE: scopes(record.audience),
        "ingested_at": record.ingested_at.isoformat(),
        "ingested_by": record.ingested_by,
        "notes": list(record.notes),
    }
    return StoredPoint(id=record.id, payload=payload)


def record_of(payload: dict[str, Any]) -> DocumentRecord:
    """The record in a payload. Raises StoreError when the payload is not one."""
    try:
        return DocumentRecord(
            id=DocumentId(payload[DOCUMENT]),
            version=VersionId(payload[VERSION]),
            uri=payload["uri"],
            title=payload["title"],
            media_type=payload["media_type"],
            digest=payload["digest"],
            page_count=payload["page_count"],
            chunk_count=payload["chunk_count"],
            language=payload["language"],
            audience=audience_of(payload),
            ingested_at=datetime.fromisoformat(payload["ingested_at"]),
            ingested_by=payload["ingested_by"],
            notes=tuple(payload["notes"]),
        )
    except _UNREADABLE as error:
        raise StoreError(_DAMAGED) from error


def meta_point(identity: LibraryIdentity) -> StoredPoint:
    """The identity as a point."""
    return StoredPoint(id=META_ID, payload={TYPE: META_TYPE, **asdict(identity)})


def identity_of(payload: dict[str, Any]) -> LibraryIdentity:
    """The identity in a payload. A field that an older library lacks reads as empty, so it differs."""
    values = {field.name: payload.get(field.name, "") for field in fields(LibraryIdentity)}
    return LibraryIdentity(**values)


def check_identity(stored: LibraryIdentity, wanted: LibraryIdentity) -> None:
    """Raise StoreMismatchError, with both names and the way out, unless the two are equal."""
    differences = [
        f"{_NAMES[field.name]} “{getattr(stored, field.name)}”, now “{getattr(wanted, field.name)}”"
        for field in fields(LibraryIdentity)
        if getattr(stored, field.name) != getattr(wanted, field.name)
    ]
    if differences:
        message = (
            f"The library was built with {'; '.join(differences)}. "
            "Run `footnote reindex` to rebuild it, or go back to the setting it was built with."
        )
        raise StoreMismatchError(message)


def scopes(audience: Audience) -> list[str]:
    """An audience as it lies in a payload."""
    return sorted(audience.scopes)


def audience_of(payload: dict[str, Any]) -> Audience:
    """The audience in a payload."""
    return Audience(scopes=frozenset(Scope(scope) for scope in payload[AUDIENCE]))


_DAMAGED = "The library holds an entry that cannot be read. Run `footnote reindex` to rebuild it."
_NAMES = {
    "model": "the embedding model",
    "dimensions": "vectors of length",
    "chunker": "the chunker",
    "bm25": "the keyword index",
    "schema": "the storage format",
}
