"""What this process remembers of the messages that it has claimed, for when the state is away or has forgotten them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.turns.types import Claimed, Duplicate

if TYPE_CHECKING:
    from bot.messages import Message, Outcome, TurnId
    from bot.turns.types import Lease, LineFull

MOST_NAMES: Final = 30_000
"""Names of messages, about 200 bytes each."""
MOST_OPEN: Final = 1_000
"""Messages whose end is not known here."""


@dataclass(slots=True, kw_only=True)
class OpenTurn:
    """A turn whose end is not known here."""

    message: Message
    alone: bool
    token: str
    """With which it was claimed."""


@dataclass(slots=True, kw_only=True)
class UntoldTurn:
    """A turn that was claimed in this process alone, or ended while the state was away, until the state knows."""

    message: Message
    token: str
    """With which claiming it in the state was tried, or its lane was held."""
    lane: str
    outcome: Outcome | None = None
    lease: Lease | None = None
    """Its lane in the state, once that is back and the turn has not ended."""


class Recent:
    """The latest claims of this process; the oldest make room."""

    def __init__(self) -> None:
        self._turns: OrderedDict[tuple[str, str, str], TurnId] = OrderedDict()
        self._outcomes: OrderedDict[TurnId, Outcome] = OrderedDict()
        self.open: OrderedDict[TurnId, OpenTurn] = OrderedDict()
        """By when they were claimed."""

    def find(self, message: Message) -> Duplicate | None:
        """Whether it was claimed here."""
        for name in _names(message):
            if (turn_id := self._turns.get(name)) is not None:
                return Duplicate(turn_id=turn_id, outcome=self._outcomes.get(turn_id))
        return None

    def note(self, message: Message, claim: Claimed | Duplicate | LineFull) -> None:
        """Remember what claiming it came to."""
        if not isinstance(claim, Claimed | Duplicate):
            return
        for name in _names(message):
            self._turns[name] = claim.turn_id
        while len(self._turns) > MOST_NAMES:
            self._turns.popitem(last=False)
        if isinstance(claim, Duplicate) and claim.outcome is not None:
            self.end(claim.turn_id, claim.outcome)

    def begin(self, turn_id: TurnId, turn: OpenTurn) -> None:
        """It has to come to an end, here or elsewhere."""
        self.open.setdefault(turn_id, turn)
        while len(self.open) > MOST_OPEN:
            self.open.popitem(last=False)

    def end(self, turn_id: TurnId, outcome: Outcome) -> OpenTurn | None:
        """It has. What was known of it."""
        turn = self.open.pop(turn_id, None)
        self._outcomes[turn_id] = outcome
        while len(self._outcomes) > MOST_NAMES:
            self._outcomes.popitem(last=False)
        return turn


def _names(message: Message) -> list[tuple[str, str, str]]:
    return [(message.platform, message.conversation, name) for name in (message.id, *message.keys)]
