"""Claims, lines and leases, on both states."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from fakes.asked import asked
from fakes.redis_server import BINARY, RedisServer, running
from redis.asyncio import Redis
from structlog.testing import capture_logs

from bot.errors import LeaseLostError, StateError
from bot.messages import Outcome
from bot.ports import Script
from bot.redis_server import ServerState
from bot.turns import Claimed, Duplicate, Lease, LineFull, PendingTurn, Turns

if TYPE_CHECKING:
    from pathlib import Path

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


# ---- lines ----------------------------------------------------------------------------------------------------------


async def test_a_second_message_waits_in_line_and_the_holder_answers_it(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    second = await claimed(turns, asked("2"))
    assert (second.position, second.lease) == (2, None)
    for name in ("1", "2"):
        pending = await begun(turns, lease)
        assert (pending.id, pending.attempts) == (asked(name).turn_id, 1)
        await turns.complete(lease, pending.id, Outcome.ANSWERED)
    assert await turns.begin(lease) is None
    await leased(turns, asked("3"))


async def test_fifty_messages_at_once_in_five_processes_are_answered_one_after_the_other(state: State) -> None:
    everyone = [of(state, str(number), max_line=100) for number in range(5)]
    begun_in_order, positions = [], {}
    running = 0

    async def deliver(number: int) -> None:
        nonlocal running
        turns = everyone[number % 5]
        claim = await claimed(turns, asked(str(number)))
        positions[claim.turn_id] = claim.position
        while claim.lease is not None and (pending := await turns.begin(claim.lease)) is not None:
            running += 1
            assert await turns.keep(claim.lease, pending.id, "a")
            assert running == 1
            begun_in_order.append(pending.id)
            running -= 1
            await turns.complete(claim.lease, pending.id, Outcome.ANSWERED)

    await asyncio.gather(*(deliver(number) for number in range(50)))
    assert len(set(begun_in_order)) == len(begun_in_order) == 50
    assert await everyone[0].claim(asked("1")) == Duplicate(turn_id=asked("1").turn_id, outcome=Outcome.ANSWERED)
    assert await abandoned(everyone[0]) == []


async def test_a_line_is_answered_in_the_order_in_which_it_was_claimed(state: State) -> None:
    everyone = [of(state, str(number), max_line=100) for number in range(5)]
    names = [str(number) for number in range(50)]
    positions = [(await claimed(everyone[n % 5], asked(name))).position for n, name in enumerate(names)]
    assert positions == list(range(1, 51))
    lane = everyone[0].lane(asked("1"), alone=False)
    token = await state.get(everyone[0]._keys(lane)[3])
    assert token is not None
    lease = Lease(platform="test", lane=lane, token=token.decode())
    for number, name in enumerate(names):
        turns = everyone[number % 5]
        pending = await begun(turns, lease)
        assert pending.id == asked(name).turn_id
        await turns.complete(lease, pending.id, Outcome.ANSWERED)
        await turns.release(lease)
        if number < 49:
            lease = await _taken(everyone[(number + 1) % 5], lane)


async def _taken(turns: Turns, lane: str) -> Lease:
    lease = await turns.take("test", lane)
    assert lease is not None
    return lease


async def test_another_conversation_does_not_wait(turns: Turns) -> None:
    await leased(turns, asked("1"))
    await leased(turns, asked("2", conversation="test:T1:C1:2"))


async def test_a_command_does_not_wait(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    alone = await leased(turns, asked("2"), alone=True)
    assert alone.lane != lease.lane
    assert (await begun(turns, alone)).id == asked("2").turn_id
    assert (await begun(turns, lease)).id == asked("1").turn_id
    await turns.complete(alone, asked("2").turn_id, Outcome.DONE)
    assert await turns.begin(alone) is None
    assert await turns.claim(asked("2")) == Duplicate(turn_id=asked("2").turn_id, outcome=Outcome.DONE)


async def test_a_full_line_stores_nothing_of_the_message(state: State) -> None:
    turns = of(state, max_line=2)
    lease = await leased(turns, asked("1"))
    for name in ("2", "3"):
        await claimed(turns, asked(name))
    refused = asked("4", "Ev4")
    assert await turns.claim(refused) == LineFull(waiting=2)
    assert await turns.outcome(refused) is None
    assert not await turns.withdraw(refused)
    alone = await leased(turns, refused, alone=True)
    assert (await begun(turns, alone)).message == refused
    await turns.complete(lease, (await begun(turns, lease)).id, Outcome.ANSWERED)
    assert (await claimed(turns, asked("5"))).position == 3


async def test_of_many_claims_at_once_no_more_than_the_line_holds_are_taken(state: State) -> None:
    everyone = [of(state, str(number), max_line=4) for number in range(3)]
    claims = await asyncio.gather(*(everyone[n % 3].claim(asked(str(n))) for n in range(20)))
    assert sorted(claim.position for claim in claims if isinstance(claim, Claimed)) == [1, 2, 3, 4, 5]
    assert [claim for claim in claims if not isinstance(claim, Claimed)] == 15 * [LineFull(waiting=4)]


# ---- leases ---------------------------------------------------------------------------------------------------------


async def test_who_was_silent_for_too_long_can_do_nothing_more(state: State) -> None:
    slow, other = of(state, "slow"), of(state, "other")
    lease = await leased(slow, asked("1"))
    pending = await begun(slow, lease)
    await expire(slow, lease)
    for taken in (False, True):
        if taken:
            (lane,) = await abandoned(other)
            assert await other.take("test", lane) is not None
        for call in (
            lambda: slow.begin(lease),
            lambda: slow.renew(lease),
            lambda: slow.keep(lease, pending.id, "late"),
            lambda: slow.complete(lease, pending.id, Outcome.ANSWERED),
        ):
            with pytest.raises(LeaseLostError):
                await call()
        await slow.release(lease)  # nothing happens
    assert await other.outcome(asked("1")) is None
    assert await other.take("test", lease.lane) is None


async def test_a_lease_expires_by_itself_and_renewing_holds_it(state: State) -> None:
    turns, other = of(state, lease_seconds=0.3), of(state, "other", lease_seconds=0.3)
    lease = await leased(turns, asked("1"))
    for _ in range(4):
        await asyncio.sleep(0.1)
        await turns.renew(lease)
    assert await other.take("test", lease.lane) is None
    assert await other.abandoned("test") == []
    async with asyncio.timeout(20):
        while await other.abandoned("test") != [lease.lane]:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    with pytest.raises(LeaseLostError):
        await turns.renew(lease)
    assert await other.take("test", lease.lane) is not None


async def test_whoever_takes_over_finds_the_message_and_what_was_kept(state: State) -> None:
    first, second = of(state, "first"), of(state, "second")
    lease = await leased(first, asked("1"))
    pending = await begun(first, lease)
    assert await first.keep(lease, pending.id, "Seven.")
    await expire(first, lease)
    (lane,) = await abandoned(second)
    taken = await _taken(second, lane)
    assert taken.token != lease.token
    again = await begun(second, taken)
    assert (again.id, again.message, again.attempts, again.answer) == (pending.id, pending.message, 2, "Seven.")
    assert again.accepted_at == pending.accepted_at
    await second.complete(taken, again.id, Outcome.ANSWERED)
    assert await second.begin(taken) is None


async def test_of_many_takers_one_has_the_lane(state: State) -> None:
    turns = of(state)
    lease = await leased(turns, asked("1"))
    await turns.release(lease)
    leases = await asyncio.gather(*(of(state, str(n)).take("test", lease.lane) for n in range(20)))
    assert sum(lease is not None for lease in leases) == 1


async def test_a_released_lane_can_be_taken_at_once(state: State) -> None:
    turns, other = of(state), of(state, "other")
    lease = await leased(turns, asked("1"))
    await claimed(turns, asked("2"))
    await begun(turns, lease)
    await turns.release(lease)
    assert await other.abandoned("test") == [lease.lane]
    taken = await _taken(other, lease.lane)
    pending = await begun(other, taken)
    assert (pending.id, pending.attempts) == (asked("1").turn_id, 2)
    assert await other.abandoned("test") == []


async def test_a_new_message_takes_over_a_lane_that_nobody_holds(state: State) -> None:
    turns, other = of(state), of(state, "other")
    await expire(turns, await leased(turns, asked("1")))
    claim = await claimed(other, asked("2"))
    assert claim.position == 2
    assert claim.lease is not None
    assert (await begun(other, claim.lease)).id == asked("1").turn_id


async def test_an_empty_or_unknown_lane_cannot_be_taken(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)
    assert await turns.take("test", lease.lane) is None
    assert await turns.take("test", "|nowhere") is None


async def test_the_last_turn_in_line_lets_go_of_the_lane(state: State) -> None:
    turns, other = of(state), of(state, "other")
    lease = await leased(turns, asked("1"))
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)
    next_lease = await leased(other, asked("2"))
    await turns.renew(lease)  # it has not heard yet that nothing is left
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)  # the reply was lost, and it asks again
    with pytest.raises(LeaseLostError):
        await turns.keep(lease, asked("2").turn_id, "mine?")
    with pytest.raises(LeaseLostError):
        await turns.complete(lease, asked("2").turn_id, Outcome.FAILED)
    with pytest.raises(LeaseLostError):
        await other.complete(Lease(platform="test", lane=lease.lane, token="x"), asked("1").turn_id, Outcome.FAILED)
    assert await turns.begin(lease) is None
    with pytest.raises(LeaseLostError):
        await turns.begin(lease)
    assert (await begun(other, next_lease)).id == asked("2").turn_id
    await other.complete(next_lease, asked("2").turn_id, Outcome.ANSWERED)
    await other.release(next_lease)
    with pytest.raises(LeaseLostError):
        await other.begin(next_lease)


async def test_completing_twice_changes_nothing(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    await claimed(turns, asked("2"))
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)
    await turns.complete(lease, asked("1").turn_id, Outcome.FAILED)
    assert await turns.outcome(asked("1")) is Outcome.ANSWERED
    assert (await begun(turns, lease)).id == asked("2").turn_id
    assert await turns.keep(lease, asked("1").turn_id, "late") is False


# ---- lanes that nobody holds ----------------------------------------------------------------------------------------


async def test_only_lanes_of_the_platform_with_turns_and_without_a_holder_are_abandoned(turns: Turns) -> None:
    held = await leased(turns, asked("1", conversation="c1"))
    done = await leased(turns, asked("1", conversation="c2"))
    await turns.complete(done, asked("1", conversation="c2").turn_id, Outcome.ANSWERED)
    assert await turns.begin(done) is None
    silent = await leased(turns, asked("1", conversation="c3"))
    await expire(turns, silent)
    alone = await leased(turns, asked("2", conversation="c1"), alone=True)
    await expire(turns, alone)
    await expire(turns, await leased(turns, asked("1", platform="else", conversation="c4")))
    assert sorted(await abandoned(turns)) == sorted([silent.lane, alone.lane])
    assert sorted(await turns.abandoned("test")) == sorted([silent.lane, alone.lane])
    assert len(await abandoned(turns, "else")) == 1
    index = await turns._state.zrange(turns._state.key("test", "lanes"), 0, -1)
    assert held.lane.encode() in index
    assert done.lane.encode() not in index


async def test_lanes_that_were_just_touched_are_not_looked_at(turns: Turns) -> None:
    await expire(turns, await leased(turns, asked("1")))
    assert await turns.abandoned("test") == []


async def test_a_lane_is_not_taken_out_of_the_index_while_a_claim_is_under_way(state: State) -> None:
    turns, sweeper = of(state), of(state, "sweeper")
    lane = turns.lane(asked("1"), alone=False)
    await turns._index.enter("test", lane)  # the claimer stops here for a while
    await make_due(turns)
    due = await sweeper._index.due("test")
    await turns._index.enter("test", lane)  # another claimer comes
    await sweeper._index.looked("test", {lane: (due[lane], -1)})
    assert await turns._state.zrange(turns._state.key("test", "lanes"), 0, -1) == [lane.encode()]


async def test_a_claim_that_was_slow_enters_the_lane_again(state: State) -> None:
    turns, sweeper = of(state, lease_seconds=0.02), of(state, "sweeper", lease_seconds=0.02)
    run = turns._run

    async def slowly(*args: object) -> object:
        await asyncio.sleep(0.05)
        assert await sweeper.abandoned("test") == []  # takes the empty lane out
        assert await state.zcard(state.key("test", "lanes")) == 0
        return await run(*args)  # type: ignore[arg-type] # what it was given

    turns._run = slowly  # type: ignore[method-assign, assignment] # a slow one in its place
    await claimed(turns, asked("1"))
    assert await state.zcard(state.key("test", "lanes")) == 1


async def test_a_delivery_that_is_refused_does_not_hide_an_abandoned_lane(state: State) -> None:
    turns = of(state, max_line=1)
    lease = await leased(turns, asked("1"))
    await claimed(turns, asked("2"))
    await expire(turns, lease)
    assert isinstance(await turns.claim(asked("3")), LineFull)
    assert await turns.abandoned("test") == [lease.lane]
    assert isinstance(await turns.claim(asked("2")), Duplicate)
    assert await turns.abandoned("test") == [lease.lane]
    lease = await _taken(turns, lease.lane)
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)
    await expire(turns, lease)
    assert await turns.claim(asked("1")) == Duplicate(turn_id=asked("1").turn_id, outcome=Outcome.ANSWERED)
    assert await turns.abandoned("test") == [lease.lane]


async def test_many_lanes_are_found_some_at_a_time(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.turns.index._AT_MOST", 25)
    turns = of(state)
    for number in range(60):
        await expire(turns, await leased(turns, asked("1", conversation=f"c{number}")))
    await make_due(turns)
    found = set()
    while lanes := await turns.abandoned("test"):
        for lane in lanes:
            assert await turns.take("test", lane) is not None
            found.add(lane)
        await turns.abandoned("test")  # sees that they are held
    assert len(found) == 60


# ---- withdrawn messages ---------------------------------------------------------------------------------------------


async def test_a_waiting_message_that_is_withdrawn_is_not_answered(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    await claimed(turns, asked("2", "Ev2"))
    assert await turns.withdraw(asked("deleted", "Ev2")) is True
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)
    pending = await begun(turns, lease)
    assert (pending.id, pending.withdrawn) == (asked("2").turn_id, True)
    await turns.complete(lease, pending.id, Outcome.WITHDRAWN)
    assert await turns.outcome(asked("2")) is Outcome.WITHDRAWN


async def test_an_answer_to_a_withdrawn_message_is_not_kept(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    pending = await begun(turns, lease)
    assert not pending.withdrawn
    assert await turns.withdraw(asked("1")) is True
    assert await turns.keep(lease, pending.id, "Seven.") is False
    assert (await begun(turns, lease)).answer is None


async def test_withdrawing_late_or_in_vain(turns: Turns) -> None:
    assert await turns.withdraw(asked("1")) is False
    lease = await leased(turns, asked("1"))
    assert await turns.keep(lease, asked("1").turn_id, "Seven.") is True
    assert await turns.withdraw(asked("1")) is False
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)
    assert await turns.withdraw(asked("1")) is False
    assert await turns.outcome(asked("1")) is Outcome.ANSWERED


# ---- what is stored -------------------------------------------------------------------------------------------------


async def test_the_text_is_gone_when_the_turn_has_ended(turns: Turns) -> None:
    message = asked("1", text="my secret")
    lease = await leased(turns, message)
    book = turns._keys(lease.lane)[0]
    assert any(b"my secret" in value for value in (await turns._state.hgetall(book)).values())
    await turns.keep(lease, message.turn_id, "your secret")
    await turns.complete(lease, message.turn_id, Outcome.ANSWERED)
    fields = await turns._state.hgetall(book)
    assert not any(b"secret" in value for value in fields.values())
    assert len(fields) == 4


@pytest.mark.parametrize("alone", [False, True])
async def test_every_key_expires(state: State, alone: bool) -> None:  # noqa: FBT001 - a parameter of the test
    turns = of(state)
    lease = await leased(turns, asked("1"), alone=alone)
    await claimed(turns, asked("2"))
    keys = {state.key("test", "lanes"), *turns._keys(lease.lane), *turns._keys(turns.lane(asked("2"), alone=False))}
    await begun(turns, lease)
    await turns.keep(lease, asked("1").turn_id, "Seven.")
    await turns.renew(lease)
    await turns.complete(lease, asked("1").turn_id, Outcome.ANSWERED)
    left = {key: await seconds_left(state, key) for key in keys}
    there = {key: seconds for key, seconds in left.items() if seconds != -2}
    assert len(there) == 5
    assert all(seconds > (0 if ":lease" in key else DAY) for key, seconds in there.items())


async def seconds_left(state: State, key: str) -> int:
    """-1: it does not expire, -2: it is not there."""
    from bot.redis_embedded import EmbeddedState  # noqa: PLC0415 - as in the fixture

    client = state._client  # type: ignore[attr-defined] # both have one
    return await (client.ttl(key) if isinstance(state, EmbeddedState) else client.execute_command("TTL", key))


async def test_a_turn_in_line_lives_as_long_as_its_lane_is_renewed(state: State) -> None:
    turns = Turns(state, owner="a", lease_seconds=0.2, max_line=3, remember_seconds=0.25)
    lease = await leased(turns, asked("1"))
    waiting = asked("2")
    await claimed(turns, waiting)
    for _ in range(5):
        await asyncio.sleep(0.1)
        await turns.renew(lease)
    await turns.complete(lease, (await begun(turns, lease)).id, Outcome.ANSWERED)
    assert (await begun(turns, lease)).message == waiting


@pytest.mark.parametrize("broken", ["{", "", '{"platform": 3}', b"\xff\xfe"])
async def test_a_message_that_cannot_be_read_is_dropped_and_the_line_goes_on(turns: Turns, broken: str | bytes) -> None:
    lease = await leased(turns, asked("1", "Ev1"))
    await claimed(turns, asked("2"))
    book = turns._keys(lease.lane)[0]
    await turns._state.hset(book, {f"{asked('1').turn_id}:message": broken})
    assert (await begun(turns, lease)).id == asked("2").turn_id
    assert await turns.outcome(asked("x", "Ev1")) is Outcome.FAILED


async def test_broken_fields_of_a_turn_do_not_stop_its_line(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    await claimed(turns, asked("2"))
    book, _, line, _ = turns._keys(lease.lane)
    id_ = asked("1").turn_id
    await turns._state.hset(book, {f"{id_}:attempts": "many"})
    assert (await begun(turns, lease)).attempts == 1
    await turns._state.hset(book, {f"{id_}:at": "yesterday"})
    assert (await begun(turns, lease)).id == asked("2").turn_id
    push = Script(name="push", text="redis.call('LPUSH', KEYS[1], ARGV[1]) return 1")
    for nonsense in (b"\xff\x00", "nothing", ""):
        await turns._state.run(push, [line], [nonsense])
    assert (await begun(turns, lease)).id == asked("2").turn_id
    await turns._state.hset(book, {f"{id_}:outcome": "splendid"})
    assert await turns.outcome(asked("1")) is Outcome.FAILED


async def test_a_lane_that_cannot_be_read_does_not_hide_the_others(turns: Turns) -> None:
    broken = await leased(turns, asked("1", conversation="c1"))
    good = await leased(turns, asked("1", conversation="c2"))
    line = turns._keys(broken.lane)[2]
    await turns._state.delete(line)
    await turns._state.set(line, "not a list")
    await turns._state.zadd(turns._state.key("test", "lanes"), {"nonsense": 1.0})
    await expire(turns, good)
    assert await abandoned(turns) == [good.lane]
    with pytest.raises(StateError):
        await turns.claim(asked("2", conversation="c1"))


async def test_very_many_names_are_bounded(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    for number in range(100):
        await turns.claim(asked("1", f"Ev{number}"))
    assert len(await turns._state.hgetall(turns._keys(lease.lane)[0])) < 80
    await turns.claim(asked("1", *(f"more{number}" for number in range(500))))
    assert isinstance(await turns.claim(asked("1")), Duplicate)
    assert len(await turns._state.hgetall(turns._keys(lease.lane)[0])) < 80


# ---- what happened while the state was away -------------------------------------------------------------------------


async def test_a_turn_that_was_answered_elsewhere_is_settled(turns: Turns) -> None:
    message = asked("1", "Ev1")
    assert await turns.settle(message, "token", Outcome.ANSWERED) is None
    assert await turns.claim(asked("x", "Ev1")) == Duplicate(turn_id=message.turn_id, outcome=Outcome.ANSWERED)
    assert await turns.settle(message, "token", Outcome.FAILED) is None
    assert await turns.outcome(message) is Outcome.ANSWERED


async def test_settling_takes_back_a_claim_that_had_no_answer(state: State) -> None:
    turns, other = of(state), of(state, "other")
    token = turns.new_token()
    await turns.claim(asked("1"), token=token)  # its answer does not arrive
    await claimed(other, asked("2"))
    await turns.settle(asked("1"), token, Outcome.ANSWERED)
    assert await state.lrange(turns._keys("|test:T1:C1:1")[2], 0, -1) == [asked("2").turn_id.encode()]
    (lane,) = await other.abandoned("test")
    assert (await begun(other, await _taken(other, lane))).id == asked("2").turn_id


async def test_settling_ends_what_another_process_has_begun(state: State) -> None:
    turns, other = of(state), of(state, "other")
    lease = await leased(other, asked("1"))
    pending = await begun(other, lease)
    await turns.settle(asked("1"), turns.new_token(), Outcome.ANSWERED)
    assert await other.keep(lease, pending.id, "too late") is False
    await other.complete(lease, pending.id, Outcome.WITHDRAWN)
    assert await other.outcome(asked("1")) is Outcome.ANSWERED
    assert await other.begin(lease) is None


async def test_settling_ends_also_what_goes_alone_under_another_id(state: State) -> None:
    turns, other = of(state), of(state, "other")
    lease = await leased(other, asked("x", "Ev1"), alone=True)
    unbegun = await leased(other, asked("y", "Ev2"), alone=True)
    await begun(other, lease)
    await turns.settle(asked("1", "Ev1"), turns.new_token(), Outcome.ANSWERED)
    await turns.settle(asked("2", "Ev2"), turns.new_token(), Outcome.ANSWERED)
    await other.complete(lease, asked("x").turn_id, Outcome.FAILED)
    with capture_logs() as logs:
        assert await other.begin(unbegun) is None
    assert logs == []
    for name in ("x", "y", "1", "2"):
        assert await other.outcome(asked(name)) is Outcome.ANSWERED
    assert await abandoned(other) == []


@pytest.mark.parametrize("ran_after_all", [False, True])
async def test_a_turn_that_is_under_way_elsewhere_is_found_when_its_process_dies(
    state: State,
    ran_after_all: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    turns, other = of(state), of(state, "other")
    message, token = asked("1"), turns.new_token()
    if ran_after_all:
        await turns.claim(message, token=token)
    lease = await turns.settle(message, token, None)
    assert lease is not None
    assert await turns.settle(message, token, None) == lease
    await turns.renew(lease)
    assert await other.claim(message) == Duplicate(turn_id=message.turn_id, outcome=None)
    assert await abandoned(other) == []
    await expire(turns, lease)
    assert await abandoned(other) == [lease.lane]
    pending = await begun(other, await _taken(other, lease.lane))
    assert (pending.message, pending.attempts) == (message, 2)
    assert await turns.settle(message, turns.new_token(), None) is None
    await turns.settle(message, token, Outcome.ANSWERED)
    assert await other.outcome(message) is Outcome.ANSWERED


async def test_claiming_again_restores_what_the_state_has_lost(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    await begun(turns, lease)
    await turns._state.delete(*turns._keys(lease.lane))
    with pytest.raises(LeaseLostError):
        await turns.renew(lease)
    assert await turns.claim(asked("1"), token=lease.token, again=True) == Claimed(
        turn_id=asked("1").turn_id, position=1, lease=lease
    )
    await turns.renew(lease)
    assert (await begun(turns, lease)).attempts == 2


async def test_claiming_again_does_not_bring_back_a_lease_that_has_expired(turns: Turns) -> None:
    lease = await leased(turns, asked("1"))
    await begun(turns, lease)
    await expire(turns, lease)
    claim = await turns.claim(asked("1"), token=lease.token, again=True)
    assert isinstance(claim, Claimed)
    assert claim.lease is None


# ---- a cluster ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(BINARY is None, reason="no redis-server is installed here")
async def test_on_a_cluster_each_step_stays_on_one_node(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path, options="--cluster-enabled yes")) as server:
        async with Redis.from_url(server.url) as client:
            await client.execute_command("CLUSTER ADDSLOTS", *range(16384))
            async with asyncio.timeout(20):
                while (await client.execute_command("CLUSTER INFO"))["cluster_state"] != "ok":  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.05)
        state = await ServerState.open(server.url.replace("redis://", "redis+cluster://"))
        turns = of(state)
        lease = await leased(turns, asked("1", "Ev1"))
        alone = await leased(turns, asked("2"), alone=True)
        await claimed(turns, asked("3"))
        for held in (lease, alone):
            pending = await begun(turns, held)
            assert await turns.keep(held, pending.id, "a")
            await turns.renew(held)
            await turns.complete(held, pending.id, Outcome.ANSWERED)
        await turns.withdraw(asked("3"))
        await turns.settle(asked("3"), turns.new_token(), Outcome.WITHDRAWN)
        await turns.settle(asked("4"), turns.new_token(), None)
        await turns.release(lease)
        assert await abandoned(turns) == []
        assert await turns.take("test", lease.lane) is None
        assert await turns.outcome(asked("3")) is Outcome.WITHDRAWN
        await state.close()


async def test_a_process_that_starts_takes_up_at_once_what_one_before_it_left(
    state: State, embedded_state: State
) -> None:
    for place in (state, embedded_state):
        dead, alive = of(place, "dead"), of(place, "alive")
        await leased(dead, asked("first"))
        await alive.free("test")
        # Where others may be at work, a lease is left alone.
        assert bool(await alive.abandoned("test")) is not place.shared
    lane = (await alive.abandoned("test"))[0]
    lease = await alive.take("test", lane)
    assert lease is not None
    assert (await begun(alive, lease)).message == asked("first")
