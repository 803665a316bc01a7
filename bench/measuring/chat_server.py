"""A chat platform made up for `bench/turns.py`: delivers events, some of them several times, and keeps what is posted.

As the real ones it delivers an event again when it was not acknowledged, and the messages of a thread in their order.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bot.codec import encode
from bot.messages import Author, Message
from measuring.turn_process import PLATFORM
from retrieval.types import Audience

if TYPE_CHECKING:
    import random

REDELIVERY_SECONDS = 1.5
"""After so long without an acknowledgement an event is delivered again."""


@dataclass(slots=True, eq=False)
class Connection:
    """One bot process."""

    writer: asyncio.StreamWriter
    unacknowledged: dict[int, asyncio.Future[bool]] = field(default_factory=dict)

    def send(self, **fields: object) -> None:
        self.writer.write(json.dumps(fields).encode() + b"\n")


@dataclass(slots=True)
class ChatServer:
    """`posts`: by turn, the parts in the order in which they came; `answered`: by conversation, the messages' ids."""

    random: random.Random
    connections: list[Connection] = field(default_factory=list)
    posts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    answered: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    deliveries: int = 0
    answers: int = 0
    said: list[str] = field(default_factory=list)
    last_post: float = field(default_factory=time.monotonic)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one bot process until it goes away."""
        connection = Connection(writer)
        try:
            while line := await reader.readline():
                self._take(connection, json.loads(line))
        except (OSError, ValueError):
            pass
        finally:
            if connection in self.connections:
                self.connections.remove(connection)
            for future in connection.unacknowledged.values():
                if not future.done():
                    future.set_result(False)
            writer.close()

    def _take(self, connection: Connection, fields: dict[str, Any]) -> None:
        if "ready" in fields:
            self.connections.append(connection)
        elif "ack" in fields:
            future = connection.unacknowledged.pop(fields["ack"], None)
            if future is not None and not future.done():
                future.set_result(True)
        elif "standing" in fields:
            connection.send(number=fields["number"], parts=self.posts.get(fields["standing"], []))
        else:
            part = fields["post"]
            self.posts[fields["turn"]].append(part)
            if part.startswith("said"):
                self.said.append(part)
            if part != "sources":
                self.answered[fields["conversation"]].append(fields["message"])
                self.answers += 1
            connection.send(number=fields["number"])
            self.last_post = time.monotonic()

    async def _somebody(self) -> None:
        """Wait for a bot process."""
        while not self.connections:  # noqa: ASYNC110 - a script may look now and then
            await asyncio.sleep(0.05)

    async def deliver(self, message: Message) -> None:
        """Deliver until a process acknowledges it."""
        while True:
            await self._somebody()
            connection = self.random.choice(self.connections)
            self.deliveries += 1
            number = self.deliveries
            future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            connection.unacknowledged[number] = future
            connection.send(deliver=encode(message), delivery=number)
            try:
                if await asyncio.wait_for(asyncio.shield(future), REDELIVERY_SECONDS):
                    return
            except TimeoutError:
                connection.unacknowledged.pop(number, None)


def message(conversation: str, number: int, event: int, delivery: int) -> Message:
    """The event as one of its deliveries brings it: the same post, under other names."""
    post = f"{conversation}:{number:05}"
    # As on Slack: `message` and `app_mention` are two events of one post; a repeated one has the same event id.
    keys = (f"client-{event}",) if delivery % 2 else (f"client-{event}", f"event-{event}-{delivery // 2}")
    return Message(
        platform=PLATFORM,
        id=post,
        keys=keys,
        conversation=conversation,
        channel=conversation,
        author=Author(id=f"{PLATFORM}:user-{event % 97}"),
        text=f"question {event}",
        sent_at=datetime.now(UTC),
        audience=Audience.asker(conversation),
    )
