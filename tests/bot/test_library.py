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

    from retrieval.types import DocumentRecord

RED = Audience.of("team:red")


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    store = await EdgeStore.open(tmp_path / "library", IDENTITY)
    for age, title in enumerate(("Travel policy", "Travel policy 2024", "Garden", "handbook.pdf")):
        await store.replace(*document(title, ["A text."], age=age))
    await store.replace(*document("Secret plan", ["A text."], audience=RED, age=9))
    yield Library(store)
    await store.close()


async def titles(library: Library, audience: Audience | None = None) -> list[str]:
    return [record.title for record in await library.documents(audience)]


async def record(library: Library, title: str) -> DocumentRecord:
    return next(item for item in await library.documents(None) if item.title == title)


async def test_lists_what_the_audience_may_see_newest_first(library: Library) -> None:
    everyone = ["Travel policy", "Travel policy 2024", "Garden", "handbook.pdf"]
    assert await titles(library, Audience.asker()) == everyone
    assert await titles(library, Audience.asker("team:red")) == [*everyone, "Secret plan"]
    assert len(await titles(library)) == 5


@pytest.mark.parametrize("key", ["Garden", "garden", " GARDEN ", "file:///Garden"])
async def test_a_name_forgets_its_document(library: Library, key: str) -> None:
    gone = await library.forget(key, None)
    assert [item.title for item in gone.removed] == ["Garden"]
    assert "Garden" not in await titles(library)


async def test_an_id_or_its_beginning_forgets_its_document(library: Library) -> None:
    whole, short = await record(library, "Garden"), await record(library, "handbook.pdf")
    assert (await library.forget(whole.id, None)).removed == (whole,)
    assert (await library.forget(short.id[:8].upper(), None)).removed == (short,)


async def test_a_whole_title_is_not_taken_for_a_part_of_another(library: Library) -> None:
    assert [item.title for item in (await library.forget("travel policy", None)).removed] == ["Travel policy"]


@pytest.mark.parametrize("key", ["travel", "", "   ", "no such thing", "Garde"])
async def test_a_part_of_a_name_forgets_nothing(library: Library, key: str) -> None:
    before = await titles(library)
    assert (await library.forget(key, None)).removed == ()
    assert await titles(library) == before


async def test_a_part_of_a_name_tells_what_it_may_mean(library: Library) -> None:
    found = {item.title for item in (await library.forget("travel", None)).ambiguous}
    assert found == {"Travel policy", "Travel policy 2024"}


async def test_what_one_may_not_see_is_neither_found_nor_forgotten(library: Library) -> None:
    secret = await record(library, "Secret plan")
    for key in ("Secret plan", "secret", secret.id):
        gone = await library.forget(key, Audience.asker("team:blue"))
        assert (gone.removed, gone.ambiguous) == ((), ())
        assert await library.find(key, Audience.asker()) == []
    assert [item.title for item in await library.find("secret", Audience.asker("team:red"))] == ["Secret plan"]
