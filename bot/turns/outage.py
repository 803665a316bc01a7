"""Whether the state can be reached: callers wait for it together, while one of them all tries."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import structlog

from bot.errors import StateUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
_log = structlog.get_logger(__name__)


class Outage:
    """The state is there, or away since a moment. Whoever notices tells; one task finds out when it is over."""

    def __init__(self, patience: float) -> None:
        """Callers wait until an outage is `patience` seconds old."""
        self.degraded = False
        """Whether an outage is older than that."""
        self.noticed = asyncio.Event()
        self._patience = patience
        self._since: float | None = None
        self._over = asyncio.Event()

    @property
    def is_on(self) -> bool:
        """Whether the state is away."""
        return self._since is not None

    async def reach(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call, and again when the state is back. Raises StateUnavailableError when that takes too long."""
        end = time.monotonic() + self._patience
        while True:
            if self._since is not None:
                await self._wait(self._since + self._patience - time.monotonic())
            try:
                return await call()
            except StateUnavailableError:
                self.begin()
                if time.monotonic() >= end:
                    raise

    async def attempt(self, call: Callable[[], Awaitable[T]], otherwise: T) -> T:
        """Call once, and not at all while the state is known to be away."""
        if self.is_on:
            return otherwise
        try:
            return await call()
        except StateUnavailableError:
            self.begin()
            return otherwise

    def begin(self) -> None:
        """A call has found that the state is away."""
        if self._since is None:
            self._since = time.monotonic()
            self._over.clear()
        self.noticed.set()

    def grow_old(self) -> None:
        """Say so, once, when it has been away for longer than callers wait."""
        if self._since is not None and not self.degraded and time.monotonic() - self._since >= self._patience:
            self.degraded = True
            _log.warning("turns_degraded", advice="messages are claimed in this process alone until the state is back")

    def end(self) -> None:
        """The state is back."""
        if self._since is not None and self.degraded:
            _log.warning("turns_restored", seconds=round(time.monotonic() - self._since, 1))
        self._since = None
        self.degraded = False
        self._over.set()

    async def _wait(self, left: float) -> None:
        if left > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._over.wait()
                    return
        self.grow_old()
        message = "The state (claims, conversations, history) cannot be reached."
        raise StateUnavailableError(message)
