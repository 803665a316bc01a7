"""What every store keeps to: embedded, server in local mode, server over HTTP and, where QDRANT_URL is set, live."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import uuid
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from fakes.library import DIMENSIONS, ENCODER, IDENTITY, document, document_id, hash_of, unit
from fakes.qdrant_api import QdrantApi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import AsyncQdrantClient

from retrieval import qdrant_edge, qdrant_server
from retrieval.errors import StoreError, StoreMismatchError
from retrieval.points import LibraryIdentity
from retrieval.qdrant_edge import EdgeStore
from retrieval.qdrant_server import ServerStore
from retrieval.types import PUBLIC, Audience, ChunkId, VersionId

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from retrieval.ports import Candidate, Candidates, Store
    from retrieval.types import Chunk, DocumentRecord

OTHER = LibraryIdentity(model="large", dimensions=DIMENSIONS + 1, chunker="chunker-1", bm25=IDENTITY.bm25)


class Place:
    """Somewhere a library can lie, so that it can be opened more than once."""

    async def open(self, identity: LibraryIdentity = IDENTITY) -> Store:
        raise NotImplementedError

    async def rebuild(self, identity: LibraryIdentity) -> EdgeStore | ServerStore:
        raise NotImplementedError

    async def read_records(self) -> list[DocumentRecord]:
        raise NotImplementedError


class Folder(Place):
    def __init__(self, path: Path) -> None:
        self.path = path / "library"

    async def open(self, identity: LibraryIdentity = IDENTITY) -> Store:
        return await EdgeStore.open(self.path, identity)

    async def rebuild(self, identity: LibraryIdentity) -> EdgeStore | ServerStore:
        return await EdgeStore.rebuild(self.path, identity)

    async def read_records(self) -> list[DocumentRecord]:
        return await qdrant_edge.read_records(self.path)


class Server(Place):
    def __init__(self, server: str | AsyncQdrantClient, api_key: str | None = None) -> None:
        self.server = server
        self.options: dict[str, Any] = {"api_key": api_key, "collection": f"test-{uuid.uuid4().hex[:8]}"}

    async def open(self, identity: LibraryIdentity = IDENTITY) -> Store:
        return await ServerStore.open(self.server, identity, **self.options)

    async def rebuild(self, identity: LibraryIdentity) -> EdgeStore | ServerStore:
        return await ServerStore.rebuild(self.server, identity, **self.options)

    async def read_records(self) -> list[DocumentRecord]:
        return await qdrant_server.read_records(self.server, **self.options)


@asynccontextmanager
async def embedded(path: Path) -> AsyncIterator[Place]:
    yield Folder(path)


@asynccontextmanager
async def local(path: Path) -> AsyncIterator[Place]:
    client = AsyncQdrantClient(":memory:")
    yield Server(client)
    await client.close()


@asynccontextmanager
async def http(path: Path) -> AsyncIterator[Place]:
    async with QdrantApi() as api:
        yield Server(api.url)


@asynccontextmanager
async def live(path: Path) -> AsyncIterator[Place]:
    key = os.environ.get("QDRANT_API_KEY")
    place = Server(os.environ["QDRANT_URL"], key)
    yield place
    client = AsyncQdrantClient(os.environ["QDRANT_URL"], api_key=key)
    for collection in (await client.get_collections()).collections:
        if collection.name.startswith(place.options["collection"]):
            await client.delete_collection(collection.name)
    await client.close()


PLACES: dict[str, Callable[[Path], AbstractAsyncContextManager[Place]]] = {
    "embedded": embedded,
    "local": local,
    "http": http,
} | ({"live": live} if os.environ.get("QDRANT_URL") else {})


@pytest.fixture(params=PLACES)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with PLACES[request.param](tmp_path) as place:
        yield place


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = await place.open()
    yield store
    await store.close()


async def find(store: Store, question: str, *, audience: Audience = PUBLIC, limit: int = 10) -> Lists:
    candidates = await store.search(
        dense=unit(hash_of(question)), sparse=ENCODER.encode_query(question), audience=audience, limit=limit
    )
    ids = {item.id for item in candidates.found}
    return Lists.of(candidates, await store.load(ids, audience), await store.terms(ids))


@dataclass(frozen=True)
class Item:
    """A candidate with its chunk."""

    chunk: Chunk
    candidate: Candidate
    terms: frozenset[int]

    @property
    def cosine(self) -> float | None:
        return self.candidate.cosine

    @property
    def bm25(self) -> float:
        return self.candidate.bm25


@dataclass(frozen=True)
class Lists:
    """The candidates as the two ranked lists that they came in."""

    found: list[Item]
    dense: list[Item]
    bm25: list[Item]
    idf: dict[int, float]

    @classmethod
    def of(cls, candidates: Candidates, chunks: dict[ChunkId, Chunk], terms: dict[ChunkId, frozenset[int]]) -> Lists:
        dense = {item.dense_rank: item for item in candidates.found if item.dense_rank is not None}
        bm25 = {item.bm25_rank: item for item in candidates.found if item.bm25_rank is not None}
        assert sorted(dense) == list(range(1, len(dense) + 1))
        assert sorted(bm25) == list(range(1, len(bm25) + 1))
        ids = [item.id for item in candidates.found]
        assert len(set(ids)) == len(ids)
        assert len(ids) <= len(dense) + len(bm25)
        items = {item.id: Item(chunks[item.id], item, terms[item.id]) for item in candidates.found}
        for item in items.values():
            place = (item.chunk.id, item.chunk.document_id, item.chunk.version, item.chunk.ordinal)
            of = item.candidate
            assert place == (of.id, of.document_id, of.version, of.ordinal)
        return cls(
            list(items.values()),
            [items[dense[rank].id] for rank in sorted(dense)],
            [items[bm25[rank].id] for rank in sorted(bm25)],
            candidates.idf,
        )


def texts(items: Sequence[Item]) -> list[str]:
    return [item.chunk.text for item in items]


async def test_an_empty_library_finds_nothing(store: Store) -> None:
    found = await find(store, "zebra")
    assert (found.dense, found.bm25) == ([], [])
    assert list(found.idf.values()) == [pytest.approx(math.log(2))]
    assert await store.records(None) == []
    assert await store.count(None) == 0
    assert await store.record(document_id("none")) is None
    assert not await store.delete(document_id("none"))
    assert not await store.set_audience(document_id("none"), PUBLIC)
    await store.optimize()


async def test_what_goes_in_comes_out(store: Store) -> None:
    record, chunks = document("Überblick 図書館", ["zebra crossing", "国連本部の通信 🦓\n\ttab"])
    await store.replace(record, chunks)
    assert await store.record(record.id) == record
    assert await store.records(PUBLIC) == [record]
    found = await find(store, "zebra crossing")
    assert found.dense[0].chunk == chunks[0].chunk
    assert found.dense[0].cosine == pytest.approx(1, abs=1e-5)
    assert {candidate.chunk.ordinal for candidate in found.dense} == {0, 1}
    assert [candidate.chunk for candidate in found.bm25] == [chunks[0].chunk]
    assert texts((await find(store, "国連")).bm25) == ["国連本部の通信 🦓\n\ttab"]


async def test_lists_are_ranked_by_their_scores(store: Store) -> None:
    await store.replace(*document("a", ["zebra zebra zebra", "zebra horse", "horse horse pony", "cow"]))
    found = await find(store, "zebra zebra zebra", limit=3)
    assert len(found.dense) == 3
    assert texts(found.bm25) == ["zebra zebra zebra", "zebra horse"]
    for scores in ([item.cosine for item in found.dense], [item.bm25 for item in found.bm25]):
        assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]  # they are numbers here
    cosines = {item.chunk.text: item.cosine for item in found.dense}
    for text, cosine in cosines.items():
        assert cosine == pytest.approx(float(unit(hash_of(text)) @ unit(hash_of("zebra zebra zebra"))), abs=1e-5)


async def test_a_bibliography_is_found_by_its_words_only(store: Store) -> None:
    await store.replace(*document("refs", ["Devlin 2019"], dense=False))
    found = await find(store, "Devlin")
    assert found.dense == []
    assert texts(found.bm25) == ["Devlin 2019"]


async def test_idf_follows_the_formula_and_scores_are_made_of_it(store: Store) -> None:
    await store.replace(*document("a", ["zebra horse", "horse", "horse cow", "cow pig"]))
    await store.replace(*document("b", ["horse pig pig", "sheep"], audience=Audience.of("secret")))
    question = ENCODER.encode_query("horse zebra unicorn")
    found = await find(store, "horse zebra unicorn")
    (horse,), (zebra,), (unicorn,) = (ENCODER.encode_query(word).indices for word in ("horse", "zebra", "unicorn"))
    expected = {term: math.log(1 + (6 - n + 0.5) / (n + 0.5)) for term, n in ((horse, 4), (zebra, 1), (unicorn, 0))}
    assert found.idf == pytest.approx(expected, rel=1e-5)
    assert set(found.idf) == set(question.indices)
    best = found.bm25[0]
    vector = ENCODER.encode_document("zebra horse")
    weights = dict(zip(vector.indices, vector.values, strict=True))
    assert best.chunk.text == "zebra horse"
    assert best.bm25 == pytest.approx(sum(weights[term] * found.idf[term] for term in (horse, zebra)), rel=1e-4)
    assert best.terms == {horse, zebra}
    assert [item.terms & found.idf.keys() for item in found.bm25[1:]] == [{horse}, {horse}]
    for item in found.found:
        vector = ENCODER.encode_document(item.chunk.text)
        weights = dict(zip(vector.indices, vector.values, strict=True))
        assert item.terms == weights.keys()
        expected_score = sum(weights[term] * found.idf[term] for term in weights.keys() & found.idf.keys())
        assert item.bm25 == pytest.approx(expected_score, rel=1e-4)


async def test_each_candidate_has_both_scores_whichever_search_found_it(store: Store) -> None:
    await store.replace(*document("a", ["zebra horse", "cow", *(f"pig {n}" for n in range(20))]))
    await store.replace(*document("refs", ["zebra 2019"], dense=False))
    found = await store.search(
        dense=unit(hash_of("cow")), sparse=ENCODER.encode_query("zebra"), audience=PUBLIC, limit=2
    )
    chunks = await store.load({item.id for item in found.found}, PUBLIC)
    by_text = {chunks[item.id].text: item for item in found.found}
    assert by_text["cow"].dense_rank == 1
    assert by_text["cow"].bm25_rank is None
    assert by_text["cow"].bm25 == 0
    assert by_text["zebra horse"].dense_rank is None
    expected = float(unit(hash_of("zebra horse")) @ unit(hash_of("cow")))
    assert by_text["zebra horse"].cosine == pytest.approx(expected, abs=1e-5)
    assert by_text["zebra 2019"].cosine is None
    assert by_text["zebra 2019"].bm25 > 0


async def test_a_question_without_terms_is_searched_by_its_vector(store: Store) -> None:
    await store.replace(*document("a", ["zebra"]))
    found = await find(store, "the of")
    assert texts(found.dense) == ["zebra"]
    assert found.bm25 == []
    assert found.idf == {}


async def test_hidden_chunks_take_up_no_place(store: Store) -> None:
    secret = Audience.of("slack:T1:C1")
    await store.replace(*document("hidden", ["zebra zebra"] * 20, audience=secret))
    await store.replace(*document("open", ["a zebra among horses and cows", "more zebra talk in the open"]))
    found = await find(store, "zebra zebra", limit=2)
    assert {item.chunk.title for item in (*found.dense, *found.bm25)} == {"open"}
    assert (len(found.dense), len(found.bm25)) == (2, 2)
    member = await find(store, "zebra zebra", audience=Audience.asker("slack:T1:C1"), limit=2)
    assert {item.chunk.title for item in member.dense} == {"hidden"}
    only = await find(store, "zebra zebra", audience=secret, limit=30)
    assert {item.chunk.title for item in only.dense} == {"hidden"}


async def test_lists_and_counts_keep_to_the_audience(store: Store) -> None:
    secret, _ = document("secret", ["a"], audience=Audience.of("x", "y"), age=1)
    await store.replace(*document("old", ["a"], age=9))
    await store.replace(secret, [])
    await store.replace(*document("new", ["a"], age=0))
    assert [record.title for record in await store.records(None)] == ["new", "secret", "old"]
    assert [record.title for record in await store.records(PUBLIC)] == ["new", "old"]
    assert [record.title for record in await store.records(Audience.of("y"))] == ["secret"]
    assert [await store.count(audience) for audience in (None, PUBLIC, Audience.of("y"), Audience.of("z"))] == [
        3,
        2,
        1,
        0,
    ]


async def test_set_audience_moves_record_and_chunks(store: Store) -> None:
    record, chunks = document("a", ["zebra", "horse"])
    await store.replace(record, chunks)
    secret = Audience.of("x")
    assert await store.set_audience(record.id, secret)
    assert await store.count(PUBLIC) == 0
    assert (await find(store, "zebra")).dense == []
    assert await store.chunks(record.version, [0], PUBLIC) == []
    found = await find(store, "zebra", audience=secret)
    assert texts(found.bm25) == ["zebra"]
    assert found.bm25[0].chunk.audience == secret
    changed = await store.record(record.id)
    assert changed is not None
    assert changed.audience == secret


async def test_a_new_version_replaces_the_old_one(store: Store) -> None:
    first, chunks = document("a", ["zebra one", "zebra two", "zebra three"])
    await store.replace(first, chunks)
    second, fewer = document("a", ["zebra four"])
    await store.replace(second, fewer)
    found = await find(store, "zebra")
    assert texts(found.dense) == texts(found.bm25) == ["zebra four"]
    assert await store.records(None) == [second]
    assert await store.chunks(first.version, [0, 1, 2], PUBLIC) == []


async def test_an_empty_version_is_a_document_without_chunks(store: Store) -> None:
    await store.replace(*document("a", ["zebra"]))
    await store.replace(*document("a", []))
    assert await store.count(None) == 1
    assert (await find(store, "zebra")).dense == []


async def test_replace_refuses_what_is_not_one_new_version(store: Store) -> None:
    record, chunks = document("a", ["zebra"])
    _, foreign = document("b", ["horse"])
    with pytest.raises(ValueError, match="another document"):
        await store.replace(record, [*chunks, *foreign])
    assert await store.count(None) == 0
    await store.replace(record, chunks)
    with pytest.raises(ValueError, match="current"):
        await store.replace(record, chunks)
    assert texts((await find(store, "zebra")).dense) == ["zebra"]


async def test_a_document_of_many_batches_is_whole(store: Store) -> None:
    record, chunks = document("long", [f"zebra number {n}" for n in range(150)])
    await store.replace(record, chunks)
    found = await find(store, "zebra", limit=200)
    assert len(found.bm25) == len(found.dense) == 150
    everything = await store.chunks(record.version, range(200), PUBLIC)
    assert [chunk.ordinal for chunk in everything] == list(range(150))


async def test_a_replace_that_fails_half_way_leaves_the_old_version(store: Store) -> None:
    await store.replace(*document("a", ["zebra old"]))
    record, chunks = document("a", [f"zebra new {n}" for n in range(130)])
    broken = type(chunks[-1])(chunk=chunks[-1].chunk, dense=unit(1, DIMENSIONS + 3), sparse=chunks[-1].sparse)
    with pytest.raises(StoreError):
        await store.replace(record, [*chunks[:-1], broken])
    found = await find(store, "zebra", limit=200)
    assert texts(found.dense) == texts(found.bm25) == ["zebra old"]


async def test_a_cancelled_replace_leaves_the_old_version(store: Store) -> None:
    await store.replace(*document("a", ["zebra old"]))
    new = document("a", [f"zebra new {n}" for n in range(600)])
    task = asyncio.ensure_future(store.replace(*new))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task], timeout=30)
    found = await find(store, "zebra", limit=1000)
    assert len(found.dense) == len(found.bm25) == (1 if task.cancelled() else 600)


async def test_versions_never_mix_while_documents_are_replaced(store: Store) -> None:
    sizes: dict[VersionId, int] = {}
    done = asyncio.Event()

    async def write(title: str) -> None:
        for turn in range(20):
            record, chunks = document(title, [f"zebra {title} {turn} {n}" for n in range(6 + turn)])
            sizes[record.version] = len(chunks)
            await store.replace(record, chunks)

    async def read() -> int:
        rounds = 0
        while not done.is_set():
            sparse = ENCODER.encode_query("zebra")
            found = await store.search(dense=unit(hash_of("zebra")), sparse=sparse, audience=PUBLIC, limit=100)
            ranks = ([item.dense_rank for item in found.found], [item.bm25_rank for item in found.found])
            for side in ranks:
                by_document: dict[str, list[VersionId]] = {}
                for item, rank in zip(found.found, side, strict=True):
                    if rank is not None:
                        by_document.setdefault(item.document_id, []).append(item.version)
                for versions in by_document.values():
                    assert len(set(versions)) == 1, "two versions in one answer"
                    assert len(versions) == sizes[versions[0]], "half a version"
                assert len(by_document) == 2, "a document vanished"
            rounds += 1
            await asyncio.sleep(0)
        return rounds

    for title in ("a", "b"):
        record, chunks = document(title, ["zebra"])
        sizes[record.version] = 1
        await store.replace(record, chunks)
    reader = asyncio.ensure_future(read())
    try:
        await asyncio.gather(write("a"), write("b"))
    finally:
        done.set()
    assert await reader > 0


async def test_a_deleted_document_is_gone_at_once(store: Store) -> None:
    record, chunks = document("a", ["zebra", "horse"])
    await store.replace(record, chunks)
    await store.replace(*document("b", ["zebra too"]))
    assert await store.delete(record.id)
    found = await find(store, "zebra")
    assert texts(found.dense) == texts(found.bm25) == ["zebra too"]
    assert await store.record(record.id) is None
    assert await store.chunks(record.version, [0, 1], PUBLIC) == []
    assert not await store.delete(record.id)


async def test_a_document_deleted_while_it_is_indexed_stays_deleted(store: Store) -> None:
    record, chunks = document("a", ["zebra old"])
    await store.replace(record, chunks)
    task = asyncio.ensure_future(store.replace(*document("a", [f"zebra new {n}" for n in range(600)])))
    await asyncio.sleep(0.02)
    await store.delete(record.id)
    with contextlib.suppress(StoreError):  # says that the document was deleted while it was being indexed
        await task
    # A replacement that was through before, or began after, counts as a whole.
    found = await find(store, "zebra", limit=1000)
    assert len(found.bm25) == len(found.dense) == (600 if await store.count(None) else 0)


async def test_neighbours_come_by_ordinal(store: Store) -> None:
    record, chunks = document("a", ["one", "two", "three", "four"])
    await store.replace(record, chunks)
    got = await store.chunks(record.version, [3, 1, 99, -1], PUBLIC)
    assert got == [chunks[1].chunk, chunks[3].chunk]
    assert await store.chunks(record.version, [], PUBLIC) == []
    assert await store.chunks(record.version, [1], Audience.of("x")) == []
    ids = {chunks[2].chunk.id: chunks[2].chunk}
    assert await store.load([*ids, ChunkId(str(uuid.uuid4()))], PUBLIC) == ids
    assert await store.terms([ChunkId(str(uuid.uuid4()))]) == {}
    assert await store.load(ids, Audience.of("x")) == await store.load([], PUBLIC) == {}
    assert await store.chunks(VersionId(str(uuid.uuid4())), [1], PUBLIC) == []


async def test_optimizing_changes_no_answer(store: Store) -> None:
    await store.replace(*document("a", [f"zebra number {n}" for n in range(80)]))
    await store.replace(*document("a", [f"zebra figure {n}" for n in range(80)]))
    before = await find(store, "zebra figure 7")
    await store.optimize()
    assert await find(store, "zebra figure 7") == before


async def test_a_library_is_there_after_reopening(place: Place) -> None:
    store = await place.open()
    record, chunks = document("a", ["zebra", "horse"])
    await store.replace(record, chunks)
    await store.close()
    await store.close()
    again = await place.open()
    assert await again.records(None) == [record]
    assert texts((await find(again, "zebra")).bm25) == ["zebra"]
    await again.close()


async def test_another_identity_is_refused_with_both_names_and_the_way_out(place: Place) -> None:
    await (await place.open()).close()
    with pytest.raises(StoreMismatchError, match="footnote reindex") as caught:
        await place.open(OTHER)
    assert "small" in str(caught.value)
    assert "large" in str(caught.value)
    await (await place.open()).close()


async def test_a_rebuild_takes_the_old_ones_place_only_when_published(place: Place) -> None:
    assert await place.read_records() == []
    store = await place.open()
    record, chunks = document("a", ["zebra"])
    await store.replace(record, chunks)
    await store.close()
    assert await place.read_records() == [record]

    abandoned = await place.rebuild(OTHER)
    assert await abandoned.count(None) == 0
    await abandoned.close()
    store = await place.open()
    assert texts((await find(store, "zebra")).dense) == ["zebra"]
    await store.close()

    rebuilt = await place.rebuild(OTHER)
    new, _ = document("b", [])
    await rebuilt.replace(new, [])
    await rebuilt.publish()
    assert await rebuilt.records(None) == [new]
    await rebuilt.close()
    with pytest.raises(StoreMismatchError):
        await place.open()
    again = await place.open(OTHER)
    assert await again.records(None) == [new]
    await again.close()


@given(text=st.text(max_size=80), scope=st.text(min_size=1, max_size=20).filter(lambda s: s.isprintable()))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_text_survives(store: Store, text: str, scope: str) -> None:
    record, chunks = document("any", [text], audience=Audience.of(scope))
    await store.replace(record, chunks)
    (got,) = await store.chunks(record.version, [0], Audience.of(scope))
    assert got == chunks[0].chunk
    found = await find(store, text, audience=Audience.of(scope), limit=3)
    assert [item.chunk.text for item in found.dense] == [text]
    assert np.isfinite([item.bm25 for item in found.bm25]).all()
