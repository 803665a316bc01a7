"""Dispatcher: every event is claimed once, waits for its conversation, and ends in exactly one outcome."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import structlog

from bot.admission import Refusal
from bot.command_words import command_of
from bot.dispatcher.lanes import Lanes
from bot.dispatcher.running import TurnRunner
from bot.errors import StateError
from bot.language import question_language
from bot.messages import MessageKind, Outcome
from bot.metrics import EVENTS, TURN_SECONDS, platform_label
from bot.phrases import phrase
from bot.turns import Duplicate, LineFull

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from bot.admission import Admission
    from bot.commands import Commands
    from bot.dispatcher.answering import Answering
    from bot.messages import Message, TurnId
    from bot.ports import ChatPlatform
    from bot.turns import Claimed, FallbackTurns

_LOOK_SECONDS: Final = 0.25
"""Between two looks for the end of a turn that another process answers."""
_LONGEST_WAIT: Final = 3_600.0
"""Seconds for which a turn's place in line is shown at most."""
_LATELY: Final = 1_000
"""Turns whose outcome is remembered in this process."""
_LONGEST_SWEEP: Final = 5.0
"""Seconds between two looks for the turns of processes that died."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherLimits:
    """How long and how much, in seconds and turns."""

    lease_seconds: float
    drain_seconds: float
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What came of handing a message in. Once it is returned, the message survives this process.

    `outcome` is set when the event has ended already; `CLOSING` means that it was not taken: do not acknowledge it.
    """

    message: Message
    turn_id: TurnId
    outcome: Outcome | None = None


