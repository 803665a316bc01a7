"""What the bot needs from language models, as a Protocol. Contract suite: `tests/contracts/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.types import Conversation, ModelStop, ModelText, Prompt


class LanguageModel(Protocol):
    """Writes an answer from numbered passages."""

    @property
    def name(self) -> str:
        """Shown beside the answer and kept in the history, e.g. `claude-sonnet-5-5` or `extractive`."""
        ...

    def generate(self, prompt: Prompt) -> AsyncGenerator[ModelText | ModelStop]:
        """Stream the answer; the last item is a ModelStop. Raises a LanguageModelError, also in mid-stream.

        Closing the generator lets go of the connection.

        A text of nothing but `NO_ANSWER` (see `bot.prompting`) means: the passages do not tell.
        """
        ...

    async def condense(self, conversation: Conversation, question: str) -> str:
        """Rewrite a follow-up as a question that stands alone, in the same language. Raises LanguageModelError."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
