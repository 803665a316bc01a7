"""Jobs: start, watch, cancel, and the worker that runs them in this process.

A job's record in the state is the truth; the queue (`bot.jobs.docket_queue`) only says whose turn it is. A
queue that delivers a job twice, or loses it, does no harm: an attempt begins under a lease, and every worker puts the
jobs that are not over on the queue again, at its start and from time to time.
"""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import MalformedStateError, StateError, StateUnavailableError
from bot.jobs.records import MOST_OPEN, Records
from bot.jobs.requests import LOCAL, platform_kind
from bot.jobs.runner import JobRunner
from bot.results import JobReport, JobState
from bot.telemetry import log_crash, new_error_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping

    from pydantic import SecretStr

    from bot.jobs.docket_queue import DocketQueue
    from bot.jobs.records import JobRecord
    from bot.jobs.requests import JobLimits, JobRequest
    from bot.messages import JobId
    from bot.ports import Fetcher, State
    from bot.results import FileVerdict
    from retrieval.ingestion import Ingestion
    from retrieval.ports import Store

_log: Final = structlog.get_logger(__name__)

POLL: Final = 0.25
"""Seconds between two looks at a job that is watched: what others may see of it in a second is bounded by that."""
_PATIENCE: Final = 30.0
"""How long the state may be away while a job is watched."""
_LOOK_FOR_WORKERS: Final = 2.0
_AFTER_CRASH: Final = 2.0
_GIVING_BACK: Final = 10.0
"""How long jobs that are given back may take to end."""
_NO_WORKER: Final = "It begins as soon as a worker runs: start one with `footnote worker`"
_TOO_MANY: Final = "Too many ingestions are waiting already. Try again when some of them are done."