class Dispatcher:
    """`async with Dispatcher(…) as dispatcher: receipt = await dispatcher.receive(message)`."""

    def __init__(
        self,
        platforms: Sequence[ChatPlatform],
        *,
        turns: FallbackTurns,
        admission: Admission,
        answering: Answering,
        commands: Commands,
        limits: DispatcherLimits,
    ) -> None:
        """Answer on these platforms."""
        self._platforms = {platform.name: platform for platform in platforms}
        self._turns = turns
        self._admission = admission
        self._limits = limits
        self._runner = TurnRunner(
            self._platforms, turns=turns, admission=admission, answering=answering, commands=commands
        )
        self._lanes = Lanes(turns, self._runner, self._turn_ended, lease_seconds=limits.lease_seconds)
        self._ends: dict[TurnId, asyncio.Future[Outcome]] = {}
        self._ended_lately: dict[TurnId, Outcome] = {}
        """For who asks for the end of a turn that has just ended here."""
        self._waiters: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._started = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._life: asyncio.Task[None] | None = None

    # ---- life ---------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._life = asyncio.create_task(self._live(), name="dispatcher")  # noqa: TID251 - awaited in __aexit__
        await self._started.wait()
        if self._life.done():
            await self._life  # raises why it could not begin
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        if self._life is not None:
            await self._life

    def close_soon(self) -> None:
        """Take no more events; what is being answered may still come to its end."""
        self._closing.set()

    async def _live(self) -> None:
        try:
            async with self._turns, self._group as group:
                chores = [group.create_task(self._lanes.renew_for_ever()), group.create_task(self._sweep_for_ever())]
                self._started.set()
                await self._closing.wait()
                await self._lanes.drain(self._limits.drain_seconds)
                for chore in (*chores, *self._waiters):
                    chore.cancel()
        finally:
            self._closing.set()
            self._started.set()

    # ---- events -------------------------------------------------------------------------------------------------

    async def receive(self, message: Message) -> Receipt:
        """Take an event. Quick: what it asks for is done in the background."""
        turn_id = message.turn_id
        if self._closing.is_set():
            return self._ended(message, Outcome.CLOSING)
        if message.kind is MessageKind.DELETED:
            await self._withdraw(message)
        refusal = self._admission.refusal(message) or await self._limited(message)
        if refusal is not None and not refusal.text:
            return self._ended(message, refusal.outcome)
        alone = refusal is not None or bool(command_of(message))
        claim = await self._turns.claim(message, alone=alone)
        if isinstance(claim, LineFull):
            refusal = await _no_room("line_full", message, waiting=str(claim.waiting))
            if not refusal.text:
                return self._ended(message, refusal.outcome)
            claim = await self._turns.claim(message, alone=True)
        if isinstance(claim, Duplicate | LineFull):
            return self._ended(message, Outcome.DUPLICATE)
        receipt = Receipt(message=message, turn_id=turn_id)
        await self._take(receipt, claim, refusal)
        return receipt

    async def outcome(self, receipt: Receipt) -> Outcome:
        """Wait for the end of an event that was taken, whichever process brings it about.

        `CLOSING`: this process ends before; the event survives it.
        """
        if receipt.outcome is not None:
            return receipt.outcome
        end = self._ends.setdefault(receipt.turn_id, asyncio.get_running_loop().create_future())
        try:
            while not end.done():
                if (known := self._ended_lately.get(receipt.turn_id)) is not None:
                    return known
                if self._life is None or self._life.done():
                    return Outcome.CLOSING
                await asyncio.wait({end}, timeout=_LOOK_SECONDS)
                if not end.done():
                    await self._look_for_end(receipt, end)
            return end.result()
        finally:
            self._ends.pop(receipt.turn_id, None)  # who else waits finds the end by looking

    async def _look_for_end(self, receipt: Receipt, end: asyncio.Future[Outcome]) -> None:
        """Another process may have ended it."""
        try:
            outcome = await self._turns.outcome(receipt.message)
        except StateError as error:
            _log.warning("outcome_unreachable", exc_info=error)
            return
        if outcome is not None and not end.done():
            end.set_result(outcome)

    def stop(self, turn_id: TurnId) -> bool:
        """Stop a turn that this process is answering; False when it is none of those."""
        return self._lanes.stop(turn_id)

    async def _withdraw(self, message: Message) -> None:
        try:
            await self._turns.withdraw(message)
        except StateError as error:
            _log.warning("not_withdrawn", platform=message.platform, exc_info=error)

    async def _limited(self, message: Message) -> Refusal | None:
        if len(self._lanes) >= self._limits.max_turns:
            return await _no_room("too_busy", message)
        try:
            return await self._admission.limit(message)
        except StateError as error:
            _log.warning("limits_unreachable", platform=message.platform, exc_info=error)
            return None

    async def _take(self, receipt: Receipt, claim: Claimed, refusal: Refusal | None) -> None:
        """Answer a claimed message, or show that it waits."""
        ours = receipt.message.platform in self._platforms and not self._closing.is_set()
        if claim.lease is not None and not ours:
            await self._turns.release(claim.lease)
        elif claim.lease is not None:
            if refusal is not None:
                self._runner.refuse(claim.turn_id, refusal)
            self._lanes.run(self._group, receipt.message.platform, claim.lease)
        elif claim.position > 1 and ours:
            waiter = self._group.create_task(self._wait_in_line(receipt, claim.position))
            self._waiters.add(waiter)
            waiter.add_done_callback(self._waiters.discard)

    async def _wait_in_line(self, receipt: Receipt, position: int) -> None:
        """Show the place in line until the turn has ended, here or in another process."""
        try:
            posting = self._runner.reply_in_line(receipt.message)
            has_begun = False
            try:
                await posting.waiting(position)
                has_begun = not self._runner.is_in_line(receipt.turn_id)
                async with asyncio.timeout(_LONGEST_WAIT):
                    await self.outcome(receipt)
            finally:
                # What came up after the turn had begun may have come up after it ended, too.
                if self._runner.left_line(receipt.turn_id) or has_begun:
                    await posting.close()
        except Exception as error:  # noqa: BLE001 - a decoration must not end the dispatcher
            _log.warning("place_in_line_not_shown", turn=receipt.turn_id, exc_info=error)

    # ---- ends ---------------------------------------------------------------------------------------------------

    def _ended(self, message: Message, outcome: Outcome) -> Receipt:
        """An event that became no turn here."""
        self._count(message, outcome)
        return Receipt(message=message, turn_id=message.turn_id, outcome=outcome)

    def _turn_ended(self, message: Message, outcome: Outcome, seconds: float) -> None:
        TURN_SECONDS.labels(platform_label(message.platform), outcome).observe(seconds)
        self._count(message, outcome, seconds=round(seconds, 3))
        self._ended_lately[message.turn_id] = outcome
        if len(self._ended_lately) > _LATELY:
            del self._ended_lately[next(iter(self._ended_lately))]
        end = self._ends.pop(message.turn_id, None)
        if end is not None and not end.done():
            end.set_result(outcome)

    def _count(self, message: Message, outcome: Outcome, **more: float) -> None:
        """Count and log an end; the one place where that happens."""
        label = platform_label(message.platform)
        EVENTS.labels(label, outcome).inc()
        _log.info("event_ended", platform=label, turn=message.turn_id, outcome=str(outcome), **more)

    # ---- turns of others ----------------------------------------------------------------------------------------

    async def _sweep_for_ever(self) -> None:
        """Take over the turns of processes that died, at the start and every few seconds."""
        every = min(_LONGEST_SWEEP, self._limits.lease_seconds / 3)
        while not self._closing.is_set():
            for name in self._platforms:
                try:
                    await self._sweep(name)
                except Exception as error:  # noqa: BLE001 - tried again at the next round
                    _log.warning("sweep_failed", platform=platform_label(name), exc_info=error)
            # Not all processes at the same moment.
            await asyncio.sleep(every * random.uniform(0.8, 1.2))  # noqa: S311 - no secret

    async def _sweep(self, platform: str) -> None:
        for lane in await self._turns.abandoned(platform):
            if self._closing.is_set() or len(self._lanes) >= self._limits.max_turns:
                return
            if (lease := await self._turns.take(platform, lane)) is not None:
                self._lanes.run(self._group, platform, lease)


async def _no_room(name: str, message: Message, **values: str) -> Refusal:
    """Why a message is not taken now. A bot is not told: two of them would go on telling each other."""
    if message.author.is_bot:
        return Refusal(outcome=Outcome.LIMITED, text="")
    language = await asyncio.to_thread(question_language, message.text)
    return Refusal(outcome=Outcome.LIMITED, text=phrase(name, language, **values))
