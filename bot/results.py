"""What commands come to and what is kept of turns: the nouns of jobs, the library's commands and the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - `bot.codec` reads the annotations at run time
from enum import StrEnum

from bot.messages import Author, JobId, Outcome, TurnId  # noqa: TC001 - as above
from bot.types import Source, Timings, Usage
from retrieval.types import Audience, DocumentRecord  # noqa: TC001 - as above
from retrieval.verdicts import Step, Verdict  # noqa: TC001 - as above


class JobState(StrEnum):
    """How far a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    """Every document has its verdict."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It broke too often, or took too long; `JobReport.reason` tells."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self not in {JobState.WAITING, JobState.RUNNING}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    """What became of one document of a job. `name` as given or found."""

    name: str
    verdict: Verdict
    skipped: bool = False
    """Found in a folder and none of ours to read; it is no failure."""

    @property
    def failed(self) -> bool:
        """Whether the user has to do something."""
        return not self.skipped and not self.verdict.in_library


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """The document that is being worked on: `done` of `total` chunks while embedding, else 0 of 0."""

    name: str
    step: Step
    done: int = 0
    total: int = 0
    pages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """An ingestion as it is now; shown again and again until its state `is_over`."""

    id: JobId
    state: JobState
    progress: JobProgress | None = None
    verdicts: tuple[FileVerdict, ...] = ()
    """In the order of the documents."""
    reason: str = ""
    """A sentence, with the error id where there is one: why it ended early or waits."""
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsListed:
    """What this person may ask about here, newest first."""

    documents: tuple[DocumentRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsForgotten:
    """What `forget` did: the documents that are gone, or those that the key could have meant (then none is gone)."""

    key: str
    removed: tuple[DocumentRecord, ...] = ()
    ambiguous: tuple[DocumentRecord, ...] = ()


class Opinion(StrEnum):
    """What the asker thought of an answer."""

    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One person's opinion of an answer; a later one of the same person takes its place."""

    author: Author
    opinion: Opinion
    given_at: datetime
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One question and what came of it, as the history keeps it."""

    id: TurnId
    asked_at: datetime
    """Aware, UTC."""
    platform: str
    workspace: str = ""
    channel: str = ""
    conversation: str = ""
    author: Author
    audience: Audience
    """The asker's circles at the place where it was asked: nobody outside of them may see this entry."""
    question: str
    reply: str
    """The answer in Markdown with markers `[n]`, or the sentence that refused."""
    outcome: Outcome
    reason: str = ""
    """Why there is no answer: the AbstentionReason's value; empty otherwise."""
    sources: tuple[Source, ...] = ()
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    notice: str = ""
    feedback: tuple[Feedback, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryListed:
    """What this person asked before, newest first. `more`: there is more than is listed."""

    entries: tuple[HistoryEntry, ...]
    search: str = ""
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HelpShown:
    """How Footnote is used here. Platforms show their own commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A sentence is all there is to show; `failed`: the command did not do its work."""

    text: str
    failed: bool = False


CommandResult = JobReport | DocumentsListed | DocumentsForgotten | HistoryListed | HelpShown | Told
