"""Turns: each message is claimed once, waits in its conversation's line, and is answered by whoever holds the lane."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import structlog

from bot.codec import decode, encode
from bot.errors import LeaseLostError, MalformedStateError, StateError, StateUnavailableError
from bot.messages import Message, Outcome, TurnId
from bot.metrics import MALFORMED
from bot.turns import scripts
from bot.turns.index import AT_ONCE, LaneIndex
from bot.turns.types import Claimed, Duplicate, Lease, LineFull, PendingTurn, lane_name, lane_parts

if TYPE_CHECKING:
    from bot.ports import Script, State, Value

_MOST_NAMES: Final = 32
"""Names of one message that are looked at."""
_log = structlog.get_logger(__name__)


class Turns:
    """Claims, lines and leases in one state. Every call may raise a StateError.

    What is leased is a *lane*: a conversation with its line of turns, or one turn that goes alone, beside the line.
    """

    def __init__(
        self,
        state: State,
        *,
        owner: str,
        lease_seconds: float,
        max_line: int,
        remember_seconds: float = 172_800,
    ) -> None:
        """Use this state.

        Args:
            state: Where everything is kept.
            owner: Names this process in the leases, for whoever looks into the state.
            lease_seconds: How long a lane stays with a process that is silent.
            max_line: Most turns that wait in a line behind the one that is being answered.
            remember_seconds: How long an ended turn makes later deliveries duplicates, and how long, at least, one
                that nobody answers stays in line.
        """
        self._state = state
        self._owner = owner
        self._lease_ms = max(1, round(lease_seconds * 1000))
        self._remember_ms = max(1, round(remember_seconds * 1000))
        self._max_line = max_line
        self._emptied: set[str] = set()
        """Tokens of leases that ended with the last turn in line, until their holder asks for the next one."""
        self._index = LaneIndex(state, lease_ms=self._lease_ms, remember_ms=self._remember_ms)

    # ---- messages -----------------------------------------------------------------------------------------------

    async def claim(
        self, message: Message, *, alone: bool = False, token: str | None = None, again: bool = False
    ) -> Claimed | Duplicate | LineFull:
        """Put the message in line, unless it was claimed before by any of its names.

        Args:
            message: What came in.
            alone: Beside the conversation's line, and not bounded by it.
            token: From `new_token`; claiming again with the same one, unsure what became of it, is no duplicate.
            again: It was claimed before, and the state may have lost it: if it is stored now, whoever begins it is not
                the first.
        """
        turn_id, platform = message.turn_id, message.platform
        lane = self.lane(message, alone=alone)
        token = token or self.new_token()
        keys, entered = self._keys(lane), time.monotonic()
        if self._state.shared:
            await self._index.enter(platform, lane)
        else:
            keys.append(self._index.key(platform))  # no cluster: in one step
        limits = (self._lease_ms, self._remember_ms, 0 if alone else self._max_line + 1, int(again))
        stored = (turn_id, encode(message), lane, *_names(message))
        reply = await self._state.run(scripts.CLAIM, keys, (token, *limits, *stored))
        match reply:
            case [b"claimed", known, position, held]:
                if self._state.shared and time.monotonic() - entered > self._lease_ms / 2000:
                    # We were slow: the lane may have been seen empty and been taken out.
                    with suppress(StateUnavailableError):
                        await self._index.enter(platform, lane)
                lease = Lease(platform=platform, lane=lane, token=token) if held else None
                return Claimed(turn_id=TurnId(known.decode()), position=position, lease=lease)
            case [b"ended", known, idle, outcome]:
                result: Duplicate | LineFull = Duplicate(turn_id=TurnId(known.decode()), outcome=_outcome(outcome))
            case [b"pending", known, idle]:
                result = Duplicate(turn_id=TurnId(known.decode()), outcome=None)
            case [b"full", waiting, idle]:
                result = LineFull(waiting=waiting)
            case _:
                raise _malformed(reply)
        if idle:
            # Entering the lane has put off the next look at it.
            await self._offer(platform, lane)
        return result

    async def withdraw(self, message: Message) -> bool:
        """The message was deleted: if its turn has not ended, nothing more is to be posted.

        Returns:
            Whether that comes before its answer was kept.
        """
        reply = await self._run(scripts.WITHDRAW, lane_name(message.conversation), *_names(message))
        return bool(reply[0] == b"withdrawn")

    async def outcome(self, message: Message) -> Outcome | None:
        """How the message's turn ended; None: it has not, or the message is not known."""
        reply = await self._run(scripts.OUTCOME, lane_name(message.conversation), *_names(message))
        return None if reply[1] is None else _outcome(reply[1])

    # ---- the lane that is held ----------------------------------------------------------------------------------

    async def begin(self, lease: Lease) -> PendingTurn | None:
        """The first turn in line, the lease renewed; None: the line is empty, and the lease was let go with that.

        A turn whose message cannot be read is dropped, and ends as failed. Raises LeaseLostError.
        """
        while lease.token not in self._emptied:
            reply = await self._held(scripts.BEGIN, lease, self._lease_ms, self._remember_ms)
            if reply[0] == b"empty":
                return None
            try:
                return _pending(reply)
            except MalformedStateError as error:
                _skipped("turn", self._keys(lease.lane)[0], error)
                await self._complete(lease, reply[1], Outcome.FAILED)
        self._emptied.discard(lease.token)
        return None

    async def renew(self, lease: Lease) -> None:
        """Hold the lane for another while. Raises LeaseLostError."""
        if lease.token in self._emptied:
            return
        await self._held(scripts.RENEW, lease, self._lease_ms, self._remember_ms)

    async def keep(self, lease: Lease, turn_id: TurnId, answer: str) -> bool:
        """Store a composed answer before it is posted, so that whoever takes over posts the same.

        Returns:
            False when the message was withdrawn: nothing is to be posted.

        Raises:
            LeaseLostError: The lane is not ours any more.
        """
        reply = await self._held(scripts.KEEP, lease, turn_id, answer)
        return bool(reply[0] == b"kept")

    async def complete(self, lease: Lease, turn_id: TurnId, outcome: Outcome) -> None:
        """End a turn: it leaves the line, its text is forgotten, its outcome remembered. Raises LeaseLostError.

        With the last one in line the lane is let go; `begin` then says that there is nothing more.
        """
        await self._complete(lease, turn_id, outcome)

    async def release(self, lease: Lease) -> None:
        """Let go of a lane, if it is still ours. What is in line stays there, and others may take it at once."""
        if lease.token in self._emptied:
            self._emptied.discard(lease.token)
            return
        match await self._run(scripts.RELEASE, lease.lane, lease.token):
            case [b"released", waiting] if waiting:
                await self._offer(lease.platform, lease.lane)

    # ---- what happened while the state was away ------------------------------------------------------------------

    async def check(self) -> None:
        """See that the state can be written to. Raises StateError."""
        await self._state.set(self._state.key("check", "turns"), self._owner, seconds=60)

    async def settle(self, message: Message, token: str, outcome: Outcome | None) -> Lease | None:
        """Note what became of a message while the state was away. Not fenced: an answer that is out is out.

        Args:
            message: What was claimed.
            token: With which it was claimed, or was going to be, or by which its lane was held.
            outcome: How it ended: it leaves the line, and later deliveries are duplicates. None: it is being answered
                outside of this state; it goes alone in a lane that is leased to us, for others to find if we die.

        Returns:
            That lease, to be renewed; None when the turn has ended, or is somebody else's.
        """
        lane, own = self.lane(message, alone=False), self.lane(message, alone=True)
        if outcome is None:
            await self._index.enter(message.platform, own)
        about = (token, self._lease_ms, self._remember_ms, message.turn_id, encode(message), outcome or "")
        keys = [*self._keys(lane), *self._keys(own)[2:]]
        match await self._state.run(scripts.SETTLE, keys, (*about, *_names(message))):
            case [b"settled", idle]:
                if idle:
                    await self._offer(message.platform, lane)
                return Lease(platform=message.platform, lane=own, token=token) if outcome is None else None
        return None

    # ---- lanes that nobody holds --------------------------------------------------------------------------------

    async def abandoned(self, platform: str) -> list[str]:
        """Lanes of this platform with turns in line and nobody who answers them, the longest abandoned first.

        Looks only at lanes where that may be: those that were not touched for the time of a lease.
        """
        lanes, waits = [], {}
        due = await self._index.due(platform)
        for lane, score in due.items():
            await asyncio.sleep(0)  # a state inside the process never waits, and there may be a thousand lanes
            match await self._look(lane):
                case b"abandoned":
                    lanes.append(lane)
                case b"empty" if score != AT_ONCE:
                    waits[lane] = (score, -1)
                case b"held" if score != AT_ONCE:
                    waits[lane] = (score, self._lease_ms // 2)
                case _:
                    waits[lane] = (score, self._lease_ms)
        await self._index.looked(platform, waits)
        return lanes

    async def free(self, platform: str) -> None:
        """At the start of a process: a state inside it holds only leases of a process that is gone. Drop them."""
        if self._state.shared:
            return
        for lane in await self._index.entered(platform):
            await self._state.delete(self._keys(lane)[3])
            await self._index.offer(platform, lane)

    async def take(self, platform: str, lane: str) -> Lease | None:
        """Lease a lane that nobody holds; None when it is held or its line is empty."""
        token = self.new_token()
        reply = await self._run(scripts.TAKE, lane, token, self._lease_ms, self._remember_ms)
        return Lease(platform=platform, lane=lane, token=token) if reply[0] == b"taken" else None

    def lane(self, message: Message, *, alone: bool) -> str:
        """The lane that a message goes in."""
        return lane_name(message.conversation, message.turn_id if alone else None)

    def new_token(self) -> str:
        """What a lease is known by."""
        return f"{self._owner}/{secrets.token_hex(8)}"

    async def _offer(self, platform: str, lane: str) -> None:
        # Without it the lane is found a while later.
        with suppress(StateUnavailableError):
            await self._index.offer(platform, lane)

    # ---- the state ----------------------------------------------------------------------------------------------

    async def _look(self, lane: str) -> bytes:
        try:
            reply = await self._run(scripts.LOOK, lane)
        except StateUnavailableError:
            raise
        except StateError as error:
            # One lane that cannot be read must not hide the others.
            _skipped("lane", self._keys(lane)[2], error)
            return b"malformed"
        return bytes(reply[0])

    async def _complete(self, lease: Lease, turn_id: str | bytes, outcome: Outcome) -> None:
        """`turn_id` as it stands in the line, which may be nonsense."""
        reply = await self._held(scripts.COMPLETE, lease, turn_id, outcome, self._remember_ms)
        if reply[0] == b"emptied":
            self._emptied.add(lease.token)

    async def _held(self, script: Script, lease: Lease, *args: Value) -> list[Any]:
        """Run a script that only the lane's holder may run."""
        reply = await self._run(script, lease.lane, lease.token, *args)
        if reply[0] == b"lost":
            message = "Another process has taken over this conversation."
            raise LeaseLostError(message)
        return reply

    async def _run(self, script: Script, lane: str, *args: Value) -> list[Any]:
        reply = await self._state.run(script, self._keys(lane), args)
        if not isinstance(reply, list) or not reply:
            raise _malformed(reply)
        return reply

    def _keys(self, lane: str) -> list[str]:
        """In the order that the scripts know: book, ended, line, lease."""
        conversation, alone = lane_parts(lane)
        beside = (alone,) if alone else ()
        return [
            self._state.key(conversation, "turns"),
            self._state.key(conversation, "turns", "ended"),
            self._state.key(conversation, "turns", "line", *beside),
            self._state.key(conversation, "turns", "lease", *beside),
        ]


def _names(message: Message) -> list[str]:
    """Digests of all names of a message, its own first: of one length, and nobody's words."""
    names = dict.fromkeys((message.id, *message.keys))
    return [_digest(f"{message.platform}\0{name}") for name in names][:_MOST_NAMES]


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _pending(reply: list[Any]) -> PendingTurn:
    """What `BEGIN` found. Raises MalformedStateError."""
    _, turn_id, message, attempts, answer, accepted_ms, withdrawn = reply
    try:
        return PendingTurn(
            id=TurnId(turn_id.decode()),
            message=decode(Message, message or b""),
            attempts=int(attempts),
            answer=None if answer is None else answer.decode(),
            accepted_at=datetime.fromtimestamp(int(accepted_ms) / 1000, UTC),
            withdrawn=withdrawn is not None,
        )
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise _malformed(reply[0]) from error


def _outcome(stored: bytes) -> Outcome:
    try:
        return Outcome(stored.decode())
    except ValueError as error:
        _skipped("outcome", "", error)
        return Outcome.FAILED


def _skipped(kind: str, key: str, error: Exception) -> None:
    MALFORMED.labels(kind).inc()
    _log.warning("malformed_state", kind=kind, key=key, exc_info=error)


def _malformed(_: object) -> MalformedStateError:
    message = "Stored data could not be read; it was skipped."
    return MalformedStateError(message)
