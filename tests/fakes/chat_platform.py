"""A chat platform in memory: keeps what is posted, and fails where it is told to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bot.messages import Author, Message, Standing
from bot.results import JobReport
from retrieval.types import Audience

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.messages import ThreadMessage, TurnId


@dataclass
class Post:
    """Something that stands on the platform for good. `kind`: answer, sources, abstention, said or result."""

    turn: TurnId
    message: str
    conversation: str
    kind: str
    body: Any


@dataclass
class FakePlatform:
    """`failing` maps a method's name to what it raises: an exception, or a list of them used up one by one."""

    name: str = "fake"
    posts: list[Post] = field(default_factory=list)
    decorations: list[tuple[str, Any]] = field(default_factory=list)
    failing: dict[str, Any] = field(default_factory=dict)
    history: list[ThreadMessage] = field(default_factory=list)
    before: dict[str, Callable[[], Any]] = field(default_factory=lambda: defaultdict(lambda: lambda: None))
    """Awaited before a method does its work."""
    posted: asyncio.Event = field(default_factory=asyncio.Event)

    async def act(self, method: str) -> None:
        waited = self.before[method]()
        if waited is not None:
            await waited
        failure = self.failing.get(method)
        if isinstance(failure, list):
            failure = failure.pop(0) if failure else None
        if failure is not None:
            raise failure

    def reply(self, message: Message, turn_id: TurnId) -> FakeReply:
        return FakeReply(self, message, turn_id)

    async def standing(self, message: Message, turn_id: TurnId) -> Standing:
        await self.act("standing")
        kinds = [post.kind for post in self.posts if post.turn == turn_id and not _is_progress(post)]
        return Standing(answer=any(kind != "sources" for kind in kinds), sources="sources" in kinds)

    async def thread(self, message: Message, limit: int) -> Sequence[ThreadMessage]:
        await self.act("thread")
        return self.history[-limit:]

    def kinds(self, message: Message) -> list[str]:
        """What was posted for a message, in order."""
        return [post.kind for post in self.posts if post.turn == message.turn_id]

    def bodies(self, message: Message) -> list[Any]:
        return [post.body for post in self.posts if post.turn == message.turn_id]


def _is_progress(post: Post) -> bool:
    return isinstance(post.body, JobReport) and not post.body.state.is_over


@dataclass
class FakeReply:
    platform: FakePlatform
    message: Message
    turn_id: TurnId
    streamed: str = ""
    closed: bool = False

    async def _decorate(self, method: str, value: Any) -> None:
        await self.platform.act(method)
        self.platform.decorations.append((method, value))

    async def _post(self, method: str, kind: str, body: Any) -> None:
        await self.platform.act(method)
        post = Post(self.turn_id, self.message.id, self.message.conversation, kind, body)
        self.platform.posts.append(post)
        self.platform.posted.set()
        await self.platform.act(f"after_{method}")

    async def progress(self, stage: Any) -> None:
        await self._decorate("progress", stage)

    async def waiting(self, position: int) -> None:
        await self._decorate("waiting", position)

    async def write(self, text: str) -> None:
        await self._decorate("write", text)
        self.streamed += text

    async def rewrite(self) -> None:
        await self._decorate("rewrite", None)
        self.streamed = ""

    async def answer(self, answer: Any) -> None:
        await self._post("answer", "answer", answer)

    async def sources(self, sources: Any) -> None:
        await self._post("sources", "sources", sources)

    async def abstain(self, abstention: Any) -> None:
        await self._post("abstain", "abstention", abstention)

    async def say(self, text: str) -> None:
        await self._post("say", "said", text)

    async def show(self, result: Any) -> None:
        await self._post("show", "result", result)

    async def close(self) -> None:
        await self._decorate("close", None)
        self.closed = True


def asked(text: str, *, id: str = "1", conversation: str = "fake:T1:C1:1", **more: Any) -> Message:  # noqa: A002 - as the field is called
    """A message as an adapter would make it."""
    given: dict[str, Any] = {
        "platform": "fake",
        "id": id,
        "conversation": conversation,
        "workspace": "T1",
        "channel": "C1",
        "author": Author(id="fake:T1:U1", name="Ada"),
        "text": text,
        "sent_at": datetime.now(UTC),
        "audience": Audience.asker("fake:T1:C1"),
    }
    return Message(**{**given, **more})
