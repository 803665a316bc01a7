"""The jobs that run in this process: as many as may, each an attempt under a lease."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from typing_extensions import override

from bot.errors import MalformedStateError, StateError
from bot.jobs.endings import Stop
from bot.jobs.records import Attempt, Beginning
from bot.jobs.requests import platform_kind
from bot.jobs.running import Running, Tools
from bot.messages import JobId
from bot.ports import Fetcher, Unread
from bot.results import JobState
from bot.telemetry import log_crash, log_failure, new_error_id
from retrieval.errors import RetrievalError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from bot.jobs.records import Ending, JobRecord, Records
    from bot.jobs.requests import JobLimits
    from bot.messages import Attachment
    from bot.ports import Fetched
    from retrieval.ingestion import Ingestion
    from retrieval.ports import Store

_log: Final = structlog.get_logger(__name__)

_FULL: Final = 0.5
"""Seconds until a job is offered again that this process had no place for."""
_ELSEWHERE: Final = 5.0
"""The same for one that it cannot fetch the documents of."""
_AFTER_CRASH: Final = 2.0


class JobRunner:
    """Takes jobs between `open` and `close`."""

    def __init__(
        self,
        records: Records,
        ingestion: Ingestion,
        store: Store,
        fetchers: Mapping[str, Fetcher],
        limits: JobLimits,
        *,
        shared: bool,
        announce: Callable[[JobId], None],
    ) -> None:
        """`shared`: other processes take jobs as well. `announce` is told of jobs that begin or end."""
        self.finished = 0
        """Jobs that ended here."""
        self._records = records
        self._ingestion = ingestion
        self._store = store
        self._fetchers = fetchers
        self._limits = limits
        self._shared = shared
        self._announce = announce
        self._places = limits.at_once
        """Jobs that may still begin."""
        self._running: dict[JobId, Running] = {}
        self._open = False
        self._putting_back = False

    def open(self) -> None:
        """Take jobs from now on."""
        self._open, self._putting_back = True, False

    def close(self) -> None:
        """Take none any more; running ones go on."""
        self._open = False

    def put_back(self) -> None:
        """Give back what runs."""
        self._putting_back = True
        for running in self._running.values():
            running.stop(Stop.PUT_BACK)

    def cancel(self, job: JobId) -> None:
        """End a job at once, if it runs here."""
        if job in self._running:
            self._running[job].stop(Stop.CANCELLED)

    async def perform(self, name: str) -> float | None:
        """Work on a job that the queue delivered; seconds until it is to be delivered again, or None."""
        job = JobId(name)
        if self._places == 0 or not self._open:
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
        if fetcher is None and self._shared:
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
        return ending.pause if ending is not None else None

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


class _Nowhere(Fetcher):
    """Fetches for a platform that this version does not know."""

    @override
    async def fetch(self, attachments: Sequence[Attachment], limit: int) -> AsyncGenerator[Fetched | Unread]:
        for attachment in attachments:
            yield Unread(uri=attachment.uri, name=attachment.name, reason="Documents cannot be fetched from there.")
