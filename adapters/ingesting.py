"""Local files into the library: a verdict for each, told as it comes."""

from __future__ import annotations

import asyncio
import getpass
import re
import time
from collections import deque
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from adapters.local_files import (
    LocalFile,
    NotAFile,
    UnreadableFileError,
    find_files,
    folder_of,
    is_gone,
    path_of,
    read_file,
)
from adapters.printing import safe, safe_line
from retrieval.verdicts import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from bot.app import App
    from bot.settings import Settings
    from retrieval.types import Audience, SourceFile
    from retrieval.verdicts import Progress

SKIPPED: Final = "skipped"
"""What is said of a file in a folder that is none of ours to read; it is no failure."""
_READ_SECONDS: Final = 300.0
"""How long the disk may take for one file."""
_WORDS: Final = {
    Outcome.INDEXED: "ingested",
    Outcome.REPLACED: "replaced",
    Outcome.UNCHANGED: "unchanged",
    Outcome.PARTLY: "partly",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    """What became of one file. `name` as given or found, safe to print."""

    name: str
    verdict: Verdict
    skipped: bool = False

    @property
    def word(self) -> str:
        """The verdict in a word."""
        return SKIPPED if self.skipped else str(self.verdict.outcome)

    @property
    def failed(self) -> bool:
        """Whether the user has to do something."""
        return not self.skipped and not self.verdict.in_library

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        verdict = self.verdict
        return {
            "verdict": self.word,
            "reason": verdict.reason,
            "title": verdict.title,
            "uri": verdict.uri,
            "pages": verdict.pages,
            "chunks": verdict.chunks,
            "language": verdict.language,
            "document": verdict.document_id,
            "seconds": round(verdict.seconds, 3),
        }

    def as_line(self) -> str:
        """For people: the verdict, the title, what it holds, and why."""
        verdict = self.verdict
        word = SKIPPED if self.skipped else _WORDS[verdict.outcome]
        name = self.name
        if verdict.in_library:
            title = safe_line(verdict.title, 80)
            name = name if title in {name, name.rpartition(".")[0]} else f"{name} “{title}”"
            holds = [
                _count(verdict.pages, "page") if verdict.pages is not None else "",
                _count(verdict.chunks, "chunk"),
            ]
            name = f"{name} ({', '.join(filter(None, holds))})"
        reason = safe(verdict.reason).strip()
        if not verdict.in_library and _is_named(name, reason):
            return f"{word:<9}  {reason}"
        return f"{word:<9}  {name}{': ' + reason if reason else ''}"


class Watcher(Protocol):
    """Is told of the work."""

    def progress(self, name: str, progress: Progress) -> None:
        """A document has come further."""
        ...

    def verdict(self, verdict: FileVerdict) -> None:
        """A file is done."""
        ...


@dataclass(slots=True)
class _Slot:
    """The place of one file in the order of verdicts."""

    name: str
    named: bool
    verdict: FileVerdict | None = None


@dataclass(slots=True)
class _Run:
    """One ingestion: files go in at one end, verdicts come out in the same order at the other."""

    app: App
    paths: Iterable[str]
    waiting: deque[_Slot] = field(default_factory=deque)

    async def sources(self) -> AsyncIterator[SourceFile]:
        """Read the files one by one. What cannot be read gets its verdict here."""
        files = find_files(self.paths)
        limit = _limit(self.app.settings)
        while (found := await asyncio.to_thread(next, files, None)) is not None:
            slot = _Slot(found.name, found.named)
            self.waiting.append(slot)
            if isinstance(found, NotAFile):
                slot.verdict = _unread(found.name, found.uri, found.reason, skipped=not found.named)
                continue
            started = time.monotonic()
            try:
                source = await asyncio.wait_for(asyncio.to_thread(read_file, found, limit), _READ_SECONDS)
            except UnreadableFileError as error:
                skipped = error.skippable and not found.named
                slot.verdict = _unread(found.name, found.uri, str(error), skipped=skipped)
            except TimeoutError:
                reason = f"The disk did not give {found.name} within {_READ_SECONDS:.0f} seconds. Copy it elsewhere."
                slot.verdict = _unread(found.name, found.uri, reason, seconds=time.monotonic() - started)
            else:
                yield source

    def place(self, verdict: Verdict) -> None:
        """Give a verdict to the first file that has none."""
        slot = next(slot for slot in self.waiting if slot.verdict is None)
        skipped = verdict.unsupported and not slot.named
        slot.verdict = FileVerdict(name=slot.name, verdict=verdict, skipped=skipped)

    def ready(self) -> list[FileVerdict]:
        """Take out the verdicts that nothing before them waits for."""
        done = []
        while self.waiting and self.waiting[0].verdict is not None:
            verdict = self.waiting.popleft().verdict
            if verdict is not None:
                done.append(verdict)
        return done


def first_file(paths: Iterable[str], settings: Settings) -> SourceFile | None:
    """The first file that `ingest_paths` will read; None when there is none or it cannot be read. Blocks."""
    try:
        found = next((found for found in find_files(paths) if isinstance(found, LocalFile)), None)
        return read_file(found, _limit(settings)) if found is not None else None
    except UnreadableFileError:
        return None


async def ingest_paths(
    app: App, paths: Iterable[str], audience: Audience | None, watcher: Watcher, asker: Audience | None = None
) -> list[FileVerdict]:
    """Ingest files, folders and patterns; the verdicts in the order of the files. Cancelling leaves nothing half done.

    What was ingested before a cancellation stays. `audience` and `asker` as in `Ingestion.ingest`.
    """
    run = _Run(app, paths)
    by = await asyncio.to_thread(operator_name)
    verdicts: list[FileVerdict] = []

    def tell_ready() -> None:
        for verdict in run.ready():
            verdicts.append(verdict)
            watcher.verdict(verdict)

    made = app.ingestion.ingest_many(
        run.sources(),
        audience=audience,
        by=by,
        asker=asker,
        report=lambda source, step: watcher.progress(source.name, step),
    )
    async with aclosing(made) as made:
        async for verdict in made:
            run.place(verdict)
            tell_ready()
    tell_ready()
    if any(verdict.verdict.outcome in {Outcome.INDEXED, Outcome.REPLACED, Outcome.PARTLY} for verdict in verdicts):
        await app.store.optimize()
    return verdicts


def _limit(settings: Settings) -> int:
    """Bytes of the largest file."""
    return settings.max_file_megabytes * 1024 * 1024


def summary(verdicts: Iterable[FileVerdict]) -> str:
    """How many of what, in a line."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        word = SKIPPED if verdict.skipped else _WORDS[verdict.verdict.outcome]
        counts[word] = counts.get(word, 0) + 1
    total = _count(sum(counts.values()), "file")
    if not counts:
        return "No files: the folder holds none that could be ingested."
    order = [*_WORDS.values(), SKIPPED]
    return f"{total}: " + ", ".join(f"{counts[word]} {word}" for word in order if word in counts) + "."


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


def _is_named(name: str, reason: str) -> bool:
    """Whether the sentence names the file; a name like a word (`a`, `link`) can stand in it by chance."""
    found = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", reason)
    return "." in name.strip(".") and found is not None


def _unread(name: str, uri: str, reason: str, *, skipped: bool = False, seconds: float = 0.0) -> FileVerdict:
    verdict = Verdict(outcome=Outcome.REFUSED, uri=uri, title=name, reason=reason, seconds=seconds)
    return FileVerdict(name=name, verdict=verdict, skipped=skipped)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def operator_name() -> str:
    """Who is at the keyboard, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"
