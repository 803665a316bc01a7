"""Measures the product on a question set: how well it finds, whether it abstains where it should, how fast it is.

The set's corpus is indexed in a temporary library, by the ingestion and the store that the product uses, and searched
as the product searches. Documents are ranked by their best chunk.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bot.app import identity_of, open_embedder, open_store
from bot.errors import QuestionSetError
from bot.question_sets import EvaluationQuestion, QuestionSet, load_question_set
from retrieval.bm25 import Bm25Encoder
from retrieval.ingestion import Ingestion
from retrieval.readers.entries import EntryReader, entry_source, entry_uri
from retrieval.relevance import hit, ndcg, recall, reciprocal_rank
from retrieval.search import Searcher
from retrieval.types import PUBLIC, Query
from retrieval.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from bot.settings import Settings
    from retrieval.ports import Embedder
    from retrieval.types import Hit, SourceFile

    Report = Callable[[str, int, int], None]
    """Takes what is being done (`indexing`, `asking`), how many are done, and of how many."""

_DEPTH: Final = 10
_RANKED_CHUNKS: Final = 50
"""Chunks that are asked for, so that they come from ten documents at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationReport:
    """The figures of one set. Quality is a mean from 0 to 1 over the answerable questions with a relevant entry.

    `abstained_unanswerable` is the share of the unanswerable questions that the evidence gate stops,
    `abstained_answerable` the share of the answerable ones that it stops wrongly. None where there is no such question.
    `passages` counts the chunks indexed, in `seconds`. A query's milliseconds are those of embedding and search.
    """

    set: str
    queries: int
    passages: int
    ndcg_10: float | None
    mrr_10: float | None
    recall_1: float | None
    recall_5: float | None
    recall_10: float | None
    hit_3: float | None
    hit_5: float | None
    abstained_unanswerable: float | None
    abstained_answerable: float | None
    seconds: float
    passages_per_second: float
    query_ms_median: float
    query_ms_p95: float

    def as_dict(self) -> dict[str, str | int | float | None]:
        """The figures by the names they are known by, such as `ndcg@10`."""
        return {
            "set": self.set,
            "queries": self.queries,
            "passages": self.passages,
            "ndcg@10": self.ndcg_10,
            "mrr@10": self.mrr_10,
            "recall@1": self.recall_1,
            "recall@5": self.recall_5,
            "recall@10": self.recall_10,
            "hit@3": self.hit_3,
            "hit@5": self.hit_5,
            "abstained_unanswerable": self.abstained_unanswerable,
            "abstained_answerable": self.abstained_answerable,
            "seconds": self.seconds,
            "passages_per_second": self.passages_per_second,
            "query_ms_median": self.query_ms_median,
            "query_ms_p95": self.query_ms_p95,
        }


async def evaluate(folder: Path, settings: Settings, report: Report = lambda _, __, ___: None) -> EvaluationReport:
    """Index the set in `folder` and ask its questions, one after the other.

    nDCG is computed with gains `2^grade - 1` (see `retrieval.relevance`).

    Raises:
        QuestionSetError: The set is missing or malformed, or an entry could not be indexed.
        RetrievalError: The model or the store failed.
    """
    questions = await asyncio.to_thread(load_question_set, folder)
    async with AsyncExitStack() as stack:
        embedder = await open_embedder(settings, stack, lambda _: None)
        return await measure(questions, settings, embedder, report)


