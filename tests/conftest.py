"""Fixtures for every test."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fakes.redis_server import BINARY, RedisServer, running

from retrieval.weights import packaged_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from bot.ports import State
    from bot.redis_embedded import EmbeddedState
    from retrieval.embedding import FastEmbedder


@pytest.fixture(scope="session")
def shared() -> Path:
    """The material beside the repository; tests that ask for it are skipped where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("the shared material is not here")
    return folder


@pytest.fixture(scope="session")
def models_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for models with the packaged one prepared; skips where none is packaged."""
    folder = tmp_path_factory.mktemp("models")
    if packaged_folder(folder, lambda _: None) is None:
        pytest.skip("no packaged weights are installed here")
    return folder


@pytest.fixture(scope="session")
def embedder(models_folder: Path) -> Iterator[FastEmbedder]:
    """The real embedding model."""
    from retrieval.embedding import FastEmbedder, ModelChoice  # noqa: PLC0415 - heavy, and most tests need no model

    model = asyncio.run(FastEmbedder.load(ModelChoice(cache=models_folder)))
    yield model
    asyncio.run(model.close())


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Redis that keeps nothing on the disk; tests that ask for it are skipped where none is installed.

    It serves the whole run: what a test keeps there has a namespace of its own.
    """
    if BINARY is None:
        pytest.skip("no redis-server is installed here")
    with running(RedisServer(tmp_path_factory.mktemp("redis"))) as server:
        yield server.url


@pytest.fixture
async def embedded_state() -> AsyncIterator[EmbeddedState]:
    """A fresh state inside the process, in memory alone."""
    from bot.redis_embedded import EmbeddedState  # noqa: PLC0415 - most tests need none

    state = await EmbeddedState.open(None)
    yield state
    await state.close()


@pytest.fixture(params=["embedded", "redis"])
async def state(request: pytest.FixtureRequest) -> AsyncIterator[State]:
    """A fresh state of each kind."""
    if request.param == "embedded":
        from bot.redis_embedded import EmbeddedState  # noqa: PLC0415 - most tests need none

        state: State = await EmbeddedState.open(None)
    else:
        from bot.redis_server import ServerState  # noqa: PLC0415 - as above

        state = await ServerState.open(request.getfixturevalue("redis_url"), f"test-{uuid.uuid4().hex[:12]}")
    yield state
    await state.close()
