from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes.embedder import WordEmbedder

from retrieval.bm25 import Bm25Encoder
from retrieval.errors import StoreError
from retrieval.ingestion import Ingestion
from retrieval.points import LibraryIdentity
from retrieval.qdrant_edge import EdgeStore
from retrieval.readers import Readers
from retrieval.readers.assembly import Piece, Reading, assemble
from retrieval.types import PUBLIC, Audience, BlockKind, SourceFile
from retrieval.verdicts import Outcome, Progress, Step, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from pathlib import Path

    from retrieval.ports import IndexedChunk
    from retrieval.types import Chunk, Document, DocumentRecord


class Bench:
    """An ingestion and what it writes to."""

    def __init__(self, store: EdgeStore, readers: Readers, embedder: WordEmbedder) -> None:
        self.store = store
        self.embedder = embedder
        self.ingestion = Ingestion(readers, embedder, store, Bm25Encoder())
        self.progress: list[tuple[str, Progress]] = []

    async def one(self, file: SourceFile, *, audience: Audience | None = PUBLIC, force: bool = False) -> Verdict:
        return await self.ingestion.ingest(
            file,
            audience=audience,
            by="tester",
            force=force,
            report=lambda progress: self.progress.append((file.name, progress)),
        )

    async def many(self, files: Iterable[SourceFile], *, audience: Audience | None = PUBLIC) -> list[Verdict]:
        verdicts = self.ingestion.ingest_many(
            _stream(files),
            audience=audience,
            by="tester",
            report=lambda file, progress: self.progress.append((file.name, progress)),
        )
        return [verdict async for verdict in verdicts]

    async def chunks(self, verdict: Verdict, audience: Audience = PUBLIC) -> list[Chunk]:
        assert verdict.document_id is not None
        record = await self.store.record(verdict.document_id)
        assert record is not None
        return await self.store.chunks(record.version, range(record.chunk_count), audience)

    async def text(self, verdict: Verdict, audience: Audience = PUBLIC) -> str:
        return "\n".join(chunk.text for chunk in await self.chunks(verdict, audience))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    embedder = WordEmbedder(fail="explode")
    identity = LibraryIdentity(
        model=embedder.model, dimensions=embedder.dimensions, chunker="test", bm25=Bm25Encoder.VERSION
    )
    store = await EdgeStore.open(tmp_path / "library", identity)
    readers = Readers()
    yield Bench(store, readers, embedder)
    await readers.close()
    await store.close()


async def _stream(files: Iterable[SourceFile]) -> AsyncIterator[SourceFile]:
    for file in files:
        yield file


def file(name: str, text: str) -> SourceFile:
    return SourceFile(uri=f"file:///{name}", name=name, data=text.encode())


def long_text(paragraphs: int, word: str = "heron") -> str:
    sentence = " ".join(f"{word}{number}" for number in range(100))
    return "\n\n".join(f"Paragraph {number}. {sentence.capitalize()}." for number in range(paragraphs))


async def test_a_new_document_is_indexed(bench: Bench) -> None:
    verdict = await bench.one(file("rules.md", "# Rules\n\nHolidays are thirty days a year."))
    assert (verdict.outcome, verdict.title, verdict.chunks) == (Outcome.INDEXED, "Rules", 1)
    assert "thirty days" in await bench.text(verdict)


async def test_the_same_bytes_again_are_left_alone(bench: Bench) -> None:
    document = file("rules.txt", "Holidays are thirty days a year.")
    first = await bench.one(document)
    before = await bench.chunks(first)
    second = await bench.one(document)
    assert second.outcome is Outcome.UNCHANGED
    assert await bench.chunks(second) == before
    assert len(bench.embedder.calls) == 1


async def test_force_indexes_the_same_bytes_anew(bench: Bench) -> None:
    document = file("rules.txt", "Holidays are thirty days a year.")
    await bench.one(document)
    verdict = await bench.one(document, force=True)
    assert verdict.outcome is Outcome.REPLACED
    assert len(bench.embedder.calls) == 2


async def test_another_audience_changes_only_who_may_see_it(bench: Bench) -> None:
    document = file("rules.txt", "Holidays are thirty days a year.")
    await bench.one(document)
    team = Audience.of("team:red")
    verdict = await bench.one(document, audience=team)
    assert verdict.outcome is Outcome.UNCHANGED
    assert "team:red" in verdict.reason
    assert len(bench.embedder.calls) == 1
    assert await bench.chunks(verdict) == []
    assert "thirty" in await bench.text(verdict, team)


async def test_a_changed_document_replaces_its_former_version(bench: Bench) -> None:
    await bench.one(file("rules.txt", "Holidays are thirty days a year."))
    verdict = await bench.one(file("rules.txt", "Holidays are forty days a year."))
    assert verdict.outcome is Outcome.REPLACED
    assert "forty" in await bench.text(verdict)
    assert await bench.store.count(None) == 1


