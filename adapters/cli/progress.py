"""How an ingestion looks: a bar on standard error when that is a terminal, and a line for each file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from adapters.ingesting import verdict_line
from adapters.printing import console, safe_line, say
from retrieval.verdicts import Step

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from bot.results import FileVerdict, JobProgress
    from retrieval.verdicts import Progress


class IngestionDisplay:
    """A `Watcher`: `with IngestionDisplay(…) as watcher`."""

    def __init__(self, *, results: bool) -> None:
        """`results`: the lines are what the command gives out and go to standard output, else to standard error."""
        from rich.progress import (  # noqa: PLC0415 - takes a tenth of a second, for this alone
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.progress import Progress as Bar  # noqa: PLC0415 - as above

        self._console: Console = console(stderr=True)
        # On one terminal, lines have to be printed above the bar.
        self._direct = results and not (sys.stdout.isatty() and self._console.is_terminal)
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}", markup=False),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, visible=False, unit="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def announce(self, sentence: str) -> None:
        """Tell of something that takes long."""
        self._console.print(sentence, soft_wrap=True)

    def progress(self, name: str, progress: Progress | JobProgress) -> None:
        """Move the bar."""
        pages = f", {progress.pages} pages" if progress.pages is not None else ""
        embedding = progress.step is Step.EMBEDDING
        self._bar.update(
            self._task,
            description=f"{safe_line(name, 40)}: {progress.step}{pages}",
            completed=progress.done,
            total=progress.total if embedding else None,
            unit="chunks" if embedding else "",
            visible=True,
        )

    def verdict(self, verdict: FileVerdict) -> None:
        """Tell what became of a file."""
        self._bar.update(self._task, visible=False)
        self.line(verdict_line(verdict))

    def line(self, text: str) -> None:
        """Print a line above the bar. The text has to be safe."""
        if self._direct:
            say(text)
        else:
            self._console.print(text, soft_wrap=True)