async def measure(
    questions: QuestionSet, settings: Settings, embedder: Embedder, report: Report = lambda _, __, ___: None
) -> EvaluationReport:
    """`evaluate` with a set and a model that are loaded already. Raises the same, where they apply."""
    async with index(questions, settings, embedder, report) as library:
        outcomes = []
        for number, question in enumerate(questions.questions):
            report("asking", number, len(questions.questions))
            outcomes.append(await _ask(question, questions.name, library.searcher))
        report("asking", len(outcomes), len(outcomes))
        return _summarise(questions, library, outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedSet:
    """A set's temporary library. `seconds` that indexing took, without loading the model."""

    searcher: Searcher
    passages: int
    seconds: float


@asynccontextmanager
async def index(
    questions: QuestionSet, settings: Settings, embedder: Embedder, report: Report = lambda _, __, ___: None
) -> AsyncIterator[IndexedSet]:
    """Index a set's corpus in a library of its own, which is gone at the end.

    Raises:
        QuestionSetError: An entry could not be indexed.
        RetrievalError: The store failed.
    """
    bm25 = Bm25Encoder()
    async with AsyncExitStack() as stack:
        home = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="footnote-eval-"))
        stack.push_async_callback(asyncio.to_thread, shutil.rmtree, home, ignore_errors=True)
        # On disk here, whatever holds the user's library.
        private = settings.model_copy(update={"home": home, "qdrant_url": None})
        store = await open_store(private, identity_of(embedder))
        stack.push_async_callback(store.close)
        started = time.monotonic()
        passages = await _index_all(questions, Ingestion(EntryReader(), embedder, store, bm25), report)
        await store.optimize()
        seconds = time.monotonic() - started
        yield IndexedSet(searcher=Searcher(store, embedder, bm25), passages=passages, seconds=seconds)


async def _index_all(questions: QuestionSet, ingestion: Ingestion, report: Report) -> int:
    """Index every entry; one without text is left out, as the product leaves out an empty file."""
    passages = done = 0
    report("indexing", 0, len(questions.corpus))
    async with aclosing(ingestion.ingest_many(_sources(questions), audience=PUBLIC, by="evaluation")) as verdicts:
        async for verdict in verdicts:
            if verdict.outcome is Outcome.FAILED:
                message = f"{verdict.uri}: {verdict.reason}"
                raise QuestionSetError(message)
            passages += verdict.chunks
            done += 1
            report("indexing", done, len(questions.corpus))
    return passages


async def _sources(questions: QuestionSet) -> AsyncIterator[SourceFile]:
    for entry in questions.corpus:
        yield entry_source(questions.name, entry.id, entry.title, entry.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What a question came to: entries by rank, whether the gate abstained, the seconds of the search."""

    question: EvaluationQuestion
    ranking: tuple[str, ...]
    abstained: bool
    seconds: float


async def _ask(question: EvaluationQuestion, corpus: str, searcher: Searcher) -> _Outcome:
    """Search twice: as the product does, for the time and the gate; then for more chunks, for the ranking."""
    query = Query(text=question.text, audience=PUBLIC)
    started = time.monotonic()
    result = await searcher.search(query)
    seconds = time.monotonic() - started
    longer = await searcher.search(replace(query, limit=_RANKED_CHUNKS))
    return _Outcome(
        question=question,
        ranking=_entries(longer.hits, corpus),
        abstained=not result.evidence.sufficient,
        seconds=seconds,
    )


def _entries(hits: Sequence[Hit], corpus: str) -> tuple[str, ...]:
    """The corpus entries of these chunks, each once, at the place of its best chunk."""
    prefix = entry_uri(corpus, "")
    return tuple(dict.fromkeys(item.chunk.uri.removeprefix(prefix) for item in hits))


def _summarise(questions: QuestionSet, library: IndexedSet, outcomes: Sequence[_Outcome]) -> EvaluationReport:
    graded = [
        item for item in outcomes if item.question.answerable and any(g > 0 for g in item.question.relevance.values())
    ]

    def quality(figure: Callable[..., float], depth: int) -> float | None:
        return _mean([figure(item.ranking, item.question.relevance, depth) for item in graded])

    milliseconds = sorted(item.seconds * 1000 for item in outcomes)
    return EvaluationReport(
        set=questions.name,
        queries=len(outcomes),
        passages=library.passages,
        ndcg_10=quality(ndcg, _DEPTH),
        mrr_10=quality(reciprocal_rank, _DEPTH),
        recall_1=quality(recall, 1),
        recall_5=quality(recall, 5),
        recall_10=quality(recall, 10),
        hit_3=quality(hit, 3),
        hit_5=quality(hit, 5),
        abstained_unanswerable=_mean([float(item.abstained) for item in outcomes if not item.question.answerable]),
        abstained_answerable=_mean([float(item.abstained) for item in outcomes if item.question.answerable]),
        seconds=library.seconds,
        passages_per_second=library.passages / library.seconds,
        query_ms_median=statistics.median(milliseconds),
        query_ms_p95=milliseconds[max(0, -(-len(milliseconds) * 95 // 100) - 1)],
    )


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None
