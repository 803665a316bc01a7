"""Rebuilds a library with the present model, chunker and schema, beside the old one, which stays until all is done.

Every document is read again from where it came. One that can no longer be read (its file is gone, or today's reader
refuses it) is carried over: the chunks that the old library holds are embedded anew as they are, so that nothing is
lost. Old and new are never open at the same time, because the embedded store belongs to one at a time; the old chunks
wait in files meanwhile, so that memory does not grow with the library.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pydantic import TypeAdapter

from bot.errors import BotError
from retrieval.errors import StoreError
from retrieval.ports import IndexedChunk, Store
from retrieval.types import Chunk, ChunkKind
from retrieval.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from retrieval.bm25 import Bm25Encoder
    from retrieval.ingestion import Ingestion
    from retrieval.ports import Embedder
    from retrieval.types import DocumentRecord, SourceFile
    from retrieval.verdicts import Progress

_PAGE: Final = 256
"""Chunks that are asked for at once."""
_CHUNKS: Final = TypeAdapter(tuple[Chunk, ...])


class RebuiltStore(Store, Protocol):
    """A store beside the present one."""

    async def publish(self) -> None:
        """Put it in the present one's place, in one step."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexed:
    """What became of one document: read again, or carried over with the reason."""

    record: DocumentRecord
    carried: bool
    reason: str = ""
    chunks: int = 0


class Watcher(Protocol):
    """Is told of the work."""

    def progress(self, name: str, progress: Progress) -> None:
        """A document has come further."""
        ...

    def reindexed(self, done: Reindexed, number: int, total: int) -> None:
        """A document is in the new library; `number` of `total`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """The new library and what fills it."""

    store: RebuiltStore
    ingestion: Ingestion
    embedder: Embedder
    bm25: Bm25Encoder


async def reindex(
    old: AbstractAsyncContextManager[Store],
    new: Callable[[], AbstractAsyncContextManager[Workshop]],
    load: Callable[[str], Awaitable[SourceFile | None]],
    watcher: Watcher,
    scratch: Path,
) -> list[Reindexed]:
    """Rebuild. An error or a cancellation at any moment leaves the old library as it was.

    Args:
        old: Opens the present library, whatever it was built with.
        new: Opens an empty one beside it; called when the old one is closed.
        load: The bytes behind a URI, or None when they cannot be had.
        watcher: Is told of the work.
        scratch: A folder on the library's disk, for the old chunks.

    Returns:
        What became of each document, in the order of the old library's ingestions.

    Raises:
        StoreAbsentError: There is no library.
        RetrievalError, BotError: Something failed; the sentence says what.
    """
    async with _archive(scratch) as archive:
        async with old as store:
            records = await store.records(None)
            for record in records:
                await archive.keep(record, store)
        done: list[Reindexed] = []
        async with new() as workshop:
            # Oldest first, so that the list by age stays in its order.
            for record in reversed(records):
                outcome = await _again(record, workshop, load, watcher) or await _carry(record, workshop, archive)
                done.append(outcome)
                watcher.reindexed(outcome, len(done), len(records))
            await workshop.store.optimize()
            await workshop.store.publish()
        return done


async def start_over(new: Callable[[], AbstractAsyncContextManager[Workshop]]) -> None:
    """Put an empty library in the place of one that cannot be read."""
    async with new() as workshop:
        await workshop.store.publish()


async def _again(
    record: DocumentRecord, workshop: Workshop, load: Callable[[str], Awaitable[SourceFile | None]], watcher: Watcher
) -> Reindexed | None:
    """Read a document from where it came; None when that cannot be done any more."""
    source = await load(record.uri)
    if source is None:
        return None
    verdict = await workshop.ingestion.ingest(
        source,
        audience=record.audience,
        by=record.ingested_by,
        report=lambda progress: watcher.progress(record.title, progress),
    )
    if verdict.outcome is Outcome.REFUSED:
        return None
    if verdict.outcome is Outcome.FAILED:
        message = f"{verdict.reason} The library is as it was before."
        raise StoreError(message)
    return Reindexed(record=record, carried=False, reason=verdict.reason, chunks=verdict.chunks)


async def _carry(record: DocumentRecord, workshop: Workshop, archive: _Archive) -> Reindexed:
    """Take a document over with the chunks that the old library held."""
    chunks = await archive.chunks(record)
    texts = [chunk.embedded_text for chunk in chunks]
    counts = await asyncio.to_thread(workshop.embedder.count_tokens, texts)
    chunks = tuple(replace(chunk, tokens=count) for chunk, count in zip(chunks, counts, strict=True))
    sparse = await asyncio.to_thread(workshop.bm25.encode_documents, texts)
    prose = [index for index, chunk in enumerate(chunks) if chunk.kind is not ChunkKind.REFERENCES]
    vectors = await workshop.embedder.embed_passages([texts[index] for index in prose])
    dense = dict(zip(prose, vectors, strict=True))
    indexed = [
        IndexedChunk(chunk=chunk, dense=dense.get(index), sparse=sparse[index]) for index, chunk in enumerate(chunks)
    ]
    await workshop.store.replace(replace(record, chunk_count=len(chunks)), indexed)
    reason = "Its source can no longer be read; its text was carried over from the old library."
    return Reindexed(record=record, carried=True, reason=reason, chunks=len(chunks))


class _Archive:
    """The old library's chunks in files, one for each document."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def keep(self, record: DocumentRecord, store: Store) -> None:
        """Copy a document's chunks out of the store. Raises BotError when the disk is full."""
        chunks: list[Chunk] = []
        for start in range(0, record.chunk_count, _PAGE):
            ordinals = range(start, min(start + _PAGE, record.chunk_count))
            chunks += await store.chunks(record.version, ordinals, record.audience)
        data = _CHUNKS.dump_json(tuple(chunks))
        try:
            await asyncio.to_thread(self._file(record).write_bytes, data)
        except OSError as error:
            message = (
                "The old library's text could not be set aside; the disk may be full. Free some space and try again."
            )
            raise BotError(message) from error

    async def chunks(self, record: DocumentRecord) -> tuple[Chunk, ...]:
        """A document's chunks."""
        return _CHUNKS.validate_json(await asyncio.to_thread(self._file(record).read_bytes))

    def _file(self, record: DocumentRecord) -> Path:
        return self._folder / f"{record.id}.json"


@asynccontextmanager
async def _archive(scratch: Path) -> AsyncIterator[_Archive]:
    def make() -> tempfile.TemporaryDirectory[str]:
        scratch.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="reindex-", dir=scratch, ignore_cleanup_errors=True)

    try:
        folder = await asyncio.to_thread(make)
    except OSError as error:
        message = f"The folder {scratch} cannot be written. Check who owns it, or name another with --home."
        raise BotError(message) from error
    try:
        yield _Archive(Path(folder.name))
    finally:
        await asyncio.to_thread(folder.cleanup)
