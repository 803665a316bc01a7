"""A line's way through the dispatcher, and how it is stopped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from fakes.posts import line

from adapters.terminal import asking
from adapters.terminal.asking import TurnDesk
from bot.dispatcher import Receipt
from bot.messages import Message, MessageKind, Outcome

if TYPE_CHECKING:
    from bot.messages import TurnId


@dataclass
class Dispatching:
    """A dispatcher whose turns end when the test says so."""

    receives: asyncio.Event = field(default_factory=asyncio.Event)
    ends: asyncio.Event = field(default_factory=asyncio.Event)
    begun: bool = True
    """Whether the turn is being answered, so that it can be stopped."""
    outcome_is: Outcome = Outcome.ANSWERED
    taken: Outcome | None = None
    """How an event ended that was not taken."""
    received: list[Message] = field(default_factory=list)
    closing: bool = False

    async def receive(self, message: Message) -> Receipt:
        await self.receives.wait()
        self.received.append(message)
        return Receipt(message=message, turn_id=message.turn_id, outcome=self.taken)

    async def outcome(self, receipt: Receipt) -> Outcome:
        await self.ends.wait()
        return self.outcome_is

    def stop(self, turn_id: TurnId) -> bool:
        if self.begun and self.received:
            self.outcome_is = Outcome.STOPPED
            self.ends.set()
        return self.begun

    def close_soon(self) -> None:
        self.closing = True


def desk(dispatching: Dispatching) -> TurnDesk:
    return TurnDesk(dispatcher=dispatching)  # type: ignore[arg-type] # what it uses of one


async def test_a_line_s_outcome_is_waited_for() -> None:
    dispatching = Dispatching()
    dispatching.receives.set()
    asked = asyncio.create_task(desk(dispatching).ask(line("How many?")))
    await asyncio.sleep(0.02)
    assert not asked.done()
    dispatching.ends.set()
    assert await asked is Outcome.ANSWERED


async def test_cancelling_stops_the_turn_and_waits_for_its_end() -> None:
    dispatching = Dispatching()
    dispatching.receives.set()
    asked = asyncio.create_task(desk(dispatching).ask(line("How many?")))
    await asyncio.sleep(0.02)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert dispatching.ends.is_set()
    assert dispatching.outcome_is is Outcome.STOPPED


async def test_cancelled_while_it_is_handed_in_it_is_stopped_all_the_same() -> None:
    dispatching = Dispatching()
    asked = asyncio.create_task(desk(dispatching).ask(line("How many?")))
    await asyncio.sleep(0.02)
    asked.cancel()
    await asyncio.sleep(0.02)
    assert not asked.done()
    dispatching.receives.set()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert dispatching.outcome_is is Outcome.STOPPED


async def test_what_waits_in_line_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_IN_LINE_SECONDS", 0.05)
    dispatching = Dispatching(begun=False)
    dispatching.receives.set()
    asked = asyncio.create_task(desk(dispatching).ask(line("How many?")))
    await asyncio.sleep(0.02)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert [message.kind for message in dispatching.received] == [MessageKind.ASKED, MessageKind.DELETED]
    assert dispatching.received[0].turn_id == dispatching.received[1].turn_id


@pytest.mark.parametrize(("outcome", "told"), [(Outcome.ANSWERED, Outcome.ANSWERED), (Outcome.CLOSING, None)])
async def test_when_the_process_ends_an_answer_gets_its_time_and_no_more(
    outcome: Outcome, told: Outcome | None
) -> None:
    dispatching = Dispatching(outcome_is=outcome)
    dispatching.receives.set()
    leaving = desk(dispatching)
    asked = asyncio.create_task(leaving.ask(line("How many?")))
    await asyncio.sleep(0.02)
    leaving.leave()
    assert dispatching.closing
    assert not asked.done()
    dispatching.ends.set()
    assert await asked is told


async def test_what_was_not_taken_because_the_process_ends_is_told_so() -> None:
    dispatching = Dispatching(taken=Outcome.CLOSING, outcome_is=Outcome.CLOSING)
    dispatching.receives.set()
    dispatching.ends.set()
    assert await desk(dispatching).ask(line("How many?")) is Outcome.CLOSING
