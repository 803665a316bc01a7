"""What commands come to, as lines for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapters.listing import age, document_line
from adapters.printing import safe, safe_line
from bot.messages import Outcome
from bot.results import (
    DocumentsForgotten,
    DocumentsListed,
    HelpShown,
    HistoryListed,
    JobReport,
    JobState,
    Told,
)
from bot.wording import verdict_summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.results import CommandResult, HistoryEntry

HELP: Final = """\
Type a question; follow-ups such as “and how often?” work.
  /ingest PATH    take a file, a folder or a pattern into the library
  /documents      list what is in the library
  /forget TITLE   take a document out of the library (its id works as well)
  /history        list what you asked, newest first; with words, what holds them
  /good, /bad     say what you think of the last answer: /bad the page is wrong
  /new            begin a new conversation
  /help           show this
  /quit           leave (Ctrl-D does the same)
Ctrl-C stops an answer."""
_EXCERPT: Final = 200
"""Characters of an answer that the history shows."""


def result_lines(result: CommandResult) -> list[str]:
    """The lines, safe to print. Of an ingestion, those that come after its files."""
    match result:
        case Told(text=text):
            return [safe(text)]
        case HelpShown():
            return [HELP]
        case DocumentsListed(documents=documents):
            lines = [document_line(record) for record in documents]
            return lines or ["The library is empty. /ingest PATH adds a document."]
        case DocumentsForgotten():
            return _forgotten(result)
        case HistoryListed():
            return _history(result)
        case JobReport():
            return _job(result)


def _forgotten(result: DocumentsForgotten) -> list[str]:
    lines = [f"Forgotten: {document_line(record)}" for record in result.removed]
    if result.ambiguous:
        lines.append("Nothing was done. Name one of these in full, or by its id:")
        lines += [f"  {document_line(record)}" for record in result.ambiguous]
    elif not result.removed:
        lines.append(f"There is no document called {safe_line(result.key, 80)}; /documents lists them.")
    return lines


def _job(report: JobReport) -> list[str]:
    """How an ingestion ended; how far it is while it runs."""
    reason = [safe(report.reason)] if report.reason else []
    match report.state:
        case JobState.DONE:
            return [verdict_summary(report.verdicts), *reason]
        case JobState.CANCELLED:
            return [*reason, stopped_line(len(report.verdicts))]
        case JobState.FAILED:
            return reason or ["The documents could not be ingested. Try again."]
        case _:
            return reason


def stopped_line(finished: int) -> str:
    """What stays of an ingestion that was stopped after so many files."""
    files = "file" if finished == 1 else "files"
    stays = f"{finished:,} {files} finished before that; that stays. " if finished else ""
    return f"(Stopped. {stays}Nothing is left half done.)"


def _history(result: HistoryListed) -> list[str]:
    if not result.entries:
        if result.search:
            return [f"Nothing that you asked holds {safe_line(result.search, 80)}."]
        return ["Nothing has been asked yet."]
    lines = [line for entry in result.entries for line in _entry(entry)]
    if result.more:
        lines.append("There is more: /history WORDS narrows it down, and footnote history lists everything.")
    return lines


def _entry(entry: HistoryEntry) -> Iterable[str]:
    opinions = {feedback.opinion for feedback in entry.feedback}
    marks = "".join(f", {opinion}" for opinion in sorted(opinions))
    refused = " (no answer)" if entry.outcome is not Outcome.ANSWERED else ""
    yield f"{age(entry.asked_at)}{marks}: {safe_line(entry.question)}"
    yield f"    {safe_line(entry.reply, _EXCERPT)}{refused}"
    for source in entry.sources:
        page = f", p. {source.page}" if source.page is not None else ""
        yield f"    [{source.marker}] {safe_line(source.title, 80)}{page}"
