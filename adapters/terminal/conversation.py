"""Which conversation a chat is in, and the last one, to go on with."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import structlog

from adapters.printing import safe_line
from bot.errors import StateError

if TYPE_CHECKING:
    from bot.conversations import Conversations
    from bot.ports import State
    from retrieval.types import Audience

_TAG: Final = "terminal"
_NONE: Final = "There is no earlier conversation to go on with; this is a new one."
_log = structlog.get_logger(__name__)


class Thread:
    """The present conversation. `id` is unique over all chats, unless one goes on with an earlier one."""

    def __init__(
        self, state: State, conversations: Conversations, *, name: str, audience: Audience, seconds: float
    ) -> None:
        """`name` of the platform; the last conversation is another one for each audience, and kept so long."""
        self.id = ""
        self._state = state
        self._conversations = conversations
        self._name = name
        self._seconds = seconds
        self._key = state.key(_TAG, "last", name, *sorted(audience.scopes))
        self._remembered = ""
        self.begin()

    def begin(self) -> None:
        """A new conversation."""
        self.id = f"{self._name}:{uuid.uuid4().hex}"

    def next_id(self) -> str:
        """A name for the next message: a question asked twice is two questions."""
        return uuid.uuid4().hex

    async def go_on(self) -> str:
        """Go on with the last conversation, if it is still known; a sentence that tells."""
        try:
            last = await self._state.get(self._key)
            known = await self._conversations.load(last.decode("utf-8", "replace")) if last is not None else None
        except StateError as error:
            _log.warning("last_conversation_unreachable", exc_info=error)
            return "The last conversation cannot be reached right now; this is a new one."
        if known is None or not known.turns:
            return _NONE
        self.id = known.id
        return f"Going on with the last conversation. You asked last: {safe_line(known.turns[-1].question)}"

    async def remember(self) -> None:
        """Make this the last conversation. Nothing happens when that fails: the chat goes on."""
        if self._remembered == self.id:
            return
        try:
            await self._state.set(self._key, self.id, seconds=self._seconds)
        except StateError as error:
            _log.warning("last_conversation_not_remembered", exc_info=error)
        else:
            self._remembered = self.id
