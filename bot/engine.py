"""AnswerEngine: a question in, a stream of events out. Knows no platform, no vendor and no store's inside."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import (
    BotError,
    LanguageModelError,
    ModelBusyError,
    ModelContextError,
    ModelMisconfiguredError,
    ModelRefusedError,
    ModelUnavailableError,
)
from bot.language import question_language
from bot.phrases import phrase
from bot.prompting import CitationReader, CitationResult
from bot.smalltalk import small_talk
from bot.sources import build_sources
from bot.telemetry import new_error_id
from bot.types import (
    EXTRACTIVE,
    Abstained,
    Abstention,
    AbstentionReason,
    Answer,
    Answered,
    Failed,
    ModelStop,
    Prompt,
    Stage,
    StatusChanged,
    StopReason,
    TextDelta,
    TextReset,
    Timings,
    Usage,
)
from retrieval.errors import RetrievalError
from retrieval.types import Query

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.ports import LanguageModel
    from bot.types import AnswerEvent, Question
    from retrieval.ports import Store
    from retrieval.search import Searcher, SearchResult
    from retrieval.types import Audience, Hit

_HITS: Final = 8
_REWRITES: Final = 2
"""How often an answer is written anew because a document it cites was deleted meanwhile."""
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Clock:
    """Seconds spent on each step."""

    started: float = field(default_factory=time.monotonic)
    search: float = 0.0
    generate: float = 0.0

    def timings(self) -> Timings:
        return Timings(search=self.search, generate=self.generate, total=time.monotonic() - self.started)


@dataclass(slots=True)
class _Writing:
    """What has come of one model's answer so far; filled while its events pass."""

    model: LanguageModel
    citations: CitationResult | None = None
    stop: ModelStop | None = None
    shown: bool = False
    notice: str = ""

    @property
    def is_cut_short(self) -> bool:
        """It ended too early to tell whether the passages answer."""
        unfinished = self.stop is not None and self.stop.reason is StopReason.MAX_TOKENS
        return unfinished and self.citations is not None and not (self.citations.order or self.citations.no_answer)

    def begin_anew(self, model: LanguageModel, notice: str) -> None:
        """Forget what was written; another model goes on."""
        self.model, self.notice = model, notice
        self.citations, self.stop, self.shown = None, None, False


