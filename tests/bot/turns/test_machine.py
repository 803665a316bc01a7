"""Claims, lines and leases against a model in plain Python, step by step, from several processes."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from fakes.asked import asked
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bot.errors import LeaseLostError
from bot.messages import Outcome, TurnId
from bot.redis_embedded import EmbeddedState
from bot.redis_server import ServerState
from bot.turns import Claimed, Duplicate, Lease, LineFull, Turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from bot.messages import Message
    from bot.ports import State

T = TypeVar("T")
MAX_LINE = 2
OWNERS = st.integers(0, 2)
OUTCOMES = st.sampled_from([Outcome.ANSWERED, Outcome.ABSTAINED, Outcome.FAILED])
PICK = st.integers(0, 1_000)
"""Chooses among what there is, the latest first."""


@st.composite
def messages(draw: st.DrawFn) -> Message:
    # The ids of messages are among the keys of others.
    name = draw(st.sampled_from("abcdefghijkl"))
    keys = draw(st.one_of(st.just([]), st.lists(st.sampled_from("abcdefghijklxyz"), max_size=2, unique=True)))
    return asked(name, *keys, conversation=draw(st.sampled_from(["c1", "c1", "c2"])))


@dataclass
class TurnModel:
    message: Message
    lane: str
    token: str
    attempts: int = 0
    answer: str | None = None
    withdrawn: bool = False
    outcome: Outcome | None = None


@dataclass
class Model:
    names: dict[tuple[str, str], TurnId] = field(default_factory=dict)
    turns: dict[TurnId, TurnModel] = field(default_factory=dict)
    lines: dict[str, list[TurnId]] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)

    def known(self, message: Message) -> TurnId | None:
        names = [(message.conversation, name) for name in (message.id, *message.keys)]
        return next((self.names[name] for name in names if name in self.names), None)

    def register(self, message: Message, turn_id: TurnId) -> None:
        for name in (message.id, *message.keys):
            self.names.setdefault((message.conversation, name), turn_id)

    def holds(self, lease: Lease) -> bool:
        return self.holders.get(lease.lane) == lease.token

    def abandoned(self) -> set[str]:
        return {lane for lane, line in self.lines.items() if line and lane not in self.holders}


class Machine(RuleBasedStateMachine):
    """Three processes and a model."""

    def __init__(self, opened: Callable[[], Coroutine[Any, Any, State]]) -> None:
        super().__init__()
        self.opened = opened
        self.runner = asyncio.Runner()
        self.model = Model()
        self.leases: list[tuple[Turns, Lease]] = []
        """All that there ever were, the latest last, and whose they are."""
        self.emptied: set[str] = set()
        """Tokens whose holder has not heard yet that nothing is left."""

    @initialize()
    def start(self) -> None:
        self.state = self.run(self.opened())
        self.processes = [
            Turns(self.state, owner=str(number), lease_seconds=3600, max_line=MAX_LINE) for number in range(3)
        ]

    def run(self, call: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await call

        return self.runner.run(awaited())

    def teardown(self) -> None:
        self.run(self.state.close())
        self.runner.close()

    # ---- messages ----

    @rule(owner=OWNERS, message=messages(), alone=st.sampled_from([False, False, True]), lost=st.booleans())
    def claim(self, owner: int, message: Message, alone: bool, lost: bool) -> None:  # noqa: FBT001 - hypothesis calls it
        turns, model = self.processes[owner], self.model
        token, lane = turns.new_token(), turns.lane(message, alone=alone)
        claim = self.run(turns.claim(message, alone=alone, token=token))
        line = model.lines.setdefault(lane, [])
        known = model.known(message)
        if known is not None:
            model.register(message, known)
            assert claim == Duplicate(turn_id=known, outcome=model.turns[known].outcome)
            return
        if not alone and len(line) > MAX_LINE:
            assert claim == LineFull(waiting=len(line) - 1)
            return
        model.register(message, message.turn_id)
        model.turns[message.turn_id] = TurnModel(message=message, lane=lane, token=token)
        line.append(message.turn_id)
        lease = None
        if lane not in model.holders:
            model.holders[lane] = token
            lease = Lease(platform="test", lane=lane, token=token)
            self.leases.append((turns, lease))
        expected = Claimed(turn_id=message.turn_id, position=len(line), lease=lease)
        assert claim == expected
        if lost:  # the reply did not arrive, and it is sent again
            assert self.run(turns.claim(message, alone=alone, token=token)) == expected

    @rule(owner=OWNERS, message=messages())
    def withdraw(self, owner: int, message: Message) -> None:
        known = self.model.known(message)
        withdrawn = self.run(self.processes[owner].withdraw(message))
        if known is None or self.model.turns[known].outcome is not None:
            assert not withdrawn
        else:
            assert withdrawn == (self.model.turns[known].answer is None)
            self.model.turns[known].withdrawn = True

    @rule(owner=OWNERS, pick=PICK)
    def withdraw_one_in_line(self, owner: int, pick: int) -> None:
        if waiting := [turn_id for line in self.model.lines.values() for turn_id in line]:
            turn = self.model.turns[waiting[pick % len(waiting)]]
            assert self.run(self.processes[owner].withdraw(turn.message)) == (turn.answer is None)
            turn.withdrawn = True

    @rule(owner=OWNERS, message=messages())
    def outcome(self, owner: int, message: Message) -> None:
        known = self.model.known(message)
        expected = None if known is None else self.model.turns[known].outcome
        assert self.run(self.processes[owner].outcome(message)) == expected

    @rule(owner=OWNERS, message=messages(), outcome=OUTCOMES)
    def settle(self, owner: int, message: Message, outcome: Outcome) -> None:
        """It was answered while the state was away."""
        turns, model = self.processes[owner], self.model
        known = model.known(message)
        if known is not None and known != message.turn_id:
            return  # platforms give one post one id
        self.run(turns.settle(message, turns.new_token(), outcome))
        if known is None:
            model.turns[message.turn_id] = TurnModel(message=message, lane="", token="", outcome=outcome)
        elif model.turns[known].outcome is None:
            self.end(known, outcome)
        else:
            return
        model.register(message, message.turn_id)

    def end(self, turn_id: TurnId, outcome: Outcome) -> None:
        turn = self.model.turns[turn_id]
        turn.outcome = outcome
        self.model.lines[turn.lane].remove(turn_id)

    # ---- leases, also old ones ----

    def chosen(self, pick: int) -> tuple[Turns, Lease, bool]:
        """A lease, whose it is, and whether it is still good."""
        turns, lease = self.leases[-1 - pick % min(len(self.leases), 6)]
        return turns, lease, self.model.holds(lease)

    def fenced(self, call: Awaitable[T], *, holds: bool) -> T | None:
        if holds:
            return self.run(call)
        with pytest.raises(LeaseLostError):
            self.run(call)
        return None

    @precondition(lambda self: self.leases)
    @rule(pick=PICK)
    def begin(self, pick: int) -> None:
        turns, lease, holds = self.chosen(pick)
        if lease.token in self.emptied:
            self.emptied.discard(lease.token)
            assert self.run(turns.begin(lease)) is None
            return
        pending = self.fenced(turns.begin(lease), holds=holds)
        if not holds:
            return
        line = self.model.lines[lease.lane]
        if not line:  # its last turn was settled
            assert pending is None
            del self.model.holders[lease.lane]
            return
        assert pending is not None
        turn = self.model.turns[line[0]]
        turn.attempts += 1
        assert pending.id == line[0]
        assert pending.message == turn.message
        assert (pending.attempts, pending.answer, pending.withdrawn) == (turn.attempts, turn.answer, turn.withdrawn)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK)
    def renew(self, pick: int) -> None:
        turns, lease, holds = self.chosen(pick)
        self.fenced(turns.renew(lease), holds=holds or lease.token in self.emptied)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, answer=st.text(max_size=5))
    def keep(self, pick: int, answer: str) -> None:
        turns, lease, holds = self.chosen(pick)
        if not (line := self.model.lines[lease.lane]):
            return
        turn = self.model.turns[line[0]]
        kept = self.fenced(turns.keep(lease, line[0], answer), holds=holds)
        if holds:
            assert kept is not turn.withdrawn
            turn.answer = answer if kept else turn.answer

    @precondition(lambda self: self.leases)
    @rule(pick=PICK, outcome=OUTCOMES, lost=st.booleans())
    def complete(self, pick: int, outcome: Outcome, lost: bool) -> None:  # noqa: FBT001 - hypothesis calls it
        turns, lease, holds = self.chosen(pick)
        if not (line := self.model.lines[lease.lane]):
            return
        turn_id = line[0]
        self.fenced(turns.complete(lease, turn_id, outcome), holds=holds)
        if not holds:
            return
        if lost:  # the reply did not arrive, and it is sent again
            self.run(turns.complete(lease, turn_id, outcome))
        self.end(turn_id, outcome)
        if not line:
            del self.model.holders[lease.lane]
            self.emptied.add(lease.token)

    @precondition(lambda self: self.leases)
    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        turns, lease, holds = self.chosen(pick)
        self.run(turns.release(lease))
        self.emptied.discard(lease.token)
        if holds:
            del self.model.holders[lease.lane]

    @precondition(lambda self: self.model.holders)
    @rule(pick=PICK)
    def expire(self, pick: int) -> None:
        lane = sorted(self.model.holders)[pick % len(self.model.holders)]
        assert self.run(self.state.delete(self.processes[0]._keys(lane)[3])) == 1
        del self.model.holders[lane]

    @precondition(lambda self: self.model.lines)
    @rule(owner=OWNERS, pick=PICK)
    def take(self, owner: int, pick: int) -> None:
        lane = sorted(self.model.lines)[pick % len(self.model.lines)]
        lease = self.run(self.processes[owner].take("test", lane))
        if lane in self.model.abandoned():
            assert lease is not None
            self.model.holders[lane] = lease.token
            self.leases.append((self.processes[owner], lease))
        else:
            assert lease is None

    @rule(owner=OWNERS)
    def find_abandoned(self, owner: int) -> None:
        self.run(self.make_due())
        assert set(self.run(self.processes[owner].abandoned("test"))) == self.model.abandoned()

    async def make_due(self) -> None:
        """As when the time of a lease has passed."""
        key = self.state.key("test", "lanes")
        for lane in await self.state.zrange(key, 0, -1):
            await self.state.zadd(key, {lane.decode(): 1.0})

    @invariant()
    def every_lane_with_turns_is_in_the_index(self) -> None:
        index = set(self.run(self.state.zrange(self.state.key("test", "lanes"), 0, -1)))
        assert {lane.encode() for lane, line in self.model.lines.items() if line} <= index


CHECKS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def test_the_embedded_state_behaves_like_the_model() -> None:
    checks = settings(max_examples=100, stateful_step_count=60, **CHECKS)
    run_state_machine_as_test(lambda: Machine(lambda: EmbeddedState.open(None)), settings=checks)


def test_a_server_behaves_like_the_model(redis_url: str) -> None:
    checks = settings(max_examples=25, stateful_step_count=60, **CHECKS)

    def opened() -> Coroutine[Any, Any, State]:
        return ServerState.open(redis_url, f"machine-{uuid.uuid4().hex[:12]}")

    run_state_machine_as_test(lambda: Machine(opened), settings=checks)
