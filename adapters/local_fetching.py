"""Files of this machine as attachments: a path, a folder or a pattern stands for the files that it means."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from adapters.local_files import LocalFile, NotAFile, UnreadableFileError, find_files, read_file
from adapters.printing import safe_line, typed
from bot.messages import Attachment
from bot.ports import Fetched, Fetcher, Unread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from retrieval.types import SourceFile

_READ_SECONDS: Final = 300.0
"""How long the disk may take for one file."""


class LocalFetcher(Fetcher):
    """Reads files one by one, in threads. They have to lie on the host that it runs on."""

    @override
    async def fetch(self, attachments: Sequence[Attachment], limit: int) -> AsyncGenerator[Fetched | Unread]:
        async for item in read_paths((attachment.uri for attachment in attachments), limit):
            yield item


async def read_paths(paths: Iterable[str], limit: int) -> AsyncGenerator[Fetched | Unread]:
    """The files that these paths, folders, patterns and `file:` addresses mean; at most `limit` bytes of each."""
    files = find_files(paths)
    while (found := await asyncio.to_thread(next, files, None)) is not None:
        if isinstance(found, NotAFile):
            yield Unread(uri=found.uri, name=found.name, reason=found.reason, skipped=not found.named)
            continue
        try:
            source = await asyncio.wait_for(asyncio.to_thread(read_file, found, limit), _READ_SECONDS)
        except UnreadableFileError as error:
            skipped = error.skippable and not found.named
            yield Unread(uri=found.uri, name=found.name, reason=str(error), skipped=skipped)
        except TimeoutError:
            reason = f"The disk did not give {found.name} within {_READ_SECONDS:.0f} seconds. Copy it elsewhere."
            yield Unread(uri=found.uri, name=found.name, reason=reason)
        else:
            yield Fetched(source=source, named=found.named)


def first_file(paths: Iterable[str], limit: int) -> SourceFile | None:
    """The first file that `read_paths` will read; None when there is none or it cannot be read. Blocks."""
    try:
        found = next((found for found in find_files(paths) if isinstance(found, LocalFile)), None)
        return read_file(found, limit) if found is not None else None
    except UnreadableFileError:
        return None


def local_attachment(given: str) -> Attachment:
    """What was typed as a path, so that a process in another folder finds the same: relative paths become absolute."""
    elsewhere = not given.strip() or "://" in given or given.startswith(("file:", "~"))
    try:
        uri = given if elsewhere else str(Path.cwd() / given)
    except OSError:
        uri = given  # the present folder is gone; reading says so
    return Attachment(uri=typed(uri), name=safe_line(given))
