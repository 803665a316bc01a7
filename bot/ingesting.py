"""Documents into the library one after the other: bytes go in at one end, verdicts come out in order at the other."""

from __future__ import annotations

from collections import deque
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.ports import Unread
from bot.results import FileVerdict, JobProgress
from retrieval.verdicts import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from bot.ports import Fetched
    from retrieval.ingestion import Ingestion
    from retrieval.types import Audience, SourceFile
    from retrieval.verdicts import Progress

CHANGES = frozenset({Outcome.INDEXED, Outcome.REPLACED, Outcome.PARTLY})
"""Outcomes after which the store may have to build indexes (`Store.optimize`)."""


@dataclass(slots=True, kw_only=True)
class Begun:
    """The place of one document in the order of verdicts."""

    name: str
    uri: str
    named: bool = True
    verdict: FileVerdict | None = None


class IngestionRun:
    """One run over what a Fetcher brings. The documents of a batch are held at once, never all of them."""

    def __init__(
        self,
        ingestion: Ingestion,
        found: AsyncGenerator[Fetched | Unread],
        *,
        audience: Audience | None,
        asker: Audience | None,
        by: str,
        report: Callable[[JobProgress], None] = lambda _: None,
    ) -> None:
        """`audience`, `asker` and `by` as in `Ingestion.ingest`; `report` is told of every step."""
        self._ingestion = ingestion
        self._found = found
        self._audience = audience
        self._asker = asker
        self._by = by
        self._report = report
        self._begun: deque[Begun] = deque()

    @property
    def unsettled(self) -> tuple[Begun, ...]:
        """What was begun and is not told of: after leaving `verdicts` early, some of it may be in the library."""
        return tuple(self._begun)

    async def verdicts(self) -> AsyncGenerator[FileVerdict]:
        """A verdict for each document, in order. Leaving early leaves nothing half done, and what was ingested stays.

        Raises what the fetcher raises.
        """
        sources = self._sources()
        made = self._ingestion.ingest_many(
            sources, audience=self._audience, by=self._by, asker=self._asker, report=self._tell
        )
        async with aclosing(self._found), aclosing(sources), aclosing(made):
            async for verdict in made:
                self._place(verdict)
                for ready in self._ready():
                    yield ready
            for ready in self._ready():
                yield ready

    async def _sources(self) -> AsyncGenerator[SourceFile]:
        """The bytes. What could not be fetched gets its verdict here."""
        async for found in self._found:
            if isinstance(found, Unread):
                self._begun.append(Begun(name=found.name, uri=found.uri, verdict=_refused(found)))
            else:
                source = found.source
                self._begun.append(Begun(name=source.name, uri=source.uri, named=found.named))
                yield source

    def _place(self, verdict: Verdict) -> None:
        """Give a verdict to the first document that has none."""
        begun = next(begun for begun in self._begun if begun.verdict is None)
        skipped = verdict.unsupported and not begun.named
        begun.verdict = FileVerdict(name=begun.name, verdict=verdict, skipped=skipped)

    def _ready(self) -> list[FileVerdict]:
        """Take out the verdicts that nothing before them waits for."""
        ready = []
        while self._begun and (verdict := self._begun[0].verdict) is not None:
            self._begun.popleft()
            ready.append(verdict)
        return ready

    def _tell(self, source: SourceFile, step: Progress) -> None:
        self._report(JobProgress(name=source.name, step=step.step, done=step.done, total=step.total, pages=step.pages))


def _refused(found: Unread) -> FileVerdict:
    verdict = Verdict(outcome=Outcome.REFUSED, uri=found.uri, title=found.name, reason=found.reason)
    return FileVerdict(name=found.name, verdict=verdict, skipped=found.skipped)
