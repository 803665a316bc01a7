"""What retrieval needs from models, stores and parsers, as Protocols. Contract suites: `tests/contracts/`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.types import (
        Audience,
        Chunk,
        ChunkId,
        Document,
        DocumentId,
        DocumentRecord,
        SourceFile,
        SparseVector,
        VersionId,
    )


class Embedder(Protocol):
    """Turns text into unit vectors. One instance serves the whole process; calls do not block the event loop."""

    @property
    def model(self) -> str:
        """Name and revision, e.g. `multilingual-e5-small`; stored with the library."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """How many tokens the model reads of one text, its prefix and special tokens excluded."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text in the model's own vocabulary, special tokens and prefix excluded."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions), rows of length 1. Raises EmbeddingError."""
        ...

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Shape (dimensions,), length 1. Raises EmbeddingError."""
        ...


class Reader(Protocol):
    """Bytes → Document."""

    async def read(self, source: SourceFile) -> Document:
        """Read within the limits. Raises a ReadError that says what to do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A chunk with its vectors. `dense` is None for chunks that only BM25 should find (bibliographies)."""

    chunk: Chunk
    dense: NDArray[np.float32] | None
    sparse: SparseVector


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk that at least one of the two searches returned, with the scores of both. `Store.load` brings the chunk.

    `cosine` is None for a chunk without a dense vector; `bm25` is 0 where no term of the query occurs. A rank counts
    from 1 and is None where that search did not return the chunk.
    """

    id: ChunkId
    document_id: DocumentId
    version: VersionId
    ordinal: int
    cosine: float | None
    bm25: float
    dense_rank: int | None
    bm25_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What both searches returned, in no particular order, and what BM25 knows of the query's terms.

    `idf` gives every term index of the query its inverse document frequency in the store
    (`ln(1 + (N - n + 0.5) / (n + 0.5))`, N chunks, n of them with the term; n = 0 for a term that occurs nowhere).
    """

    found: tuple[Candidate, ...]
    idf: dict[int, float]


class Store(Protocol):
    """Holds chunks, their vectors and the documents' records.

    A document has one current version. `replace` makes a new version visible and the old one invisible in one step;
    a crash at any moment leaves either the old version or the new one visible, never a part or both.
    """

    async def replace(self, record: DocumentRecord, chunks: Sequence[IndexedChunk]) -> None:
        """Make `chunks` the document's content. All chunks carry `record.version`."""
        ...

    async def delete(self, document_id: DocumentId) -> bool:
        """Forget a document at once, also for searches under way. False when there was none."""
        ...

    async def set_audience(self, document_id: DocumentId, audience: Audience) -> bool:
        """Change who may see a document. False when there is none."""
        ...

    async def search(
        self, *, dense: NDArray[np.float32], sparse: SparseVector, audience: Audience, limit: int
    ) -> Candidates:
        """Both searches under the audience filter, `limit` chunks from each, current versions only."""
        ...

    async def load(self, ids: Collection[ChunkId], audience: Audience) -> dict[ChunkId, Chunk]:
        """Those of these chunks that belong to a current version and that the audience may see, by id."""
        ...

    async def terms(self, ids: Collection[ChunkId]) -> dict[ChunkId, frozenset[int]]:
        """The BM25 indices that occur in those of these chunks that exist, by id, whoever may see them."""
        ...

    async def chunks(self, version: VersionId, ordinals: Sequence[int], audience: Audience) -> list[Chunk]:
        """The same for a version's chunks with these ordinals, in that order."""
        ...

    async def record(self, document_id: DocumentId) -> DocumentRecord | None:
        """A document's record, whoever may see it."""
        ...

    async def records(self, audience: Audience | None) -> list[DocumentRecord]:
        """All records that the audience may see (None: all), newest first."""
        ...

    async def count(self, audience: Audience | None) -> int:
        """How many documents the audience may see (None: all)."""
        ...

    async def optimize(self) -> None:
        """Build indexes after many changes; may take seconds, never blocks the event loop."""
        ...

    async def close(self) -> None:
        """Write all that is pending and let go of files and connections."""
        ...
