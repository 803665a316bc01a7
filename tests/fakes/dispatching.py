"""A dispatcher with a scripted engine: everything between the event and the posts is real."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bot.admission import Admission, Rules
from bot.commands import Commands
from bot.conversations import Conversations
from bot.dispatcher import Dispatcher, DispatcherLimits
from bot.dispatcher.answering import Answering
from bot.history import History
from bot.redis_embedded import EmbeddedState
from bot.settings import load_settings
from bot.turns import FallbackTurns, Turns
from bot.types import (
    Abstained,
    Abstention,
    AbstentionReason,
    Answer,
    Answered,
    Source,
    Stage,
    StatusChanged,
    TextDelta,
    Timings,
    Usage,
)
from retrieval.types import DocumentId

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from bot.ports import ChatPlatform, State
    from bot.types import AnswerEvent, Question

SOURCE = Source(
    marker=1,
    document_id=DocumentId("d"),
    title="Handbook",
    uri="file:///handbook.pdf",
    page=3,
    last_page=3,
    heading="Leave",
    excerpt="Everybody has thirty days of leave.",
    score=1.0,
)


def answer(text: str = "Thirty days [1]", **more: Any) -> Answer:
    given: dict[str, Any] = {
        "text": text,
        "sources": (SOURCE,),
        "model": "extractive",
        "usage": Usage(),
        "timings": Timings(),
    }
    return Answer(**{**given, **more})


@dataclass
class ScriptedEngine:
    """Answers `<question> [1]`; a question that begins with `unknown` gets an abstention. Keeps what it was asked."""

    asked: list[Question] = field(default_factory=list)
    before: dict[str, Callable[[], Any]] = field(default_factory=lambda: defaultdict(lambda: lambda: None))
    """By question's text: awaited before the answer."""

    async def answer(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        self.asked.append(question)
        yield StatusChanged(stage=Stage.SEARCHING)
        waited = self.before[question.text]()
        if waited is not None:
            await waited
        if question.text.startswith("unknown"):
            reason = AbstentionReason.NO_EVIDENCE
            yield Abstained(abstention=Abstention(reason=reason, text="The documents don't tell.", timings=Timings()))
            return
        yield TextDelta(text=f"{question.text} ")
        yield TextDelta(text="[1]")
        yield Answered(answer=answer(f"{question.text} [1]"))

    async def quote(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        yield Answered(answer=answer("quoted [1]", notice="It took too long."))


@dataclass
class Desk:
    dispatcher: Dispatcher
    conversations: Conversations
    history: History
    turns: FallbackTurns


@asynccontextmanager
async def dispatching(
    state: State,
    platform: ChatPlatform,
    engine: Any,
    *,
    owner: str = "a",
    lease_seconds: float = 5.0,
    drain_seconds: float = 5.0,
    turn_seconds: float = 30.0,
    max_line: int = 5,
    max_turns: int = 1_000,
    library: Any = None,
    jobs: Any = None,
    **settings: Any,
) -> AsyncIterator[Desk]:
    loaded = load_settings(**settings)
    async with AsyncExitStack() as stack:
        local = await EmbeddedState.open(None)
        stack.push_async_callback(local.close)
        kept: dict[str, Any] = {"owner": owner, "lease_seconds": lease_seconds, "max_line": max_line}
        turns = FallbackTurns(Turns(state, **kept), Turns(local, **kept), patience=0.5)
        conversations = Conversations(state, turns=20, seconds=86_400)
        history = History(state, days=30, entries=1_000)
        dispatcher = Dispatcher(
            [platform],
            turns=turns,
            admission=Admission(state, Rules.of(loaded, unlimited=True), local),
            answering=Answering(engine, conversations, history, seconds=turn_seconds),
            commands=Commands(library, jobs, history, conversations),
            limits=DispatcherLimits(lease_seconds=lease_seconds, drain_seconds=drain_seconds, max_turns=max_turns),
        )
        await stack.enter_async_context(dispatcher)
        yield Desk(dispatcher, conversations, history, turns)


async def eventually(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any condition
            await asyncio.sleep(0.01)
