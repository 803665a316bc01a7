"""What is kept of a job, all of it under the job's own tag, and the steps that change it (`bot.jobs.scripts`).

An attempt writes only as long as the lease is its own, so that one that was taken over changes nothing any more. The
index of open jobs lies under a tag of its own: it is only a hint, and whoever finds a job in it that is over takes it
out.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import structlog

from bot.codec import decode, encode
from bot.errors import LeaseLostError, MalformedStateError
from bot.jobs.requests import JobRequest
from bot.jobs.scripts import BEGIN, CANCEL, CREATE, SAVE
from bot.messages import JobId
from bot.metrics import MALFORMED
from bot.results import FileVerdict, JobProgress, JobReport, JobState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.ports import State, Value

T = TypeVar("T")
_log: Final = structlog.get_logger(__name__)

KEPT_SECONDS: Final = 7 * 86_400.0
"""How long the record of a job stays after its end."""
OPEN_SECONDS: Final = 30 * 86_400.0
"""How long a job may go without anything happening before it is forgotten."""
MOST_OPEN: Final = 1_000
"""Jobs that may be open at once, of all people."""


class Beginning(StrEnum):
    """What came of beginning an attempt."""

    BEGUN = "begun"
    BUSY = "busy"
    """Another process runs it."""
    OVER = "over"
    GONE = "gone"
    """There is no record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One job as it is kept, without its verdicts."""

    request: JobRequest
    state: JobState
    host: str = ""
    """The host where the files lie, where only that one has them."""
    reason: str = ""
    progress: JobProgress | None = None
    begun: int = 0
    """Attempts."""
    ended: int = 0
    """Those that came to an end of their own; the others died with their process."""
    failures: int = 0
    """Those that ended with something that may get better."""
    spent: float = 0.0
    """Seconds of work in all attempts."""
    first: datetime | None = None
    """When the first attempt began."""
    cancelled: bool = False

    def report(self, verdicts: tuple[FileVerdict, ...]) -> JobReport:
        """What is shown of it."""
        return JobReport(
            id=self.request.id,
            state=self.state,
            progress=self.progress,
            verdicts=verdicts,
            reason=self.reason,
            attempts=self.begun,
        )


@dataclass(slots=True, kw_only=True)
class Attempt:
    """The right to write to one job."""

    job: JobId
    lease_ms: int
    token: str
    kept: int = 0
    """Verdicts that are kept already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ends: `waiting` gives the job back."""

    state: JobState
    reason: str = ""
    failures: int = 0
    pause: float | None = None
    """Seconds after which a job that was given back is to be begun again."""


class Records:
    """The jobs in the state. Every call may raise a StateError."""

    def __init__(self, state: State) -> None:
        """Use this state."""
        self._state = state

    async def create(self, request: JobRequest, *, host: str = "") -> bool:
        """Keep a new job; False when there is one of this id already."""
        args: list[Value] = [encode(request), _ms(OPEN_SECONDS), host]
        return bool(await self._state.run(CREATE, self._keys(request.id), args))

    async def free(self, job: JobId) -> None:
        """Take the lease from whoever has it."""
        await self._state.delete(self._keys(job)[2])

    async def drop(self, job: JobId) -> None:
        """Forget a job that nobody can read."""
        await self._state.delete(*self._keys(job))
        await self.note_over(job)

    async def load(self, job: JobId) -> JobRecord | None:
        """The job; None when there is none. Raises MalformedStateError."""
        key = self._keys(job)[0]
        kept = await self._state.hgetall(key)
        if b"state" not in kept:
            return None
        try:
            first = int(kept[b"first"]) if b"first" in kept else None
            return JobRecord(
                request=decode(JobRequest, kept[b"request"]),
                state=JobState(kept[b"state"].decode()),
                host=kept.get(b"host", b"").decode(),
                reason=kept.get(b"reason", b"").decode(),
                progress=self._decoded(JobProgress, kept.get(b"progress", b""), key),
                begun=int(kept.get(b"begun", 0)),
                ended=int(kept.get(b"ended", 0)),
                failures=int(kept.get(b"failures", 0)),
                spent=float(kept.get(b"spent", 0)),
                first=datetime.fromtimestamp(first / 1000, UTC) if first is not None else None,
                cancelled=b"cancelled" in kept,
            )
        except (MalformedStateError, KeyError, ValueError) as error:
            _tell_malformed("job", key)
            message = "The record of this job cannot be read."
            raise MalformedStateError(message) from error

    async def verdicts(self, job: JobId, after: int = 0) -> list[FileVerdict | None]:
        """The verdicts from number `after` on, counted from 0; None for one that cannot be read."""
        key = self._keys(job)[1]
        return [self._decoded(FileVerdict, item, key) for item in await self._state.lrange(key, after, -1)]

    async def begin(
        self, job: JobId, lease_seconds: float
    ) -> Attempt | Literal[Beginning.BUSY, Beginning.OVER, Beginning.GONE]:
        """Begin an attempt, if nobody is at it."""
        attempt = Attempt(job=job, lease_ms=_ms(lease_seconds), token=secrets.token_hex(8))
        args: list[Value] = [attempt.token, attempt.lease_ms, _ms(OPEN_SECONDS)]
        beginning = Beginning((await self._state.run(BEGIN, self._keys(job), args)).decode())
        return attempt if beginning is Beginning.BEGUN else beginning

    async def save(
        self,
        attempt: Attempt,
        *,
        progress: JobProgress | None = None,
        spent: float = 0.0,
        verdicts: Sequence[FileVerdict] = (),
        ending: Ending | None = None,
    ) -> bool:
        """Renew the lease and keep how far the job is; with an `ending`, let go of it. Whether it was cancelled.

        Raises:
            LeaseLostError: Another process is at it; stop.
        """
        args: list[Value] = [
            attempt.token,
            attempt.lease_ms,
            _ms(OPEN_SECONDS),
            encode(progress) if progress is not None else "",
            spent,
            _ms(KEPT_SECONDS),
            attempt.kept,
            ending.state if ending is not None else "",
            ending.reason if ending is not None else "",
            ending.failures if ending is not None else 0,
            *map(encode, verdicts),
        ]
        cancelled = await self._state.run(SAVE, self._keys(attempt.job), args)
        if cancelled == -1:
            message = "Another process took this job over."
            raise LeaseLostError(message)
        attempt.kept += len(verdicts)
        return bool(cancelled)

    async def cancel(self, job: JobId) -> Literal["over", "told", "ended"]:
        """Mark it; one that nobody runs is over at once, a running one is told by its next saving."""
        answer: bytes = await self._state.run(CANCEL, self._keys(job), [_ms(KEPT_SECONDS)])
        return answer.decode()  # type: ignore[return-value] # the script says nothing else

    async def open_jobs(self) -> list[JobId]:
        """Jobs that may not be over, oldest first."""
        return [JobId(job.decode()) for job in await self._state.zrange(self._index, 0, MOST_OPEN - 1)]

    async def count_open(self) -> int:
        """How many those are."""
        return await self._state.zcard(self._index)

    async def note_open(self, request: JobRequest) -> None:
        """Put a job into the index."""
        await self._state.zadd(self._index, {request.id: request.asked_at.timestamp()})
        await self._state.expire(self._index, OPEN_SECONDS)

    async def note_over(self, job: JobId) -> None:
        """Take it out of the index."""
        await self._state.zrem(self._index, job)

    @property
    def _index(self) -> str:
        return self._state.key("jobs", "open")

    def _keys(self, job: JobId) -> list[str]:
        return [self._state.key(job, part) for part in ("job", "verdicts", "lease")]

    def _decoded(self, kind: type[T], kept: bytes, key: str) -> T | None:
        if not kept:
            return None
        try:
            return decode(kind, kept)
        except MalformedStateError:
            _tell_malformed("job", key)
            return None


def _tell_malformed(kind: str, key: str) -> None:
    MALFORMED.labels(kind).inc()
    _log.warning("malformed_state", kind=kind, key=key)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
