"""Rebuilding a real library with another embedder, and what is left when it breaks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar

import pytest
from fakes.embedder import WordEmbedder

from bot.reindexing import Reindexed, Workshop, reindex
from retrieval.bm25 import Bm25Encoder
from retrieval.errors import StoreAbsentError, StoreError, StoreMismatchError
from retrieval.ingestion import Ingestion
from retrieval.points import LibraryIdentity
from retrieval.qdrant_edge import EdgeStore
from retrieval.readers import Readers
from retrieval.types import PUBLIC, Audience, SourceFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from retrieval.types import DocumentRecord
    from retrieval.verdicts import Progress

OLD, NEW = WordEmbedder(32), WordEmbedder(64, fail="explode")
OPS = Audience.of("ops")


def identity(embedder: WordEmbedder) -> LibraryIdentity:
    return LibraryIdentity(model="words", dimensions=embedder.dimensions, chunker="test", bm25=Bm25Encoder.VERSION)


class World:
    """A library's folder, the files that its documents came from, and a rebuild of it."""

    texts: ClassVar = {"a.md": "# Herons\n\nHerons eat fish.", "b.txt": "Badgers dig.", "c.txt": "Cranes dance."}

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "library"
        self.scratch = folder
        self.files = {f"file:///{name}": text.encode() for name, text in self.texts.items()}
        self.seen: list[tuple[int, int]] = []

    async def fill(self) -> None:
        store = await EdgeStore.open(self.folder, identity(OLD))
        readers = Readers()
        ingestion = Ingestion(readers, OLD, store, Bm25Encoder())
        for uri, data in self.files.items():
            source = SourceFile(uri=uri, name=uri.rpartition("/")[2], data=data)
            await ingestion.ingest(source, audience=OPS if "b" in uri[8:9] else PUBLIC, by="ann")
        await readers.close()
        await store.close()

    async def rebuild(self) -> list[Reindexed]:
        return await reindex(self._old(), self._new, self._load, self, self.scratch)

    @asynccontextmanager
    async def _old(self) -> AsyncIterator[EdgeStore]:
        store = await EdgeStore.open(self.folder, None)
        yield store
        await store.close()

    @asynccontextmanager
    async def _new(self) -> AsyncIterator[Workshop]:
        store = await EdgeStore.rebuild(self.folder, identity(NEW))
        readers = Readers()
        bm25 = Bm25Encoder()
        try:
            yield Workshop(store=store, ingestion=Ingestion(readers, NEW, store, bm25), embedder=NEW, bm25=bm25)
        finally:
            await readers.close()
            await store.close()

    async def _load(self, uri: str) -> SourceFile | None:
        data = self.files.get(uri)
        return None if data is None else SourceFile(uri=uri, name=uri.rpartition("/")[2], data=data)

    def progress(self, name: str, progress: Progress) -> None:
        pass

    def reindexed(self, done: Reindexed, number: int, total: int) -> None:
        self.seen.append((number, total))

    async def texts_of(self, embedder: WordEmbedder) -> dict[str, str]:
        """What the library holds, opened with this embedder."""
        store = await EdgeStore.open(self.folder, identity(embedder))
        try:
            records = await store.records(None)
            return {record.uri[8:]: await _text(store, record) for record in records}
        finally:
            await store.close()


async def _text(store: EdgeStore, record: DocumentRecord) -> str:
    chunks = await store.chunks(record.version, range(record.chunk_count), record.audience)
    return "\n".join(chunk.text for chunk in chunks)


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    await world.fill()
    return world


async def test_documents_are_read_again_and_keep_their_circles(world: World) -> None:
    world.files["file:///a.md"] = b"# Herons\n\nHerons eat frogs."
    done = await world.rebuild()
    assert [item.carried for item in done] == [False, False, False]
    assert world.seen == [(1, 3), (2, 3), (3, 3)]
    texts = await world.texts_of(NEW)
    assert texts.keys() == {"a.md", "b.txt", "c.txt"}
    assert "frogs" in texts["a.md"]
    store = await EdgeStore.open(world.folder, identity(NEW))
    assert {record.uri[8:]: record.audience for record in await store.records(None)}["b.txt"] == OPS
    assert [record.uri[8:] for record in await store.records(None)] == ["c.txt", "b.txt", "a.md"]
    await store.close()


@pytest.mark.parametrize("now", [None, b"", b"\x89PNG\r\n\x1a\n" + bytes(100)])
async def test_what_can_no_longer_be_read_is_carried_over(world: World, now: bytes | None) -> None:
    if now is None:
        del world.files["file:///b.txt"]
    else:
        world.files["file:///b.txt"] = now
    done = await world.rebuild()
    assert {item.record.uri[8:]: item.carried for item in done} == {"a.md": False, "b.txt": True, "c.txt": False}
    assert "Badgers dig." in (await world.texts_of(NEW))["b.txt"]
    store = await EdgeStore.open(world.folder, identity(NEW))
    sparse = Bm25Encoder().encode_query("badgers")
    for audience, count in ((OPS, 1), (PUBLIC, 0)):
        found = await store.search(dense=await NEW.embed_query("badgers"), sparse=sparse, audience=audience, limit=1)
        assert sum(item.bm25 > 0 for item in found.found) == count
    await store.close()


async def test_a_failure_leaves_the_old_library(world: World) -> None:
    before = await world.texts_of(OLD)
    world.files["file:///c.txt"] = b"Cranes explode."
    with pytest.raises(StoreError, match="as it was"):
        await world.rebuild()
    assert await world.texts_of(OLD) == before
    with pytest.raises(StoreMismatchError):
        await world.texts_of(NEW)
    assert {path.name for path in world.scratch.iterdir()} == {"library"}


async def test_a_cancellation_leaves_the_old_library(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await world.texts_of(OLD)
    reached = asyncio.Event()

    def stop(_done: Reindexed, number: int, _total: int) -> None:
        if number == 2:
            reached.set()

    monkeypatch.setattr(world, "reindexed", stop)
    work = asyncio.create_task(world.rebuild())
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await world.texts_of(OLD) == before
    assert {path.name for path in world.scratch.iterdir()} == {"library"}


async def test_no_library_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(StoreAbsentError):
        await World(tmp_path).rebuild()
    assert not (tmp_path / "library").exists()
