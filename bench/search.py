"""Time of a question's embedding and search in a library of many chunks, in one process.

The library is made up: texts of words from a seeded generator whose frequencies fall as in a language (Zipf), and
random vectors, since embedding 20,000 chunks would take most of an hour. Dense search compares with every vector, so
their values don't matter for time; the questions are embedded by the real model. Ends with 1 when the median is over
30 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4, uuid5

import numpy as np
from measuring.machine import describe, verdict

from bot.app import identity_of, open_embedder, open_store
from bot.settings import load_settings
from retrieval.bm25 import Bm25Encoder
from retrieval.ports import IndexedChunk
from retrieval.search import Searcher
from retrieval.types import PUBLIC, Chunk, ChunkId, ChunkKind, DocumentId, DocumentRecord, Query, VersionId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.ports import Store

VOCABULARY = 30_000
CHUNK_WORDS = 150
QUESTION_WORDS = 5
"""With "What is" as long as the usual question of SQuAD 2.0 (54 characters), and more tokens."""
CHUNKS_A_DOCUMENT = 100
WARM_UP = 10
SYLLABLES = [
    "ka",
    "be",
    "ti",
    "ro",
    "mu",
    "sen",
    "dal",
    "vor",
    "lin",
    "pas",
    "qui",
    "tor",
    "me",
    "na",
    "gri",
    "sho",
    "el",
    "um",
    "fa",
    "zi",
]


class Language:
    """Words of two to four syllables, the n-th most frequent one with a frequency of 1/n."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        made: dict[str, None] = {}
        while len(made) < VOCABULARY:
            made["".join(self.random.choice(SYLLABLES, self.random.integers(2, 5)))] = None
        self._words = np.array(list(made))
        shares = 1 / np.arange(1, VOCABULARY + 1)
        self._shares = shares / shares.sum()

    def text(self, words: int) -> str:
        """So many words."""
        return " ".join(self.random.choice(self._words, words, p=self._shares))


def _document(
    number: int, texts: Sequence[str], vectors: np.ndarray, bm25: Bm25Encoder
) -> tuple[DocumentRecord, list[IndexedChunk]]:
    version = VersionId(str(uuid4()))
    record = DocumentRecord(
        id=DocumentId(str(uuid4())),
        version=version,
        uri=f"made-up:{number}",
        title=f"Document {number}",
        media_type="text/plain",
        digest="",
        page_count=None,
        chunk_count=len(texts),
        language=None,
        audience=PUBLIC,
        ingested_at=datetime.now(UTC),
        ingested_by="bench",
    )
    chunks = [
        Chunk(
            id=ChunkId(str(uuid5(UUID(version), str(ordinal)))),
            document_id=record.id,
            version=version,
            ordinal=ordinal,
            kind=ChunkKind.PROSE,
            text=text,
            title=record.title,
            uri=record.uri,
            heading_path=(f"Section {ordinal // 5}",),
            page=None,
            last_page=None,
            start=0,
            end=len(text),
            tokens=CHUNK_WORDS,
            audience=PUBLIC,
        )
        for ordinal, text in enumerate(texts)
    ]
    sparse = bm25.encode_documents([chunk.embedded_text for chunk in chunks])
    return record, [
        IndexedChunk(chunk=chunk, dense=vector, sparse=words)
        for chunk, vector, words in zip(chunks, vectors, sparse, strict=True)
    ]


async def _fill(store: Store, language: Language, chunks: int, dimensions: int, bm25: Bm25Encoder) -> None:
    for number, start in enumerate(range(0, chunks, CHUNKS_A_DOCUMENT)):
        size = min(CHUNKS_A_DOCUMENT, chunks - start)
        vectors = language.random.standard_normal((size, dimensions)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        record, indexed = _document(number, [language.text(CHUNK_WORDS) for _ in range(size)], vectors, bm25)
        await store.replace(record, indexed)
    await store.optimize()


async def _measure(home: Path, given: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Milliseconds of embedding and of all, a question each."""
    bm25, language = Bm25Encoder(), Language(seed=7)
    async with AsyncExitStack() as stack:
        say = partial(print, file=sys.stderr)
        embedder = await open_embedder(load_settings(home=given.home or home), stack, say)
        store = await open_store(
            load_settings(home=home).model_copy(update={"qdrant_url": None}), identity_of(embedder)
        )
        stack.push_async_callback(store.close)
        started = time.monotonic()
        await _fill(store, language, given.chunks, embedder.dimensions, bm25)
        print(f"{given.chunks:,} chunks stored in {time.monotonic() - started:.1f} s")
        searcher = Searcher(store, embedder, bm25)
        embedding, whole = [], []
        for number in range(WARM_UP + given.queries):
            text = f"What is {language.text(given.question_words)}?"
            started = time.perf_counter()
            await embedder.embed_query(text)
            embedded = time.perf_counter()
            await searcher.search(Query(text=text, audience=PUBLIC))  # takes the vector from the embedder's cache
            ended = time.perf_counter()
            if number >= WARM_UP:
                embedding.append(1000 * (embedded - started))
                whole.append(1000 * (ended - started))
        return embedding, whole


def _line(name: str, milliseconds: list[float]) -> str:
    p95, p99 = np.percentile(milliseconds, [95, 99])
    return f"{name}: median {statistics.median(milliseconds):.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--question-words", type=int, default=QUESTION_WORDS)
    parser.add_argument("--most-milliseconds", type=float, default=30.0)
    parser.add_argument("--home", type=Path, help="Footnote's home, for the prepared model; its library is not touched")
    given = parser.parse_args()
    print(describe())
    with tempfile.TemporaryDirectory(prefix="footnote-bench-") as folder:
        embedding, whole = asyncio.run(_measure(Path(folder), given))
    print(describe())
    print(_line("embedding alone", embedding))
    print(_line("embedding and search", whole))
    median = statistics.median(whole)
    return 0 if verdict("embedding and search, median", median, given.most_milliseconds, "ms") else 1


if __name__ == "__main__":
    sys.exit(main())
