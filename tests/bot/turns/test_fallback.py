"""Turns through outages of a real Redis: stopped, hung, restarted, with and without its data."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import structlog
from fakes.asked import asked
from fakes.redis_server import BINARY, RedisServer, running

from bot.errors import LeaseLostError, StateUnavailableError
from bot.messages import Outcome
from bot.redis_embedded import EmbeddedState
from bot.redis_server import ServerState
from bot.turns import Claimed, Duplicate, FallbackTurns, Lease, LineFull, Turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from bot.messages import Message
    from bot.turns import PendingTurn

pytestmark = pytest.mark.skipif(BINARY is None, reason="no redis-server is installed here")
SOON = 0.2
"""Seconds of patience where it is to run out."""
LONG = 60.0
"""Seconds of patience where it is not."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One that keeps its data."""
    with running(RedisServer(tmp_path, append_only=True)) as server:
        yield server


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[RedisServer]:
    """One that loses all its data when it is restarted."""
    with running(RedisServer(tmp_path)) as server:
        yield server


@asynccontextmanager
async def process(
    server: RedisServer, owner: str = "a", *, patience: float = SOON, lease_seconds: float = 60.0, max_line: int = 3
) -> AsyncIterator[FallbackTurns]:
    state, local = await ServerState.open(server.url, timeout=0.5), await EmbeddedState.open(None)
    kept = {"owner": owner, "lease_seconds": lease_seconds, "max_line": max_line}
    try:
        async with FallbackTurns(Turns(state, **kept), Turns(local, **kept), patience=patience) as turns:
            yield turns
    finally:
        await local.close()
        await state.close()


async def eventually(condition: Callable[[], Awaitable[bool] | bool]) -> None:
    async with asyncio.timeout(30):
        while not (done := condition()) or (not isinstance(done, bool) and not await done):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def back(server: RedisServer, turns: FallbackTurns) -> None:
    """Start the server, and wait until it has been told everything."""
    await asyncio.to_thread(server.start)
    await eventually(lambda: not turns._outage.is_on)


async def claimed(turns: FallbackTurns, message: Message, *, alone: bool = False) -> Claimed:
    claim = await turns.claim(message, alone=alone)
    assert isinstance(claim, Claimed)
    return claim


async def leased(turns: FallbackTurns, message: Message, *, alone: bool = False) -> Lease:
    claim = await claimed(turns, message, alone=alone)
    assert claim.lease is not None
    return claim.lease


async def begun(turns: FallbackTurns, lease: Lease) -> PendingTurn:
    pending = await turns.begin(lease)
    assert pending is not None
    return pending


async def taken(turns: FallbackTurns, lane: str) -> Lease:
    lease = await turns.take("test", lane)
    assert lease is not None
    return lease


async def answer(turns: FallbackTurns, lease: Lease) -> list[str]:
    """All turns of a lane, to the last one; the texts of their messages."""
    texts = []
    while (pending := await turns.begin(lease)) is not None:
        texts.append(pending.message.text)
        assert await turns.keep(lease, pending.id, "a")
        await turns.renew(lease)
        await turns.complete(lease, pending.id, Outcome.ANSWERED)
    return texts


def duplicate(message: Message, outcome: Outcome | None = None) -> Duplicate:
    return Duplicate(turn_id=message.turn_id, outcome=outcome)


# ---- no outage ------------------------------------------------------------------------------------------------------


async def test_without_an_outage_nothing_is_asked_of_the_process_itself(server: RedisServer) -> None:
    async with process(server) as turns:
        await turns._local._state.close()
        lease = await leased(turns, asked("1"))
        assert not lease.local
        assert isinstance(await turns.claim(asked("2")), Claimed)
        assert await answer(turns, lease) == ["How far?", "How far?"]
        assert await turns.claim(asked("1")) == duplicate(asked("1"), Outcome.ANSWERED)
        assert await turns.outcome(asked("1")) is Outcome.ANSWERED
        assert not await turns.withdraw(asked("1"))
        await turns.release(await leased(turns, asked("3")))
        (lane,) = await turns.abandoned("test")
        assert (await taken(turns, lane)).lane == lane
        assert not turns.degraded


