"""What a fetcher brings goes into the library, and the verdicts come in its order."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from fakes.desk import open_desk

from bot.errors import PlatformError
from bot.ingesting import IngestionRun
from bot.ports import Fetched, Unread
from retrieval.types import SourceFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from fakes.desk import Desk

    from bot.results import JobProgress

LONG = "".join(f"## Part {n}\n\nThis is what part {n} says of the matter.\n\n" for n in range(140))


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as desk:
        yield desk


def document(name: str, text: str = "# Title\n\nSome words.\n", *, named: bool = True) -> Fetched:
    return Fetched(source=SourceFile(uri=f"file:///{name}", name=name, data=text.encode()), named=named)


async def found(*items: Fetched | Unread | Exception) -> AsyncGenerator[Fetched | Unread]:
    for item in items:
        if isinstance(item, Exception):
            raise item
        yield item


def run_of(desk: Desk, *items: Fetched | Unread | Exception, told: list[JobProgress] | None = None) -> IngestionRun:
    report = (lambda _: None) if told is None else told.append
    return IngestionRun(desk.ingestion, found(*items), audience=None, asker=None, by="tester", report=report)


async def test_verdicts_keep_the_order_whatever_ends_first(desk: Desk) -> None:
    told: list[JobProgress] = []
    gone = Unread(uri="file:///b", name="b.md", reason="b.md is gone.")
    left = Unread(uri="file:///c", name="c", reason="A link that leads nowhere.", skipped=True)
    binary = document("d.bin", "\0\1\2", named=False)
    run = run_of(desk, document("a.md"), gone, left, binary, document("e.bin", "\0\1\2"), told=told)
    verdicts = [item async for item in run.verdicts()]
    assert [(item.name, str(item.verdict.outcome), item.skipped, item.failed) for item in verdicts] == [
        ("a.md", "indexed", False, False),
        ("b.md", "refused", False, True),
        ("c", "refused", True, False),
        ("d.bin", "refused", True, False),
        ("e.bin", "refused", False, True),
    ]
    assert run.unsettled == ()
    assert {progress.name for progress in told} == {"a.md", "d.bin", "e.bin"}


async def test_leaving_early_tells_what_was_begun(desk: Desk) -> None:
    run = run_of(desk, document("a.md", LONG), document("b.md", LONG), document("c.md"))
    async with aclosing(run.verdicts()) as verdicts:
        async for _ in verdicts:
            break
    assert [begun.name for begun in run.unsettled] == []
    assert await desk.store.count(None) == 1


async def test_what_the_fetcher_raises_comes_through_and_what_was_told_stays(desk: Desk) -> None:
    run = run_of(desk, document("a.md", LONG), document("b.md"), PlatformError("The platform is away."))
    told: list[str] = []

    async def listen() -> None:
        async for item in run.verdicts():
            told.append(item.name)  # noqa: PERF401 - the error must not take them along

    with pytest.raises(PlatformError):
        await listen()
    assert told == ["a.md"]
    assert [begun.name for begun in run.unsettled] == ["b.md"]
