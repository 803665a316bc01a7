from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from fakes.desk import Desk, open_desk

from retrieval.types import PUBLIC, Audience, Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from retrieval.search import SearchResult

HERONS = "Herons stand in shallow water and wait for fish."
OWLS = "Owls hunt mice at night."
STORKS = "Storks build their nests on chimneys."


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


async def search(desk: Desk, text: str, audience: Audience = PUBLIC, limit: int = 8) -> SearchResult:
    return await desk.searcher.search(Query(text=text, audience=audience, limit=limit))


def texts(result: SearchResult) -> list[str]:
    return [hit.chunk.text for hit in result.hits]


async def birds(desk: Desk) -> None:
    for name, text in (("herons.txt", HERONS), ("owls.txt", OWLS), ("storks.txt", STORKS)):
        await desk.add(name, text)


async def test_the_best_hit_says_why_it_was_found(desk: Desk) -> None:
    await birds(desk)
    result = await search(desk, "When do owls hunt mice?")
    best = result.hits[0]
    assert best.chunk.text == OWLS
    assert (best.dense_rank, best.bm25_rank) == (1, 1)
    assert best.cosine is not None
    assert best.cosine > 0
    assert best.bm25 is not None
    assert best.bm25 > 0
    assert [hit.score for hit in result.hits] == sorted((hit.score for hit in result.hits), reverse=True)
    assert result.evidence.sufficient


async def test_a_question_about_something_else_has_no_evidence(desk: Desk) -> None:
    await birds(desk)
    result = await search(desk, "Which tax applies to submarines?")
    assert result.hits
    assert not result.evidence.sufficient


@pytest.mark.parametrize("text", ["", "   ", "?!…", "🦉🦉🦉", "\x00", "\ud83e", "*" * 5_000])
async def test_a_question_without_words_finds_no_evidence(desk: Desk, text: str) -> None:
    await birds(desk)
    result = await search(desk, text)
    assert not result.evidence.sufficient
    assert all(hit.bm25_rank is None for hit in result.hits)


async def test_an_empty_library_has_no_hits(desk: Desk) -> None:
    result = await search(desk, "When do owls hunt?")
    assert result.hits == ()
    assert not result.evidence.sufficient


async def test_a_very_long_question_is_cut(desk: Desk) -> None:
    await birds(desk)
    result = await search(desk, "When do owls hunt mice at night? " + "submarine " * 50_000)
    assert result.hits[0].chunk.text == OWLS


async def test_only_what_the_audience_may_see_is_found(desk: Desk) -> None:
    await birds(desk)
    secret = "The owls of the red team hunt mice in the cellar."
    await desk.add("secret.txt", secret, audience=Audience.of("team:red"))
    for asker in (PUBLIC, Audience.asker("team:blue"), Audience.of("team")):
        assert secret not in texts(await search(desk, "What do the owls of the red team hunt?", asker))
    assert texts(await search(desk, "What do the owls of the red team hunt?", Audience.asker("team:red")))[0] == secret


async def test_what_one_may_not_see_is_no_evidence(desk: Desk) -> None:
    await desk.add("secret.txt", "The submarine tax is nine percent.", audience=Audience.of("team:red"))
    await birds(desk)
    assert not (await search(desk, "How high is the submarine tax?")).evidence.sufficient
    assert (await search(desk, "How high is the submarine tax?", Audience.asker("team:red"))).evidence.sufficient


async def test_copies_are_folded(desk: Desk) -> None:
    await birds(desk)
    await desk.add("copy.txt", f"{OWLS}\n")
    assert texts(await search(desk, "When do owls hunt mice?")).count(OWLS) == 1


async def test_a_hidden_original_does_not_fold_the_copy_that_one_may_see(desk: Desk) -> None:
    await desk.add("original.txt", OWLS, audience=Audience.of("team:red"))
    await desk.add("copy.txt", OWLS)
    (hit,) = (await search(desk, "When do owls hunt mice?")).hits
    assert hit.chunk.uri == "file:///copy.txt"


async def test_no_more_hits_than_asked_for(desk: Desk) -> None:
    await birds(desk)
    assert len((await search(desk, "birds", limit=2)).hits) == 2


def long_section(topic: str) -> str:
    """A section of several chunks, each sentence another."""
    return " ".join(
        f"The {topic} number {n} lives at lake {n * 7} with {n * 3} others and eats {n * 5} kinds of food."
        for n in range(1, 90)
    )


async def sections(desk: Desk) -> None:
    text = f"# Birds\n\n## Herons\n\n{long_section('heron')}\n\n## Owls\n\n{long_section('owl')}\n"
    await desk.add("birds.md", text)


async def test_a_hit_that_is_cut_off_gets_its_neighbours_in_the_section(desk: Desk) -> None:
    await sections(desk)
    result = await search(desk, "Where does owl number 45 live?", limit=1)
    best = result.hits[0]
    assert best.neighbours
    for other in best.neighbours:
        assert other.heading_path == best.chunk.heading_path
        assert abs(other.ordinal - best.chunk.ordinal) == 1
    assert len(best.passage) > len(best.chunk.text)


async def test_no_chunk_comes_twice(desk: Desk) -> None:
    await sections(desk)
    for question in ("owl number 45", "heron number 3", "owl", "kinds of food at lake 63"):
        hits = (await search(desk, question)).hits
        ids = [chunk.id for hit in hits for chunk in (hit.chunk, *hit.neighbours)]
        assert len(ids) == len(set(ids))


async def test_neighbours_are_not_taken_over_a_heading(desk: Desk) -> None:
    await desk.add("birds.md", f"# Birds\n\n## Herons\n\n{HERONS}\n\n## Owls\n\n{OWLS}\n")
    assert all(hit.neighbours == () for hit in (await search(desk, "When do owls hunt mice?")).hits)


async def test_a_document_that_is_gone_is_not_found(desk: Desk) -> None:
    await birds(desk)
    owls = await desk.add("owls.txt", OWLS)
    await desk.store.delete(owls)
    assert OWLS not in texts(await search(desk, "When do owls hunt mice?"))


@pytest.mark.parametrize("step", ["load", "terms"])
async def test_a_document_replaced_after_the_search_is_searched_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await birds(desk)
    newer = f"{OWLS} By day they sleep."
    ask = getattr(desk.store, step)
    replaced = asyncio.Event()

    async def ask_late(*given: object) -> object:
        if not replaced.is_set():
            replaced.set()
            await desk.add("owls.txt", newer)
        return await ask(*given)

    monkeypatch.setattr(desk.store, step, ask_late)
    result = await search(desk, "When do owls hunt mice?")
    assert texts(result)[0] == newer
    assert result.evidence.sufficient
