"""An answer's events as text: streamed to a terminal, whole into a pipe, or as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Self

from adapters.printing import console, safe, safe_line, say, tell
from adapters.wrapping import WordWrap, terminal_width, wrapped
from bot.types import Abstained, Answered, Failed, Stage, StatusChanged, TextDelta, TextReset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from rich.status import Status

    from bot.types import Answer, AnswerEvent, Source, Timings

End = Answered | Abstained | Failed

_STAGES: Final = {
    Stage.READING_THREAD: "Reading the conversation …",
    Stage.SEARCHING: "Searching …",
    Stage.WRITING: "Writing …",
}
_EXCERPT: Final = 320
"""Characters of a source that are shown; `--json` has all of it."""


class AnswerPrinter:
    """Prints an answer as its events come; `streamed`: as it grows, else whole at its end."""

    def __init__(self, write: Callable[[str], None], *, streamed: bool) -> None:
        """`write` prints safe text as it is, without a line end."""
        self._write = write
        self._streamed = streamed
        self._wrap = _wrap()
        self._shown = ""

    @property
    def began(self) -> bool:
        """Whether anything of the answer is on the screen."""
        return bool(self._shown)

    def take(self, event: AnswerEvent) -> None:
        """Print what an event brings; sources come with `sources`."""
        match event:
            case TextDelta(text=text):
                if self._streamed:
                    self._shown += text
                    self._write(self._wrap.feed(safe(text)))
            case TextReset():
                self.begin_anew()
            case Answered(answer=answer):
                self._answer(answer)
            case Abstained(abstention=abstention):
                self.break_off()
                self._write(wrapped(safe(abstention.text)) + "\n")
            case Failed(text=text):
                self.break_off()
                tell(safe(text))
            case StatusChanged():
                pass

    def begin_anew(self) -> None:
        """What was streamed is void."""
        if self._shown:
            self._write(self._wrap.finish() + "\n\n(Written anew:)\n\n")
            self._wrap = _wrap()
            self._shown = ""

    def break_off(self) -> None:
        """Something else comes, on a line of its own."""
        if self._shown:
            self._write(self._wrap.finish() + "\n")
            self._shown = ""

    def sources(self, sources: Iterable[Source]) -> None:
        """Print the sources below the answer."""
        for source in sources:
            self._write(f"\n{_cited(source)}\n")

    def _answer(self, answer: Answer) -> None:
        if self._shown and not answer.text.startswith(self._shown.strip()):
            self.begin_anew()
        if not self._shown:
            self._write(wrapped(safe(answer.text)) + "\n")
        else:
            # Mostly all of it is there; a piece that could not be shown is not to be missing.
            rest = answer.text[len(self._shown.lstrip()) :]
            ended = self._shown.endswith("\n")
            self._write(self._wrap.feed(safe(rest)) + self._wrap.finish() + ("" if ended and not rest else "\n"))
        self._shown = ""
        if answer.notice:
            self._write(wrapped(f"\n({safe_line(answer.notice, 500)})") + "\n")


def show(events: Iterable[AnswerEvent]) -> End:
    """Print an answer to standard output, streamed when that is a terminal; stages go to standard error."""
    printer = AnswerPrinter(_say, streamed=sys.stdout.isatty())
    end: End | None = None
    with Stages() as stages:
        for event in events:
            match event:
                case StatusChanged(stage=stage):
                    stages.show(stage)
                case TextDelta():
                    stages.hide()
                    printer.take(event)
                case TextReset():
                    printer.take(event)
                case _:
                    end = event
    if end is None:
        message = "the engine ended without an answer"
        raise RuntimeError(message)
    printer.take(end)
    if isinstance(end, Answered):
        printer.sources(end.answer.sources)
    return end


def collect(events: Iterable[AnswerEvent]) -> End:
    """Let the events pass and keep the last."""
    end: End | None = None
    for event in events:
        if isinstance(event, Answered | Abstained | Failed):
            end = event
    if end is None:
        message = "the engine ended without an answer"
        raise RuntimeError(message)
    return end


def as_json(end: End) -> dict[str, Any]:
    """What `ask --json` prints."""
    match end:
        case Answered(answer=answer):
            return {
                "answer": answer.text,
                "abstained": False,
                "reason": None,
                "sources": [_source(source) for source in answer.sources],
                "model": answer.model,
                "timings": _timings(answer.timings),
            }
        case Abstained(abstention=abstention):
            return {
                "answer": abstention.text,
                "abstained": True,
                "reason": str(abstention.reason),
                "sources": [],
                "model": None,
                "timings": _timings(abstention.timings),
            }
        case Failed():
            return {"error": end.text, "error_id": end.error_id}


def exit_code(end: End) -> int:
    """0 answered, 3 abstained, 1 failed."""
    return {Answered: 0, Abstained: 3, Failed: 1}[type(end)]


def _cited(source: Source) -> str:
    """A source as three lines: number, title, page and heading; the passage; where it lies."""
    head = f"[{source.marker}] {safe_line(source.title)}"
    if source.page is not None:
        last = source.last_page
        pages = f"p. {source.page}" if last in {None, source.page} else f"pp. {source.page}–{last}"
        head += f", {pages}"
    if source.heading:
        head += f" — {safe_line(source.heading)}"
    quoted = wrapped(f"    “{safe_line(source.excerpt, _EXCERPT)}”", "    ")
    return f"{wrapped(head, '    ')}\n{quoted}\n    {safe_line(source.uri, 1000)}"


def _source(source: Source) -> dict[str, Any]:
    return {
        "marker": source.marker,
        "document": source.document_id,
        "title": source.title,
        "uri": source.uri,
        "page": source.page,
        "heading": source.heading,
        "excerpt": source.excerpt,
        "score": round(source.score, 6),
    }


def _timings(timings: Timings) -> dict[str, float]:
    return {name: round(getattr(timings, name), 4) for name in ("search", "generate", "total")}


def _say(text: str) -> None:
    say(text, end="")


def _wrap() -> WordWrap:
    return WordWrap(terminal_width() or sys.maxsize)


class Stages:
    """A spinner that tells the stage, on a terminal; nothing elsewhere. It is hidden for good once text comes."""

    def __init__(self) -> None:
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and sys.stdout.isatty():
            self._status = console(stderr=True).status("Searching …")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def show(self, stage: Stage) -> None:
        """Tell the stage."""
        self.tell(_STAGES[stage])

    def tell(self, text: str) -> None:
        """Tell anything else. The text has to be safe."""
        if self._status is not None:
            self._status.update(text)

    def hide(self) -> None:
        """Take the spinner away."""
        if self._status is not None:
            self._status.stop()
            self._status = None
