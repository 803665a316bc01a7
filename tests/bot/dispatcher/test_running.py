"""Turns that are taken up again, platforms that break, and commands to their end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from fakes.chat_platform import FakePlatform, asked
from fakes.dispatching import ScriptedEngine, dispatching, eventually
from typing_extensions import override

from bot.commands import did_its_work
from bot.errors import PlatformBusyError, PlatformError, PlatformRefusedError
from bot.messages import Attachment, Outcome
from bot.results import DocumentsForgotten, JobReport, JobState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fakes.chat_platform import FakeReply
    from fakes.dispatching import Desk

    from bot.jobs import JobRequest
    from bot.messages import JobId, Message, TurnId
    from bot.ports import State
    from bot.redis_embedded import EmbeddedState


class Unanswerable(FakePlatform):
    """Cannot make a reply to the message `bad`."""

    @override
    def reply(self, message: Message, turn_id: TurnId) -> FakeReply:
        if message.id == "bad":
            raise KeyError(message.id)
        return super().reply(message, turn_id)


@dataclass
class ScriptedJobs:
    """One job that is at work for good, or done at once."""

    done: bool

    async def start(self, request: JobRequest) -> JobReport:
        return JobReport(id=request.id, state=JobState.RUNNING)

    async def watch(self, job: JobId) -> AsyncIterator[JobReport]:
        if not self.done:
            await asyncio.sleep(600)
        yield JobReport(id=job, state=JobState.DONE)


def ingest() -> Message:
    return asked("", command="ingest", attachments=(Attachment(uri="file:///a.md", name="a.md"),))


def states(platform: FakePlatform, message: Message) -> list[JobState]:
    return [body.state for body in platform.bodies(message)]


async def outcome_of(desk: Desk, message: Message) -> Outcome:
    return await desk.dispatcher.outcome(await desk.dispatcher.receive(message))


async def begun_and_left(state: State, message: Message, platform: FakePlatform | None = None, **more: Any) -> None:
    """A process begins the turn and ends before it does."""
    engine = ScriptedEngine()
    engine.before[message.text] = lambda: asyncio.sleep(600)
    async with dispatching(state, platform or FakePlatform(), engine, owner="gone", drain_seconds=0.05, **more) as desk:
        await desk.dispatcher.receive(message)
        await eventually(lambda: any(lane.turn for lane in desk.dispatcher._lanes._running))


async def test_a_message_that_a_platform_cannot_reply_to_holds_up_nobody(embedded_state: EmbeddedState) -> None:
    platform = Unanswerable()
    async with dispatching(embedded_state, platform, ScriptedEngine()) as desk:
        assert await outcome_of(desk, asked("q", id="bad")) is Outcome.FAILED
        assert await outcome_of(desk, asked("q", id="good")) is Outcome.ANSWERED


@pytest.mark.parametrize(
    "failing",
    [
        [PlatformBusyError("slow down", retry_after=0.05), PlatformError("cut off")],
        PlatformRefusedError("no permission"),
        KeyError("ts"),
    ],
    ids=["for a while", "for good", "out of order"],
)
async def test_a_question_is_taken_up_though_the_platform_does_not_tell_what_stands(state: State, failing: Any) -> None:
    message = asked("q")
    await begun_and_left(state, message)
    platform = FakePlatform(failing={"standing": failing})
    async with dispatching(state, platform, ScriptedEngine(), owner="b") as desk:
        await eventually(lambda: platform.kinds(message) == ["answer", "sources"])
        await eventually(lambda: not len(desk.dispatcher._lanes))
        assert await desk.turns.outcome(message) is Outcome.ANSWERED


async def test_an_answer_that_may_stand_is_not_posted_again_but_its_asker_is_told(
    embedded_state: EmbeddedState,
) -> None:
    message = asked("q")
    stuck = FakePlatform()
    stuck.before["answer"] = lambda: asyncio.sleep(600)
    async with dispatching(embedded_state, stuck, ScriptedEngine(), owner="gone", drain_seconds=0.05) as desk:
        await desk.dispatcher.receive(message)
        await eventually(lambda: ("write", "[1]") in stuck.decorations)
    platform = FakePlatform(failing={"standing": PlatformRefusedError("no permission")})
    async with dispatching(embedded_state, platform, ScriptedEngine(), owner="b") as desk:
        await eventually(lambda: platform.kinds(message) == ["said"])
    assert "error id" in platform.bodies(message)[0]


async def test_whoever_takes_up_a_command_that_only_told_of_its_progress_brings_its_result(
    embedded_state: EmbeddedState,
) -> None:
    platform, message = FakePlatform(), ingest()
    async with dispatching(
        embedded_state, platform, ScriptedEngine(), owner="gone", drain_seconds=0.05, jobs=ScriptedJobs(done=False)
    ) as desk:
        receipt = await desk.dispatcher.receive(message)
        await eventually(lambda: platform.posts)
    async with dispatching(embedded_state, platform, ScriptedEngine(), owner="b", jobs=ScriptedJobs(done=True)) as desk:
        assert await desk.dispatcher.outcome(receipt) is Outcome.DONE
    assert states(platform, message)[-1] is JobState.DONE


async def test_an_ingestion_outlives_more_processes_than_a_question(embedded_state: EmbeddedState) -> None:
    platform, message = FakePlatform(), ingest()
    for _ in range(4):
        await begun_and_left(embedded_state, message, platform, jobs=ScriptedJobs(done=False))
    async with dispatching(embedded_state, platform, ScriptedEngine(), owner="b", jobs=ScriptedJobs(done=True)) as desk:
        await eventually(lambda: JobState.DONE in states(platform, message))
        await eventually(lambda: not len(desk.dispatcher._lanes))


async def test_a_question_under_way_when_the_thread_is_begun_anew_is_forgotten_too(
    embedded_state: EmbeddedState,
) -> None:
    engine, go = ScriptedEngine(), asyncio.Event()
    engine.before["before"] = go.wait
    async with dispatching(embedded_state, FakePlatform(), engine) as desk:
        before = await desk.dispatcher.receive(asked("before", id="1"))
        await eventually(lambda: engine.asked)
        assert await outcome_of(desk, asked("", id="2", command="new")) is Outcome.DONE
        go.set()
        assert await desk.dispatcher.outcome(before) is Outcome.ANSWERED
        assert await outcome_of(desk, asked("after", id="3")) is Outcome.ANSWERED
        turns = (await desk.conversations.load(asked("").conversation)).turns
    assert [turn.question for turn in turns] == ["after"]


def test_forgetting_nothing_is_no_success() -> None:
    assert not did_its_work(DocumentsForgotten(key="rules"))
