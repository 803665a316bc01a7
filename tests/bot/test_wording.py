"""The words for what becomes of documents and jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.messages import JobId
from bot.results import FileVerdict, JobProgress, JobReport, JobState
from bot.wording import job_text, progress_text, verdict_summary, verdict_text, verdict_word
from retrieval.verdicts import Outcome, Step, Verdict

INGESTED = FileVerdict(
    name="handbook.pdf",
    verdict=Verdict(outcome=Outcome.INDEXED, uri="u", title="The handbook", pages=1, chunks=1_200),
)
GONE = FileVerdict(
    name="a.md", verdict=Verdict(outcome=Outcome.REFUSED, uri="u", title="a.md", reason="a.md is gone. Check the path.")
)
SKIPPED = replace(GONE, name="photo", skipped=True)
REPORT = JobReport(id=JobId("j"), state=JobState.WAITING)


def test_a_verdict_says_the_name_once() -> None:
    assert verdict_text(INGESTED) == "handbook.pdf “The handbook” (1 page, 1,200 chunks)"
    assert verdict_text(replace(INGESTED, name="The handbook.pdf")) == "The handbook.pdf (1 page, 1,200 chunks)"
    assert verdict_text(GONE) == "a.md is gone. Check the path."
    assert verdict_text(SKIPPED) == "photo: a.md is gone. Check the path."


def test_every_outcome_has_a_word_that_fits_the_column() -> None:
    items = [FileVerdict(name="a", verdict=replace(GONE.verdict, outcome=outcome)) for outcome in Outcome]
    words = {verdict_word(item) for item in (*items, SKIPPED)}
    assert len(words) == len(Outcome) + 1
    assert max(map(len, words)) <= 9


def test_a_summary_counts_what_there_is() -> None:
    assert verdict_summary([SKIPPED, GONE, INGESTED, INGESTED]) == "4 files: 2 ingested, 1 refused, 1 skipped."
    assert verdict_summary([GONE]) == "1 file: 1 refused."
    assert verdict_summary([]).startswith("No files")


def test_progress_counts_chunks_only_while_embedding() -> None:
    assert progress_text(JobProgress(name="a.pdf", step=Step.READING)) == "a.pdf: reading"
    embedding = JobProgress(name="a.pdf", step=Step.EMBEDDING, done=1_000, total=1_200, pages=40)
    assert progress_text(embedding) == "a.pdf: embedding, 40 pages, 1,000 of 1,200 chunks"
    assert progress_text(replace(embedding, step=Step.STORING)) == "a.pdf: storing, 40 pages"


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (REPORT, "Waiting."),
        (replace(REPORT, reason="It waits for a worker."), "It waits for a worker."),
        (replace(REPORT, state=JobState.RUNNING), "Working."),
        (
            replace(REPORT, state=JobState.RUNNING, progress=JobProgress(name="a.md", step=Step.READING)),
            "a.md: reading",
        ),
        (replace(REPORT, state=JobState.DONE, verdicts=(GONE,)), "1 file: 1 refused."),
        (
            replace(REPORT, state=JobState.CANCELLED, verdicts=(INGESTED,)),
            "Cancelled. What was finished before stays. 1 file: 1 ingested.",
        ),
        (replace(REPORT, state=JobState.FAILED, reason="It took too long."), "It took too long."),
    ],
)
def test_a_job_in_a_line(report: JobReport, text: str) -> None:
    assert job_text(report) == text
