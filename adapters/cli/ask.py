"""`footnote ask` and `footnote search`."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from adapters.answering import as_json, collect, exit_code, show
from adapters.background import BackgroundLoop
from adapters.circles import asked_by
from adapters.cli.running import ANSWERED, USAGE, CommandError, Options
from adapters.printing import print_json, safe_line, say, tell, typed
from bot.app import open_app
from bot.types import Question
from retrieval.types import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.settings import Settings
    from retrieval.types import Hit

_LONGEST: Final = 100_000
"""Bytes of a question on standard input."""
_SHOWN: Final = 300


def ask(settings: Settings, options: Options, question: str, circles: Sequence[str]) -> int:
    """Answer one question; the exit code tells what came of it."""
    given = sys.stdin.buffer.read(_LONGEST).decode("utf-8-sig", "replace") if question == "-" else question
    text = typed(given)
    if not text.strip():
        message = "The question is empty. Ask for example: footnote ask 'Who approves travel?'"
        raise CommandError(message, USAGE)
    with BackgroundLoop() as loop:
        stack = AsyncExitStack()
        try:
            app = loop.run(stack.enter_async_context(open_app(settings, tell, ingest_command="footnote ingest")))
            events = loop.stream(app.engine.answer(Question(text=text, audience=asked_by(circles))))
            if options.json:
                end = collect(events)
                print_json(as_json(end))
            else:
                end = show(events)
        finally:
            loop.run(stack.aclose())
    return exit_code(end)


async def search(settings: Settings, options: Options, query: str, limit: int, circles: Sequence[str]) -> int:
    """Print the hits."""
    if not query.strip():
        message = "The query is empty. Search for example: footnote search 'travel expenses'"
        raise CommandError(message, USAGE)
    async with open_app(settings, tell, ingest_command="footnote ingest") as app:
        result = await app.searcher.search(Query(text=typed(query), audience=asked_by(circles), limit=limit))
    if options.json:
        print_json([_as_dict(hit) for hit in result.hits])
        return ANSWERED
    if not result.hits:
        say("Nothing was found.")
    for number, hit in enumerate(result.hits, start=1):
        say(_as_text(number, hit))
    return ANSWERED


def _as_dict(hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {
        "document": chunk.document_id,
        "title": chunk.title,
        "page": chunk.page,
        "heading": " > ".join(chunk.heading_path),
        "text": chunk.text,
        "score": round(hit.score, 6),
        "dense_rank": hit.dense_rank,
        "bm25_rank": hit.bm25_rank,
    }


def _as_text(number: int, hit: Hit) -> str:
    chunk = hit.chunk
    head = f"{number}. {safe_line(chunk.title)}"
    if chunk.page is not None:
        head += f", p. {chunk.page}"
    if chunk.heading_path:
        head += f" — {safe_line(' > '.join(chunk.heading_path))}"
    why = ", ".join(
        f"{name} {rank if rank is not None else '–'}"
        for name, rank in (("dense", hit.dense_rank), ("BM25", hit.bm25_rank))
    )
    return f"{head}\n   score {hit.score:.3f} (ranks: {why})\n   {safe_line(chunk.text, _SHOWN)}\n"
