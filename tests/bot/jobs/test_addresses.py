"""The queue reaches every kind of Redis that the state does."""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from fakes.desk import open_desk
from fakes.job_shop import open_shop
from fakes.redis_server import BINARY, OPENSSL, RedisServer, running

from bot.redis_server import ServerState
from bot.results import JobState

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(BINARY is None, reason="no redis-server is installed here")
CLIENT = shutil.which("redis-cli")


async def ingests(url: str, folder: Path) -> None:
    state = await ServerState.open(url)
    async with open_desk(folder) as desk, open_shop(desk, state, redis_url=url) as shop, shop.jobs.worker():
        running_job = await shop.ask("j1", "a")
        parked = await shop.ask("j2", "b")
        local = await shop.ask("j3", "c", platform="terminal:ann@here", by="ann")
        for job in (running_job, parked, local):
            assert (await shop.end(job)).state is JobState.DONE
    await state.close()


async def test_with_a_password_and_over_a_socket(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path / "redis", password="s3cret")) as server:
        await ingests(server.url, tmp_path / "one")
        await ingests(server.socket_url, tmp_path / "two")


@pytest.mark.skipif(OPENSSL is None, reason="no openssl is installed here")
async def test_over_tls(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path / "redis", tls=True)) as server:
        await ingests(server.url, tmp_path)


@pytest.mark.skipif(CLIENT is None, reason="no redis-cli is installed here")
async def test_on_a_cluster(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path / "redis", options="--cluster-enabled yes")) as server:
        client = [CLIENT or "", "-p", str(server.port), "cluster"]
        subprocess.run([*client, "addslots", *map(str, range(16_384))], check=True, capture_output=True)  # noqa: ASYNC221, S603 - a fixed command
        end = time.monotonic() + 20
        while "cluster_state:ok" not in subprocess.check_output([*client, "info"], text=True):  # noqa: ASYNC221, S603 - as above
            assert time.monotonic() < end
        await ingests(server.url.replace("redis://", "redis+cluster://"), tmp_path)
