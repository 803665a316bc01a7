"""The server store on the wire: refusals, failures, silence, and two processes on one library."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest
from fakes.library import DIMENSIONS, ENCODER, IDENTITY, document, document_id, unit
from fakes.qdrant_api import API_KEY, QdrantApi

from retrieval import versioned
from retrieval.errors import StoreError, StoreMismatchError, StoreUnavailableError
from retrieval.points import LibraryIdentity
from retrieval.qdrant_server import ServerStore, connection
from retrieval.types import PUBLIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def api() -> AsyncIterator[QdrantApi]:
    async with QdrantApi() as api:
        yield api


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats without long waits."""
    monkeypatch.setattr(
        connection, "_RETRY", connection._RETRY.__class__(attempts=3, wait_initial=0.001, wait_max=0.01)
    )


async def test_the_key_is_sent_and_a_wrong_one_is_told_in_a_sentence() -> None:
    async with QdrantApi(api_key=API_KEY) as api:
        store = await ServerStore.open(api.url, IDENTITY, api_key=API_KEY)
        assert await store.count(None) == 0
        await store.close()
        with pytest.raises(StoreUnavailableError, match="QDRANT_API_KEY") as caught:
            await ServerStore.open(api.url, IDENTITY, api_key="wrong-secret")
        assert "wrong-secret" not in str(caught.value)
        before = len(api.requests)
        with pytest.raises(StoreUnavailableError, match="QDRANT_API_KEY"):
            await ServerStore.open(api.url, IDENTITY)
        assert len(api.requests) == before + 1, "a refusal is not tried again"


async def test_credentials_in_the_address_are_never_shown() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(StoreUnavailableError, match=f"http://127.0.0.1:{port} does not answer") as caught:
        await ServerStore.open(f"http://user:hunter2@127.0.0.1:{port}/?key=hunter3", IDENTITY)
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("status", [500, 502, 503, 429])
async def test_a_passing_failure_is_tried_again_and_a_lasting_one_told(api: QdrantApi, status: int) -> None:
    store = await ServerStore.open(api.url, IDENTITY)
    api.fail = [status, status]
    assert await store.count(None) == 0
    api.fail = [status] * 10
    with pytest.raises(StoreUnavailableError, match=f"HTTP {status}"):
        await store.count(None)
    assert len(api.fail) == 7, "three attempts"
    api.fail = []
    await store.close()


async def test_a_write_that_fails_leaves_the_old_version(api: QdrantApi) -> None:
    store = await ServerStore.open(api.url, IDENTITY)
    await store.replace(*document("a", ["zebra old"]))
    new = document("a", [f"zebra new {n}" for n in range(100)])
    writing = asyncio.ensure_future(store.replace(*new))
    await api.seen("PUT", "/points", times=4)  # meta, the old chunk, its record, the first batch
    api.fail = [500] * 3
    with pytest.raises(StoreUnavailableError):
        await writing
    api.fail = []
    found = await store.search(dense=unit(1), sparse=ENCODER.encode_query("zebra"), audience=PUBLIC, limit=200)
    chunks = await store.load([item.id for item in found.found], PUBLIC)
    assert [chunk.text for chunk in chunks.values()] == ["zebra old"]
    await store.close()


async def test_a_silent_server_is_given_up(api: QdrantApi, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await ServerStore.open(api.url, IDENTITY)
    monkeypatch.setattr(connection, "TOTAL_TIMEOUT", 0.1)
    api.delay = 5
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        await store.count(None)
    monkeypatch.undo()
    api.delay = 0
    await store.close()


async def test_a_request_has_a_timeout_of_its_own(api: QdrantApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT", 1)
    api.delay = 3
    monkeypatch.setattr(connection, "_RETRY", connection._RETRY.__class__(attempts=1))
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        await ServerStore.open(api.url, IDENTITY)
    assert len(api.requests) == 1


async def test_something_else_at_the_address_is_told() -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"<html>hello</html>"
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(page, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(StoreUnavailableError, match="not a Qdrant server"):
            await ServerStore.open(f"http://127.0.0.1:{port}", IDENTITY)


async def test_processes_that_start_together_make_one_library(api: QdrantApi) -> None:
    stores = await asyncio.gather(*(ServerStore.open(api.url, IDENTITY) for _ in range(4)))
    await stores[0].replace(*document("a", ["zebra"]))
    assert [await store.count(None) for store in stores] == [1, 1, 1, 1]
    assert len((await api.local.get_collections()).collections) == 1
    for store in stores:
        await store.close()


async def test_a_process_notices_that_another_one_rebuilt_the_library(api: QdrantApi) -> None:
    old = await ServerStore.open(api.url, IDENTITY)
    other = LibraryIdentity(model="other", dimensions=DIMENSIONS, chunker="c", bm25=IDENTITY.bm25)
    rebuilt = await ServerStore.rebuild(api.url, other)
    await rebuilt.publish()
    with pytest.raises(StoreMismatchError, match="other"):
        await old.record(document_id("a"))
    with pytest.raises(StoreMismatchError, match="other"):
        await old.replace(*document("a", ["zebra"]))
    assert await rebuilt.count(None) == 0
    for store in (old, rebuilt):
        await store.close()
    assert len((await api.local.get_collections()).collections) == 1


async def test_what_a_dead_process_staged_is_unseen_and_goes_when_it_is_old(
    api: QdrantApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, alive = [await ServerStore.open(api.url, IDENTITY) for _ in range(2)]
    await alive.replace(*document("a", ["zebra old"]))
    record, chunks = document("a", [f"zebra staged {n}" for n in range(30)])
    await dead._backend.upsert([versioned.chunk_point(item, 1) for item in chunks])  # long ago, and never made current
    staged_now, fresh = document("a", ["zebra being staged"])
    await dead._backend.upsert([versioned.chunk_point(item, 2**31) for item in fresh])
    found = await alive.search(dense=unit(1), sparse=ENCODER.encode_query("zebra"), audience=PUBLIC, limit=5)
    chunks = await alive.load([item.id for item in found.found], PUBLIC)
    assert [chunk.text for chunk in chunks.values()] == ["zebra old"]
    await alive.replace(*document("a", ["zebra new"]))
    count = alive._backend.count
    assert await count(versioned.Where(version=record.version)) == 0
    assert await count(versioned.Where(version=staged_now.version)) == 1, "another process may be at it"
    await alive.delete(record.id)
    assert await count(versioned.Where(document_id=record.id)) == 0
    for store in (dead, alive):
        await store.close()


async def test_a_document_deleted_by_another_process_while_it_is_indexed(api: QdrantApi) -> None:
    here, there = [await ServerStore.open(api.url, IDENTITY) for _ in range(2)]
    writing = asyncio.ensure_future(here.replace(*document("a", [f"zebra {n}" for n in range(200)])))
    await api.seen("PUT", "/points", times=2)  # meta, the first batch
    await there.delete(document_id("a"))
    with pytest.raises(StoreError, match="deleted while"):
        await writing
    assert await there.count(None) == 0
    for store in (here, there):
        await store.close()
