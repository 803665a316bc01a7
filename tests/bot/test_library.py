from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes.library import IDENTITY, document

from bot.library import Library
from retrieval.qdrant_edge import EdgeStore
from retrieval.types import Audience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TITLES = ("Travel policy", "Travel policy 2019", "Handbook")


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    store = await EdgeStore.open(tmp_path, IDENTITY)
    for title in TITLES:
        await store.replace(
            *document(title, ["text"], audience=Audience.of("hr" if title == "Handbook" else "everyone"))
        )
    yield Library(store)
    await store.close()


async def titles(library: Library) -> set[str]:
    return {record.title for record in await library.documents(None)}


@pytest.mark.parametrize("key", ["Travel policy", " travel POLICY ", "file:///Travel policy"])
async def test_a_whole_name_forgets_one_document(library: Library, key: str) -> None:
    forgotten = await library.forget(key, None)
    assert [record.title for record in forgotten.removed] == ["Travel policy"]
    assert await titles(library) == {"Travel policy 2019", "Handbook"}


async def test_an_id_or_its_beginning_forgets_one_document(library: Library) -> None:
    first, second, _ = await library.documents(None)
    assert (await library.forget(first.id, None)).removed
    assert (await library.forget(second.id[:8], None)).removed
    assert not (await library.forget(second.id[:7], None)).removed


@pytest.mark.parametrize(("key", "meant"), [("travel", 2), ("hand", 1), ("nothing", 0), ("", 0), ("  ", 0)])
async def test_a_part_of_a_name_only_tells_what_could_be_meant(library: Library, key: str, meant: int) -> None:
    forgotten = await library.forget(key, None)
    assert forgotten.removed == ()
    assert len(forgotten.ambiguous) == meant
    assert await titles(library) == set(TITLES)


async def test_nobody_finds_or_forgets_what_he_may_not_see(library: Library) -> None:
    outsider = Audience.asker("sales")
    assert await library.find("Handbook", outsider) == []
    forgotten = await library.forget("Handbook", outsider)
    assert (forgotten.removed, forgotten.ambiguous) == ((), ())
    assert "Handbook" in await titles(library)
