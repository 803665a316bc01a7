"""What is asked of a job, and the bounds that it runs in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - `bot.codec` reads the annotations at run time
from typing import TYPE_CHECKING, Final, Self

from bot.messages import Attachment, JobId  # noqa: TC001 - as above
from retrieval.types import Audience  # noqa: TC001 - as above

if TYPE_CHECKING:
    from bot.settings import Settings

LOCAL: Final = "terminal"
"""The kind of platform whose attachments are files of one host: only a process there can read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """Documents to ingest, for whom, and who asks. `id` comes from the turn: asking twice is one job."""

    id: JobId
    platform: str
    """The name of the ChatPlatform; what stands before its first colon is the kind, which has a Fetcher."""
    attachments: tuple[Attachment, ...]
    audience: Audience | None
    """Who may see the documents; None: whoever could before, everyone for a new one."""
    asker: Audience | None
    """The circles of who asks; None: the operator, who may change all documents."""
    by: str
    """The author's id. One job of an author runs at a time, so that nobody's many hold up another's one."""
    by_name: str
    """The author as the library's records name them."""
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """Explicit bounds of everything about jobs."""

    at_once: int = 2
    """Jobs that one process runs at a time."""
    seconds: float = 7_200.0
    """How long a job may run, all its attempts together."""
    file_bytes: int = 100 * 1024 * 1024
    drain_seconds: float = 25.0
    """How long running jobs may take to their end when the process stops; then they go back."""
    lease_seconds: float = 15.0
    """How long a process may be silent before another one takes over its jobs."""
    retry_seconds: float = 2.0
    """The pause before the second attempt; each further one is four times as long."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As the operator set them."""
        return cls(
            at_once=settings.jobs_at_once,
            seconds=settings.job_seconds,
            file_bytes=settings.max_file_megabytes * 1024 * 1024,
            drain_seconds=settings.drain_seconds,
            lease_seconds=settings.lease_seconds,
        )


def platform_kind(platform: str) -> str:
    """`terminal` of `terminal:alice@host`."""
    return platform.partition(":")[0]