# ---- short outages --------------------------------------------------------------------------------------------------


async def test_a_short_outage_is_waited_for(server: RedisServer) -> None:
    async with process(server, patience=LONG) as turns:
        first = await leased(turns, asked("1"))
        pending = await begun(turns, first)
        await asyncio.to_thread(server.stop)
        calls = [
            asyncio.ensure_future(turns.keep(first, pending.id, "a")),
            asyncio.ensure_future(turns.claim(asked("2"))),
            asyncio.ensure_future(turns.claim(asked("3", conversation="other"))),
        ]
        await eventually(lambda: turns._outage.is_on)
        await back(server, turns)
        kept, second, third = await asyncio.gather(*calls)
        assert kept is True
        assert second == Claimed(turn_id=asked("2").turn_id, position=2, lease=None)
        assert isinstance(third, Claimed)
        assert third.lease is not None
        assert not third.lease.local
        assert not turns.degraded
        await turns.complete(first, pending.id, Outcome.ANSWERED)
        assert await answer(turns, first) == ["How far?"]


async def test_a_claim_whose_reply_was_lost_is_no_duplicate_of_itself(server: RedisServer) -> None:
    async with process(server, patience=LONG) as turns:
        os.kill(server.pid, signal.SIGSTOP)
        claiming = asyncio.ensure_future(turns.claim(asked("1")))
        await eventually(lambda: turns._outage.is_on)
        os.kill(server.pid, signal.SIGCONT)
        claim = await claiming
        assert isinstance(claim, Claimed)
        assert claim.lease is not None
        assert await answer(turns, claim.lease) == ["How far?"]


# ---- while the state is away ----------------------------------------------------------------------------------------


async def test_while_the_state_is_away_the_process_claims_by_itself(server: RedisServer) -> None:
    async with process(server) as turns, process(server, "other") as other:
        await asyncio.to_thread(server.stop)
        lease = await leased(turns, asked("1", "Ev1"))
        assert lease.local
        assert turns.degraded
        assert await turns.claim(asked("x", "Ev1")) == duplicate(asked("1"))
        assert (await claimed(turns, asked("2"))).position == 2
        for name in ("3", "4"):
            await claimed(turns, asked(name))
        assert await turns.claim(asked("5")) == LineFull(waiting=3)
        assert (await leased(turns, asked("5"), alone=True)).local
        assert await turns.outcome(asked("1")) is None
        assert len(await answer(turns, lease)) == 4
        assert await turns.outcome(asked("1")) is Outcome.ANSWERED
        assert await turns.claim(asked("1")) == duplicate(asked("1"), Outcome.ANSWERED)
        await back(server, turns)
        assert not turns.degraded
        # Also in other processes, and by every name.
        await eventually(lambda: not other._outage.is_on)
        assert await other.claim(asked("y", "Ev1")) == duplicate(asked("1"), Outcome.ANSWERED)
        assert await other.claim(asked("2")) == duplicate(asked("2"), Outcome.ANSWERED)
        assert await turns.claim(asked("1")) == duplicate(asked("1"), Outcome.ANSWERED)
        assert await other.claim(asked("5")) == duplicate(asked("5"))
        assert not (await leased(turns, asked("6"))).local


async def test_many_deliveries_at_once_while_the_state_is_away(server: RedisServer) -> None:
    async with process(server) as turns:
        await asyncio.to_thread(server.stop)
        claims = await asyncio.gather(*(turns.claim(asked("1", f"Ev{number}")) for number in range(20)))
        assert sum(isinstance(claim, Claimed) for claim in claims) == 1
        assert claims.count(duplicate(asked("1"))) == 19