class Jobs:
    """Ingestions in the background. `close` it at the end."""

    def __init__(
        self,
        state: State,
        ingestion: Ingestion,
        store: Store,
        fetchers: Mapping[str, Fetcher],
        limits: JobLimits,
        *,
        redis_url: SecretStr | None = None,
        namespace: str = "footnote",
    ) -> None:
        """Use these.

        Args:
            state: Where the jobs are kept.
            ingestion: What a worker in this process ingests with.
            store: The library it goes into.
            fetchers: By the platform's name, or by its kind, which is what stands before the first colon of the name.
            limits: The bounds.
            redis_url: The Redis of a shared state, for the queue; leave it out where the state is in this process.
            namespace: What the queue's keys begin with.
        """
        self._state = state
        self._records = Records(state)
        self._limits = limits
        self._redis_url = redis_url if state.shared else None
        self._name = f"{namespace}:jobs"
        self._queue: DocketQueue | None = None
        self._opening = asyncio.Lock()
        self._host = socket.gethostname()
        self._runner = JobRunner(
            self._records, ingestion, store, fetchers, limits, shared=state.shared, announce=self._announce
        )
        self._listeners: dict[JobId, list[asyncio.Event]] = {}
        self._stopping: asyncio.Event | None = None
        self._served: dict[bool, tuple[float, bool]] = {}
        self.needed = asyncio.Event()
        """Set once a job was begun from this process: from then on it is worth running a worker."""

    # ------------------------------------------------------------------------------------------------ asking
    async def start(self, request: JobRequest) -> JobReport:
        """Begin a job, or go on with the one of this id. Raises StateError.

        Where too many jobs are open already, the report says so and nothing was begun.
        """
        known = await self.report(request.id)
        if known is not None and known.state.is_over:
            return known
        if known is None and await self._records.count_open() >= MOST_OPEN:
            return JobReport(id=request.id, state=JobState.FAILED, reason=_TOO_MANY)
        self.needed.set()
        local = platform_kind(request.platform) == LOCAL
        host = self._host if local else ""
        created = await self._records.create(request, host=host)
        if not created and await self.report(request.id) is None:
            # What is kept under this id cannot be read.
            await self._records.drop(request.id)
            await self._records.create(request, host=host)
        await self._records.note_open(request)
        await self._requeue(request.id)
        return await self.report(request.id) or JobReport(id=request.id, state=JobState.WAITING)

    async def report(self, job: JobId) -> JobReport | None:
        """The job as it is; None when there is none, or none that can be read. Raises StateError."""
        return await self._report(job, [])

    async def any_open(self) -> bool:
        """Whether there are jobs that are not over. Raises StateError."""
        return await self._records.count_open() > 0

    async def watch(self, job: JobId) -> AsyncGenerator[JobReport]:
        """The job as it is now, then each change, at most every `POLL` seconds; ends after one that is over.

        Raises StateError when the state is away for long. Nothing comes of a job that there is not.
        """
        seen: list[FileVerdict] = []
        shown: JobReport | None = None
        with self._listening(job) as news:
            while True:
                report = await self._patient_report(job, seen)
                if report is not None and report != shown:
                    shown = report
                    yield report
                if report is None or report.state.is_over:
                    return
                await _set_within(news, POLL)
                news.clear()

    async def cancel(self, job: JobId) -> bool:
        """End a job: at once when it waits, else within a second. False when it is over or there is none."""
        answer = await self._records.cancel(job)
        if answer == "over":
            return False
        self._runner.cancel(job)
        if answer == "ended":
            await self._records.note_over(job)
            self._announce(job)
        return True

    @property
    def finished(self) -> int:
        """Jobs that ended in this process."""
        return self._runner.finished

    async def close(self) -> None:
        """Let go of the queue."""
        queue, self._queue = self._queue, None
        if queue is not None:
            await queue.close()

    async def _patient_report(self, job: JobId, seen: list[FileVerdict]) -> JobReport | None:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return await self._report(job, seen)
            except StateUnavailableError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(POLL)

    async def _report(self, job: JobId, seen: list[FileVerdict]) -> JobReport | None:
        """The report; `seen` are the verdicts that were read before, and gets the new ones."""
        try:
            record = await self._records.load(job)
        except MalformedStateError:
            return None
        if record is None:
            return None
        # After the record: one that is over has all its verdicts.
        seen += [item for item in await self._records.verdicts(job, len(seen)) if item is not None]
        if record.state is JobState.WAITING and not record.reason:
            record = replace(record, reason=await self._why_waiting(record))
        return record.report(tuple(seen))

    async def _why_waiting(self, record: JobRecord) -> str:
        local = bool(record.host)
        if not self._state.shared or self._stopping is not None or (local and record.host != self._host):
            return ""
        asked_at, served = self._served.get(local, (0.0, False))
        if time.monotonic() - asked_at > _LOOK_FOR_WORKERS:
            try:
                served = await (await self._open_queue()).is_served(local=local)
            except StateUnavailableError:
                return ""
            self._served[local] = (time.monotonic(), served)
        if served:
            return ""
        return f"{_NO_WORKER} on the machine where the files lie." if local else f"{_NO_WORKER}."

    @contextmanager
    def _listening(self, job: JobId) -> Iterator[asyncio.Event]:
        news = asyncio.Event()
        self._listeners.setdefault(job, []).append(news)
        try:
            yield news
        finally:
            self._listeners[job].remove(news)
            if not self._listeners[job]:
                del self._listeners[job]

    def _announce(self, job: JobId) -> None:
        for news in self._listeners.get(job, ()):
            news.set()

    # ------------------------------------------------------------------------------------------------ working
    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        """Run jobs in this process meanwhile. Leaving lets running ones end, for a time; the others go back."""
        stopping = self._stopping = asyncio.Event()
        self._runner.open()
        serving = asyncio.create_task(self._serve(stopping))  # noqa: TID251 - awaited below, whatever happens
        try:
            yield
        finally:
            stopping.set()
            self._runner.close()
            try:
                await asyncio.wait([serving], timeout=self._limits.drain_seconds)
                if not serving.done():
                    self.put_back()
                    await asyncio.wait([serving], timeout=_GIVING_BACK)
            finally:
                serving.cancel()
                await asyncio.wait([serving])
                self._stopping = None

    def put_back(self) -> None:
        """Give back the jobs that run in this process; the next worker goes on with them."""
        self._runner.put_back()

    async def _serve(self, stopping: asyncio.Event) -> None:
        """Work until `stopping`; what nobody expected is logged, and the work begins anew."""
        freed = self._state.shared
        while not stopping.is_set():
            try:
                if not freed:
                    await self._free_all()
                    freed = True
                queue = await self._open_queue()
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._keep_queued(stopping))
                    group.create_task(
                        queue.work(stopping, at_once=self._limits.at_once, silence=self._limits.lease_seconds)
                    )
            except StateError:
                await _set_within(stopping, _AFTER_CRASH)
            except Exception as error:  # noqa: BLE001 - a bug must not end the worker for good
                log_crash(error, new_error_id())
                await _set_within(stopping, _AFTER_CRASH)

    async def _free_all(self) -> None:
        """Leases inside the process are of a process that is gone."""
        for job in await self._records.open_jobs():
            await self._records.free(job)

    async def _keep_queued(self, stopping: asyncio.Event) -> None:
        """Put every job that is not over on the queue, again and again."""
        while not stopping.is_set():
            try:
                for job in await self._records.open_jobs():
                    await self._requeue(job)
            except StateUnavailableError:
                pass  # the next round
            await _set_within(stopping, self._limits.lease_seconds)

    async def _requeue(self, job: JobId) -> None:
        """Put a job on the queue unless it is over, or on a queue of another host."""
        try:
            record = await self._records.load(job)
        except MalformedStateError:
            await self._records.drop(job)
            return
        if record is None or record.state.is_over:
            await self._records.note_over(job)
            return
        if self._state.shared and record.host not in {"", self._host}:
            return
        try:
            queue = await self._open_queue()
            await queue.put(job, record.request.by, local=bool(record.host))
        except StateUnavailableError:
            _log.warning("job_not_queued", job=job)  # a worker's next round does it

    async def _open_queue(self) -> DocketQueue:
        async with self._opening:
            if self._queue is None:
                queue_type = await asyncio.to_thread(_queue_type)
                url = self._redis_url.get_secret_value() if self._redis_url is not None else None
                self._queue = await queue_type.open(url, self._name, self._runner.perform, host=self._host)
            return self._queue


def _queue_type() -> type[DocketQueue]:
    # Here, and in a thread: pydocket takes more than a second to import.
    from bot.jobs.docket_queue import DocketQueue  # noqa: PLC0415 - as said

    return DocketQueue


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, at most so long; whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
