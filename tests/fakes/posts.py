"""Posts of the terminal chat, for its screen."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapters.terminal.platform import Post, TerminalPlatform
from bot.messages import Author, Message
from bot.types import Abstention, AbstentionReason, Answer, Source, Timings, Usage
from retrieval.types import Audience, DocumentId

if TYPE_CHECKING:
    from adapters.terminal.platform import Event, TerminalReply

TERMINAL = TerminalPlatform("ada", "desk")
SOURCE = Source(
    marker=1,
    document_id=DocumentId("d"),
    title="Rules",
    uri="file:///rules.pdf",
    page=3,
    last_page=3,
    heading="Leave",
    excerpt="Thirty days are granted.",
    score=0.5,
)
ANSWER = Answer(text="Thirty days. [1]", sources=(SOURCE,), model="m", usage=Usage(), timings=Timings(), notice="")
ABSTENTION = Abstention(reason=AbstentionReason.NO_EVIDENCE, text="The documents don't tell.", timings=Timings())
_OVER = asyncio.new_event_loop()
_OVER.close()


def line(text: str, *, name: str = "1", command: str = "", **more: Any) -> Message:
    """A line of the chat as a message."""
    return Message(
        platform=TERMINAL.name,
        id=name,
        conversation="terminal:ada@desk:1",
        author=Author(id="terminal:ada", name="ada"),
        text=text,
        sent_at=datetime(2026, 1, 1, tzinfo=UTC),
        audience=Audience.asker(),
        command=command,
        **more,
    )


def posts(message: Message, *events: Event, reply: TerminalReply | None = None) -> list[Post]:
    """Events of one reply, as they come from a loop that is over."""
    reply = reply or TERMINAL.reply(message, message.turn_id)
    return [Post(reply, event, _OVER) for event in events]
