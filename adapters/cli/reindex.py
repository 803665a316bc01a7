"""`footnote reindex`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from adapters.cli.progress import IngestionDisplay
from adapters.cli.running import ANSWERED, CommandError, Options
from adapters.local_files import LocalFile, UnreadableFileError, path_of, read_file
from adapters.printing import print_json, safe_line, say
from bot.app import open_store, open_workshop
from bot.reindexing import Reindexed
from bot.reindexing import reindex as rebuild
from bot.reindexing import start_over as make_empty
from retrieval.errors import StoreAbsentError, StoreError, StoreLockedError, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from bot.reindexing import Workshop
    from bot.settings import Settings
    from retrieval.ports import Store
    from retrieval.types import SourceFile


async def reindex(settings: Settings, options: Options, *, start_over: bool) -> int:
    """Rebuild the library; with `start_over`, put an empty one in the place of one that cannot be read."""
    with _Display(results=not options.json) as display:

        def workshop() -> AbstractAsyncContextManager[Workshop]:
            return open_workshop(settings, display.announce)

        try:
            done = await rebuild(_old(settings), workshop, lambda uri: _load(uri, settings), display, settings.home)
        except StoreAbsentError:
            done = []
        except _UnreadableLibraryError as error:
            if not start_over:
                raise CommandError(str(error)) from error
            await make_empty(workshop)
            done = []
    if options.json:
        print_json([_as_dict(item) for item in done])
    elif done:
        carried = sum(item.carried for item in done)
        say(f"{len(done)} documents: {len(done) - carried} read again, {carried} carried over.")
    else:
        say("The library is empty; ingest your documents with: footnote ingest PATH")
    return ANSWERED


class _UnreadableLibraryError(Exception):
    """The old library cannot be read any more."""


@asynccontextmanager
async def _old(settings: Settings) -> AsyncIterator[Store]:
    """The present library. What fails while it is open means that it cannot be read."""
    try:
        store = await open_store(settings, None)
        try:
            yield store
        finally:
            await store.close()
    except (StoreAbsentError, StoreLockedError, StoreUnavailableError):
        raise
    except StoreError as error:
        message = (
            "The library cannot be read any more. `footnote reindex --start-over` puts an empty one in its place; then "
            "ingest your documents again."
        )
        raise _UnreadableLibraryError(message) from error


async def _load(uri: str, settings: Settings) -> SourceFile | None:
    """The file behind a document, None when it cannot be had any more."""

    def read() -> SourceFile | None:
        path = path_of(uri)
        if path is None:
            return None
        try:
            return read_file(LocalFile(path=path, named=True), settings.max_file_megabytes * 1024 * 1024)
        except UnreadableFileError:
            return None

    return await asyncio.wait_for(asyncio.to_thread(read), 300)


class _Display(IngestionDisplay):
    """The same look, for documents of the library."""

    def reindexed(self, done: Reindexed, number: int, total: int) -> None:
        """Tell of a document."""
        word = "carried" if done.carried else "reread"
        reason = f": {safe_line(done.reason, 400)}" if done.reason else ""
        chunks = "1 chunk" if done.chunks == 1 else f"{done.chunks} chunks"
        self.line(f"{word:<9}  {number}/{total} {safe_line(done.record.title, 80)} ({chunks}){reason}")


def _as_dict(done: Reindexed) -> dict[str, object]:
    return {
        "document": done.record.id,
        "title": done.record.title,
        "uri": done.record.uri,
        "verdict": "carried" if done.carried else "reread",
        "reason": done.reason,
        "chunks": done.chunks,
    }
