"""Messages as a platform would make them."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.messages import Author, Message
from retrieval.types import PUBLIC

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def asked(
    name: str = "1", *keys: str, conversation: str = "test:T1:C1:1", platform: str = "test", text: str = "How far?"
) -> Message:
    """A question with this id and these further names."""
    return Message(
        platform=platform,
        id=name,
        keys=keys,
        conversation=conversation,
        author=Author(id=f"{platform}:T1:U1"),
        text=text,
        sent_at=AT,
        audience=PUBLIC,
    )
