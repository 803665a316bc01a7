"""Jobs on both kinds of state: what is asked for is done once, told in order, and ends in one way of a few."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from fakes.desk import open_desk
from fakes.job_shop import LIMITS, Shelf, Shop, eventually, is_over, open_shop, outcomes, request_for

from bot.errors import PlatformBusyError, PlatformError, PlatformRefusedError
from bot.jobs import endings, running
from bot.jobs.records import Attempt, Records
from bot.results import JobState
from retrieval.types import PUBLIC, SourceFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from fakes.desk import Desk

    from bot.jobs import JobLimits
    from bot.ports import State
    from retrieval.ports import IndexedChunk
    from retrieval.types import DocumentRecord

LONG = "".join(f"## Part {n}\n\nThis is what part {n} says of the matter.\n\n" for n in range(140))
"""More chunks than are embedded together, so that the document does not wait for the next one."""
Opening = "Callable[..., AbstractAsyncContextManager[Shop]]"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


@pytest.fixture
def another(state: State, desk: Desk, request: pytest.FixtureRequest) -> Opening:
    """Opens the jobs of one more process."""
    url = request.getfixturevalue("redis_url") if state.shared else None

    def another(shelf: Shelf | None = None, limits: JobLimits = LIMITS) -> AbstractAsyncContextManager[Shop]:
        return open_shop(desk, state, shelf, limits, url)

    return another


@pytest.fixture
async def shop(another: Opening) -> AsyncIterator[Shop]:
    async with another() as shop:
        yield shop


async def test_a_job_tells_a_verdict_for_each_document_in_order(shop: Shop) -> None:
    async with shop.jobs.worker():
        report = await shop.end(await shop.ask("j1", "b", "missing", "a"))
    assert (report.state, report.attempts, report.reason) == (JobState.DONE, 1, "")
    assert outcomes(report) == [("b", "indexed"), ("missing", "refused"), ("a", "indexed")]
    assert await shop.titles() == {"a", "b"}
    assert not await shop.jobs.any_open()


async def test_progress_is_shown_while_a_document_is_worked_on(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = shop.desk.embedder.embed_passages
    go = asyncio.Event()

    async def slow(texts: Sequence[str]) -> object:
        await go.wait()
        return await embed(texts)

    monkeypatch.setattr(shop.desk.embedder, "embed_passages", slow)
    async with shop.jobs.worker():
        job = await shop.ask("j1", "a")
        report = await shop.until(job, lambda report: report.progress is not None)
        assert report.progress is not None
        assert (report.progress.name, report.progress.total) == ("a.md", 1)
        go.set()
        assert (await shop.end(job)).progress is None


async def test_starting_twice_is_one_job(shop: Shop, another: Opening) -> None:
    async with shop.jobs.worker(), another() as other:
        shop.shelf.hold("a")
        job = await shop.ask("j1", "a")
        await shop.shelf.asked_for("a")
        assert (await shop.jobs.start(request_for("j1", "a"))).state is JobState.RUNNING
        assert (await other.jobs.start(request_for("j1", "a"))).state is JobState.RUNNING
        shop.shelf.let_go()
        ended = await shop.end(job)
        assert await shop.jobs.start(request_for("j1", "a")) == ended
    assert shop.shelf.fetched == ["a"]
    assert ended.attempts == 1


async def test_several_may_watch_and_from_other_processes(shop: Shop, another: Opening) -> None:
    async with shop.jobs.worker(), another() as other:
        shop.shelf.hold("a")
        job = await shop.ask("j1", "a")
        async with asyncio.TaskGroup() as group:
            ends = [group.create_task(watching.end(job)) for watching in (shop, other, other)]
            await shop.shelf.asked_for("a")
            shop.shelf.let_go()
        assert len({end.result() for end in ends}) == 1
        assert (await shop.end(job)).state is JobState.DONE
        assert len(shop.seen) == 1  # one that is over is told once


async def test_nothing_comes_of_a_job_that_there_is_not(shop: Shop) -> None:
    assert await shop.jobs.report(request_for("none").id) is None
    assert [report async for report in shop.jobs.watch(request_for("none").id)] == []
    assert not await shop.jobs.cancel(request_for("none").id)


# ------------------------------------------------------------------------------------------------ cancelling
async def test_a_waiting_job_is_cancelled_at_once_and_never_runs(shop: Shop) -> None:
    job = await shop.ask("j1", "a")
    assert await shop.jobs.cancel(job)
    assert (await shop.end(job)).state is JobState.CANCELLED
    async with shop.jobs.worker():
        assert (await shop.end(await shop.ask("j2", "b"))).state is JobState.DONE
    assert shop.shelf.fetched == ["b"]
    assert not await shop.jobs.cancel(job)


async def test_a_running_job_is_cancelled_from_another_process_and_what_it_did_stays(
    shop: Shop, another: Opening
) -> None:
    shop.shelf.texts["a"] = LONG
    shop.shelf.hold("b")
    async with shop.jobs.worker(), another() as other:
        job = await shop.ask("j1", "a", "b")
        await shop.shelf.asked_for("b")
        async with asyncio.timeout(5):
            assert await other.jobs.cancel(job)
            report = await other.end(job)
        assert report.state is JobState.CANCELLED
        assert outcomes(report) == [("a", "indexed")]
        assert shop.shelf.running == 0
        assert not await shop.jobs.cancel(job)
        # The place is free again, and the author's next job runs.
        assert (await shop.end(await shop.ask("j2", "c"))).state is JobState.DONE


async def test_what_was_stored_before_a_cancellation_is_listed_though_its_verdict_never_came(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, reached = shop.desk.store.replace, asyncio.Event()

    async def only_the_first(record: DocumentRecord, chunks: Sequence[IndexedChunk]) -> None:
        if record.title == "b":
            reached.set()
            await asyncio.Event().wait()
        await replace(record, chunks)

    monkeypatch.setattr(shop.desk.store, "replace", only_the_first)
    async with shop.jobs.worker():
        job = await shop.ask("j1", "a", "b", "c")
        await reached.wait()
        await shop.jobs.cancel(job)
        assert outcomes(await shop.end(job)) == [("a", "indexed")]
    assert await shop.titles() == {"a"}


# ------------------------------------------------------------------------------------------------ limits
async def test_a_job_that_takes_too_long_is_stopped_with_a_sentence(another: Opening) -> None:
    async with another(limits=running_limits(seconds=0.5)) as shop, shop.jobs.worker():
        shop.shelf.hold("a")
        report = await shop.end(await shop.ask("j1", "a"))
    assert report.state is JobState.FAILED
    assert "longer than 0.5 seconds (FOOTNOTE_JOB_SECONDS)" in report.reason


async def test_no_more_run_at_once_than_the_process_may(shop: Shop) -> None:
    names = ["a", "b", "c", "d", "e"]
    shop.shelf.hold(*names)
    async with shop.jobs.worker():
        jobs = [await shop.ask(f"job-{name}", name, by=f"slack:T1:{name}") for name in names]
        for _ in range(2):
            await shop.shelf.asked_for("a")
            await shop.shelf.asked_for("b")
        await asyncio.sleep(0.5)
        assert sorted(shop.shelf.fetched) == ["a", "b"]
        shop.shelf.let_go()
        assert {(await shop.end(job)).state for job in jobs} == {JobState.DONE}
    assert shop.shelf.most_running == 2


async def test_somebodys_many_jobs_do_not_hold_up_another_persons_one(shop: Shop) -> None:
    names = [f"a{n}" for n in range(10)]
    shop.shelf.hold("a0")
    async with shop.jobs.worker():
        many = [await shop.ask(f"many-{name}", name, by="slack:T1:A") for name in names]
        await shop.shelf.asked_for("a0")
        assert (await shop.end(await shop.ask("one", "b", by="slack:T1:B"))).state is JobState.DONE
        assert shop.shelf.fetched == ["a0", "b"]
        shop.shelf.let_go()
        assert {(await shop.end(job)).state for job in many} == {JobState.DONE}
    assert sorted(shop.shelf.fetched) == sorted(["b", *names])


async def test_a_job_without_end_is_stopped_and_what_it_did_is_listed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST_DOCUMENTS", 2)
    monkeypatch.setattr(endings, "MOST_DOCUMENTS", 2)
    async with shop.jobs.worker():
        report = await shop.end(await shop.ask("j1", "a", "missing", "b"))
    assert report.state is JobState.FAILED
    assert "more than 2 documents" in report.reason


async def test_when_too_many_are_open_no_more_are_taken(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.jobs.jobs.MOST_OPEN", 1)
    await shop.ask("j1", "a")
    report = await shop.jobs.start(request_for("j2", "b"))
    assert (report.state, await shop.jobs.report(report.id)) == (JobState.FAILED, None)
    assert "Try again" in report.reason
    assert (await shop.jobs.start(request_for("j1", "a"))).state is JobState.WAITING


# ------------------------------------------------------------------------------------------------ trying again
async def test_what_may_get_better_is_tried_again(shop: Shop) -> None:
    shop.shelf.errors += [PlatformError("Slack does not answer."), PlatformBusyError("Slack is busy.", retry_after=0.2)]
    async with shop.jobs.worker():
        job = await shop.ask("j1", "a")
        waiting = await shop.until(job, lambda report: bool(report.reason))
        report = await shop.end(job)
    assert waiting.state is JobState.WAITING
    assert waiting.reason.startswith("Slack ")
    assert (report.state, report.attempts, report.reason) == (JobState.DONE, 3, "")


async def test_what_does_not_get_better_ends_with_its_sentence(shop: Shop) -> None:
    shop.shelf.errors += [PlatformError("Slack does not answer.")] * 4
    async with shop.jobs.worker():
        report = await shop.end(await shop.ask("j1", "a"))
    assert (report.state, report.attempts) == (JobState.FAILED, 4)
    assert report.reason.startswith("Slack does not answer. ")


async def test_what_the_platform_refuses_is_not_tried_again(shop: Shop) -> None:
    shop.shelf.errors.append(PlatformRefusedError("Footnote may not read this channel."))
    async with shop.jobs.worker():
        report = await shop.end(await shop.ask("j1", "a"))
    assert (report.state, report.attempts) == (JobState.FAILED, 1)


async def test_a_document_that_fails_on_our_side_is_tried_again(shop: Shop) -> None:
    shop.desk.embedder.fail = "b"
    shop.shelf.texts["a"] = LONG
    async with shop.jobs.worker():
        job = await shop.ask("j1", "a", "b", "c")
        await shop.until(job, lambda report: bool(report.reason))
        shop.desk.embedder.fail = None
        report = await shop.end(job)
    assert outcomes(report) == [("a", "indexed"), ("b", "indexed"), ("c", "indexed")]
    assert shop.shelf.fetched.count("a") == 1  # its verdict is kept; it is not even fetched again


async def test_a_document_that_fails_for_good_does_not_keep_the_others_out(shop: Shop) -> None:
    shop.desk.embedder.fail = "b"
    shop.shelf.texts |= {"a": LONG, "b": LONG + "b", "c": LONG}
    async with shop.jobs.worker():
        report = await shop.end(await shop.ask("j1", "a", "b", "c"))
    assert (report.state, report.attempts) == (JobState.DONE, 4)
    assert outcomes(report) == [("a", "indexed"), ("b", "failed"), ("c", "indexed")]


async def test_a_fault_of_ours_ends_with_an_error_id_and_no_quotation(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.shelf.errors.append(ValueError("words of a document"))
    async with shop.jobs.worker():
        report = await shop.end(await shop.ask("j1", "a"))
    assert report.state is JobState.FAILED
    assert "error " in report.reason
    assert "words" not in report.reason


# ------------------------------------------------------------------------------------------------ resuming
async def test_a_job_that_cannot_end_in_time_goes_back_and_the_next_process_goes_on(another: Opening) -> None:
    async with another() as first:
        first.shelf.texts["a"] = LONG
        first.shelf.hold("b")
        async with first.jobs.worker():
            job = await first.ask("j1", "a", "b", "c")
            await first.shelf.asked_for("b")
        report = await first.jobs.report(job)
        assert report is not None
        assert (report.state, outcomes(report)) == (JobState.WAITING, [("a", "indexed")])
    async with another() as second, second.jobs.worker():
        report = await second.end(job)
        assert second.shelf.fetched == ["b", "c"]
    assert (report.state, report.attempts) == (JobState.DONE, 2)
    assert outcomes(report) == [("a", "indexed"), ("b", "indexed"), ("c", "indexed")]


async def test_what_a_dead_process_stored_without_saying_so_is_not_told_as_unchanged(shop: Shop) -> None:
    request = request_for("j1", "a", "b")
    records = Records(shop.state)
    await records.create(request)
    await records.note_open(request)
    assert isinstance(await records.begin(request.id, 0.05), Attempt)
    text = b"# a\n\nThis is what a says.\n"
    await shop.desk.ingestion.ingest(
        SourceFile(uri=request.attachments[0].uri, name="a.md", data=text), audience=PUBLIC, by="Ann"
    )
    shop.shelf.texts["a"] = text.decode()
    await asyncio.sleep(0.1)
    async with shop.jobs.worker():
        report = await shop.end(request.id)
    assert outcomes(report) == [("a", "indexed"), ("b", "indexed")]
    assert report.attempts == 2


async def test_a_job_that_ends_its_process_three_times_is_given_up(shop: Shop) -> None:
    request = request_for("j1", "a")
    records = Records(shop.state)
    await records.create(request)
    await records.note_open(request)
    for _ in range(3):
        assert isinstance(await records.begin(request.id, 0.05), Attempt)
        await asyncio.sleep(0.1)
    async with shop.jobs.worker():
        report = await shop.end(request.id)
    assert report.state is JobState.FAILED
    assert "3 times" in report.reason
    assert shop.shelf.fetched == []


async def test_an_attempt_that_was_taken_over_writes_nothing_more(shop: Shop) -> None:
    records = Records(shop.state)
    shop.shelf.hold("a")
    async with shop.jobs.worker():
        job = await shop.ask("j1", "a")
        await shop.shelf.asked_for("a")
        await records.free(job)
        await asyncio.sleep(0.6)
        # Nobody took it: the attempt goes on, with its lease again.
        assert await records.begin(job, 5) == "busy"
        await records.free(job)
        # Before its next saving, another process takes it.
        assert isinstance(await records.begin(job, 5), Attempt)
        await eventually(shop.shelf.is_idle)
        report = await shop.jobs.report(job)
    assert report is not None
    assert (report.state, report.attempts) == (JobState.RUNNING, 2)


async def test_a_record_that_cannot_be_read_is_dropped_and_the_job_can_be_asked_for_anew(shop: Shop) -> None:
    job = await shop.ask("j1", "a")
    await shop.state.hset(shop.state.key(job, "job"), {"request": "{"})
    async with shop.jobs.worker():
        assert await shop.jobs.report(job) is None
        await eventually(shop.is_idle)
        await shop.state.hset(shop.state.key(job, "job"), {"request": "{", "state": "waiting"})
        assert (await shop.jobs.start(request_for("j1", "b"))).state is not JobState.FAILED
        assert (await shop.end(job)).state is JobState.DONE
    assert shop.shelf.fetched == ["b"]


async def test_documents_of_a_platform_that_nobody_knows_are_refused(embedded_state: State, desk: Desk) -> None:
    async with open_shop(desk, embedded_state) as shop, shop.jobs.worker():
        report = await shop.end(await shop.ask("j1", "a", platform="pigeon:1"))
    assert outcomes(report) == [("a", "refused")]
    assert "cannot be fetched" in report.verdicts[0].verdict.reason


async def test_leaving_a_watch_early_leaves_the_job_running(shop: Shop) -> None:
    async with shop.jobs.worker():
        job = await shop.ask("j1", "a")
        async with aclosing(shop.jobs.watch(job)) as reports:
            async for _ in reports:
                break
        await shop.until(job, is_over)


def running_limits(**changed: float) -> JobLimits:
    from dataclasses import replace  # noqa: PLC0415 - for this alone

    return replace(LIMITS, **changed)  # type: ignore[arg-type] # some limits are whole numbers
