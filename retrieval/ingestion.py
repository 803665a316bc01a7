"""The indexing path: read, compare by digest, chunk, embed, replace in one step. Every document ends in a Verdict."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from retrieval.chunking import ChunkLimits, chunk
from retrieval.errors import EmptyDocumentError, ReadError, RetrievalError
from retrieval.ports import IndexedChunk
from retrieval.readers.assembly import document_id
from retrieval.types import ChunkKind, DocumentRecord, VersionId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.bm25 import Bm25Encoder
    from retrieval.ports import Embedder, Reader, Store
    from retrieval.types import Audience, Chunk, Document, DocumentId, SourceFile

_WINDOW: Final = 128
"""Chunks that are embedded between two progress reports: enough to sort by length, few enough to see it move."""


class Outcome(StrEnum):
    """What became of a document."""

    INDEXED = "indexed"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    PARTLY = "partly"
    """Indexed, with pages left out; the reason names them."""
    REFUSED = "refused"
    """It cannot be read as it is; the reason says what to do."""
    FAILED = "failed"
    """Something broke on our side; the reason says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The end of one document's ingestion."""

    outcome: Outcome
    uri: str
    title: str
    reason: str = ""
    """A sentence: why, and what to do; empty when there is nothing to say."""
    document_id: DocumentId | None = None
    pages: int | None = None
    chunks: int = 0
    language: str | None = None
    seconds: float = 0.0

    @property
    def in_library(self) -> bool:
        """Whether the document can be found now."""
        return self.outcome not in {Outcome.REFUSED, Outcome.FAILED}


class Step(StrEnum):
    """What an ingestion is doing."""

    READING = "reading"
    CHUNKING = "chunking"
    EMBEDDING = "embedding"
    STORING = "storing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a document is: `done` of `total` chunks while embedding, else 0 of 0."""

    step: Step
    done: int = 0
    total: int = 0
    pages: int | None = None


class Ingestion:
    """Indexes documents into one library."""

    def __init__(self, reader: Reader, embedder: Embedder, store: Store, bm25: Bm25Encoder) -> None:
        """Use these; chunk sizes follow the embedder's window."""
        self._reader = reader
        self._embedder = embedder
        self._store = store
        self._bm25 = bm25
        self._limits = ChunkLimits.within(embedder.max_tokens)

    async def ingest(
        self,
        source: SourceFile,
        *,
        audience: Audience,
        by: str,
        report: Callable[[Progress], None] = lambda _: None,
        force: bool = False,
    ) -> Verdict:
        """Index one document, replacing its former version. Never raises a RetrievalError: it becomes the verdict.

        Same bytes and same audience: nothing is done, unless `force`. Same bytes for another audience: only who may see
        it changes. Cancelling leaves the former version in place.
        """
        started = time.monotonic()
        try:
            verdict = await self._ingest(source, audience, by, report, force=force)
        except ReadError as error:
            verdict = Verdict(outcome=Outcome.REFUSED, uri=source.uri, title=source.name, reason=str(error))
        except RetrievalError as error:
            verdict = Verdict(outcome=Outcome.FAILED, uri=source.uri, title=source.name, reason=str(error))
        return replace(verdict, seconds=time.monotonic() - started)

    async def _ingest(
        self, source: SourceFile, audience: Audience, by: str, report: Callable[[Progress], None], *, force: bool
    ) -> Verdict:
        digest = await asyncio.to_thread(lambda: hashlib.sha256(source.data).hexdigest())
        known = await self._store.record(document_id(source.uri))
        if known is not None and known.digest == digest and not force:
            return await self._keep(known, audience)
        report(Progress(step=Step.READING))
        document = await self._reader.read(source)
        report(Progress(step=Step.CHUNKING, pages=document.page_count))
        version = VersionId(str(uuid.uuid4()))
        chunks = await asyncio.to_thread(self._chunk, document, version, audience)
        if not chunks:
            message = f"{source.name} holds no text. If it is a scan, it needs a text layer (OCR) first."
            raise EmptyDocumentError(message)
        indexed = await self._index(chunks, document, report)
        report(Progress(step=Step.STORING, done=len(chunks), total=len(chunks), pages=document.page_count))
        await self._store.replace(_record(document, chunks, version, audience, by), indexed)
        return _verdict(document, chunks, replaced=known is not None)

    async def _keep(self, known: DocumentRecord, audience: Audience) -> Verdict:
        reason = ""
        if known.audience != audience:
            await self._store.set_audience(known.id, audience)
            reason = f"Who may see it changed to: {', '.join(sorted(audience.scopes))}."
        return Verdict(
            outcome=Outcome.UNCHANGED,
            uri=known.uri,
            title=known.title,
            reason=reason,
            document_id=known.id,
            pages=known.page_count,
            chunks=known.chunk_count,
            language=known.language,
        )

    def _chunk(self, document: Document, version: VersionId, audience: Audience) -> tuple[Chunk, ...]:
        return chunk(
            document,
            version=version,
            audience=audience,
            count_tokens=self._embedder.count_tokens,
            limits=self._limits,
        )

    async def _index(
        self, chunks: Sequence[Chunk], document: Document, report: Callable[[Progress], None]
    ) -> list[IndexedChunk]:
        """Vectors for every chunk. Bibliographies get no dense one: a list of names is near to every question."""
        sparse = await asyncio.to_thread(self._bm25.encode_documents, [item.embedded_text for item in chunks])
        dense: dict[str, NDArray[np.float32]] = {}
        prose = [item for item in chunks if item.kind is not ChunkKind.REFERENCES]
        for start in range(0, len(prose), _WINDOW):
            report(Progress(step=Step.EMBEDDING, done=start, total=len(prose), pages=document.page_count))
            some = prose[start : start + _WINDOW]
            vectors = await self._embedder.embed_passages([item.embedded_text for item in some])
            dense.update(zip((item.id for item in some), vectors, strict=True))
        return [
            IndexedChunk(chunk=item, dense=dense.get(item.id), sparse=vector)
            for item, vector in zip(chunks, sparse, strict=True)
        ]


def _record(
    document: Document, chunks: Sequence[Chunk], version: VersionId, audience: Audience, by: str
) -> DocumentRecord:
    return DocumentRecord(
        id=document.id,
        version=version,
        uri=document.uri,
        title=document.title,
        media_type=document.media_type,
        digest=document.digest,
        page_count=document.page_count,
        chunk_count=len(chunks),
        language=document.language,
        audience=audience,
        ingested_at=datetime.now(UTC),
        ingested_by=by,
        notes=document.notes,
    )


def _verdict(document: Document, chunks: Sequence[Chunk], *, replaced: bool) -> Verdict:
    outcome = Outcome.REPLACED if replaced else Outcome.INDEXED
    return Verdict(
        outcome=Outcome.PARTLY if document.notes else outcome,
        uri=document.uri,
        title=document.title,
        reason=" ".join(document.notes),
        document_id=document.id,
        pages=document.page_count,
        chunks=len(chunks),
        language=document.language,
    )
