"""The terminal as a chat platform: what the bot posts goes through a queue to the thread that owns the screen.

Nothing is printed here. Replies live in the loop's thread; whoever reads the queue prints, and says so with
`Post.printed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import queue
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from adapters.ingesting import operator_name
from adapters.printing import typed
from bot.messages import Standing
from bot.ports import ChatPlatform, Reply
from bot.results import JobReport
from bot.types import Abstained, Answered, StatusChanged, TextDelta, TextReset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.messages import Message, ThreadMessage, TurnId
    from bot.results import CommandResult
    from bot.types import Abstention, Answer, Source, Stage

_PRINT_SECONDS: Final = 30.0
"""How long a post waits to be printed. After that it counts as posted: it is in line, and will not be lost."""
_REMEMBERED: Final = 1_000
"""Turns whose posts are remembered, for when one of them is taken up again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Earlier questions are answered first; 2 is the second in line."""

    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesPosted:
    """The sources of the answer before it."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A sentence in place of an answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultShown:
    """What a command came to, or how far it is."""

    result: CommandResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnClosed:
    """Nothing more comes of this turn."""


Event = (
    StatusChanged
    | Waits
    | TextDelta
    | TextReset
    | Answered
    | SourcesPosted
    | Abstained
    | Said
    | ResultShown
    | TurnClosed
)


class Post:
    """An event of a turn on its way to the screen. `reply` tells a turn from its second beginning."""

    def __init__(self, reply: TerminalReply, event: Event, loop: asyncio.AbstractEventLoop) -> None:
        self.reply: Final = reply
        self.message: Final = reply.message
        self.turn_id: Final = reply.turn_id
        self.event: Final = event
        self._loop = loop
        self._printed = asyncio.Event()

    def printed(self) -> None:
        """It stands on the screen. Call it from the screen's thread."""
        with contextlib.suppress(RuntimeError):  # the loop is over, and nobody asks any more
            self._loop.call_soon_threadsafe(self._printed.set)

    async def stands(self) -> None:
        """Wait until it does, or until it has waited long enough."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._printed.wait(), _PRINT_SECONDS)


class TerminalPlatform(ChatPlatform):
    """One person's terminal on this machine."""

    def __init__(self, user: str, host: str) -> None:
        """Name the person and the machine: chats of one name can answer for each other."""
        self.user: Final = user
        self.posts: Final[queue.SimpleQueue[Post | None]] = queue.SimpleQueue()
        """What is to be printed, in order. None only wakes up whoever waits."""
        self.on_news: Callable[[], None] = _nothing
        """Called in the loop's thread when a post is in line that a turn waits for, or the last one of a turn."""
        self._name = f"terminal:{user}@{host}"
        self._stands: OrderedDict[TurnId, Standing] = OrderedDict()

    @classmethod
    def here(cls) -> TerminalPlatform:
        """The terminal of whoever runs this process. Blocks while the system looks up the name."""
        return cls(typed(operator_name()), typed(platform.node()) or "localhost")

    @property
    @override
    def name(self) -> str:
        return self._name

    @override
    def reply(self, message: Message, turn_id: TurnId) -> TerminalReply:
        return TerminalReply(self, message, turn_id)

    @override
    async def standing(self, message: Message, turn_id: TurnId) -> Standing:
        # A terminal holds nothing: only what this process printed stands.
        return self._stands.get(turn_id, Standing())

    @override
    async def thread(self, message: Message, limit: int) -> Sequence[ThreadMessage]:
        return ()

    def stands(self, turn_id: TurnId, *, answer: bool = False, sources: bool = False) -> None:
        """Remember what was printed of a turn."""
        known = self._stands.get(turn_id, Standing())
        self._stands[turn_id] = replace(known, answer=known.answer or answer, sources=known.sources or sources)
        while len(self._stands) > _REMEMBERED:
            self._stands.popitem(last=False)

    def put(self, post: Post, *, urgent: bool) -> None:
        """Hand a post to the screen's thread, and wake that when somebody waits for the post."""
        self.posts.put(post)
        if urgent:
            self.on_news()


class TerminalReply(Reply):
    """The posts of one turn."""

    def __init__(self, terminal: TerminalPlatform, message: Message, turn_id: TurnId) -> None:
        self.message: Final = message
        self.turn_id: Final = turn_id
        self._terminal = terminal

    @override
    async def progress(self, stage: Stage) -> None:
        self._put(StatusChanged(stage=stage))

    @override
    async def waiting(self, position: int) -> None:
        self._put(Waits(position=position))

    @override
    async def write(self, text: str) -> None:
        self._put(TextDelta(text=text))

    @override
    async def rewrite(self) -> None:
        self._put(TextReset())

    @override
    async def answer(self, answer: Answer) -> None:
        await self._insist(Answered(answer=answer))
        self._terminal.stands(self.turn_id, answer=True)

    @override
    async def sources(self, sources: Sequence[Source]) -> None:
        await self._insist(SourcesPosted(sources=tuple(sources)))
        self._terminal.stands(self.turn_id, sources=True)

    @override
    async def abstain(self, abstention: Abstention) -> None:
        await self._insist(Abstained(abstention=abstention))
        self._terminal.stands(self.turn_id, answer=True)

    @override
    async def say(self, text: str) -> None:
        await self._insist(Said(text=text))
        self._terminal.stands(self.turn_id, answer=True)

    @override
    async def show(self, result: CommandResult) -> None:
        if isinstance(result, JobReport) and not result.state.is_over:
            self._put(ResultShown(result=result))
            return
        await self._insist(ResultShown(result=result))
        self._terminal.stands(self.turn_id, answer=True)

    @override
    async def close(self) -> None:
        self._put(TurnClosed(), urgent=True)

    def _put(self, event: Event, *, urgent: bool = False) -> Post:
        post = Post(self, event, asyncio.get_running_loop())
        self._terminal.put(post, urgent=urgent)
        return post

    async def _insist(self, event: Event) -> None:
        await self._put(event, urgent=True).stands()


def _nothing() -> None:
    """Nobody waits for it."""
