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
from bot.jobs.records import MOST_OPEN, Attempt, Beginning, Records
from bot.jobs.requests import LOCAL, platform_kind
from bot.jobs.running import Running, Stop, Tools
from bot.messages import JobId
from bot.ports import Unread
from bot.results import JobReport, JobState
from bot.telemetry import log_crash, log_failure, new_error_id
from retrieval.errors import RetrievalError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence

    from pydantic import SecretStr

    from bot.jobs.docket_queue import DocketQueue
    from bot.jobs.records import Ending, JobRecord
    from bot.jobs.requests import JobLimits, JobRequest
    from bot.messages import Attachment
    from bot.ports import Fetched, Fetcher, State
    from bot.results import FileVerdict
    from retrieval.ingestion import Ingestion
    from retrieval.ports import Store

_log: Final = structlog.get_logger(__name__)

POLL: Final = 0.25
"""Seconds between two looks at a job that is watched: what others may see of it in a second is bounded by that."""
_PATIENCE: Final = 30.0
"""How long the state may be away while a job is watched."""
_LOOK_FOR_WORKERS: Final = 2.0
_FULL: Final = 0.5
"""Seconds until a job is offered again that this process had no place for."""
_ELSEWHERE: Final = 5.0
"""The same for one that it cannot fetch the documents of."""
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
        self._ingestion = ingestion
        self._store = store
        self._fetchers = fetchers
        self._limits = limits
        self._redis_url = redis_url if state.shared else None
        self._name = f"{namespace}:jobs"
        self._queue: DocketQueue | None = None
        self._opening = asyncio.Lock()
        self._host = socket.gethostname()
        self._places = limits.at_once
        """Jobs that may still begin in this process."""
        self._running: dict[JobId, Running] = {}
        self._listeners: dict[JobId, list[asyncio.Event]] = {}
        self._stopping: asyncio.Event | None = None
        self._putting_back = False
        self.finished = 0
        """Jobs that ended in this process."""
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
        if job in self._running:
            self._running[job].stop(Stop.CANCELLED)
        if answer == "ended":
            await self._records.note_over(job)
            self._announce(job)
        return True

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
        self._putting_back = False
        serving = asyncio.create_task(self._serve(stopping))  # noqa: TID251 - awaited below, whatever happens
        try:
            yield
        finally:
            stopping.set()
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
        self._putting_back = True
        for running in self._running.values():
            running.stop(Stop.PUT_BACK)

    async def _serve(self, stopping: asyncio.Event) -> None:
        """Work until `stopping`; what nobody expected is logged, and the work begins anew."""
        if not self._state.shared:
            await self._free_all()
        while not stopping.is_set():
            try:
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
                self._queue = await queue_type.open(url, self._name, self._perform, host=self._host)
            return self._queue

    async def _perform(self, name: str) -> float | None:
        """Work on a job that the queue delivered; seconds until it is to be delivered again, or None."""
        job = JobId(name)
        if self._places == 0 or self._stopping is None or self._stopping.is_set():
            return _FULL
        self._places -= 1
        try:
            return await self._attempt(job)
        except MalformedStateError:
            await self._records.drop(job)
            return None
        except StateError:
            return self._limits.lease_seconds
        except Exception as error:  # noqa: BLE001 - a bug must not be tried again and again at once
            log_crash(error, new_error_id())
            return _AFTER_CRASH
        finally:
            self._places += 1

    async def _attempt(self, job: JobId) -> float | None:
        record = await self._records.load(job)
        if record is None or record.state.is_over:
            await self._records.note_over(job)
            return None
        platform = record.request.platform
        fetcher = self._fetchers.get(platform) or self._fetchers.get(platform_kind(platform))
        if fetcher is None and self._state.shared:
            return _ELSEWHERE
        attempt = await self._records.begin(job, self._limits.lease_seconds)
        if attempt is Beginning.BUSY:
            return self._limits.lease_seconds / 4
        if not isinstance(attempt, Attempt):
            return None
        record = await self._records.load(job) or record
        tools = Tools(ingestion=self._ingestion, store=self._store, fetcher=fetcher or _Nowhere())
        running = self._running[job] = Running(self._records, attempt, record, tools, self._limits)
        if self._putting_back:
            running.stop(Stop.PUT_BACK)
        self._announce(job)
        try:
            ending = await running.run()
        finally:
            del self._running[job]
            self._announce(job)
        await self._after(record, running, ending)
        return running.pause if ending is not None and ending.state is JobState.WAITING else None

    async def _after(self, record: JobRecord, running: Running, ending: Ending | None) -> None:
        job = record.request.id
        state = "taken_over" if ending is None else ending.state
        log = _log.warning if state is JobState.FAILED else _log.info
        log(
            "job",
            job=job,
            platform=platform_kind(record.request.platform),
            state=str(state),
            attempt=record.begun,
            documents=running.count,
            seconds=round(running.seconds, 1),
        )
        if ending is not None and ending.state.is_over:
            self.finished += 1
            await self._records.note_over(job)
        if running.changed:
            try:
                await self._store.optimize()
            except RetrievalError as error:
                log_failure(error)


class _Nowhere:
    """Fetches for a platform that this version does not know."""

    async def fetch(self, attachments: Sequence[Attachment], limit: int) -> AsyncGenerator[Fetched | Unread]:  # noqa: ARG002 - as the port
        """There is nothing to fetch with."""
        for attachment in attachments:
            yield Unread(uri=attachment.uri, name=attachment.name, reason="Documents cannot be fetched from there.")


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
