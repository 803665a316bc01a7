"""Local files into the library, and how verdicts look in a terminal."""

from __future__ import annotations

import asyncio
import getpass
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from adapters import local_fetching
from adapters.local_files import folder_of, is_gone, path_of
from adapters.printing import safe, safe_line
from bot.ingesting import CHANGES, IngestionRun
from bot.wording import SKIPPED, verdict_text, verdict_word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.app import App
    from bot.results import FileVerdict, JobProgress
    from bot.settings import Settings
    from retrieval.types import Audience, SourceFile


class Watcher(Protocol):
    """Is told of the work."""

    def progress(self, name: str, progress: JobProgress) -> None:
        """A document has come further."""
        ...

    def verdict(self, verdict: FileVerdict) -> None:
        """A file is done."""
        ...


def first_file(paths: Iterable[str], settings: Settings) -> SourceFile | None:
    """The first file that `ingest_paths` will read; None when there is none or it cannot be read. Blocks."""
    return local_fetching.first_file(paths, _limit(settings))


async def ingest_paths(
    app: App, paths: Iterable[str], audience: Audience | None, watcher: Watcher, asker: Audience | None = None
) -> list[FileVerdict]:
    """Ingest files, folders and patterns; the verdicts in the order of the files. Cancelling leaves nothing half done.

    What was ingested before a cancellation stays. `audience` and `asker` as in `Ingestion.ingest`.
    """
    run = IngestionRun(
        app.ingestion,
        local_fetching.read_paths(paths, _limit(app.settings)),
        audience=audience,
        asker=asker,
        by=await asyncio.to_thread(operator_name),
        report=lambda progress: watcher.progress(progress.name, progress),
    )
    told: list[FileVerdict] = []
    async with aclosing(run.verdicts()) as verdicts:
        async for verdict in verdicts:
            told.append(verdict)
            watcher.verdict(verdict)
    if any(verdict.verdict.outcome in CHANGES for verdict in told):
        await app.store.optimize()
    return told


def verdict_line(item: FileVerdict) -> str:
    """The verdict, the title, what it holds, and why; safe to print."""
    verdict = replace(item.verdict, title=safe_line(item.verdict.title, 80), reason=safe(item.verdict.reason))
    return f"{verdict_word(item):<9}  {verdict_text(replace(item, name=safe_line(item.name), verdict=verdict))}"


def verdict_dict(item: FileVerdict) -> dict[str, Any]:
    """For `--json`."""
    verdict = item.verdict
    return {
        "verdict": SKIPPED if item.skipped else str(verdict.outcome),
        "reason": verdict.reason,
        "title": verdict.title,
        "uri": verdict.uri,
        "pages": verdict.pages,
        "chunks": verdict.chunks,
        "language": verdict.language,
        "document": verdict.document_id,
        "seconds": round(verdict.seconds, 3),
    }


def _limit(settings: Settings) -> int:
    """Bytes of the largest file."""
    return settings.max_file_megabytes * 1024 * 1024


async def count_gone(app: App, paths: Iterable[str], asker: Audience | None = None) -> int:
    """How many documents come from files that lay in these folders and are there no longer; of what `asker` may see."""
    uris = [record.uri for record in await app.library.documents(asker)]

    def count() -> int:
        folders = {path.resolve() for path in map(folder_of, paths) if path is not None}
        files = [path for path in map(path_of, uris) if path is not None and not folders.isdisjoint(path.parents)]
        return sum(map(is_gone, files))

    return await asyncio.to_thread(count)


def told_gone(count: int, command: str) -> str:
    """The sentence about such documents; `command` takes them out of the library."""
    if count == 1:
        return f"1 document in the library comes from a file that is no longer there; {command} removes it."
    return f"{count:,} documents in the library come from files that are no longer there; {command} removes them."


def operator_name() -> str:
    """Who is at the keyboard, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"
