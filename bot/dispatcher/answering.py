"""A question's turn: remember the thread, answer within the time, keep what was composed, post it, remember it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import stamina
import structlog

from bot.codec import decode, encode
from bot.conversations import merged
from bot.dispatcher.turn import Composed
from bot.errors import MalformedStateError, PlatformError, StateError, StateUnavailableError
from bot.language import question_language
from bot.messages import Outcome
from bot.phrases import phrase
from bot.results import HistoryEntry
from bot.telemetry import new_error_id
from bot.types import Abstained, Answered, Conversation, Failed, Question, StatusChanged, TextDelta, TextReset
from bot.types import Turn as RememberedTurn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from bot.conversations import Conversations
    from bot.dispatcher.posting import Posting
    from bot.dispatcher.turn import Turn
    from bot.engine import AnswerEngine
    from bot.history import History
    from bot.messages import ThreadMessage
    from bot.types import AnswerEvent

T = TypeVar("T")

_STREAM_SECONDS: Final = 10.0
_STREAM_SHARE: Final = 0.25
"""How long a slow platform may hold up the answer while it is streamed: so many seconds or this share of the time."""
_THREAD_MESSAGES: Final = 50
"""Messages of the platform's own thread that are looked at."""
_THREAD_SECONDS: Final = 5.0
"""How long the platform may take to tell them; a rate-limited one is done without."""
_QUOTE_SECONDS: Final = 30.0
"""How long quoting the best passages may take once the time is up."""
_PATIENCE_SECONDS: Final = 3.0
"""How long a turn waits for a state that has just gone away; it may only be starting anew."""
_log = structlog.get_logger(__name__)


