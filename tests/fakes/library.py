"""Records and indexed chunks with small random vectors."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from retrieval.bm25 import Bm25Encoder
from retrieval.points import LibraryIdentity
from retrieval.ports import IndexedChunk
from retrieval.types import PUBLIC, Audience, Chunk, ChunkId, ChunkKind, DocumentId, DocumentRecord, VersionId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DIMENSIONS = 8
IDENTITY = LibraryIdentity(model="small", dimensions=DIMENSIONS, chunker="chunker-1", bm25=Bm25Encoder.VERSION)
ENCODER = Bm25Encoder()
START = datetime(2024, 5, 1, 12, tzinfo=UTC)


def unit(seed: int, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    vector = np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return vector / np.linalg.norm(vector)


def document_id(title: str) -> DocumentId:
    return DocumentId(str(uuid.uuid5(uuid.NAMESPACE_URL, f"file:///{title}")))


def document(
    title: str, texts: Sequence[str], *, audience: Audience = PUBLIC, age: int = 0, dense: bool = True
) -> tuple[DocumentRecord, list[IndexedChunk]]:
    """A new version of the document called `title`, one chunk for each text; `age` in days."""
    version = VersionId(str(uuid.uuid4()))
    record = DocumentRecord(
        id=document_id(title),
        version=version,
        uri=f"file:///{title}",
        title=title,
        media_type="text/plain",
        digest="0" * 64,
        page_count=None,
        chunk_count=len(texts),
        language="en",
        audience=audience,
        ingested_at=START - timedelta(days=age),
        ingested_by="tester",
        notes=("a note",),
    )
    chunks = [
        IndexedChunk(
            chunk=Chunk(
                id=ChunkId(str(uuid.uuid5(uuid.UUID(version), str(ordinal)))),
                document_id=record.id,
                version=version,
                ordinal=ordinal,
                kind=ChunkKind.PROSE if dense else ChunkKind.REFERENCES,
                text=text,
                title=title,
                uri=record.uri,
                heading_path=("Part", "節"),
                page=ordinal + 1,
                last_page=None,
                start=0,
                end=len(text),
                tokens=len(text.split()),
                audience=audience,
            ),
            dense=unit(hash_of(text)) if dense else None,
            sparse=ENCODER.encode_document(text),
        )
        for ordinal, text in enumerate(texts)
    ]
    return record, chunks


def hash_of(text: str) -> int:
    return uuid.uuid5(uuid.NAMESPACE_URL, text).int % 2**32
