"""Messages as a platform would hand them in."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

from bot.messages import Author, Message
from retrieval.types import PUBLIC

_ids = count(1)


def person(name: str = "U1", **more: Any) -> Author:
    return Author(id=f"slack:T1:{name}", name=name, **more)


def asking(text: str = "How many days of leave do I have?", *, author: Author | None = None, **more: Any) -> Message:
    """A question of U1 in channel C1 of workspace T1; each has an id of its own."""
    given: dict[str, Any] = {
        "platform": "slack",
        "id": f"C1:{next(_ids)}",
        "conversation": "slack:T1:C1:1",
        "workspace": "T1",
        "channel": "C1",
        "author": author or person(),
        "text": text,
        "sent_at": datetime(2026, 1, 1, tzinfo=UTC),
        "audience": PUBLIC,
    }
    return Message(**(given | more))
