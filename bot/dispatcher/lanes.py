"""The lanes that this process runs: each a lease and a task that answers its turns in order.

Leases are renewed; a lost one ends its task. At the end of the process lanes are let go, for others to take over.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import LeaseLostError, StateError
from bot.messages import Outcome
from bot.metrics import TAKEN_OVER, TURNS_IN_HAND, platform_label
from bot.telemetry import new_error_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.dispatcher.running import TurnRunner
    from bot.messages import Message, TurnId
    from bot.turns import FallbackTurns, Lease, PendingTurn

_CLOSE_SECONDS: Final = 5.0
"""How long letting go of a lane may take when the process ends."""
_RENEWED_TOGETHER: Final = 50
"""Leases that are renewed at one time: one after the other would take too long for hundreds on a busy machine."""
_log = structlog.get_logger(__name__)


class _Cancelled(StrEnum):
    """Why a lane's task was cancelled."""

    LOST = "lost"
    """Another process has taken the lane."""
    STOPPED = "stopped"
    """The asker stopped the turn; the lane goes on."""
    CLOSING = "closing"
    """The process ends."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Lane:
    """One conversation that this process answers in."""

    platform: str
    lease: Lease
    task: asyncio.Task[None] | None = None
    turn: TurnId | None = None
    """What is being answered."""
    fresh: float = field(default_factory=time.monotonic)
    """When the lease was last known to be ours."""
    cancelled: _Cancelled | None = None

    def cancel(self, why: _Cancelled) -> None:
        """Cancel what is being answered, once. What has its answer is completed and counted, whatever happens."""
        if self.task is not None and self.turn is not None and self.cancelled is None:
            self.cancelled = why
            self.task.cancel()


class Lanes:
    """All lanes of this process. `ended` is told each turn's outcome and seconds."""

    def __init__(
        self,
        turns: FallbackTurns,
        runner: TurnRunner,
        ended: Callable[[Message, Outcome, float], None],
        *,
        lease_seconds: float,
    ) -> None:
        """Answer the turns of leased lanes with `runner`."""
        self._turns = turns
        self._runner = runner
        self._ended = ended
        self._renew_every = lease_seconds / 3
        self._running: set[_Lane] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._closing = False

    def __len__(self) -> int:
        return len(self._running)

    def run(self, group: asyncio.TaskGroup, platform: str, lease: Lease) -> None:
        """Answer what waits in a lane that is ours."""
        lane = _Lane(platform=platform, lease=lease)
        self._running.add(lane)
        self._empty.clear()
        TURNS_IN_HAND.set(len(self._running))
        lane.task = group.create_task(self._guarded(lane))

    def stop(self, turn_id: TurnId) -> bool:
        """Stop a turn; False when it is not being answered here, or its answer is out."""
        for lane in self._running:
            if lane.turn == turn_id and not self._runner.is_out(turn_id):
                lane.cancel(_Cancelled.STOPPED)
                return True
        return False

    async def drain(self, seconds: float) -> None:
        """Let what is being answered come to its end; let go of the rest, so that others take it over at once."""
        self._closing = True
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            _log.warning("turns_cut_short", count=len(self._running))
            for lane in tuple(self._running):
                lane.cancel(_Cancelled.CLOSING)
            await self._empty.wait()

    async def renew_for_ever(self) -> None:
        """Renew all leases, again and again."""
        while True:
            await asyncio.sleep(self._renew_every / 2)
            old = time.monotonic() - self._renew_every / 2
            due = sorted((lane for lane in self._running if lane.fresh < old), key=lambda lane: lane.fresh)
            for start in range(0, len(due), _RENEWED_TOGETHER):
                await asyncio.gather(*map(self._renew, due[start : start + _RENEWED_TOGETHER]))

    async def _renew(self, lane: _Lane) -> None:
        if lane not in self._running:
            return
        begun = time.monotonic()
        try:
            await self._turns.renew(lane.lease)
            lane.fresh = begun
        except LeaseLostError:
            # Unless it ended by itself while we asked.
            if lane in self._running:
                lane.cancel(_Cancelled.LOST)
        except Exception as error:  # noqa: BLE001 - one lane's fault must not end the others
            # Mostly a StateError. Nobody can take the lane while the state is away; it is tried again.
            _log.warning("lease_not_renewed", platform=platform_label(lane.platform), exc_info=error)

    async def _guarded(self, lane: _Lane) -> None:
        """One lane's fault must not end the others."""
        try:
            await self._run(lane)
        except Exception as error:  # noqa: BLE001 - the last line of defence
            _log.error("lane_crashed", error_id=new_error_id(), exc_info=error)
            await self._let_go(lane)
        finally:
            self._running.discard(lane)
            TURNS_IN_HAND.set(len(self._running))
            if not self._running:
                self._empty.set()

    async def _run(self, lane: _Lane) -> None:
        """Answer the turns of a lane one after the other, until there are none."""
        try:
            while not self._closing and (pending := await self._turns.begin(lane.lease)) is not None:
                lane.turn, lane.fresh = pending.id, time.monotonic()
                await self._answer(lane, pending)
            if self._closing:
                await self._turns.release(lane.lease)
        except LeaseLostError:
            self._lost(lane)
        except asyncio.CancelledError:
            if lane.cancelled is _Cancelled.LOST:
                self._lost(lane)
            else:
                await self._let_go(lane)
        except StateError as error:
            # The line stays in the state; whoever finds it when the state is back goes on.
            _log.warning("lane_interrupted", platform=platform_label(lane.platform), exc_info=error)
            await self._let_go(lane)

    async def _answer(self, lane: _Lane, pending: PendingTurn) -> None:
        """Bring one turn to its end and complete it."""
        started = time.monotonic()
        try:
            outcome = await self._runner.run(lane.platform, lane.lease, pending)
        except asyncio.CancelledError:
            if lane.cancelled is not _Cancelled.STOPPED:
                raise
            outcome = Outcome.STOPPED
        lane.turn = None  # from here on nothing cancels it
        if lane.cancelled is not None:
            await _go_on(lane)
        if outcome is Outcome.STOPPED:
            await self._stop_what_it_began(pending)
        await self._turns.complete(lane.lease, pending.id, outcome)
        self._ended(pending.message, outcome, time.monotonic() - started)

    async def _stop_what_it_began(self, pending: PendingTurn) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._runner.stopped(pending)
        except Exception as error:  # noqa: BLE001 - the turn is stopped, whatever goes on behind it
            _log.warning("not_stopped_wholly", turn=pending.id, exc_info=error)

    def _lost(self, lane: _Lane) -> None:
        """Another process ends the turn and counts it."""
        TAKEN_OVER.labels(platform_label(lane.platform)).inc()
        _log.warning("lane_lost", platform=platform_label(lane.platform), turn=lane.turn)

    async def _let_go(self, lane: _Lane) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._turns.release(lane.lease)
        except (LeaseLostError, StateError, TimeoutError) as error:
            _log.warning("lane_not_released", platform=platform_label(lane.platform), exc_info=error)


async def _go_on(lane: _Lane) -> None:
    """The task was cancelled, and goes on."""
    lane.cancelled = None
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # where the turn ended in the same moment, the cancellation is still to come
    if (task := asyncio.current_task()) is not None:
        task.uncancel()
