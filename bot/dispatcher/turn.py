"""What the parts of the dispatcher share: the turn that is being answered, and what was composed for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.messages import Outcome
from bot.types import Abstention, Answer  # noqa: TC001 - `bot.codec` reads the annotations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.dispatcher.posting import Posting
    from bot.messages import Message, Standing
    from bot.ports import ChatPlatform
    from bot.turns import PendingTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What a turn is going to say; kept in the state before it is posted. One of the three is there."""

    answer: Answer | None = None
    abstention: Abstention | None = None
    failure: str = ""

    @property
    def outcome(self) -> Outcome:
        """What the turn ends in once this is posted."""
        if self.answer is not None:
            return Outcome.ANSWERED
        return Outcome.ABSTAINED if self.abstention is not None else Outcome.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn in hand: its message, where its posts go, and what stands of them already."""

    pending: PendingTurn
    platform: ChatPlatform
    posting: Posting
    keep: Callable[[str], Awaitable[bool]]
    """Stores what was composed before it is posted. False: the message was withdrawn. Raises LeaseLostError."""
    standing: Standing

    @property
    def message(self) -> Message:
        """What was asked."""
        return self.pending.message