async def test_what_was_claimed_before_the_outage_is_a_duplicate_in_it(server: RedisServer) -> None:
    async with process(server) as turns:
        await leased(turns, asked("1", "Ev1"))
        await leased(turns, asked("2", conversation="other"))
        await asyncio.to_thread(server.stop)
        assert isinstance(await turns.claim(asked("0", conversation="third")), Claimed)  # notices
        assert await turns.claim(asked("x", "Ev1")) == duplicate(asked("1"))
        await turns.complete(
            Lease(platform="test", lane="|other", token="t"), asked("2", conversation="other").turn_id, Outcome.FAILED
        )
        assert await turns.claim(asked("2", conversation="other")) == duplicate(
            asked("2", conversation="other"), Outcome.FAILED
        )


async def test_a_turn_in_hand_is_answered_and_its_end_told_later(server: RedisServer) -> None:
    async with process(server) as turns, process(server, "other") as other:
        lease = await leased(turns, asked("1", "Ev1"))
        pending = await begun(turns, lease)
        assert isinstance(await turns.claim(asked("2", text="And back?")), Claimed)
        await asyncio.to_thread(server.stop)
        await turns.renew(lease)
        assert await turns.keep(lease, pending.id, "a") is True
        await turns.renew(lease)
        await turns.complete(lease, pending.id, Outcome.ANSWERED)
        assert await turns.begin(lease) is None  # the rest waits
        assert turns.degraded
        await back(server, turns)
        await eventually(lambda: not other._outage.is_on)
        assert await other.claim(asked("x", "Ev1")) == duplicate(asked("1"), Outcome.ANSWERED)
        assert await other.abandoned("test") == [lease.lane]
        assert await answer(other, await taken(other, lease.lane)) == ["And back?"]


async def test_the_end_is_told_also_when_the_lease_expired_meanwhile(server: RedisServer) -> None:
    async with process(server, lease_seconds=0.5) as turns:
        lease = await leased(turns, asked("1"))
        pending = await begun(turns, lease)
        await asyncio.to_thread(server.stop)
        await turns.complete(lease, pending.id, Outcome.ANSWERED)
        await asyncio.sleep(0.5)
        await back(server, turns)
        assert await turns._primary.outcome(asked("1")) is Outcome.ANSWERED
        assert await turns.take("test", lease.lane) is None


async def test_a_lease_that_expired_in_an_outage_is_lost_after_it(server: RedisServer) -> None:
    async with process(server, lease_seconds=0.5) as turns, process(server, "other", lease_seconds=0.5) as other:
        lease = await leased(turns, asked("1"))
        pending = await begun(turns, lease)
        await asyncio.to_thread(server.stop)
        await turns.renew(lease)
        await asyncio.sleep(0.6)
        await turns.renew(lease)
        await back(server, turns)
        await eventually(lambda: not other._outage.is_on)
        with pytest.raises(LeaseLostError):
            await turns.renew(lease)
        again = await begun(other, await taken(other, lease.lane))
        assert (again.id, again.attempts) == (pending.id, 2)


async def test_a_lane_that_is_let_go_in_an_outage_can_be_taken_after_it(server: RedisServer) -> None:
    async with process(server) as turns, process(server, "other") as other:
        lease = await leased(turns, asked("1"))
        await asyncio.to_thread(server.stop)
        await turns.release(lease)
        assert await turns.abandoned("test") == []
        assert await turns.take("test", lease.lane) is None
        await back(server, turns)
        await eventually(lambda: not other._outage.is_on)
        assert await other.abandoned("test") == [lease.lane]


async def test_a_line_that_waited_is_offered_after_the_outage(server: RedisServer) -> None:
    async with process(server) as turns:
        lease = await leased(turns, asked("1"))
        await asyncio.to_thread(server.stop)
        assert await turns.begin(lease) is None
        await back(server, turns)
        assert await turns.abandoned("test") == [lease.lane]
        assert await answer(turns, await taken(turns, lease.lane)) == ["How far?"]


