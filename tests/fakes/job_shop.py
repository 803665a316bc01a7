"""Jobs over a real ingestion and store, with documents that a test hands out, holds back, or lets fail."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.jobs import JobLimits, JobRequest, Jobs
from bot.messages import Attachment, JobId
from bot.ports import Fetched, Unread
from retrieval.types import SourceFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from fakes.desk import Desk

    from bot.ports import State
    from bot.results import JobReport

LIMITS = JobLimits(lease_seconds=1.0, retry_seconds=0.1, drain_seconds=0.3)
PLATFORM = "slack:T1"


class Shelf:
    """A fetcher. The document `a` is a Markdown file of its own; `hold("a")` keeps it back until `let_go("a")`."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.running = 0
        self.most_running = 0
        self.errors: list[Exception] = []
        """Raised one by one, before anything is fetched."""
        self.texts: dict[str, str] = {}
        self._held: dict[str, asyncio.Event] = {}
        self._news = asyncio.Condition()

    async def fetch(self, attachments: Sequence[Attachment], limit: int) -> AsyncGenerator[Fetched | Unread]:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if self.errors:
                raise self.errors.pop(0)
            for attachment in attachments:
                async with self._news:
                    self.fetched.append(attachment.name)
                    self._news.notify_all()
                if attachment.name in self._held:
                    await self._held[attachment.name].wait()
                if attachment.name.startswith("missing"):
                    yield Unread(uri=attachment.uri, name=attachment.name, reason="It is not there.")
                    continue
                text = self.texts.get(attachment.name, f"# {attachment.name}\n\nThis is what {attachment.name} says.\n")
                yield Fetched(source=SourceFile(uri=attachment.uri, name=f"{attachment.name}.md", data=text.encode()))
        finally:
            self.running -= 1

    def hold(self, *names: str) -> None:
        for name in names:
            self._held[name] = asyncio.Event()

    def let_go(self, *names: str) -> None:
        for name in names or tuple(self._held):
            self._held.pop(name).set()

    async def is_idle(self) -> bool:
        return self.running == 0

    async def asked_for(self, name: str, times: int = 1) -> None:
        """Wait until this document has been asked for."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(lambda: self.fetched.count(name) >= times)


@dataclass
class Shop:
    """One process's jobs."""

    jobs: Jobs
    shelf: Shelf
    desk: Desk
    state: State
    seen: list[JobReport] = field(default_factory=list)

    async def ask(self, job: str, *names: str, by: str = "slack:T1:U1", platform: str = PLATFORM) -> JobId:
        request = request_for(job, *names, by=by, platform=platform)
        await self.jobs.start(request)
        return request.id

    async def end(self, job: JobId) -> JobReport:
        """Watch it to its end; `seen` keeps all reports."""
        self.seen.clear()
        async with asyncio.timeout(60):
            async for report in self.jobs.watch(job):
                self.seen.append(report)
        return self.seen[-1]

    async def until(self, job: JobId, holds: Callable[[JobReport], bool]) -> JobReport:
        """Wait until a report is as wanted."""
        async with asyncio.timeout(60):
            while True:
                report = await self.jobs.report(job)
                if report is not None and holds(report):
                    return report
                await asyncio.sleep(0.02)

    async def is_idle(self) -> bool:
        return not await self.jobs.any_open()

    async def titles(self) -> set[str]:
        return {record.title for record in await self.desk.store.records(None)}


def request_for(job: str, *names: str, by: str = "slack:T1:U1", platform: str = PLATFORM) -> JobRequest:
    return JobRequest(
        id=JobId(job),
        platform=platform,
        attachments=tuple(Attachment(uri=f"slack://T1/{name}", name=name) for name in names),
        audience=None,
        asker=None,
        by=by,
        by_name="Ann",
        asked_at=datetime.now(UTC),
    )


@asynccontextmanager
async def open_shop(
    desk: Desk, state: State, shelf: Shelf | None = None, limits: JobLimits = LIMITS, redis_url: str | None = None
) -> AsyncIterator[Shop]:
    """Jobs of one process; nothing runs before `jobs.worker()`."""
    from pydantic import SecretStr  # noqa: PLC0415 - only here

    shelf = shelf or Shelf()
    namespace = state.key("x").partition(":")[0]
    jobs = Jobs(
        state,
        desk.ingestion,
        desk.store,
        {"slack": shelf, "terminal": shelf},
        limits,
        redis_url=SecretStr(redis_url) if redis_url is not None else None,
        namespace=namespace,
    )
    try:
        yield Shop(jobs=jobs, shelf=shelf, desk=desk, state=state)
    finally:
        await jobs.close()


def outcomes(report: JobReport) -> list[tuple[str, str]]:
    return [(item.name.removesuffix(".md"), str(item.verdict.outcome)) for item in report.verdicts]


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.05)


def is_over(report: JobReport) -> bool:
    return report.state.is_over
