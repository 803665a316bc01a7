"""Claims, lines and leases, on both states."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from fakes.asked import asked

from bot.errors import LeaseLostError
from bot.messages import Outcome, TurnId
from bot.turns import Claimed, Duplicate, Lease, LineFull, PendingTurn, Turns

if TYPE_CHECKING:
    from bot.messages import Message
    from bot.ports import State

DAY = 86_400.0


@pytest.fixture
def turns(state: State) -> Turns:
    return of(state)


def of(state: State, owner: str = "a", *, lease_seconds: float = 60.0, max_line: int = 3) -> Turns:
    return Turns(state, owner=owner, lease_seconds=lease_seconds, max_line=max_line)


async def claimed(turns: Turns, message: Message, *, alone: bool = False) -> Claimed:
    claim = await turns.claim(message, alone=alone)
    assert isinstance(claim, Claimed)
    return claim


async def leased(turns: Turns, message: Message, *, alone: bool = False) -> Lease:
    claim = await claimed(turns, message, alone=alone)
    assert claim.lease is not None
    return claim.lease


async def begun(turns: Turns, lease: Lease) -> PendingTurn:
    pending = await turns.begin(lease)
    assert pending is not None
    return pending


async def expire(turns: Turns, lease: Lease) -> None:
    """As when the holder was silent for too long."""
    assert await turns._state.delete(turns._keys(lease.lane)[3]) == 1


async def make_due(turns: Turns, platform: str = "test") -> None:
    """As when the time of a lease has passed since the lanes were entered."""
    key = turns._state.key(platform, "lanes")
    for lane in await turns._state.zrange(key, 0, -1):
        await turns._state.zadd(key, {lane.decode(): 1.0})


async def abandoned(turns: Turns, platform: str = "test") -> list[str]:
    await make_due(turns, platform)
    return await turns.abandoned(platform)


# ---- claims ---------------------------------------------------------------------------------------------------------


async def test_a_claimed_message_is_begun_kept_and_completed(turns: Turns) -> None:
    message = asked("1", text="Wie weit? 🦊")
    claim = await claimed(turns, message)
    assert (claim.turn_id, claim.position) == (message.turn_id, 1)
    assert claim.lease is not None
    pending = await begun(turns, claim.lease)
    assert (pending.id, pending.message, pending.attempts) == (message.turn_id, message, 1)
    assert (pending.answer, pending.withdrawn) == (None, False)
    assert abs((datetime.now(UTC) - pending.accepted_at).total_seconds()) < 3600
    assert await turns.outcome(message) is None
    assert await turns.keep(claim.lease, pending.id, "Seven miles.") is True
    await turns.complete(claim.lease, pending.id, Outcome.ANSWERED)
    assert await turns.outcome(message) is Outcome.ANSWERED
    assert await turns.begin(claim.lease) is None
    assert await turns.claim(message) == Duplicate(turn_id=message.turn_id, outcome=Outcome.ANSWERED)


async def test_of_twenty_deliveries_at_once_one_is_claimed(state: State) -> None:
    everyone = [of(state, str(number)) for number in range(5)]
    claims = await asyncio.gather(*(everyone[n % 5].claim(asked("1", f"event-{n}")) for n in range(20)))
    assert sum(isinstance(claim, Claimed) for claim in claims) == 1
    assert claims.count(Duplicate(turn_id=asked("1").turn_id, outcome=None)) == 19


async def test_two_events_of_one_post_are_one_claim_by_any_name(turns: Turns) -> None:
    first = asked("C1/17.4", "Ev1", "client-1")
    await claimed(turns, first)
    pending = Duplicate(turn_id=first.turn_id, outcome=None)
    assert await turns.claim(asked("C1/17.4", "Ev2")) == pending
    assert await turns.claim(asked("other", "Ev3", "client-1")) == pending
    assert await turns.claim(asked("another", "Ev1")) == pending
    await claimed(turns, asked("C1/17.5", "Ev4", "client-2"))


async def test_a_name_that_a_later_delivery_brings_names_the_message_too(turns: Turns) -> None:
    first = asked("1", "Ev1")
    lease = await leased(turns, first)
    await turns.claim(asked("1", "Ev2"))
    await turns.complete(lease, first.turn_id, Outcome.ABSTAINED)
    await turns.claim(asked("1", "Ev3"))
    for later in (asked("x", "Ev2"), asked("y", "Ev3")):
        assert await turns.claim(later) == Duplicate(turn_id=first.turn_id, outcome=Outcome.ABSTAINED)
        assert await turns.outcome(later) is Outcome.ABSTAINED


async def test_a_claim_that_is_sent_again_is_no_duplicate(turns: Turns) -> None:
    token = turns.new_token()
    first = await turns.claim(asked("1"), token=token)
    again = await turns.claim(asked("1"), token=token)
    assert first == again
    assert isinstance(again, Claimed)
    assert again.lease is not None
    waiting = turns.new_token()
    assert await turns.claim(asked("2"), token=waiting) == await turns.claim(asked("2"), token=waiting)
    assert isinstance(await turns.claim(asked("2"), token=token), Duplicate)


async def test_names_of_other_conversations_do_not_matter(turns: Turns) -> None:
    await leased(turns, asked("1", "Ev1"))
    await leased(turns, asked("1", "Ev1", conversation="test:T1:C2:1"))


async def test_names_in_any_characters(turns: Turns) -> None:
    conversation = "a|b:{c}:%20 d\0é"
    await leased(turns, asked("1|2 {3}\0", "é:", conversation=conversation))
    assert isinstance(await turns.claim(asked("x", "1|2 {3}\0", conversation=conversation)), Duplicate)
    lanes = await abandoned(turns)
    assert lanes == []


async def test_what_has_ended_is_forgotten_after_its_time(state: State) -> None:
    turns = Turns(state, owner="a", lease_seconds=60, max_line=3, remember_seconds=DAY)
    first = asked("1", "Ev1")
    await turns.complete(await leased(turns, first), first.turn_id, Outcome.ANSWERED)
    book, ended, *_ = turns._keys("|" + first.conversation)
    await state.zadd(ended, {first.turn_id: 1.0})  # its time is over
    second = asked("2")
    await claimed(turns, second)
    assert isinstance(await turns.claim(first), Claimed)
    fields = await state.hgetall(book)
    assert sum(field.startswith(b"name:") for field in fields) == 3
