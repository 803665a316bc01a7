"""Who answers which message, once, and in which order: claims, lines and leases, in the state."""

from bot.turns.fallback import FallbackTurns
from bot.turns.turns import Turns
from bot.turns.types import Claimed, Duplicate, Lease, LineFull, PendingTurn

__all__ = ["Claimed", "Duplicate", "FallbackTurns", "Lease", "LineFull", "PendingTurn", "Turns"]
