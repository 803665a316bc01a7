"""What a process that answers on chat platforms runs: the dispatcher with its parts, and a worker for jobs."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import structlog

from bot import metrics
from bot.admission import Admission, Rules
from bot.commands import Commands
from bot.conversations import Conversations
from bot.dispatcher import Dispatcher, DispatcherLimits
from bot.dispatcher.answering import Answering
from bot.errors import StateError
from bot.history import History
from bot.jobs import JobLimits, Jobs
from bot.language import question_language
from bot.redis_embedded import EmbeddedState
from bot.telemetry import log_retries_quietly
from bot.turns import FallbackTurns, Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from bot.app import App
    from bot.ports import ChatPlatform, Fetcher, State

_DAY: Final = 86_400.0
_JOBS_DRAIN_SECONDS: Final = 5.0
"""Jobs had the time of the turns to come to their end; then they get this."""
_LOOK_SECONDS: Final = 0.5
"""Between two tries to find out, while the state is away, whether there are jobs."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What adapters of platforms need."""

    state: State
    dispatcher: Dispatcher
    conversations: Conversations
    history: History
    jobs: Jobs


@asynccontextmanager
async def open_service(
    app: App,
    state: State,
    platforms: Sequence[ChatPlatform],
    fetchers: Mapping[str, Fetcher],
    *,
    at_home: bool = False,
    works: bool = True,
    ingest_command: str = "/ingest",
) -> AsyncIterator[Service]:
    """Answer on these platforms until the block is left; then what is under way comes to its end, for a time.

    Args:
        app: The library and its engine.
        state: Redis, or what stands in for it in this process.
        platforms: Where to answer.
        fetchers: By kind of platform, what brings the documents that are to be ingested.
        at_home: The operator's own terminal: no limit of questions per minute unless one is set, and no allow-lists,
            which are about the ids of chat platforms.
        works: Run jobs in this process too, once there are any.
        ingest_command: What refusals name.
    """
    log_retries_quietly()
    settings = app.settings
    rules = Rules.of(settings, unlimited=at_home)
    if at_home:
        rules = replace(rules, workspaces=frozenset(), channels=frozenset(), users=frozenset())
    # The first call of the language detector takes a third of a second, and admission calls it on the loop.
    await asyncio.to_thread(question_language, "warm up")
    # Names this process to whoever looks into the state.
    owner = f"{socket.gethostname()}:{os.getpid()}"
    async with AsyncExitStack() as stack:
        stack.enter_context(metrics.shown(settings.metrics_host, settings.metrics_port))
        local = await EmbeddedState.open(None, settings.state_namespace)
        stack.push_async_callback(local.close)
        turns = FallbackTurns(
            *(
                Turns(place, owner=owner, lease_seconds=settings.lease_seconds, max_line=settings.max_line)
                for place in (state, local)
            )
        )
        conversations = Conversations(
            state, turns=settings.conversation_turns, seconds=settings.conversation_days * _DAY
        )
        history = History(state, days=settings.history_days, entries=settings.history_entries)
        jobs = Jobs(
            state,
            app.ingestion,
            app.store,
            fetchers,
            replace(JobLimits.of(settings), drain_seconds=min(settings.drain_seconds, _JOBS_DRAIN_SECONDS)),
            redis_url=settings.redis_url,
            namespace=settings.state_namespace,
        )
        stack.push_async_callback(jobs.close)
        if works:
            await stack.enter_async_context(_working_when_needed(jobs))
        dispatcher = Dispatcher(
            platforms,
            turns=turns,
            admission=Admission(state, rules, local, ingest_command=ingest_command),
            answering=Answering(
                app.engine, conversations, history, seconds=settings.turn_seconds, away=lambda: turns.degraded
            ),
            commands=Commands(app.library, jobs, history, conversations),
            limits=DispatcherLimits(
                lease_seconds=settings.lease_seconds,
                drain_seconds=settings.drain_seconds,
                max_turns=settings.max_turns,
            ),
        )
        for platform in platforms:
            # What a process before this one left is taken up at once.
            await turns.free(platform.name)
        await stack.enter_async_context(dispatcher)
        yield Service(state=state, dispatcher=dispatcher, conversations=conversations, history=history, jobs=jobs)


@asynccontextmanager
async def _working_when_needed(jobs: Jobs) -> AsyncIterator[None]:
    """Run a worker from the first job on: what runs it takes more than a second to load."""
    closing = asyncio.Event()

    async def work() -> None:
        await _needed(jobs)
        async with jobs.worker():
            await closing.wait()

    working = asyncio.create_task(work())  # noqa: TID251 - awaited below
    try:
        yield
    finally:
        closing.set()
        if not jobs.needed.is_set():
            working.cancel()
        await asyncio.wait([working])


async def _needed(jobs: Jobs) -> None:
    """Wait until there are jobs: begun from here, or left by a process before this one."""
    while not jobs.needed.is_set():
        try:
            if await jobs.any_open():
                jobs.needed.set()
            break
        except StateError:
            await asyncio.sleep(_LOOK_SECONDS)
    await jobs.needed.wait()
