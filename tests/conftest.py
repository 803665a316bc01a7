"""Fixtures for every test."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from retrieval.weights import packaged_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

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
