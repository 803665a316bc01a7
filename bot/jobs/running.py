"""One attempt at a job: fetch, ingest, keep each verdict, and end it in one way of a few."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.errors import LeaseLostError, StateError
from bot.ingesting import CHANGES, Begun, IngestionRun
from bot.jobs.endings import (
    MOST_DOCUMENTS,
    MOST_FAILURES,
    MayGetBetterError,
    Stop,
    TooManyError,
    after_error,
    given_up,
    stopped,
)
from bot.jobs.records import Ending
from bot.ports import Unread
from bot.results import FileVerdict, JobState
from retrieval.errors import RetrievalError
from retrieval.types import document_id
from retrieval.verdicts import Outcome, Verdict

if TYPE_CHECKING:
    from bot.jobs.records import Attempt, JobRecord, Records
    from bot.jobs.requests import JobLimits
    from bot.ports import Fetched, Fetcher
    from bot.results import JobProgress
    from retrieval.ingestion import Ingestion
    from retrieval.ports import Store

TICK: Final = 0.25
"""Seconds between two looks whether somebody cancelled, each of which renews the lease and keeps the progress."""
MOST_DEATHS: Final = 3
"""Processes that may die over one job."""
_END_PAUSES: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0)
"""Seconds between the tries to keep the end of an attempt while the state is away."""
_STOP_SECONDS: Final = 10.0
"""How long work that is cancelled may take to its end; then it is left to itself."""
_LAST_WORD_SECONDS: Final = 2.0
"""How long an attempt whose process is ending may take to give the job back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a job is done with."""

    ingestion: Ingestion
    store: Store
    fetcher: Fetcher


class Running:
    """An attempt that has begun. `run` it once."""

    def __init__(self, records: Records, attempt: Attempt, record: JobRecord, tools: Tools, limits: JobLimits) -> None:
        """`record` as it is after the attempt has begun."""
        self._records = records
        self._attempt = attempt
        self._record = record
        self._request = record.request
        self._tools = tools
        self._limits = limits
        self._nudge = asyncio.Event()
        self._stop: Stop | None = None
        self._started = time.monotonic()
        self._progress: JobProgress | None = None
        self._pending: list[FileVerdict] = []
        self._run: IngestionRun | None = None
        self.changed = False
        """Whether anything in the library did."""
        self.count = 0
        """Documents that got their verdict in this attempt."""

    @property
    def seconds(self) -> float:
        """How long it has been at work."""
        return time.monotonic() - self._started

    def stop(self, why: Stop) -> None:
        """End it soon."""
        if self._stop is None:
            self._stop = why
            self._nudge.set()

    async def run(self) -> Ending | None:
        """Work to the end, which is then kept; None when another process took over. Raises StateError."""
        deaths = self._record.begun - 1 - self._record.ended
        if deaths >= MOST_DEATHS:
            return await self._end(given_up(self._request.id, deaths))
        work = asyncio.create_task(self._ingest())  # noqa: TID251 - awaited below, whatever happens
        try:
            try:
                await self._watch_over(work)
            finally:
                work.cancel()
                await asyncio.wait([work], timeout=_STOP_SECONDS)
            return await self._end(await self._ending(work))
        except asyncio.CancelledError:
            await self._give_back()
            raise

    # ------------------------------------------------------------------------------------------------ watching
    async def _watch_over(self, work: asyncio.Task[None]) -> None:
        """Keep progress and verdicts, hold the lease, and see whether the work has to stop."""
        while not work.done() and self._stop is None:
            nudged = asyncio.create_task(self._nudge.wait())  # noqa: TID251 - cancelled below
            await asyncio.wait({work, nudged}, timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
            nudged.cancel()
            self._nudge.clear()
            if self._spent() > self._limits.seconds:
                self.stop(Stop.TIME)
            try:
                await self._save()
            except LeaseLostError:
                self.stop(Stop.LOST)
            except StateError:
                pass  # the work goes on, and what there is to keep is kept when the state is back

    async def _save(self, ending: Ending | None = None) -> None:
        verdicts = tuple(self._pending)
        cancelled = await self._records.save(
            self._attempt, progress=self._progress, spent=self._spent(), verdicts=verdicts, ending=ending
        )
        del self._pending[: len(verdicts)]
        if cancelled:
            self.stop(Stop.CANCELLED)

    def _spent(self) -> float:
        return self._record.spent + self.seconds

    # ------------------------------------------------------------------------------------------------ working
    async def _ingest(self) -> None:
        told = await self._records.verdicts(self._request.id)
        self._attempt.kept = len(told)
        kept = [item for item in told if item is not None]
        request = self._request
        self._run = IngestionRun(
            self._tools.ingestion,
            self._still_to_do(kept),
            audience=request.audience,
            asker=request.asker,
            by=request.by_name,
            report=self._tell,
        )
        patient = self._record.failures + 1 < MOST_FAILURES
        count = len(kept)
        async with aclosing(self._run.verdicts()) as verdicts:
            async for item in verdicts:
                if patient and item.verdict.outcome is Outcome.FAILED:
                    raise MayGetBetterError(item.verdict.reason)
                if count >= MOST_DOCUMENTS:
                    raise TooManyError
                self._note(await self._as_it_was(item))
                count += 1

    async def _still_to_do(self, kept: list[FileVerdict]) -> AsyncGenerator[Fetched | Unread]:
        """What has no verdict yet. A folder is looked through again; a document is not even fetched."""
        done = Counter(item.verdict.uri for item in kept)
        attachments = []
        for attachment in self._request.attachments:
            if done[attachment.uri] > 0:
                done[attachment.uri] -= 1
            else:
                attachments.append(attachment)
        found = self._tools.fetcher.fetch(attachments, self._limits.file_bytes)
        async with AsyncExitStack() as stack:
            if isinstance(found, AsyncGenerator):
                stack.push_async_callback(found.aclose)
            async for item in found:
                uri = item.uri if isinstance(item, Unread) else item.source.uri
                if done[uri] > 0:
                    done[uri] -= 1
                else:
                    yield item

    def _tell(self, progress: JobProgress) -> None:
        self._progress = progress

    def _note(self, item: FileVerdict) -> None:
        self.count += 1
        self.changed |= item.verdict.outcome in CHANGES
        self._progress = None
        self._pending.append(item)
        self._nudge.set()

    async def _as_it_was(self, item: FileVerdict) -> FileVerdict:
        """An earlier attempt may have stored the document and died before it said so."""
        if self._record.begun > 1 and item.verdict.outcome is Outcome.UNCHANGED:
            return await self._stored(item.name, item.verdict.uri) or item
        return item

    async def _stored(self, name: str, uri: str) -> FileVerdict | None:
        """The verdict of a document that this job brought into the library; None when it did not."""
        try:
            known = await self._tools.store.record(document_id(uri))
        except RetrievalError:
            return None
        began = self._record.first
        if known is None or began is None or known.ingested_at < began or known.ingested_by != self._request.by_name:
            return None
        verdict = Verdict(
            outcome=Outcome.PARTLY if known.notes else Outcome.INDEXED,
            uri=known.uri,
            title=known.title,
            reason=" ".join(known.notes),
            document_id=known.id,
            pages=known.page_count,
            chunks=known.chunk_count,
            language=known.language,
        )
        return FileVerdict(name=name, verdict=verdict)

    # ------------------------------------------------------------------------------------------------ ending
    async def _ending(self, work: asyncio.Task[None]) -> Ending | None:
        """How the attempt ends; None when it is no longer ours."""
        if self._stop is Stop.LOST:
            return None
        if work.cancelled() or not work.done():
            await self._settle(resumes=self._stop is Stop.PUT_BACK)
            return stopped(self._stop, self._record, self._limits)
        error = work.exception()
        if error is None:
            return Ending(state=JobState.DONE)
        ending = after_error(error, self._record, self._limits)
        await self._settle(resumes=ending.state is JobState.WAITING)
        return ending

    async def _settle(self, *, resumes: bool) -> None:
        """List what is in the library though its verdict never came. The next attempt goes on where the list ends."""
        begun = self._run.unsettled if self._run is not None else ()
        for document in begun:
            item = await self._settled(document)
            if item is not None:
                self._note(item)
            elif resumes:
                return

    async def _settled(self, document: Begun) -> FileVerdict | None:
        verdict = document.verdict
        if verdict is not None and verdict.verdict.outcome is not Outcome.FAILED:
            return verdict
        return await self._stored(document.name, document.uri)

    async def _end(self, ending: Ending | None) -> Ending | None:
        """Keep the end. While the state is away it is tried again; then the lease runs out, and others go on."""
        if ending is None:
            return None
        self._progress = None
        for pause in (*_END_PAUSES, None):
            try:
                await self._save(ending)
            except LeaseLostError:
                return None
            except StateError:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
            else:
                break
        if ending.state is JobState.WAITING and self._stop is Stop.CANCELLED:
            return Ending(state=JobState.CANCELLED)
        return ending

    async def _give_back(self) -> None:
        """The process is ending: leave the job to others."""
        try:
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await self._save(Ending(state=JobState.WAITING, failures=self._record.failures))
        except (LeaseLostError, StateError, TimeoutError):
            return  # the lease runs out by itself
