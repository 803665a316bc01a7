"""How an attempt at a job ends, and the sentences that say so."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import structlog

from bot.errors import BotError, PlatformBusyError, PlatformError, PlatformRefusedError, StateError
from bot.jobs.records import Ending
from bot.results import JobState
from bot.telemetry import log_crash, new_error_id
from retrieval.errors import RetrievalError

if TYPE_CHECKING:
    from bot.jobs.records import JobRecord
    from bot.jobs.requests import JobLimits
    from bot.messages import JobId

_log: Final = structlog.get_logger(__name__)

MOST_FAILURES: Final = 4
"""Attempts that may end with something that could get better."""
MOST_DOCUMENTS: Final = 20_000
"""Documents of one job."""
_LONGEST_PAUSE: Final = 300.0
_STAYS: Final = "What was finished before stays; ingest the rest again."


class Stop(StrEnum):
    """Why an attempt ends before its work does."""

    CANCELLED = "cancelled"
    PUT_BACK = "put_back"
    """The process ends; another one goes on."""
    LOST = "lost"
    """Another process is at it."""
    TIME = "time"


class MayGetBetterError(Exception):
    """A document failed on our side; the message is its verdict's sentence."""


class TooManyError(Exception):
    """There is no end of documents."""


def stopped(why: Stop | None, record: JobRecord, limits: JobLimits) -> Ending:
    """The end of an attempt that was stopped."""
    if why is Stop.CANCELLED:
        return Ending(state=JobState.CANCELLED)
    if why is Stop.TIME:
        reason = f"It took longer than {_duration(limits.seconds)} (FOOTNOTE_JOB_SECONDS) and was stopped. {_STAYS}"
        return Ending(state=JobState.FAILED, reason=reason)
    return Ending(state=JobState.WAITING, failures=record.failures, pause=0.0)


def after_error(error: BaseException, record: JobRecord, limits: JobLimits) -> Ending:
    """What an error leads to: another attempt when it may get better, else the end."""
    failures = record.failures + 1
    if isinstance(error, TooManyError):
        reason = f"It holds more than {MOST_DOCUMENTS:,} documents; the first ones are done. Ingest it in parts."
        return Ending(state=JobState.FAILED, reason=reason)
    may_get_better = isinstance(error, MayGetBetterError | PlatformError | RetrievalError | StateError)
    if may_get_better and not isinstance(error, PlatformRefusedError) and failures < MOST_FAILURES:
        pause = limits.retry_seconds * 4 ** (failures - 1)
        if isinstance(error, PlatformBusyError) and error.retry_after is not None:
            pause = max(pause, error.retry_after)
        reason = f"{error} It is tried again soon."
        return Ending(state=JobState.WAITING, reason=reason, failures=failures, pause=min(pause, _LONGEST_PAUSE))
    if isinstance(error, BotError | RetrievalError):
        return Ending(state=JobState.FAILED, reason=f"{error} {_STAYS}")
    error_id = new_error_id()
    log_crash(error, error_id)
    return Ending(state=JobState.FAILED, reason=f"Something went wrong on our side (error {error_id}). {_STAYS}")


def given_up(job: JobId, deaths: int) -> Ending:
    """The end of a job that so many processes died over."""
    error_id = new_error_id()
    _log.error("job_given_up", job=job, deaths=deaths, error_id=error_id)
    reason = (
        f"The process ended {deaths} times while working on this (error {error_id}), so it is not tried again. "
        "What was finished before stays; ingest the rest one by one."
    )
    return Ending(state=JobState.FAILED, reason=reason)


def _duration(seconds: float) -> str:
    hours, minutes = seconds / 3600, seconds / 60
    if seconds >= 7200 and hours == int(hours):
        return f"{hours:.0f} hours"
    return f"{minutes:.0f} minutes" if seconds >= 120 else f"{seconds:g} seconds"
