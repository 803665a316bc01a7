"""Moments in which two things meet: an end and a stop, a sign and an answer, a fault and what comes after it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from fakes.chat_platform import FakePlatform, asked
from fakes.dispatching import ScriptedEngine, answer, dispatching, eventually

from bot.errors import PlatformRefusedError, StateError, StateUnavailableError
from bot.messages import Author, Outcome
from bot.metrics import EVENTS
from bot.types import Answered, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from bot.ports import Script
    from bot.redis_embedded import EmbeddedState
    from bot.types import AnswerEvent, Conversation, Question


class BrokenState:
    """A state in which some scripts fail or are slow."""

    shared = True

    def __init__(self, state: EmbeddedState, scripts: dict[str, Exception | float]) -> None:
        self._state = state
        self._scripts = scripts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[bytes | str | float] = ()) -> Any:
        fate = self._scripts.get(script.name)
        if isinstance(fate, Exception):
            raise fate
        result = await self._state.run(script, keys, args)
        await asyncio.sleep(fate or 0)
        return result


def counted(outcome: Outcome) -> float:
    return float(EVENTS.labels("fake", outcome)._value.get())


async def test_an_answer_that_is_out_cannot_be_stopped(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go = asyncio.Event()
    platform.before["sources"] = go.wait
    message = asked("q")
    async with dispatching(embedded_state, platform, engine) as desk:
        receipt = await desk.dispatcher.receive(message)
        await eventually(lambda: platform.kinds(message) == ["answer"])
        assert not desk.dispatcher.stop(message.turn_id)
        go.set()
        assert await desk.dispatcher.outcome(receipt) is Outcome.ANSWERED
        assert platform.kinds(message) == ["answer", "sources"]
        assert len((await desk.conversations.load(message.conversation)).turns) == 1


async def test_the_memory_and_the_platform_s_thread_are_read_at_one_time(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    met = asyncio.Barrier(2)
    platform.before["thread"] = met.wait
    async with dispatching(embedded_state, platform, engine) as desk:
        load = desk.conversations.load

        async def loading(conversation: str) -> Conversation:
            await met.wait()
            return await load(conversation)

        monkeypatch.setattr(desk.conversations, "load", loading)
        async with asyncio.timeout(3):
            assert await desk.dispatcher.outcome(await desk.dispatcher.receive(asked("q"))) is Outcome.ANSWERED


async def test_an_answer_is_counted_though_its_lease_is_renewed_while_it_is_completed(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    before = counted(Outcome.ANSWERED)
    slow: Any = BrokenState(embedded_state, {"turns_complete": 0.5})
    async with dispatching(slow, platform, engine, lease_seconds=0.6) as desk:
        assert await desk.dispatcher.outcome(await desk.dispatcher.receive(asked("q"))) is Outcome.ANSWERED
        await eventually(lambda: counted(Outcome.ANSWERED) == before + 1)


async def test_a_process_that_ends_counts_the_answer_that_it_has_just_posted(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    before = counted(Outcome.ANSWERED)
    message = asked("q")
    slow: Any = BrokenState(embedded_state, {"turns_complete": 0.5})
    async with dispatching(slow, platform, engine, drain_seconds=0.05) as desk:
        await desk.dispatcher.receive(message)
        await eventually(lambda: platform.kinds(message) == ["answer", "sources"])
    assert counted(Outcome.ANSWERED) == before + 1


async def test_a_lane_whose_turn_could_not_be_completed_is_let_go(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    scripts: dict[str, Exception | float] = {"turns_complete": StateError("no")}
    state: Any = BrokenState(embedded_state, scripts)
    first, second = asked("first", id="1"), asked("second", id="2")
    async with dispatching(state, platform, engine, lease_seconds=60) as desk:
        await desk.dispatcher.receive(first)
        await eventually(lambda: platform.kinds(first) == ["answer", "sources"] and not len(desk.dispatcher._lanes))
        scripts.clear()
        assert await desk.dispatcher.outcome(await desk.dispatcher.receive(second)) is Outcome.ANSWERED
    assert platform.kinds(first) == platform.kinds(second) == ["answer", "sources"]


async def test_a_place_in_line_that_comes_up_after_the_answer_is_taken_away(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go, slow = asyncio.Event(), asyncio.Event()
    engine.before["first"] = go.wait
    platform.before["waiting"] = slow.wait
    async with dispatching(embedded_state, platform, engine) as desk:
        await desk.dispatcher.receive(asked("first", id="1"))
        await eventually(lambda: engine.asked)
        receipt = await desk.dispatcher.receive(asked("second", id="2"))
        go.set()
        await desk.dispatcher.outcome(receipt)
        slow.set()
        await eventually(lambda: [name for name, _ in platform.decorations][-2:] == ["waiting", "close"])


async def test_a_platform_that_streams_slowly_does_not_cost_the_answer(
    embedded_state: EmbeddedState, platform: FakePlatform
) -> None:
    class Wordy(ScriptedEngine):
        async def answer(self, question: Question) -> AsyncGenerator[AnswerEvent]:
            self.asked.append(question)
            for word in range(40):
                yield TextDelta(text=f"w{word} ")
            yield Answered(answer=answer("the whole answer [1]"))

    platform.before["write"] = lambda: asyncio.sleep(0.1)
    message = asked("q")
    async with dispatching(embedded_state, platform, Wordy(), turn_seconds=2.0) as desk:
        await desk.dispatcher.outcome(await desk.dispatcher.receive(message))
    assert platform.bodies(message)[0].text == "the whole answer [1]"


async def test_bots_are_not_told_that_there_is_no_room(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go = asyncio.Event()
    engine.before["held"] = go.wait
    bot = Author(id="fake:T1:B1", is_bot=True)
    async with dispatching(embedded_state, platform, engine, max_turns=1, allowed_bots="B1") as desk:
        await desk.dispatcher.receive(asked("held", id="0"))
        await eventually(lambda: engine.asked)
        message = asked("x", id="1", conversation="fake:T1:C1:b", author=bot)
        assert (await desk.dispatcher.receive(message)).outcome is Outcome.LIMITED
        go.set()
    assert platform.kinds(message) == []


async def test_who_waits_for_an_end_is_told_that_the_process_ends(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    engine.before["slow"] = lambda: asyncio.sleep(60)
    async with asyncio.TaskGroup() as group, asyncio.timeout(10):
        async with dispatching(embedded_state, platform, engine, drain_seconds=0.05) as desk:
            receipt = await desk.dispatcher.receive(asked("slow"))
            await eventually(lambda: engine.asked)
            waiting = group.create_task(desk.dispatcher.outcome(receipt))
            await asyncio.sleep(0)
        assert await waiting is Outcome.CLOSING
    assert desk.dispatcher._ends == {}


async def test_an_abstention_says_that_the_thread_could_not_be_remembered(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    class Forgetful(BrokenState):
        async def lrange(self, *_: object) -> list[bytes]:
            message = "away"
            raise StateUnavailableError(message)

    message = asked("unknown what about part-timers?")
    state: Any = Forgetful(embedded_state, {})
    async with dispatching(state, platform, engine) as desk:
        assert await desk.dispatcher.outcome(await desk.dispatcher.receive(message)) is Outcome.ABSTAINED
    assert platform.bodies(message)[0].text.startswith("The documents don't tell. The memory of this thread")


async def test_a_fault_in_the_threads_memory_leaves_the_history_whole(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    message = asked("q")
    state: Any = BrokenState(embedded_state, {"conversation_append": StateError("no")})
    async with dispatching(state, platform, engine) as desk:
        assert await desk.dispatcher.outcome(await desk.dispatcher.receive(message)) is Outcome.ANSWERED
        assert await desk.history.entry(message.turn_id) is not None


async def test_a_question_whose_answer_could_not_be_posted_is_in_the_history(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    platform.failing["answer"] = PlatformRefusedError("no")
    message = asked("q")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await desk.dispatcher.outcome(await desk.dispatcher.receive(message)) is Outcome.FAILED
        entry = await desk.history.entry(message.turn_id)
    assert entry is not None
    assert (entry.outcome, entry.question) == (Outcome.FAILED, "q")
    assert "the error id " in entry.reply


@pytest.mark.parametrize("fault", [KeyError("messages"), PlatformRefusedError("no")])
async def test_whatever_goes_wrong_with_the_platforms_thread_the_question_is_answered(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine, fault: Exception
) -> None:
    platform.failing["thread"] = fault
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await desk.dispatcher.outcome(await desk.dispatcher.receive(asked("q"))) is Outcome.ANSWERED


async def test_a_stop_in_the_very_step_in_which_the_turn_ends_leaves_the_lane_in_order(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    first, second = asked("first", id="1"), asked("second", id="2")
    stopped: list[bool] = []
    async with dispatching(embedded_state, platform, engine) as desk:
        platform.before["close"] = lambda: stopped.append(desk.dispatcher.stop(first.turn_id))
        receipts = [await desk.dispatcher.receive(message) for message in (first, second)]
        outcomes = [await desk.dispatcher.outcome(receipt) for receipt in receipts]
    assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED]
    assert not any(stopped)