class Answering:
    """Answers the questions of all platforms from one engine."""

    def __init__(
        self,
        engine: AnswerEngine,
        conversations: Conversations,
        history: History,
        *,
        seconds: float,
        away: Callable[[], bool] = lambda: False,
    ) -> None:
        """Use these.

        Args:
            engine: Answers.
            conversations: Remembers threads.
            history: Remembers all questions.
            seconds: How long a question may take in all; after that the best passages are quoted.
            away: Whether the state is known to be away for longer, so that waiting for it is no use.
        """
        self._away = away
        self._engine = engine
        self._conversations = conversations
        self._history = history
        self._seconds = seconds

    async def run(self, turn: Turn) -> Outcome:
        """Answer. Raises PlatformError when it could not be posted, and LeaseLostError."""
        composed = _kept(turn)
        if turn.standing.answer:
            # A process died between posting and completing. What it had composed tells whether sources are missing.
            composed = composed or Composed()
            await self._attach_sources(turn, composed)
            await self._remember(turn, composed)
            return composed.outcome if composed != Composed() else Outcome.ANSWERED
        if composed is None:
            composed = await self._compose(turn)
            if not await turn.keep(encode(composed)):
                await turn.posting.rewrite()
                return Outcome.WITHDRAWN
        await self._post(turn, composed)
        await self._remember(turn, composed)
        return composed.outcome

    async def _compose(self, turn: Turn) -> Composed:
        message = turn.message
        conversation, without_memory = await self._conversation(turn)
        turn.posting.stream_for(min(_STREAM_SECONDS, _STREAM_SHARE * self._seconds))
        question = Question(text=message.text, audience=message.audience, conversation=conversation)
        try:
            async with asyncio.timeout(self._seconds):
                composed = await _listen(self._engine.answer(question), turn.posting)
        except TimeoutError:
            await turn.posting.rewrite()
            composed = await self._quote(question, turn.posting)
        if without_memory:
            language = await asyncio.to_thread(question_language, message.text)
            composed = _noting(composed, phrase("no_memory", language))
        return composed

    async def _quote(self, question: Question, posting: Posting) -> Composed:
        try:
            async with asyncio.timeout(_QUOTE_SECONDS):
                return await _listen(self._engine.quote(question), posting)
        except TimeoutError as error:
            error_id = new_error_id()
            _log.error("question_timed_out", error_id=error_id, exc_info=error)
            language = await asyncio.to_thread(question_language, question.text)
            return Composed(failure=phrase("failed", language, id=error_id))

    async def _conversation(self, turn: Turn) -> tuple[Conversation, bool]:
        """The thread as we remember it and as the platform shows it; whether our memory could not be reached."""
        async with asyncio.TaskGroup() as group:
            remembering, looking = group.create_task(self._memory(turn)), group.create_task(_seen(turn))
        memory, seen = remembering.result(), looking.result()
        conversation = memory or Conversation(id=turn.message.conversation)
        return conversation if seen is None else merged(conversation, turn.message, seen), memory is None

    async def _memory(self, turn: Turn) -> Conversation | None:
        """The thread as we remember it; None: the state is away."""
        try:
            return await self._patiently(lambda: self._conversations.load(turn.message.conversation))
        except StateError as error:
            _log.warning("conversation_unreachable", kind=type(error).__name__, exc_info=error)
            return None

    async def _post(self, turn: Turn, composed: Composed) -> None:
        if composed.answer is not None:
            await turn.posting.answer(composed.answer)
            await self._attach_sources(turn, composed)
        elif composed.abstention is not None:
            await turn.posting.abstain(composed.abstention)
        else:
            await turn.posting.say(composed.failure)

    async def _attach_sources(self, turn: Turn, composed: Composed) -> None:
        if composed.answer is None or not composed.answer.sources or turn.standing.sources:
            return
        try:
            await turn.posting.sources(composed.answer.sources)
        except PlatformError as error:
            # The answer is out; its markers resolve in the history.
            _log.error("sources_not_posted", turn=turn.pending.id, platform=turn.message.platform, exc_info=error)

    async def _remember(self, turn: Turn, composed: Composed) -> None:
        """Into the thread's memory and the history, each for itself. Doing it twice is doing it once."""
        if composed == Composed():
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(turn, lambda: self._history.record(_entry(turn, composed))))
            if composed.outcome is not Outcome.FAILED:
                remembered = _remembered(turn, composed)
                keep = self._keep(turn, lambda: self._conversations.append(turn.message.conversation, remembered))
                group.create_task(keep)

    async def record_failure(self, turn: Turn, text: str) -> None:
        """Into the history: a question that was not answered, and what the asker was told."""
        await self._keep(turn, lambda: self._history.record(_entry(turn, Composed(failure=text))))

    async def _keep(self, turn: Turn, call: Callable[[], Awaitable[None]]) -> None:
        """The reply is out: what fails here is logged, and no more."""
        try:
            await self._patiently(call)
        except Exception as error:  # noqa: BLE001 - mostly a StateError
            _log.warning("turn_not_remembered", turn=turn.pending.id, kind=type(error).__name__, exc_info=error)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Do it; if the state has just gone away, again and again for some seconds."""
        try:
            return await call()
        except StateUnavailableError:
            if self._away():
                raise
        caller = stamina.AsyncRetryingCaller(attempts=20, timeout=_PATIENCE_SECONDS, wait_initial=0.05, wait_max=0.5)
        return await caller(StateUnavailableError, call)


async def _seen(turn: Turn) -> Sequence[ThreadMessage] | None:
    """What the platform shows of the thread; None: it does not tell."""
    try:
        async with asyncio.timeout(_THREAD_SECONDS):
            return await turn.platform.thread(turn.message, _THREAD_MESSAGES)
    except Exception as error:  # noqa: BLE001 - whatever a platform does here, the question is answered
        _log.warning("thread_unreachable", platform=turn.message.platform, exc_info=error)
        return None


async def _listen(events: AsyncGenerator[AnswerEvent], posting: Posting) -> Composed:
    """Show what the engine yields; what it ends in."""
    async with aclosing(events):
        async for event in events:
            match event:
                case StatusChanged(stage=stage):
                    await posting.progress(stage)
                case TextDelta(text=text):
                    await posting.write(text)
                case TextReset():
                    await posting.rewrite()
                case Answered(answer=answer):
                    return Composed(answer=answer)
                case Abstained(abstention=abstention):
                    return Composed(abstention=abstention)
                case Failed(text=text):
                    return Composed(failure=text)
    message = "the engine ended without an answer"
    raise RuntimeError(message)


def _noting(composed: Composed, notice: str) -> Composed:
    """With a sentence on how it came about."""
    if (answer := composed.answer) is not None:
        return replace(composed, answer=replace(answer, notice=f"{answer.notice} {notice}".strip()))
    if (abstention := composed.abstention) is not None:
        return replace(composed, abstention=replace(abstention, text=f"{abstention.text} {notice}"))
    return composed


def _kept(turn: Turn) -> Composed | None:
    """What an earlier process composed for this turn."""
    if turn.pending.answer is None:
        return None
    try:
        return decode(Composed, turn.pending.answer)
    except MalformedStateError:
        _log.warning("malformed_state", kind="composed", key=turn.pending.id)
        return None


def _reply_of(composed: Composed) -> str:
    if composed.answer is not None:
        return composed.answer.text
    return composed.abstention.text if composed.abstention is not None else composed.failure


def _remembered(turn: Turn, composed: Composed) -> RememberedTurn:
    message = turn.message
    return RememberedTurn(
        id=turn.pending.id,
        question=message.text,
        reply=_reply_of(composed),
        author=message.author.name or message.author.id,
        asked_at=message.sent_at,
        sources=composed.answer.sources if composed.answer is not None else (),
    )


def _entry(turn: Turn, composed: Composed) -> HistoryEntry:
    message, answer, abstention = turn.message, composed.answer, composed.abstention
    entry = HistoryEntry(
        id=turn.pending.id,
        asked_at=message.sent_at,
        platform=message.platform,
        workspace=message.workspace,
        channel=message.channel,
        conversation=message.conversation,
        author=message.author,
        audience=message.audience,
        question=message.text,
        reply=_reply_of(composed),
        outcome=composed.outcome,
    )
    if answer is not None:
        return replace(
            entry,
            sources=answer.sources,
            model=answer.model,
            usage=answer.usage,
            timings=answer.timings,
            notice=answer.notice,
        )
    if abstention is not None:
        return replace(entry, reason=abstention.reason, timings=abstention.timings)
    return entry
