"""Whether asking a chat platform again is of use, and after how long."""

from __future__ import annotations

from typing import Final

from bot.errors import PlatformBusyError, PlatformError, PlatformRefusedError

_SHORTEST: Final = 0.05
_LONGEST: Final = 120.0
"""Seconds, whatever a platform tells."""


def pause(error: Exception) -> bool | float:
    """Whether to try again, and after how many seconds where the platform told. A hook for stamina."""
    if isinstance(error, PlatformBusyError) and error.retry_after is not None:
        return min(max(error.retry_after, _SHORTEST), _LONGEST)
    return isinstance(error, PlatformError) and not isinstance(error, PlatformRefusedError)
