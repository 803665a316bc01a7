"""Everything that answers a question, real but for the embedding model: documents go in as text."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakes.embedder import WordEmbedder

from bot.engine import AnswerEngine
from bot.extractive import Extractive
from bot.types import Conversation, Question
from retrieval.bm25 import Bm25Encoder
from retrieval.ingestion import Ingestion
from retrieval.points import LibraryIdentity
from retrieval.qdrant_edge import EdgeStore
from retrieval.readers import Readers
from retrieval.search import Searcher
from retrieval.types import PUBLIC, Audience, SourceFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bot.ports import LanguageModel
    from bot.types import AnswerEvent
    from retrieval.types import DocumentId


@dataclass(frozen=True, kw_only=True)
class Desk:
    store: EdgeStore
    embedder: WordEmbedder
    searcher: Searcher
    ingestion: Ingestion
    extractive: Extractive

    async def add(self, name: str, text: str, *, audience: Audience = PUBLIC) -> DocumentId:
        """Ingest a text; `name` tells its format (`rules.md`)."""
        source = SourceFile(uri=f"file:///{name}", name=name, data=text.encode())
        verdict = await self.ingestion.ingest(source, audience=audience, by="tester")
        assert verdict.document_id is not None, verdict.reason
        return verdict.document_id

    def engine(self, model: LanguageModel | None = None) -> AnswerEngine:
        return AnswerEngine(self.store, self.searcher, model or self.extractive, self.extractive)

    async def ask(
        self,
        text: str,
        model: LanguageModel | None = None,
        *,
        audience: Audience = PUBLIC,
        conversation: Conversation | None = None,
    ) -> list[AnswerEvent]:
        """All events of one answer."""
        question = Question(text=text, audience=audience, conversation=conversation or Conversation(id=""))
        return [event async for event in self.engine(model).answer(question)]


@asynccontextmanager
async def open_desk(folder: Path) -> AsyncIterator[Desk]:
    embedder, bm25, readers = WordEmbedder(256), Bm25Encoder(), Readers()
    identity = LibraryIdentity(
        model=embedder.model, dimensions=embedder.dimensions, chunker="test", bm25=Bm25Encoder.VERSION
    )
    store = await EdgeStore.open(folder / "library", identity)
    yield Desk(
        store=store,
        embedder=embedder,
        searcher=Searcher(store, embedder, bm25),
        ingestion=Ingestion(readers, embedder, store, bm25),
        extractive=Extractive(embedder),
    )
    await readers.close()
    await store.close()
