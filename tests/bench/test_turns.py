"""The stress of `bench/turns.py` in small, and a process killed in mid-answer; without the figures that are times."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.dispatching import eventually
from fakes.redis_server import BINARY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

BENCH = Path(__file__).resolve().parents[2] / "bench"
pytestmark = pytest.mark.skipif(BINARY is None, reason="no redis-server is installed here")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("turns")
    for name in ("turns", "measuring.turn_process", "measuring.chat_server"):
        sys.modules.pop(name, None)


@pytest.mark.timeout(300)
async def test_nothing_is_lost_or_doubled_when_processes_are_killed_and_redis_restarts(bench: ModuleType) -> None:
    given = argparse.Namespace(seed=7, processes=2, model_ms=50.0, kill_every=3.0, conversations=0)
    seen = await bench.stress(given, 250, kill=True, restart=True)
    assert (seen.lost, seen.twice, seen.without_sources, seen.disordered, seen.refused) == (0, 0, 0, 0, 0)
    assert seen.deliveries > seen.events


@pytest.mark.timeout(120)
async def test_a_question_whose_process_is_killed_in_mid_answer_is_answered_once(
    bench: ModuleType, redis_url: str
) -> None:
    chat_server = importlib.import_module("measuring.chat_server")
    server = chat_server.ChatServer(random.Random(1))  # noqa: S311 - no secret
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    bots = bench.Bots(1, [str(port), redis_url, "2"])
    asked = chat_server.message("C1", 0, 1, 0)
    try:
        await bots.start()
        await server.deliver(asked)  # acknowledged: it will not be delivered again
        await asyncio.sleep(0.5)
        assert not server.posts, "it is being answered"
        bots.processes.pop().kill()
        await bots.start()
        await eventually(lambda: "sources" in server.posts[asked.turn_id], 60)
        await asyncio.sleep(2.5)  # a second answer would have come by now
        assert server.posts[asked.turn_id] == ["answer", "sources"]
    finally:
        await bots.stop()
        listener.close()
