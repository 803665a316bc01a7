"""Folders into a library, real but for the embedding model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes.desk import open_desk

from adapters.ingesting import FileVerdict, ingest_paths
from bot.app import App
from bot.library import Library
from bot.settings import load_settings
from retrieval.types import PUBLIC, Audience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from retrieval.ingestion import Progress

TEAM = Audience.of("hr")


class Silent:
    def progress(self, name: str, progress: Progress) -> None:
        pass

    def verdict(self, verdict: FileVerdict) -> None:
        pass


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with open_desk(tmp_path / "home") as desk:
        yield App(
            settings=load_settings(home=tmp_path / "home"),
            embedder=desk.embedder,
            store=desk.store,
            library=Library(desk.store),
            searcher=desk.searcher,
            ingestion=desk.ingestion,
            engine=desk.engine(),
            model=desk.extractive,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = tmp_path / "files"
    files.mkdir()
    (files / "pay.md").write_text("# Pay bands\n\nBand seven earns most.\n", encoding="utf-8")
    (files / "travel.md").write_text("# Travel\n\nTrips are approved by the head.\n", encoding="utf-8")
    return files


async def take(
    app: App, *paths: Path, audience: Audience | None = None, asker: Audience | None = None
) -> dict[str, FileVerdict]:
    verdicts = await ingest_paths(app, map(str, paths), audience, Silent(), asker)
    return {verdict.name: verdict for verdict in verdicts}


async def shown(app: App, asker: Audience = PUBLIC) -> set[str]:
    return {record.title for record in await app.library.documents(asker)}


async def test_a_folder_that_is_ingested_again_opens_nothing(app: App, folder: Path) -> None:
    await take(app, folder / "pay.md", audience=TEAM)
    await take(app, folder)
    assert await shown(app) == {"Travel"}
    (folder / "pay.md").write_text("# Pay bands\n\nBand eight earns most.\n", encoding="utf-8")
    assert (await take(app, folder))["pay.md"].word == "replaced"
    assert await shown(app) == {"Travel"}
    await take(app, folder, audience=PUBLIC)
    assert await shown(app) == {"Travel", "Pay bands"}


async def test_somebody_who_may_not_see_a_document_neither_changes_nor_names_it(app: App, folder: Path) -> None:
    await take(app, folder / "pay.md", audience=TEAM)
    verdict = (await take(app, folder, asker=PUBLIC))["pay.md"]
    assert verdict.failed
    assert "Pay bands" not in verdict.as_line()
    assert "for others" in verdict.as_line()
    assert (await take(app, folder, asker=Audience.asker("hr")))["pay.md"].word == "unchanged"
    assert await shown(app) == {"Travel"}
