"""What claims and leases come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from bot.messages import Message, Outcome, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to answer what is in a lane's line, until it expires or is let go. Opaque to whoever holds it."""

    platform: str
    lane: str
    token: str
    """Another one each time that a lane is leased."""
    local: bool = False
    """Whether it is a lane of this process's own state (`FallbackTurns`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The message is in line, and survives this process.

    With a `lease` the caller runs the lane now, from its first turn on, which may be an older one than this. Without,
    whoever holds the lane does.
    """

    turn_id: TurnId
    position: int
    """1: nobody is before it."""
    lease: Lease | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The message was claimed before, by any of its names. `outcome` is None while its turn has not ended."""

    turn_id: TurnId
    outcome: Outcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFull:
    """Too many messages wait in this conversation already. Nothing of this one was stored."""

    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTurn:
    """The first turn of a line."""

    id: TurnId
    message: Message
    attempts: int
    """1: nobody began it before."""
    answer: str | None
    """What was kept when it was composed; None when it has not come to that."""
    accepted_at: datetime
    """When it was claimed, by the state's clock; aware, UTC."""
    withdrawn: bool
    """The message was deleted."""


def lane_name(conversation: str, alone: TurnId | None = None) -> str:
    """The lane of a conversation, or of one turn beside it. A TurnId has no `|`."""
    return f"{alone or ''}|{conversation}"


def lane_parts(lane: str) -> tuple[str, str]:
    """The conversation, and the turn that is alone in this lane or nothing."""
    alone, _, conversation = lane.partition("|")
    return conversation, alone
