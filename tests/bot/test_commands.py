"""Commands as any platform gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakes.asking import asking

from bot.commands import Commands
from bot.messages import Attachment, JobId, TurnId
from bot.results import JobReport, JobState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.jobs import JobRequest


class StaticJobs:
    """Jobs that are as given when they are started, and done when they are watched."""

    def __init__(self, state: JobState) -> None:
        self.state = state

    async def start(self, request: JobRequest) -> JobReport:
        return JobReport(id=request.id, state=self.state)

    async def watch(self, job: JobId) -> AsyncGenerator[JobReport]:
        yield JobReport(id=job, state=JobState.DONE)


async def states_told(state: JobState) -> list[JobState]:
    jobs: Any = StaticJobs(state)
    nothing: Any = None
    commands = Commands(nothing, jobs, nothing, nothing)
    message = asking("", command="ingest", attachments=(Attachment(uri="file:///a.md", name="a.md"),))
    results = [result async for result in commands.run("ingest", message, TurnId("0123456789abcdef"))]
    return [result.state for result in results if isinstance(result, JobReport)]


async def test_an_ingestion_is_followed_to_its_end() -> None:
    assert await states_told(JobState.WAITING) == [JobState.WAITING, JobState.DONE]


async def test_the_end_of_an_ingestion_is_told_once_though_it_came_before_the_turn_was_taken_up() -> None:
    assert await states_told(JobState.DONE) == [JobState.DONE]
    assert await states_told(JobState.FAILED) == [JobState.FAILED]
