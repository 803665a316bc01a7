"""The words for what becomes of documents and jobs: the same on every platform, which only makes them safe to show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bot.results import JobState
from retrieval.verdicts import Outcome, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.results import FileVerdict, JobProgress, JobReport

SKIPPED: Final = "skipped"
"""What is said of a file in a folder that is none of ours to read; it is no failure."""
_OUTCOMES: Final = {
    Outcome.INDEXED: "ingested",
    Outcome.REPLACED: "replaced",
    Outcome.UNCHANGED: "unchanged",
    Outcome.PARTLY: "partly",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed",
}
_STATES: Final = {
    JobState.WAITING: "Waiting.",
    JobState.RUNNING: "Working.",
    JobState.DONE: "Done.",
    JobState.CANCELLED: "Cancelled. What was finished before stays.",
    JobState.FAILED: "Failed.",
}


def verdict_word(item: FileVerdict) -> str:
    """The verdict in a word of at most nine letters."""
    return SKIPPED if item.skipped else _OUTCOMES[item.verdict.outcome]


def verdict_text(item: FileVerdict) -> str:
    """What follows the word: the document, what it holds, and why. The name is not said twice."""
    verdict = item.verdict
    name = item.name
    if verdict.in_library:
        title = verdict.title
        name = name if title in {name, name.rpartition(".")[0]} else f"{name} “{title}”"
        holds = [count(verdict.pages, "page") if verdict.pages is not None else "", count(verdict.chunks, "chunk")]
        name = f"{name} ({', '.join(filter(None, holds))})"
    reason = verdict.reason.strip()
    if not verdict.in_library and _is_named(name, reason):
        return reason
    return f"{name}{': ' + reason if reason else ''}"


def verdict_summary(items: Iterable[FileVerdict]) -> str:
    """How many of what, in a line."""
    counts: dict[str, int] = {}
    for item in items:
        word = verdict_word(item)
        counts[word] = counts.get(word, 0) + 1
    if not counts:
        return "No files: the folder holds none that could be ingested."
    total = count(sum(counts.values()), "file")
    return f"{total}: " + ", ".join(f"{counts[w]} {w}" for w in (*_OUTCOMES.values(), SKIPPED) if w in counts) + "."


def progress_text(progress: JobProgress) -> str:
    """The document that is being worked on, and how far it is."""
    parts = [f"{progress.name}: {progress.step}"]
    if progress.pages is not None:
        parts.append(count(progress.pages, "page"))
    if progress.step is Step.EMBEDDING and progress.total:
        parts.append(f"{progress.done:,} of {count(progress.total, 'chunk')}")
    return ", ".join(parts)


def job_text(report: JobReport) -> str:
    """How far a job is, in a line or two; its verdicts are told beside."""
    told = [report.reason or _STATES[report.state]]
    if report.state is JobState.DONE:
        told = [verdict_summary(report.verdicts), report.reason]
    elif report.state.is_over and report.verdicts:
        told.append(verdict_summary(report.verdicts))
    elif report.state is JobState.RUNNING and report.progress is not None:
        told = [progress_text(report.progress), report.reason]
    return " ".join(filter(None, told))


def count(number: int, noun: str) -> str:
    """`1 page`, `1,200 pages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _is_named(name: str, reason: str) -> bool:
    """Whether the sentence names the file; a name like a word (`a`, `link`) can stand in it by chance."""
    found = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", reason)
    return "." in name.strip(".") and found is not None
