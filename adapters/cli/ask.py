"""`footnote ask` and `footnote search`."""

from __future__ import annotations

import secrets
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from adapters.answering import as_json, collect, exit_code, show
from adapters.background import BackgroundLoop
from adapters.circles import asked_by
from adapters.cli.running import ANSWERED, USAGE, CommandError, Options
from adapters.ingesting import operator_name
from adapters.printing import print_json, safe_line, say, tell, typed
from bot.app import open_app, open_history
from bot.errors import BotError
from bot.messages import Author, Outcome, turn_id
from bot.results import HistoryEntry
from bot.telemetry import log_crash, log_failure, new_error_id
from bot.types import Abstained, Answered, Failed, Question
from retrieval.types import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.answering import End
    from bot.settings import Settings
    from retrieval.types import Hit

_LONGEST: Final = 100_000
"""Bytes of a question on standard input."""
_SHOWN: Final = 300
_PLATFORM: Final = "terminal"


def ask(settings: Settings, options: Options, question: str, circles: Sequence[str]) -> int:
    """Answer one question; the exit code tells what came of it."""
    given = sys.stdin.buffer.read(_LONGEST).decode("utf-8-sig", "replace") if question == "-" else question
    text = typed(given)
    if not text.strip():
        message = "The question is empty. Ask for example: footnote ask 'Who approves travel?'"
        raise CommandError(message, USAGE)
    entry = _asked(text, circles)
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
        # The answer is out, and the library free for the next command.
        loop.run(_keep(settings, _came_of(entry, end)))
    return exit_code(end)


def _asked(question: str, circles: Sequence[str]) -> HistoryEntry:
    """The question as the history keeps it, with nothing that came of it yet."""
    user = operator_name()
    return HistoryEntry(
        id=turn_id(_PLATFORM, "", secrets.token_hex(16)),  # each is a conversation of its own
        asked_at=datetime.now(UTC),
        platform=_PLATFORM,
        author=Author(id=f"{_PLATFORM}:{user}", name=user),
        audience=asked_by(circles),
        question=question,
        reply="",
        outcome=Outcome.FAILED,
    )


def _came_of(entry: HistoryEntry, end: End) -> HistoryEntry:
    """The entry with its end."""
    match end:
        case Answered(answer=answer):
            return replace(
                entry,
                reply=answer.text,
                outcome=Outcome.ANSWERED,
                sources=answer.sources,
                model=answer.model,
                usage=answer.usage,
                timings=answer.timings,
                notice=answer.notice,
            )
        case Abstained(abstention=abstention):
            return replace(
                entry,
                reply=abstention.text,
                outcome=Outcome.ABSTAINED,
                reason=abstention.reason,
                timings=abstention.timings,
            )
        case Failed(text=text):
            return replace(entry, reply=text)


async def _keep(settings: Settings, entry: HistoryEntry) -> None:
    """Put it into the history. Whatever fails is told in a line: the answer stands."""
    if settings.history_days == 0:
        return
    try:
        async with open_history(settings) as history:
            await history.record(entry)
    except BotError as error:
        log_failure(error)
        tell(safe_line(f"This is not in the history: {error}", 500))
    except Exception as error:  # noqa: BLE001 - the answer stands, whatever became of its record
        error_id = new_error_id()
        log_crash(error, error_id)
        tell(f"This is not in the history: something went wrong on our side (error {error_id}).")


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
