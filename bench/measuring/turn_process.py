"""One bot process of `bench/turns.py`: the real dispatcher on Redis, a stubbed engine, and a chat server over a socket.

Run as a script with the chat server's port, the address of Redis and the stub's seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from bot.admission import Admission, Rules
from bot.codec import decode
from bot.commands import Commands
from bot.conversations import Conversations
from bot.dispatcher import Dispatcher, DispatcherLimits
from bot.dispatcher.answering import Answering
from bot.errors import PlatformError
from bot.history import History
from bot.messages import Message, Outcome, Standing
from bot.redis_embedded import EmbeddedState
from bot.redis_server import ServerState
from bot.settings import load_settings
from bot.telemetry import configure_logging, log_retries_quietly
from bot.turns import FallbackTurns, Turns
from bot.types import Answer, Answered, Source, Stage, StatusChanged, TextDelta, Timings, Usage
from retrieval.types import DocumentId

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence

    from bot.messages import ThreadMessage, TurnId
    from bot.ports import ChatPlatform, State
    from bot.types import AnswerEvent, Question

PLATFORM = "bench"
LEASE_SECONDS = 3.0


class StubbedEngine:
    """Stands in for the answer engine: the extractive model's events after a fixed time."""

    def __init__(self, seconds: float, entered: Callable[[], Any] = lambda: None) -> None:
        self._seconds = seconds
        self._entered = entered

    async def answer(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        yield StatusChanged(stage=Stage.SEARCHING)
        waited = self._entered()
        if waited is not None:
            await waited
        if self._seconds:
            await asyncio.sleep(self._seconds)
        text = f"{question.text} [1]"
        yield TextDelta(text=text)
        source = Source(
            marker=1,
            document_id=DocumentId("d"),
            title="Handbook",
            uri="file:///handbook.pdf",
            page=1,
            last_page=1,
            heading="",
            excerpt="A passage. " * 20,
            score=1.0,
        )
        yield Answered(
            answer=Answer(text=text, sources=(source,), model="extractive", usage=Usage(), timings=Timings())
        )

    async def quote(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        async for event in self.answer(question):
            yield event


class SilentReply:
    """A reply whose posts go to `post(part)`; decorations go nowhere."""

    def __init__(self, post: Callable[[str], Any]) -> None:
        self._post = post

    async def progress(self, stage: Stage) -> None: ...

    async def waiting(self, position: int) -> None: ...

    async def write(self, text: str) -> None: ...

    async def rewrite(self) -> None: ...

    async def answer(self, _: object) -> None:
        await self._post("answer")

    async def sources(self, _: object) -> None:
        await self._post("sources")

    async def abstain(self, _: object) -> None:
        await self._post("answer")

    async def say(self, text: str) -> None:
        await self._post(f"said: {text}")

    async def show(self, _: object) -> None:
        await self._post("answer")

    async def close(self) -> None: ...


class SocketPlatform:
    """A chat platform over a socket: lines of JSON. Posts and questions to the server are acknowledged by number."""

    name = PLATFORM

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def call(self, **request: object) -> dict[str, Any]:
        number = next(self._numbers)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self.send(number=number, **request)
        try:
            return await asyncio.wait_for(future, 20)
        except TimeoutError as error:
            message = "the chat server does not answer"
            raise PlatformError(message) from error
        finally:
            self._waiting.pop(number, None)

    def send(self, **fields: object) -> None:
        self._writer.write(json.dumps(fields).encode() + b"\n")

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        while line := await self._reader.readline():
            fields = json.loads(line)
            if "number" in fields:
                future = self._waiting.get(fields["number"])
                if future is not None and not future.done():
                    future.set_result(fields)
            else:
                yield fields

    def reply(self, message: Message, turn_id: TurnId) -> SilentReply:
        async def post(part: str) -> None:
            await self.call(post=part, turn=turn_id, conversation=message.conversation, message=message.id)

        return SilentReply(post)

    async def standing(self, message: Message, turn_id: TurnId) -> Standing:
        parts = (await self.call(standing=turn_id))["parts"]
        return Standing(answer=any(part != "sources" for part in parts), sources="sources" in parts)

    async def thread(self, message: Message, limit: int) -> Sequence[ThreadMessage]:
        return ()


@asynccontextmanager
async def dispatching(
    state: State, platform: ChatPlatform, engine: StubbedEngine, owner: str, *, max_line: int = 100
) -> AsyncIterator[Dispatcher]:
    """The dispatcher as the bot composes it, with the stubbed engine and without a library."""
    settings = load_settings()
    async with AsyncExitStack() as stack:
        local = await EmbeddedState.open(None)
        stack.push_async_callback(local.close)
        turns_in = partial(Turns, owner=owner, lease_seconds=LEASE_SECONDS, max_line=max_line)
        turns = FallbackTurns(turns_in(state), turns_in(local))
        conversations = Conversations(state, turns=settings.conversation_turns, seconds=86_400)
        history = History(state, days=settings.history_days, entries=settings.history_entries)
        answering = Answering(engine, conversations, history, seconds=60)  # type: ignore[arg-type] # no whole engine
        dispatcher = Dispatcher(
            [platform],
            turns=turns,
            admission=Admission(state, Rules.of(settings, unlimited=True), local),
            answering=answering,
            commands=Commands(None, None, history, conversations),  # type: ignore[arg-type] # no command is given
            limits=DispatcherLimits(lease_seconds=LEASE_SECONDS, drain_seconds=10, max_turns=2_000),
        )
        yield await stack.enter_async_context(dispatcher)


async def serve(port: int, redis_url: str, seconds: float) -> None:
    """Take events from the chat server until it hangs up or SIGTERM comes."""
    configure_logging("error")
    log_retries_quietly()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    platform = SocketPlatform(reader, writer)
    state = await ServerState.open(redis_url, "bench")
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with dispatching(state, platform, StubbedEngine(seconds), f"bench-{port}") as dispatcher:

        async def take(fields: dict[str, Any]) -> None:
            receipt = await dispatcher.receive(decode(Message, fields["deliver"]))
            if receipt.outcome is not Outcome.CLOSING:
                platform.send(ack=fields["delivery"])

        async def listen() -> None:
            async with asyncio.TaskGroup() as group:
                async for fields in platform.events():
                    group.create_task(take(fields))
            stopping.set()

        async with asyncio.TaskGroup() as group:
            listening = group.create_task(listen())
            platform.send(ready=True)
            await stopping.wait()
            dispatcher.close_soon()
            listening.cancel()
    await state.close()
    with contextlib.suppress(OSError):
        writer.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