class AnswerEngine:
    """Answers from one library. Safe to use for many questions at the same time."""

    def __init__(
        self,
        store: Store,
        searcher: Searcher,
        model: LanguageModel,
        fallback: LanguageModel,
        *,
        ingest_command: str = "/ingest",
    ) -> None:
        """Ask `model`; when it fails, `fallback`, which needs no network. Refusals name `ingest_command`."""
        self._ingest_command = ingest_command
        self._store = store
        self._searcher = searcher
        self._model = model
        self._fallback = fallback

    async def answer(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        """Yield status and text, then exactly one of Answered, Abstained, Failed. Raises nothing but cancellation.

        Who leaves early closes the generator, and with it the model's stream.
        """
        async with aclosing(self._safely(question, self._model)) as events:
            async for event in events:
                yield event

    async def quote(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        """The same without the language model: the best passages are quoted, and a notice says that it took too long.

        For a question whose time is up.
        """
        async with aclosing(self._safely(question, self._fallback, late=True)) as events:
            async for event in events:
                yield event

    async def _safely(
        self, question: Question, model: LanguageModel, *, late: bool = False
    ) -> AsyncGenerator[AnswerEvent]:
        language = "en"
        try:
            language = await asyncio.to_thread(question_language, question.text)
            notice = phrase("too_late", language) if late else ""
            async with aclosing(self._answer(question, language, _Writing(model=model, notice=notice))) as events:
                async for event in events:
                    yield event
        except (BotError, RetrievalError) as error:
            error_id = new_error_id()
            _log.warning("question_failed", error_id=error_id, kind=type(error).__name__, exc_info=error)
            yield Failed(text=f"{error} (error {error_id})", error_id=error_id)
        except Exception as error:  # noqa: BLE001 - the last line of defence: a question always gets an answer
            error_id = new_error_id()
            _log.error("question_crashed", error_id=error_id, exc_info=error)
            yield Failed(text=phrase("failed", language, id=error_id), error_id=error_id)

    async def _answer(self, question: Question, language: str, wanted: _Writing) -> AsyncGenerator[AnswerEvent]:
        clock = _Clock()
        talk = small_talk(question.text)
        if talk is not None:
            yield Answered(answer=_plain_answer(phrase(talk, language), clock))
            return
        if not any(char.isalnum() for char in question.text):
            yield self._abstained(AbstentionReason.NOT_A_QUESTION, language, clock)
            return
        standalone = question.text
        thread = question.conversation
        if thread.turns or thread.remarks:
            yield StatusChanged(stage=Stage.READING_THREAD)
            standalone = await self._condense(question, wanted.model)
        for _ in range(1 + _REWRITES):
            yield StatusChanged(stage=Stage.SEARCHING)
            result = await self._search(standalone, question.audience, clock)
            if not result.hits or not result.evidence.sufficient:
                yield await self._no_evidence(result, question.audience, language, clock)
                return
            prompt = Prompt(
                question=standalone,
                hits=result.hits,
                turns=thread.turns,
                remarks=thread.remarks,
                language=language,
            )
            writing = replace(wanted)
            yield StatusChanged(stage=Stage.WRITING)
            async with aclosing(self._write_or_quote(prompt, writing, clock)) as events:
                async for event in events:
                    yield event
            if await self._still_there(writing, result.hits, question.audience):
                for event in await asyncio.to_thread(_conclude, writing, result.hits, language, clock):
                    yield event
                return
            yield TextReset()
        yield self._abstained(AbstentionReason.NO_EVIDENCE, language, clock)

    def _abstained(self, reason: AbstentionReason, language: str, clock: _Clock) -> Abstained:
        return _abstained(reason, language, clock, ingest=self._ingest_command)

    async def _condense(self, question: Question, model: LanguageModel) -> str:
        try:
            return await model.condense(question.conversation, question.text)
        except LanguageModelError as error:
            _log.warning("condensing_failed", kind=type(error).__name__, exc_info=error)
            return await self._fallback.condense(question.conversation, question.text)

    async def _search(self, text: str, audience: Audience, clock: _Clock) -> SearchResult:
        started = time.monotonic()
        result = await self._searcher.search(Query(text=text, audience=audience, limit=_HITS))
        clock.search += time.monotonic() - started
        return result

    async def _no_evidence(self, result: SearchResult, audience: Audience, language: str, clock: _Clock) -> Abstained:
        empty = not result.hits and await self._store.count(audience) == 0
        return self._abstained(
            AbstentionReason.EMPTY_LIBRARY if empty else AbstentionReason.NO_EVIDENCE, language, clock
        )

    async def _write_or_quote(self, prompt: Prompt, writing: _Writing, clock: _Clock) -> AsyncGenerator[AnswerEvent]:
        """Let the model write; when it fails, start anew with the fallback and say why."""
        try:
            async with aclosing(self._write(prompt, writing, clock)) as events:
                async for event in events:
                    yield event
        except LanguageModelError as error:
            if writing.shown:
                yield TextReset()
            writing.begin_anew(self._fallback, _fallback_notice(error, prompt.language))
            async with aclosing(self._write(prompt, writing, clock)) as events:
                async for event in events:
                    yield event

    async def _write(self, prompt: Prompt, writing: _Writing, clock: _Clock) -> AsyncGenerator[AnswerEvent]:
        """Stream one model's answer, markers renumbered; what came of it is left in `writing`."""
        started = time.monotonic()
        reader = CitationReader(len(prompt.hits))
        try:
            async with aclosing(writing.model.generate(prompt)) as items:
                async for item in items:
                    if isinstance(item, ModelStop):
                        writing.stop = item
                    elif text := reader.feed(item.text):
                        writing.shown = True
                        yield TextDelta(text=text)
        finally:
            clock.generate += time.monotonic() - started
        writing.citations = reader.finish()
        if writing.citations.rest and not writing.citations.no_answer:
            writing.shown = True
            yield TextDelta(text=writing.citations.rest)
        if writing.is_cut_short:
            message = "The answer reached its length limit before it cited anything."
            raise ModelUnavailableError(message)

    async def _still_there(self, writing: _Writing, hits: tuple[Hit, ...], audience: Audience) -> bool:
        """Whether every cited document may still be cited: none was deleted, replaced or closed while we wrote."""
        cited = {hits[index].chunk for index in writing.citations.order} if writing.citations else set()
        versions = {chunk.document_id: chunk.version for chunk in cited}
        for document_id, version in versions.items():
            record = await self._store.record(document_id)
            if record is None or record.version != version or not record.audience.scopes & audience.scopes:
                return False
        return True


def _conclude(writing: _Writing, hits: tuple[Hit, ...], language: str, clock: _Clock) -> list[AnswerEvent]:
    citations = writing.citations
    if citations is None or citations.no_answer or not citations.order:
        # An answer that cites nothing cannot be checked, so it is none.
        if citations is not None and not citations.no_answer:
            _log.warning("answer_without_citations", model=writing.model.name)
        reset: list[AnswerEvent] = [TextReset()] if writing.shown else []
        return [*reset, _abstained(AbstentionReason.MODEL_ABSTAINED, language, clock)]
    stop, notice = writing.stop, writing.notice
    if not notice and writing.model.name == EXTRACTIVE:
        notice = phrase("extractive", language)
    if stop is not None and stop.reason is StopReason.MAX_TOKENS:
        notice = f"{notice} {phrase('cut_off', language)}".strip()
    answer = Answer(
        text=citations.text.strip(),
        sources=build_sources(citations.text, citations.order, hits),
        model=writing.model.name,
        usage=stop.usage if stop is not None else Usage(),
        timings=clock.timings(),
        notice=notice,
        dropped_markers=citations.dropped,
    )
    return [Answered(answer=answer)]


def _plain_answer(text: str, clock: _Clock) -> Answer:
    return Answer(text=text, sources=(), model="", usage=Usage(), timings=clock.timings())


def _abstained(reason: AbstentionReason, language: str, clock: _Clock, *, ingest: str = "") -> Abstained:
    text = phrase(_TEXTS[reason], language, ingest=ingest)
    return Abstained(abstention=Abstention(reason=reason, text=text, timings=clock.timings()))


_TEXTS: Final = {
    AbstentionReason.EMPTY_LIBRARY: "empty_library",
    AbstentionReason.NO_EVIDENCE: "no_evidence",
    AbstentionReason.MODEL_ABSTAINED: "model_abstained",
    AbstentionReason.NOT_A_QUESTION: "not_a_question",
}


def _fallback_notice(error: LanguageModelError, language: str) -> str:
    error_id = new_error_id()
    _log.warning("model_failed", error_id=error_id, kind=type(error).__name__, exc_info=error)
    return phrase("fallback", language, why=phrase(_why(error), language), id=error_id)


def _why(error: LanguageModelError) -> str:
    """The name of the phrase that tells it in a few words."""
    match error:
        case ModelBusyError():
            return "model_busy"
        case ModelRefusedError():
            return "model_declined"
        case ModelContextError():
            return "model_context"
        case ModelMisconfiguredError():
            return "model_misconfigured"
        case _:
            return "model_unavailable"
