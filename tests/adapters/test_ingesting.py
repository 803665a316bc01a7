"""Folders into a library, real but for the embedding model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from fakes.desk import open_desk

from adapters.ingesting import count_gone, first_file, ingest_paths, verdict_dict, verdict_line
from bot.app import App
from bot.library import Library
from bot.settings import load_settings
from retrieval.types import PUBLIC, Audience
from retrieval.verdicts import Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bot.results import FileVerdict, JobProgress

TEAM = Audience.of("hr")


class Silent:
    def progress(self, name: str, progress: JobProgress) -> None:
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
    assert verdict_dict((await take(app, folder))["pay.md"])["verdict"] == "replaced"
    assert await shown(app) == {"Travel"}
    await take(app, folder, audience=PUBLIC)
    assert await shown(app) == {"Travel", "Pay bands"}


async def test_somebody_who_may_not_see_a_document_neither_changes_nor_names_it(app: App, folder: Path) -> None:
    await take(app, folder / "pay.md", audience=TEAM)
    verdict = (await take(app, folder, asker=PUBLIC))["pay.md"]
    assert verdict.failed
    assert "Pay bands" not in verdict_line(verdict)
    assert "for others" in verdict_line(verdict)
    verdict = (await take(app, folder, asker=Audience.asker("hr")))["pay.md"]
    assert verdict.verdict.outcome is Outcome.UNCHANGED
    assert await shown(app) == {"Travel"}


async def test_documents_whose_files_have_gone_are_counted_for_those_who_may_see_them(app: App, folder: Path) -> None:
    await take(app, folder / "pay.md", audience=TEAM)
    await take(app, folder)
    assert await count_gone(app, [str(folder)]) == 0
    for name in ("pay.md", "travel.md"):
        (folder / name).unlink()
    assert await count_gone(app, [str(folder)]) == 2
    assert await count_gone(app, [str(folder)], PUBLIC) == 1
    assert await count_gone(app, [str(folder.parent / "home")]) == 0
    assert await shown(app, Audience.asker("hr")) == {"Travel", "Pay bands"}


@pytest.mark.parametrize("name", ["a", "A", "link", "a.md"])
async def test_the_verdict_of_a_link_that_leads_nowhere_keeps_its_name(app: App, folder: Path, name: str) -> None:
    (folder / name).symlink_to("nowhere")
    line = verdict_line((await take(app, folder))[name])
    assert line.split()[:2] == ["skipped", f"{name}:"]


async def test_what_may_not_be_read_in_a_folder_is_refused(app: App, folder: Path) -> None:
    (folder / "pay.md").chmod(0)
    if os.access(folder / "pay.md", os.R_OK):
        pytest.skip("this user may read everything")
    (folder / "closed").mkdir(mode=0)
    (folder / "half").mkdir()
    (folder / "half" / "x.md").touch()
    (folder / "half").chmod(0o400)
    verdicts = await take(app, folder, folder / "closed" / "x.md", folder / "half" / "y.md")
    (folder / "closed").chmod(0o700)
    (folder / "half").chmod(0o700)
    told = {
        name: (verdict_dict(item)["verdict"], item.failed, "who owns" in item.verdict.reason)
        for name, item in verdicts.items()
    }
    refused = ("refused", True, True)
    assert told == dict.fromkeys(("pay.md", "closed", "x.md", "y.md"), refused) | {
        "travel.md": ("indexed", False, False)
    }


async def test_the_first_file_is_the_one_that_is_read_first(app: App, folder: Path) -> None:
    found = first_file([str(folder / "nothing.md"), str(folder)], app.settings)
    assert found is not None
    assert found.name == "pay.md"
    assert first_file([str(folder / "nothing.md")], app.settings) is None
    assert first_file([str(folder)], app.settings.model_copy(update={"max_file_megabytes": 0})) is None