async def test_a_conversation_in_hand_is_finished_before_what_comes_in_the_outage(server: RedisServer) -> None:
    async with process(server) as turns:
        lease = await leased(turns, asked("1"))
        pending = await begun(turns, lease)
        await asyncio.to_thread(server.stop)
        claim = await claimed(turns, asked("2", text="And back?"))
        assert (claim.position, claim.lease) == (2, None)
        assert await turns.abandoned("test") == []
        await turns.complete(lease, pending.id, Outcome.ANSWERED)
        assert await turns.begin(lease) is None
        (lane,) = await turns.abandoned("test")
        local = await taken(turns, lane)
        assert local.local
        assert await answer(turns, local) == ["And back?"]


async def test_withdrawing_in_an_outage(server: RedisServer) -> None:
    async with process(server) as turns:
        await leased(turns, asked("1"))
        await asyncio.to_thread(server.stop)
        lease = await leased(turns, asked("2", conversation="other"))
        assert await turns.withdraw(asked("2", conversation="other")) is True
        assert (await begun(turns, lease)).withdrawn
        with pytest.raises(StateUnavailableError):
            await turns.withdraw(asked("1"))


async def test_a_lane_of_its_own_that_was_dropped_is_found_by_the_process(server: RedisServer) -> None:
    async with process(server) as turns:
        await asyncio.to_thread(server.stop)
        lease = await leased(turns, asked("1"))
        await turns.release(lease)
        (lane,) = await turns.abandoned("test")
        again = await taken(turns, lane)
        assert (again.local, again.token != lease.token) == (True, True)
        with pytest.raises(LeaseLostError):
            await turns.begin(lease)
        assert (await begun(turns, again)).id == asked("1").turn_id


async def test_outages_are_logged_once_when_they_begin_and_end(server: RedisServer) -> None:
    async with process(server) as turns:
        with structlog.testing.capture_logs() as logs:
            await asyncio.to_thread(server.stop)
            for number in range(5):
                await leased(turns, asked(str(number), conversation=str(number)))
            await back(server, turns)
            await leased(turns, asked("5", conversation="5"))
        events = [entry["event"] for entry in logs]
        assert events.count("turns_degraded") == 1
        assert events.count("turns_restored") == 1


# ---- when it is back ------------------------------------------------------------------------------------------------


async def test_a_claim_that_ran_after_all_is_not_answered_again(server: RedisServer) -> None:
    """The server was stopped in time, and does afterwards what it was asked to."""
    async with process(server) as turns, process(server, "other") as other:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            lease = await leased(turns, asked("1"))
            quick = await leased(turns, asked("2", conversation="quick"))
            assert lease.local
            assert quick.local
            assert await answer(turns, quick) == ["How far?"]
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await eventually(lambda: not turns._outage.is_on)
        assert await other.claim(asked("2", conversation="quick")) == duplicate(
            asked("2", conversation="quick"), Outcome.ANSWERED
        )
        assert await other.claim(asked("1")) == duplicate(asked("1"))
        assert await other.take("test", turns._primary.lane(asked("1"), alone=False)) is None
        assert await answer(turns, lease) == ["How far?"]
        await eventually(lambda: not turns._untold)
        assert await other.claim(asked("1")) == duplicate(asked("1"), Outcome.ANSWERED)
        assert await other.abandoned("test") == []


async def test_a_turn_from_the_outage_is_taken_over_when_its_process_dies_after_it(server: RedisServer) -> None:
    async with process(server, lease_seconds=1.0) as turns, process(server, "other", lease_seconds=1.0) as other:
        await asyncio.to_thread(server.stop)
        lease = await leased(turns, asked("1"))
        await begun(turns, lease)
        await back(server, turns)
        await eventually(lambda: not other._outage.is_on)
        own = turns._primary.lane(asked("1"), alone=True)
        for _ in range(4):
            await asyncio.sleep(0.4)
            await turns.renew(lease)
        assert await other.take("test", own) is None
        # It renews no more.
        await eventually(lambda: _is(other.abandoned("test"), [own]))
        pending = await begun(other, await taken(other, own))
        assert (pending.id, pending.attempts) == (asked("1").turn_id, 2)


