"""The nouns of a conversation on a chat platform: a Message comes in, becomes a turn, and ends in one Outcome.

They are kept in the state and read back by other processes, so that everything in them is plain data, and their
annotations are there at run time (`bot.codec` reads them).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping  # noqa: TC003 - see above
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - see above
from enum import StrEnum
from typing import NewType

from retrieval.types import Audience  # noqa: TC001 - see above

TurnId = NewType("TurnId", str)
"""16 hex digits made from the message's own name on its platform: every process, now or later, makes the same one.

Each post carries it where the platform can hold it (metadata, a nonce)."""
JobId = NewType("JobId", str)
"""Names a background job; made from the turn that asked for it."""


def turn_id(platform: str, conversation: str, message_id: str) -> TurnId:
    """The turn that a message begins, or would begin."""
    name = f"{platform}\0{conversation}\0{message_id}"
    return TurnId(hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16])


class MessageKind(StrEnum):
    """What happened to a message."""

    ASKED = "asked"
    """It was written: a question or a command."""
    EDITED = "edited"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who wrote a message. `id` is unique over the platform's workspaces, e.g. `slack:T1:U1`."""

    id: str
    name: str = ""
    is_bot: bool = False
    is_self: bool = False
    """Footnote itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Something to ingest, by reference. `uri` is the document's identity; only the platform can fetch it.

    In the terminal it may stand for many files (a folder, a pattern).
    """

    uri: str
    name: str
    size: int | None = None
    """Bytes, where the platform tells."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What the platform needs to fetch it (a file id …); never a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One event on a platform, in the platform's own manner translated: the mention is stripped, the thread named.

    `audience` has no default: who asks decides what can be found.
    """

    platform: str
    """The `name` of the ChatPlatform that can answer it."""
    id: str
    """What names this post on its platform for good, e.g. channel and timestamp."""
    keys: tuple[str, ...] = ()
    """Further names of the same post (event id, client message id): whichever comes again is a duplicate."""
    conversation: str
    """The thread: platform, workspace, channel, thread root. Turns of one conversation are answered in order."""
    workspace: str = ""
    channel: str = ""
    author: Author
    text: str
    sent_at: datetime
    """Aware, UTC."""
    audience: Audience
    """The circles that the author belongs to at this place."""
    shown_to: Audience | None = None
    """Who may see what this message ingests; None: the place's own rule (everyone, in the terminal)."""
    kind: MessageKind = MessageKind.ASKED
    command: str = ""
    """Name of the command without a slash (`ingest`), `text` being its arguments; empty for a question."""
    attachments: tuple[Attachment, ...] = ()
    reply_to: Mapping[str, str] = field(default_factory=dict)
    """What the platform needs to reply, also from another process; opaque to the bot."""

    @property
    def turn_id(self) -> TurnId:
        """The same for every delivery of this message."""
        return turn_id(self.platform, self.conversation, self.id)


class Outcome(StrEnum):
    """How an event ended. Each ends in exactly one; a turn that another process took over is counted there."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    DONE = "done"
    """A command did its work."""
    DUPLICATE = "duplicate"
    IGNORED_SELF = "ignored_self"
    IGNORED_BOT = "ignored_bot"
    IGNORED_EDIT = "ignored_edit"
    IGNORED_EMPTY = "ignored_empty"
    LIMITED = "limited"
    """Too many questions in a short time, or too many in line."""
    REFUSED_AUDIENCE = "refused_audience"
    """This workspace, channel or person may not ask here."""
    REFUSED_SIZE = "refused_size"
    WITHDRAWN = "withdrawn"
    """The message was deleted before its answer was out."""
    STOPPED = "stopped"
    """The asker stopped it."""
    FAILED = "failed"
    CLOSING = "closing"
    """Not taken, because this process is ending: the platform delivers it again. Not acknowledged."""
    TAKEN_OVER = "taken_over"
    """This process lost the turn, having been silent for too long; another one answers and counts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMessage:
    """What stands in a thread on the platform, whoever wrote it."""

    id: str
    author: Author
    text: str
    sent_at: datetime
    turn_id: TurnId | None = None
    """For posts of the bot: the turn that they belong to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Which posts of a turn already stand on the platform. A half-streamed answer does not count as one.

    Nor does a report of how far a command is: its last result is still to come.
    """

    answer: bool = False
    sources: bool = False
