"""The indexing path: read, compare by digest, chunk, embed, replace in one step. Every document ends in a Verdict."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from retrieval.chunking import ChunkLimits, chunk
from retrieval.errors import EmptyDocumentError, ReadError, RetrievalError, UnsupportedFormatError
from retrieval.ports import IndexedChunk
from retrieval.types import PUBLIC, ChunkKind, DocumentRecord, VersionId, document_id
from retrieval.verdicts import Outcome, Progress, Step, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from retrieval.bm25 import Bm25Encoder
    from retrieval.ports import Embedder, Reader, Store
    from retrieval.types import Audience, Chunk, ChunkId, Document, SourceFile

_WINDOW: Final = 128
"""Chunks that are embedded between two progress reports: enough to sort by length, few enough to see it move."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Prepared:
    """A document that has been read and cut up and waits for its vectors."""

    source: SourceFile
    document: Document
    audience: Audience
    chunks: tuple[Chunk, ...]
    version: VersionId
    replaces: bool
    started: float

    @property
    def prose(self) -> list[Chunk]:
        """The chunks that get a dense vector. Bibliographies get none: a list of names is near to every question."""
        return [item for item in self.chunks if item.kind is not ChunkKind.REFERENCES]


_Report = Callable[["SourceFile", Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Permit:
    """Who may see what is ingested (None: whoever could before), and who ingests (None: the operator)."""

    audience: Audience | None
    asker: Audience | None

    def audience_for(self, known: DocumentRecord | None) -> Audience:
        """Who may see the document that `known` is the library's record of."""
        return self.audience or (known.audience if known is not None else PUBLIC)

    def refuses(self, known: DocumentRecord | None) -> bool:
        """Whether the document belongs to others, so that this person may neither change it nor learn its title."""
        return known is not None and self.asker is not None and not known.audience.scopes & self.asker.scopes


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
        audience: Audience | None,
        by: str,
        asker: Audience | None = None,
        report: Callable[[Progress], None] = lambda _: None,
        force: bool = False,
    ) -> Verdict:
        """Index one document, replacing its former version. Never raises a RetrievalError: it becomes the verdict.

        Without an audience, a document that the library knows keeps its own and a new one is for everyone: who may see
        a document is only ever changed by naming them. With an `asker`, a known document that they may not see is
        refused.

        Same bytes and same audience: nothing is done, unless `force`. Same bytes for another audience: only who may see
        it changes. Cancelling leaves the former version in place.
        """
        permit = _Permit(audience=audience, asker=asker)
        prepared = await self._prepare(source, permit, lambda _, progress: report(progress), force=force)
        if isinstance(prepared, Verdict):
            return prepared
        return (await self._finish([prepared], permit, by, lambda _, progress: report(progress)))[0]

    async def ingest_many(
        self,
        sources: AsyncIterable[SourceFile],
        *,
        audience: Audience | None,
        by: str,
        asker: Audience | None = None,
        report: Callable[[SourceFile, Progress], None] = lambda _, __: None,
        force: bool = False,
    ) -> AsyncGenerator[Verdict, None]:
        """Index documents as they come; one verdict for each, in their order. For each the rules of `ingest` hold.

        The chunks of small documents are embedded together, those of like length in one run of the model. The documents
        whose chunks fill a batch are held at once. A verdict's seconds include the wait for the others of its batch.
        Leaving the iteration early leaves out what has not had its verdict.
        """
        permit = _Permit(audience=audience, asker=asker)
        async for batch in self._batches(sources, permit, report, force=force):
            for verdict in await self._finish(batch, permit, by, report):
                yield verdict

    async def _batches(
        self, sources: AsyncIterable[SourceFile], permit: _Permit, report: _Report, *, force: bool
    ) -> AsyncIterator[list[_Prepared | Verdict]]:
        """Documents whose chunks together fill a window, and the verdicts of those that have ended already."""
        batch: list[_Prepared | Verdict] = []
        async for source in sources:
            # The same document twice: the second has to find the first in the library.
            if any(isinstance(item, _Prepared) and item.source.uri == source.uri for item in batch):
                yield batch
                batch = []
            batch.append(await self._prepare(source, permit, report, force=force))
            size = sum(len(item.chunks) for item in batch if isinstance(item, _Prepared))
            if not 0 < size < _WINDOW:
                yield batch
                batch = []
        if batch:
            yield batch

    async def _prepare(
        self, source: SourceFile, permit: _Permit, report: _Report, *, force: bool
    ) -> _Prepared | Verdict:
        """Read and cut up; a verdict when the document ends here."""
        started = time.monotonic()
        try:
            prepared = await self._read(source, permit, report, started, force=force)
        except RetrievalError as error:
            return _failure(source, error, started)
        return replace(prepared, seconds=time.monotonic() - started) if isinstance(prepared, Verdict) else prepared

    async def _read(
        self, source: SourceFile, permit: _Permit, report: _Report, started: float, *, force: bool
    ) -> _Prepared | Verdict:
        digest = await asyncio.to_thread(lambda: hashlib.sha256(source.data).hexdigest())
        known = await self._store.record(document_id(source.uri))
        if permit.refuses(known):
            return _for_others(source)
        audience = permit.audience_for(known)
        if known is not None and known.digest == digest and not force:
            return await self._keep(known, audience)
        report(source, Progress(step=Step.READING))
        document = await self._reader.read(source)
        report(source, Progress(step=Step.CHUNKING, pages=document.page_count))
        version = VersionId(str(uuid.uuid4()))
        chunks = await asyncio.to_thread(self._chunk, document, version, audience)
        if not chunks:
            message = f"{source.name} holds no text. If it is a scan, it needs a text layer (OCR) first."
            raise EmptyDocumentError(message)
        return _Prepared(
            source=source,
            document=document,
            audience=audience,
            chunks=chunks,
            version=version,
            replaces=known is not None,
            started=started,
        )

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

    async def _finish(
        self, waiting: Sequence[_Prepared | Verdict], permit: _Permit, by: str, report: _Report
    ) -> list[Verdict]:
        """Embed what waits, together, and store each document; the verdicts in order."""
        batch = [item for item in waiting if isinstance(item, _Prepared)]
        try:
            dense = await self._embed(batch, report)
        except RetrievalError as error:
            return [
                item if isinstance(item, Verdict) else _failure(item.source, error, item.started) for item in waiting
            ]
        return [
            item if isinstance(item, Verdict) else await self._store_one(item, dense, permit, by, report)
            for item in waiting
        ]

    async def _embed(self, batch: Sequence[_Prepared], report: _Report) -> dict[ChunkId, NDArray[np.float32]]:
        """Dense vectors by chunk."""
        dense: dict[ChunkId, NDArray[np.float32]] = {}
        prose = [(item, piece) for item in batch for piece in item.prose]
        for start in range(0, len(prose), _WINDOW):
            some = prose[start : start + _WINDOW]
            for item in dict.fromkeys(item for item, _ in some):
                total = len(item.prose)
                done = sum(piece.id in dense for piece in item.prose)
                report(item.source, _progress(Step.EMBEDDING, item, done, total))
            vectors = await self._embedder.embed_passages([piece.embedded_text for _, piece in some])
            dense.update(zip((piece.id for _, piece in some), vectors, strict=True))
        return dense

    async def _store_one(
        self,
        item: _Prepared,
        dense: Mapping[ChunkId, NDArray[np.float32]],
        permit: _Permit,
        by: str,
        report: _Report,
    ) -> Verdict:
        report(item.source, _progress(Step.STORING, item, len(item.chunks), len(item.chunks)))
        texts = [piece.embedded_text for piece in item.chunks]
        sparse = await asyncio.to_thread(self._bm25.encode_documents, texts)
        try:
            # Asked again: who may see it can have changed while the document was read and embedded.
            known = await self._store.record(item.document.id)
            if permit.refuses(known):
                return _for_others(item.source)
            audience = permit.audience_for(known) if known is not None else item.audience
            indexed = [
                IndexedChunk(chunk=replace(piece, audience=audience), dense=dense.get(piece.id), sparse=vector)
                for piece, vector in zip(item.chunks, sparse, strict=True)
            ]
            await self._store.replace(_record(item.document, item.chunks, item.version, audience, by), indexed)
        except RetrievalError as error:
            return _failure(item.source, error, item.started)
        verdict = _verdict(item.document, item.chunks, replaced=item.replaces)
        return replace(verdict, seconds=time.monotonic() - item.started)


def _progress(step: Step, item: _Prepared, done: int, total: int) -> Progress:
    return Progress(step=step, done=done, total=total, pages=item.document.page_count)


def _for_others(source: SourceFile) -> Verdict:
    reason = "A document from this file is in the library for others; ask its owner or the operator."
    return Verdict(outcome=Outcome.REFUSED, uri=source.uri, title=source.name, reason=reason)


def _failure(source: SourceFile, error: RetrievalError, started: float) -> Verdict:
    outcome = Outcome.REFUSED if isinstance(error, ReadError) else Outcome.FAILED
    return Verdict(
        outcome=outcome,
        uri=source.uri,
        title=source.name,
        reason=str(error),
        seconds=time.monotonic() - started,
        unsupported=isinstance(error, UnsupportedFormatError),
    )


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