async def _is(call: Awaitable[object], expected: object) -> bool:
    return await call == expected


async def test_a_state_that_lost_its_data_is_given_the_turns_again(forgetful: RedisServer) -> None:
    async with process(forgetful, patience=LONG) as turns, process(forgetful, "other", patience=LONG) as other:
        lease = await leased(turns, asked("1", text="one"))
        pending = await begun(turns, lease)
        await claimed(turns, asked("2", "Ev2", text="two"))
        done = await leased(turns, asked("3", conversation="done"))
        await answer(turns, done)
        await asyncio.to_thread(forgetful.kill)
        await turns.renew(lease)
        await asyncio.to_thread(forgetful.start)
        for either in (turns, other):
            assert await either.claim(asked("x", "Ev2")) == duplicate(asked("2"))
            await eventually(lambda either=either: not either._outage.is_on)
        await turns.renew(lease)
        assert await turns.keep(lease, pending.id, "a") is True
        await turns.complete(lease, pending.id, Outcome.ANSWERED)
        assert await answer(turns, lease) == ["two"]
        assert await other.outcome(asked("1")) is Outcome.ANSWERED


async def test_a_lane_that_nobody_is_in_is_given_to_others_when_the_state_lost_its_data(
    forgetful: RedisServer,
) -> None:
    async with process(forgetful, patience=LONG) as turns, process(forgetful, "dying", patience=LONG) as dying:
        await leased(dying, asked("0", text="zero"))
        await claimed(turns, asked("1", text="one"))
        dying._recent.open.clear()  # as if it had died
        await asyncio.to_thread(forgetful.kill)
        assert await turns.outcome(asked("1")) is None  # notices
        await back(forgetful, turns)
        (lane,) = await turns.abandoned("test")
        pending = await begun(turns, await taken(turns, lane))
        assert (pending.message.text, pending.attempts) == ("one", 2)


async def test_closing_in_an_outage_does_not_wait_for_its_end(server: RedisServer) -> None:
    async with process(server) as turns:
        await asyncio.to_thread(server.stop)
        await answer(turns, await leased(turns, asked("1")))
    assert turns._untold


async def test_closing_tells_what_is_left(server: RedisServer) -> None:
    async with process(server) as turns:
        await asyncio.to_thread(server.stop)
        await answer(turns, await leased(turns, asked("1")))
        assert turns._tending is not None
        turns._tending.cancel()
        await asyncio.to_thread(server.start)
    assert not turns._untold
    async with process(server, "other") as other:
        assert await other.claim(asked("1")) == duplicate(asked("1"), Outcome.ANSWERED)


async def test_a_conversation_that_the_state_cannot_read_is_answered_all_the_same(server: RedisServer) -> None:
    async with process(server) as turns:
        book = turns._primary._keys(turns._primary.lane(asked("1"), alone=False))[0]
        await turns._primary._state.set(book, "not a hash")
        lease = await leased(turns, asked("1"))
        assert lease.local
        assert not turns.degraded
        assert await answer(turns, lease) == ["How far?"]
        await eventually(lambda: not turns._untold)
        assert not (await leased(turns, asked("2", conversation="other"))).local


async def test_what_is_to_be_told_is_bounded(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.turns.fallback._MOST_UNTOLD", 3)
    async with process(server) as turns:
        await asyncio.to_thread(server.stop)
        pending = await leased(turns, asked("0", conversation="pending"))
        for number in range(6):
            await answer(turns, await leased(turns, asked(str(number), conversation=f"c{number}")))
        assert list(turns._untold) == [
            asked("0", conversation="pending").turn_id,
            *(asked(str(number), conversation=f"c{number}").turn_id for number in (4, 5)),
        ]
        await back(server, turns)
        assert await turns.outcome(asked("5", conversation="c5")) is Outcome.ANSWERED
        assert await answer(turns, pending) == ["How far?"]