async def test_what_cannot_be_read_is_refused_and_keeps_the_former_version(bench: Bench) -> None:
    first = await bench.one(file("rules.txt", "Holidays are thirty days a year."))
    verdict = await bench.one(file("rules.txt", "   "))
    assert verdict.outcome is Outcome.REFUSED
    assert "rules.txt" in verdict.reason
    assert "thirty" in await bench.text(first)


async def test_a_model_that_breaks_is_a_failure_and_keeps_the_former_version(bench: Bench) -> None:
    first = await bench.one(file("rules.txt", "Holidays are thirty days a year."))
    verdict = await bench.one(file("rules.txt", "Holidays explode."))
    assert (verdict.outcome, verdict.in_library) == (Outcome.FAILED, False)
    assert "thirty" in await bench.text(first)


class PaperReader:
    """Reads anything as a paper with a bibliography."""

    async def read(self, source: SourceFile) -> Document:
        references = [f"A. Writer {n}. On herons. Journal of Birds, 20{n:02d}." for n in range(10, 20)]
        pieces = [
            Piece(kind=BlockKind.PARAGRAPH, text="Herons fish."),
            Piece(kind=BlockKind.HEADING, text="References", level=1),
            *(Piece(kind=BlockKind.REFERENCE, text=text) for text in references),
        ]
        return assemble(source, Reading(media_type="application/pdf", pieces=tuple(pieces)), characters=10_000)


async def test_bibliographies_get_no_dense_vector(bench: Bench) -> None:
    ingestion = Ingestion(PaperReader(), bench.embedder, bench.store, Bm25Encoder())
    verdict = await ingestion.ingest(file("paper.pdf", "%PDF"), audience=PUBLIC, by="tester")
    embedded = "\n".join(text for call in bench.embedder.calls for text in call)
    assert "Herons fish" in embedded
    assert "Journal of Birds" not in embedded
    assert "Journal of Birds" in await bench.text(verdict)


async def test_progress_of_a_long_document_moves(bench: Bench) -> None:
    verdict = await bench.one(file("long.txt", long_text(300)))
    assert verdict.chunks > 128
    steps = [progress for _, progress in bench.progress]
    assert [step.step for step in steps[:2]] == [Step.READING, Step.CHUNKING]
    embedding = [(step.done, step.total) for step in steps if step.step is Step.EMBEDDING]
    assert embedding == [(done, verdict.chunks) for done in range(0, verdict.chunks, 128)]
    assert (steps[-1].step, steps[-1].done, steps[-1].total) == (Step.STORING, verdict.chunks, verdict.chunks)


async def test_small_documents_are_embedded_together(bench: Bench) -> None:
    files = [file(f"{number}.txt", f"Heron number {number} fishes.") for number in range(300)]
    verdicts = await bench.many(files)
    assert [verdict.uri for verdict in verdicts] == [item.uri for item in files]
    assert {verdict.outcome for verdict in verdicts} == {Outcome.INDEXED}
    assert [len(call) for call in bench.embedder.calls] == [128, 128, 44]
    assert "number 217 fishes" in await bench.text(verdicts[217])


async def test_together_or_one_by_one_gives_the_same_library(bench: Bench) -> None:
    files = [
        file("a.md", "# Herons\n\nHerons fish."),
        file("b.txt", long_text(200, "stork")),
        file("c.txt", "Storks travel."),
    ]
    together = await bench.many(files)
    texts = [await bench.text(verdict) for verdict in together]
    for verdict in together:
        assert verdict.document_id is not None
        await bench.store.delete(verdict.document_id)
    alone = [await bench.one(item) for item in files]
    assert [await bench.text(verdict) for verdict in alone] == texts
    assert [verdict.chunks for verdict in alone] == [verdict.chunks for verdict in together]


async def test_one_bad_file_among_many_stops_nobody(bench: Bench) -> None:
    known = file("known.txt", "Herons fish.")
    await bench.one(known)
    verdicts = await bench.many([file("a.txt", "Storks travel."), file("b.txt", ""), known, file("c.txt", "Owls see.")])
    assert [verdict.outcome for verdict in verdicts] == [
        Outcome.INDEXED,
        Outcome.REFUSED,
        Outcome.UNCHANGED,
        Outcome.INDEXED,
    ]
    assert await bench.store.count(None) == 3


async def test_the_same_document_twice_ends_as_the_second(bench: Bench) -> None:
    verdicts = await bench.many(
        [file("a.txt", "Herons fish."), file("a.txt", "Herons fly."), file("a.txt", "Herons fly.")]
    )
    assert [verdict.outcome for verdict in verdicts] == [Outcome.INDEXED, Outcome.REPLACED, Outcome.UNCHANGED]
    assert "fly" in await bench.text(verdicts[-1])


