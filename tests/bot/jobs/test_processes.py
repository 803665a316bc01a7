"""Jobs outlive the processes that run them, and a Redis that goes away."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from fakes.desk import open_desk
from fakes.job_shop import LIMITS, Shop, eventually, is_over, open_shop, outcomes, request_for
from fakes.qdrant_api import QdrantApi
from fakes.redis_server import BINARY, DIES_WITH_PARENT, RedisServer, running
from running_footnote import COMMAND, environment, footnote

from adapters.local_fetching import local_attachment
from bot.jobs import JobLimits, JobRequest
from bot.jobs.records import Attempt, Records
from bot.redis_embedded import EmbeddedState
from bot.redis_server import ServerState
from bot.results import JobState
from retrieval.points import CHUNK_TYPE, RECORD_TYPE
from retrieval.verdicts import Step

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from fakes.desk import Desk

    from bot.results import JobReport


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


async def test_the_embedded_state_keeps_jobs_for_the_next_start(desk: Desk, tmp_path: Path) -> None:
    patient = JobLimits(lease_seconds=300)
    state = await EmbeddedState.open(tmp_path / "state")
    async with open_shop(desk, state, limits=patient) as shop:
        waiting = await shop.ask("j1", "a")
        running = await shop.ask("j2", "b", by="slack:T1:U2")
        # As a process that died leaves it: begun, under a lease that lasts.
        assert isinstance(await Records(state).begin(running, 300), Attempt)
    await state.close()
    state = await EmbeddedState.open(tmp_path / "state")
    async with open_shop(desk, state, limits=patient) as shop, shop.jobs.worker():
        assert (await shop.end(waiting)).attempts == 1
        ended = await shop.end(running)
    await state.close()
    assert (ended.state, ended.attempts) == (JobState.DONE, 2)


async def test_without_a_worker_a_shared_job_says_what_it_waits_for(desk: Desk, redis_url: str) -> None:
    state = await ServerState.open(redis_url, f"test-{uuid.uuid4().hex[:12]}")
    async with (
        open_shop(desk, state, redis_url=redis_url) as asking,
        open_shop(desk, state, redis_url=redis_url) as two,
    ):
        job = await asking.ask("j1", "a")
        report = await asking.jobs.report(job)
        assert report is not None
        assert "`footnote worker`" in report.reason
        local = await asking.ask("j2", "a", platform="terminal:ann@here", by="ann")
        report = await asking.jobs.report(local)
        assert report is not None
        assert "where the files lie" in report.reason
        async with two.jobs.worker():
            assert (await asking.end(job)).state is JobState.DONE
            assert (await asking.end(local)).state is JobState.DONE
    await state.close()


async def test_files_of_another_host_are_left_to_it(
    desk: Desk, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = await ServerState.open(redis_url, f"test-{uuid.uuid4().hex[:12]}")
    async with open_shop(desk, state, redis_url=redis_url) as here, here.jobs.worker():
        with monkeypatch.context() as patched:
            patched.setattr(socket, "gethostname", lambda: "elsewhere")
            async with open_shop(desk, state, redis_url=redis_url) as there:
                far = await there.ask("far", "a", platform="terminal:ann@elsewhere")
        near = await here.ask("near", "b", platform="terminal:bob@here", by="bob")
        assert (await here.end(near)).state is JobState.DONE
        await asyncio.sleep(2 * LIMITS.lease_seconds)
        report = await here.jobs.report(far)
        assert report is not None
        assert report.state is JobState.WAITING
        assert here.shelf.fetched == ["b"]
    await state.close()


@pytest.mark.skipif(BINARY is None, reason="no redis-server is installed here")
async def test_a_job_goes_on_when_redis_was_away(desk: Desk, tmp_path: Path) -> None:
    with running(RedisServer(tmp_path / "redis", append_only=True)) as server:
        state = await ServerState.open(server.url, timeout=0.5)
        async with open_shop(desk, state, redis_url=server.url) as shop, shop.jobs.worker():
            shop.shelf.hold("b")
            job = await shop.ask("j1", "a", "b")
            await shop.shelf.asked_for("b")
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(0.5)
            shop.shelf.let_go()
            await eventually(shop.shelf.is_idle)
            await asyncio.to_thread(server.start)
            report = await shop.end(job)
            # The worker is there for the next one as well.
            assert (await shop.end(await shop.ask("j2", "c"))).state is JobState.DONE
        await state.close()
    assert outcomes(report) == [("a", "indexed"), ("b", "indexed")]
    assert (report.state, report.attempts) == (JobState.DONE, 1)


# ------------------------------------------------------------------------------------------------ real workers
class Workers:
    """Real `footnote worker` processes on one Redis and one library."""

    def __init__(self, folder: Path, redis_url: str, qdrant_url: str) -> None:
        self.folder = folder
        self.namespace = f"test-{uuid.uuid4().hex[:12]}"
        self.variables = {
            "REDIS_URL": redis_url,
            "QDRANT_URL": qdrant_url,
            "FOOTNOTE_STATE_NAMESPACE": self.namespace,
            "FOOTNOTE_LEASE_SECONDS": "1",
            "FOOTNOTE_DRAIN_SECONDS": "0.2",
            "FOOTNOTE_LOG_LEVEL": "info",
        }
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*DIES_WITH_PARENT, COMMAND, "--home", self.folder, "worker", "--json"],
            env=environment(**self.variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
        )
        self.processes.append(process)
        return process


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantApi]:
    async with QdrantApi() as server:
        yield server


@pytest.fixture
def workers(models_folder: Path, redis_url: str, qdrant: QdrantApi, tmp_path: Path) -> Iterator[Workers]:
    (tmp_path / "models").symlink_to(models_folder)
    made = Workers(tmp_path, redis_url, qdrant.url)
    yield made
    for process in made.processes:
        process.kill()
        process.communicate()


@pytest.fixture
async def asking(workers: Workers, desk: Desk, redis_url: str) -> AsyncIterator[Shop]:
    """A process that asks for jobs and runs none."""
    state = await ServerState.open(redis_url, workers.namespace)
    async with open_shop(desk, state, redis_url=redis_url) as shop:
        yield shop
    await state.close()


@pytest.fixture
def request_(tmp_path: Path) -> JobRequest:
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("empty1", "empty2", "hours", "travel"):
        text = "" if name.startswith("empty") else f"# About {name}\n\nThis is all there is to say of {name}.\n"
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    request = request_for("j1", platform="terminal:ann@here")
    return replace(request, attachments=(local_attachment(str(folder)),))


async def test_what_a_killed_worker_had_not_done_is_done_by_another_and_nothing_twice(
    workers: Workers, asking: Shop, qdrant: QdrantApi, request_: JobRequest
) -> None:
    first = workers.start()
    await asking.jobs.start(request_)
    await asking.until(request_.id, lambda report: report.state is JobState.RUNNING)
    qdrant.delay = 0.5
    report = await asking.until(request_.id, is_storing)
    os.kill(first.pid, signal.SIGKILL)
    qdrant.delay = 0
    workers.start()
    ended = await asking.until(request_.id, is_over)
    assert (ended.state, ended.attempts) == (JobState.DONE, 2)
    assert outcomes(report) == [("empty1", "refused"), ("empty2", "refused")]
    assert outcomes(ended) == [*outcomes(report), ("hours", "indexed"), ("travel", "indexed")]
    points, _ = await qdrant.local.scroll("footnote", limit=100, with_payload=True)
    payloads = [point.payload or {} for point in points]
    current = {payload["version"] for payload in payloads if payload["type"] == RECORD_TYPE}
    assert len(current) == 2
    assert sum(payload["type"] == CHUNK_TYPE and payload["version"] in current for payload in payloads) == 2


async def test_a_worker_that_is_asked_to_stop_gives_its_job_back(
    workers: Workers, asking: Shop, qdrant: QdrantApi, request_: JobRequest
) -> None:
    worker = workers.start()
    await asking.jobs.start(request_)
    await asking.until(request_.id, lambda report: report.state is JobState.RUNNING)
    qdrant.delay = 0.5
    await asking.until(request_.id, is_storing)
    worker.send_signal(signal.SIGTERM)
    out, err = await asyncio.to_thread(worker.communicate, timeout=30)
    assert worker.returncode == 0, err
    assert json.loads(out) == {"jobs": 0}
    assert b"state=waiting" in err
    assert b"all there is" not in err
    report = await asking.jobs.report(request_.id)
    assert report is not None
    assert (report.state, len(report.verdicts)) == (JobState.WAITING, 2)


def test_a_worker_needs_what_it_shares(tmp_path: Path) -> None:
    alone = footnote("worker", home=tmp_path)
    assert (alone.code, alone.out) == (2, "")
    assert "REDIS_URL and QDRANT_URL are not set" in alone.err
    assert "footnote run" in alone.err
    half = footnote("worker", "--json", home=tmp_path, REDIS_URL="redis://localhost:1/0")
    assert half.code == 2
    assert half.json["error"].startswith("QDRANT_URL is not set")


def is_storing(report: JobReport) -> bool:
    return report.progress is not None and report.progress.step is Step.STORING
