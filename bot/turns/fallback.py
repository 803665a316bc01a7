"""Turns that go on while the state is away, and come together with it when it is back.

While it is away, callers wait for it for some seconds together; then messages are claimed in this process alone. When
it is back it is told, before anybody else goes on: which turns ended meanwhile, which are under way here, and, should
it have lost its data, which messages this process had claimed.

What that cannot give: two processes that receive one message during an outage both answer it; and messages that come
after an outage do not wait for those of their conversation that are still being answered from it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVar

import structlog

from bot.errors import LeaseLostError, StateError, StateUnavailableError
from bot.turns.outage import Outage
from bot.turns.recent import OpenTurn, Recent, UntoldTurn
from bot.turns.types import Claimed, lane_parts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from types import TracebackType

    from bot.messages import Message, Outcome, TurnId
    from bot.turns.turns import Turns
    from bot.turns.types import Duplicate, Lease, LineFull, PendingTurn

_LOCAL: Final = "local:"
"""Marks a lane of this process's own state; others begin with a digit or `|`."""
_MOST_UNTOLD: Final = 10_000
"""Turns that ended while the state was away."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
"""Seconds between two looks whether the state is back."""
_CLOSE_SECONDS: Final = 2.0
"""How long the end of the process may wait for the state."""
T = TypeVar("T")
_log = structlog.get_logger(__name__)


class FallbackTurns:
    """Turns in the state, and in this process while that is away. `async with` it: that is what notices its return."""

    def __init__(self, primary: Turns, local: Turns, *, patience: float = 5.0) -> None:
        """Use `primary`; after `patience` seconds without it `local`, which is on a state in this process."""
        self._primary = primary
        self._local = local
        self._outage = Outage(patience)
        self._recent = Recent()
        self._held: dict[str, str] = {}
        """Lanes of the primary that this process holds, with their tokens."""
        self._untold: dict[TurnId, UntoldTurn] = {}
        self._let_go: deque[Lease] = deque(maxlen=_MOST_UNTOLD)
        """Leases that the primary is to be told of."""
        self._group: asyncio.TaskGroup | None = None
        self._tending: asyncio.Task[None] | None = None

    @property
    def degraded(self) -> bool:
        """Whether messages are claimed in this process alone."""
        return self._outage.degraded

    async def __aenter__(self) -> Self:
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        self._tending = self._group.create_task(self._tend(), name="turns")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._group is not None and self._tending is not None:
            self._tending.cancel()
            await self._group.__aexit__(None, None, None)
        if self._untold or self._let_go:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    while not await self._mend():  # noqa: ASYNC110 - nobody tells when the state is back
                        await asyncio.sleep(_FIRST_PAUSE)

    # ---- messages -----------------------------------------------------------------------------------------------

    async def claim(self, message: Message, *, alone: bool = False) -> Claimed | Duplicate | LineFull:
        """As `Turns.claim`; never raises because the state is away."""
        if (self._untold or self._outage.is_on) and (known := self._recent.find(message)) is not None:
            return known
        token = self._primary.new_token()
        try:
            claim = await self._outage.reach(partial(self._primary.claim, message, alone=alone, token=token))
        except StateError as error:
            if not isinstance(error, StateUnavailableError):
                _log.warning("claimed_locally", platform=message.platform, exc_info=error)
            return await self._claim_locally(message, token, alone=alone)
        self._recent.note(message, claim)
        if isinstance(claim, Claimed):
            self._recent.begin(claim.turn_id, OpenTurn(message=message, alone=alone, token=token))
            if claim.lease is not None:
                self._held[claim.lease.lane] = claim.lease.token
        return claim

    async def withdraw(self, message: Message) -> bool:
        """As `Turns.withdraw`. Raises StateError when the message is only known to a state that is away."""
        here = bool(self._untold) and await self._local.withdraw(message)
        return here or await self._outage.reach(partial(self._primary.withdraw, message))

    async def outcome(self, message: Message) -> Outcome | None:
        """As `Turns.outcome`; None while the state is away and the turn did not end here."""
        known = self._recent.find(message)
        if known is not None and known.outcome is not None:
            return known.outcome
        return await self._outage.attempt(partial(self._primary.outcome, message), None)

    # ---- the lane that is held ----------------------------------------------------------------------------------

    async def begin(self, lease: Lease) -> PendingTurn | None:
        """As `Turns.begin`; None also when the state is away: the line is taken up when it is back."""
        if lease.local:
            return await self._local.begin(lease)
        try:
            with self._noting_loss(lease):
                pending = await self._outage.reach(partial(self._primary.begin, lease))
        except StateUnavailableError as error:
            _log.warning("line_waits_for_state", exc_info=error)
            self._let_go.append(lease)
            pending = None
        if pending is None:
            self._lose(lease)
        else:
            turn = OpenTurn(message=pending.message, alone=bool(lane_parts(lease.lane)[1]), token=lease.token)
            self._recent.begin(pending.id, turn)
        return pending

    async def renew(self, lease: Lease) -> None:
        """As `Turns.renew`. While the state is away nobody can take the lane, and it is done."""
        if lease.local:
            await self._local.renew(lease)
            await self._renew_in_state(lease.lane)
            return
        with self._noting_loss(lease):
            await self._outage.attempt(partial(self._primary.renew, lease), None)

    async def keep(self, lease: Lease, turn_id: TurnId, answer: str) -> bool:
        """As `Turns.keep`; True when the state is away."""
        if lease.local:
            return await self._local.keep(lease, turn_id, answer)
        try:
            with self._noting_loss(lease):
                return await self._outage.reach(partial(self._primary.keep, lease, turn_id, answer))
        except StateUnavailableError as error:
            _log.warning("answer_not_kept", turn=turn_id, exc_info=error)
            return True

    async def complete(self, lease: Lease, turn_id: TurnId, outcome: Outcome) -> None:
        """As `Turns.complete`; a state that is away is told when it is back."""
        turn = self._recent.end(turn_id, outcome)
        if lease.local:
            await self._local.complete(lease, turn_id, outcome)
            self._ended_untold(turn_id, outcome)
            return
        try:
            with self._noting_loss(lease):
                await self._outage.reach(partial(self._primary.complete, lease, turn_id, outcome))
        except StateUnavailableError as error:
            _log.warning("end_waits_for_state", turn=turn_id, exc_info=error)
            if turn is not None:
                self._untold[turn_id] = UntoldTurn(message=turn.message, token=lease.token, lane=lease.lane)
                self._ended_untold(turn_id, outcome)

    async def release(self, lease: Lease) -> None:
        """As `Turns.release`; a state that is away is told when it is back, unless the lease has expired by then."""
        if lease.local:
            await self._local.release(lease)
            return
        self._lose(lease)
        if not await self._outage.attempt(partial(_released, self._primary, lease), otherwise=False):
            self._let_go.append(lease)

    def _lose(self, lease: Lease) -> None:
        if self._held.get(lease.lane) == lease.token:
            del self._held[lease.lane]

    @contextmanager
    def _noting_loss(self, lease: Lease) -> Iterator[None]:
        try:
            yield
        except LeaseLostError:
            self._lose(lease)
            raise

    # ---- lanes that nobody holds --------------------------------------------------------------------------------

    async def abandoned(self, platform: str) -> list[str]:
        """As `Turns.abandoned`, with those of this process's own; only those while the state is away."""
        lanes: list[str] = await self._outage.attempt(partial(self._primary.abandoned, platform), [])
        if not self._untold:
            return lanes
        ours = [lane for lane in await self._local.abandoned(platform) if lane not in self._held]
        # One after the other, as far as it is up to this process.
        busy = {turn.lane for turn in self._untold.values() if turn.outcome is None}
        return [f"{_LOCAL}{lane}" for lane in ours] + [lane for lane in lanes if lane not in busy]

    async def free(self, platform: str) -> None:
        """As `Turns.free`."""
        await self._outage.attempt(partial(self._primary.free, platform), None)

    async def take(self, platform: str, lane: str) -> Lease | None:
        """As `Turns.take`; None for a lane of a state that is away."""
        if lane.startswith(_LOCAL):
            taken = await self._local.take(platform, lane.removeprefix(_LOCAL))
            return None if taken is None else replace(taken, local=True)
        taken = await self._outage.attempt(partial(self._primary.take, platform, lane), None)
        if taken is not None:
            self._held[lane] = taken.token
        return taken

    # ---- while the state is away --------------------------------------------------------------------------------

    async def _claim_locally(self, message: Message, token: str, *, alone: bool) -> Claimed | Duplicate | LineFull:
        if (known := self._recent.find(message)) is not None:
            return known
        claim = await self._local.claim(message, alone=alone)
        if not isinstance(claim, Claimed):
            return claim
        self._recent.note(message, claim)
        lane = self._local.lane(message, alone=alone)
        self._untold[claim.turn_id] = UntoldTurn(message=message, token=token, lane=lane)
        if claim.lease is None:
            return claim
        if lane in self._held:
            # An earlier turn of this conversation is being answered here. When it has ended, the lane is found.
            await self._local.release(claim.lease)
            return replace(claim, position=claim.position + 1, lease=None)
        return replace(claim, lease=replace(claim.lease, local=True))

    def _ended_untold(self, turn_id: TurnId, outcome: Outcome) -> None:
        """The state is to hear of it."""
        if (turn := self._untold.get(turn_id)) is not None:
            turn.outcome = outcome
            self._outage.noticed.set()
        if len(self._untold) > _MOST_UNTOLD:
            oldest = next(key for key, turn in self._untold.items() if turn.outcome is not None)
            del self._untold[oldest]

    async def _renew_in_state(self, lane: str) -> None:
        """Hold also what stands in the state for the turns of one of our own lanes."""
        for turn in tuple(self._untold.values()):
            if turn.lane == lane and turn.lease is not None:
                try:
                    await self._outage.attempt(partial(self._primary.renew, turn.lease), None)
                except LeaseLostError:
                    turn.lease = None

    # ---- when it is back ----------------------------------------------------------------------------------------

    async def _tend(self) -> None:
        """Whenever the state is away or has something to hear, try until it has heard it."""
        while True:
            await self._outage.noticed.wait()
            self._outage.noticed.clear()
            pause = _FIRST_PAUSE
            while not await self._mend():
                self._outage.grow_old()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _mend(self) -> bool:
        """Whether the state is there and has heard everything."""
        try:
            if self._outage.is_on:
                await self._primary.check()
                await self._claim_again()
                await self._tell_open()
            while self._let_go or any(turn.outcome is not None for turn in self._untold.values()):
                await self._tell_let_go()
                await self._tell_ended()
        except StateUnavailableError:
            self._outage.begin()
            return False
        except Exception as error:  # noqa: BLE001 - nobody else would notice the state's return
            _log.error("state_not_told", exc_info=error)
            return False
        self._outage.end()
        return True

    async def _claim_again(self) -> None:
        """Claim what this process had claimed: a state that lost its data has it anew, another notes nothing."""
        for turn in tuple(self._recent.open.values()):
            message, alone = turn.message, turn.alone
            lane = self._primary.lane(message, alone=alone)
            token = self._held.get(lane, turn.token)
            claim = await _told(self._primary.claim(message, alone=alone, token=token, again=True))
            if claim is not None:
                self._recent.note(message, claim)
            if isinstance(claim, Claimed) and claim.lease is not None and lane not in self._held:
                await self._primary.release(claim.lease)  # whoever has room takes it

    async def _tell_open(self) -> None:
        """Tell which turns are being answered from our own lanes."""
        for turn in tuple(self._untold.values()):
            if turn.outcome is None:
                turn.lease = await _told(self._primary.settle(turn.message, turn.token, None))

    async def _tell_ended(self) -> None:
        """Tell which turns have ended."""
        for turn_id, turn in tuple(self._untold.items()):
            if turn.outcome is not None:
                await _told(self._primary.settle(turn.message, turn.token, turn.outcome))
                self._untold.pop(turn_id, None)

    async def _tell_let_go(self) -> None:
        """Tell which lanes were let go."""
        while self._let_go:
            lease = self._let_go[0]
            await _told(self._primary.release(lease))
            if self._let_go and self._let_go[0] is lease:
                self._let_go.popleft()


async def _released(turns: Turns, lease: Lease) -> bool:
    await turns.release(lease)
    return True


async def _told(call: Awaitable[T]) -> T | None:
    """What came of telling one thing; one that the state cannot take must not hold up the others."""
    try:
        return await call
    except StateUnavailableError:
        raise
    except StateError as error:
        _log.warning("state_not_told", exc_info=error)
        return None