async def test_a_model_that_breaks_fails_its_batch_and_no_other(bench: Bench) -> None:
    files = [file(f"{n}.txt", f"Heron {n}." if n != 3 else "Herons explode.") for n in range(130)]
    verdicts = await bench.many(files)
    assert {verdict.outcome for verdict in verdicts[:128]} == {Outcome.FAILED}
    assert [verdict.outcome for verdict in verdicts[128:]] == [Outcome.INDEXED, Outcome.INDEXED]
    assert await bench.store.count(None) == 2


async def test_a_store_that_breaks_on_one_fails_only_that_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = bench.store.replace

    async def broken(record: DocumentRecord, chunks: Sequence[IndexedChunk]) -> None:
        if record.uri == "file:///1.txt":
            message = "The disk is full."
            raise StoreError(message)
        await replace(record, chunks)

    monkeypatch.setattr(bench.store, "replace", broken)
    verdicts = await bench.many([file(f"{n}.txt", f"Heron {n}.") for n in range(3)])
    assert [verdict.outcome for verdict in verdicts] == [Outcome.INDEXED, Outcome.FAILED, Outcome.INDEXED]
    assert verdicts[1].reason == "The disk is full."


async def test_sources_are_taken_as_they_are_needed(bench: Bench) -> None:
    taken = 0

    async def endless() -> AsyncIterator[SourceFile]:
        nonlocal taken
        while True:
            taken += 1
            yield file(f"{taken}.txt", f"Heron {taken}.")

    verdicts = bench.ingestion.ingest_many(endless(), audience=PUBLIC, by="tester")
    first = await anext(aiter(verdicts))
    assert first.uri == "file:///1.txt"
    assert taken == 128


async def test_progress_is_told_for_each_of_many(bench: Bench) -> None:
    await bench.many([file("a.txt", "Herons fish."), file("b.txt", "Owls see.")])
    for name in ("a.txt", "b.txt"):
        steps = [(step.step, step.done, step.total) for other, step in bench.progress if other == name]
        assert steps == [(Step.READING, 0, 0), (Step.CHUNKING, 0, 0), (Step.EMBEDDING, 0, 1), (Step.STORING, 1, 1)]


@pytest.mark.parametrize("text", ["Holidays are thirty days a year.", "Holidays are forty days a year."])
async def test_without_an_audience_a_known_document_keeps_its_own(bench: Bench, text: str) -> None:
    team = Audience.of("team:red")
    first = await bench.one(file("rules.txt", "Holidays are thirty days a year."), audience=team)
    for verdict in (
        await bench.one(file("rules.txt", text), audience=None),
        *await bench.many([file("rules.txt", text)], audience=None),
    ):
        assert verdict.document_id == first.document_id
        assert await bench.chunks(verdict) == []
        assert text in await bench.text(verdict, team)
        assert [record.audience for record in await bench.store.records(None)] == [team]
    widened = await bench.one(file("rules.txt", text), audience=PUBLIC)
    assert text in await bench.text(widened)


async def test_without_an_audience_a_new_document_is_for_everyone(bench: Bench) -> None:
    verdict = await bench.one(file("rules.txt", "Holidays are thirty days a year."), audience=None)
    assert "thirty" in await bench.text(verdict)


async def test_an_audience_that_changes_while_a_document_is_embedded_holds(bench: Bench) -> None:
    team = Audience.of("team:red")
    first = await bench.one(file("rules.txt", "Holidays are thirty days a year."))
    assert first.document_id is not None

    async def restrict_then_more() -> AsyncIterator[SourceFile]:
        yield file("rules.txt", "Holidays are forty days a year.")
        assert first.document_id is not None
        await bench.store.set_audience(first.document_id, team)

    verdicts = [item async for item in bench.ingestion.ingest_many(restrict_then_more(), audience=None, by="tester")]
    assert [item.outcome for item in verdicts] == [Outcome.REPLACED]
    assert await bench.chunks(first) == []
    assert "forty" in await bench.text(first, team)


@pytest.mark.parametrize("text", ["Holidays are thirty days a year.", "Holidays are forty days a year."])
async def test_a_document_for_others_is_refused_without_its_title(bench: Bench, text: str) -> None:
    team = Audience.of("team:red")
    first = await bench.one(file("rules.md", "# Secret plans\n\nHolidays are thirty days a year."), audience=team)
    again = file("rules.md", f"# Secret plans\n\n{text}")
    verdict = await bench.ingestion.ingest(again, audience=None, by="tester", asker=PUBLIC)
    assert verdict.outcome is Outcome.REFUSED
    assert "for others" in verdict.reason
    assert "Secret" not in verdict.title + verdict.reason
    assert verdict.document_id is None
    assert "thirty" in await bench.text(first, team)
    allowed = await bench.ingestion.ingest(again, audience=None, by="tester", asker=Audience.asker("team:red"))
    assert allowed.in_library
    assert await bench.chunks(allowed) == []
