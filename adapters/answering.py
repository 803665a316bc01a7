"""An answer's events as text: streamed to a terminal, whole into a pipe, or as JSON."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from adapters.printing import console, safe, safe_line, say, tell
from adapters.wrapping import WordWrap, terminal_width, wrapped
from bot.types import Abstained, Answered, Failed, Stage, StatusChanged, TextDelta, TextReset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.status import Status

    from bot.types import AnswerEvent, Source, Timings

End = Answered | Abstained | Failed

_STAGES: Final = {
    Stage.READING_THREAD: "Reading the conversation …",
    Stage.SEARCHING: "Searching …",
    Stage.WRITING: "Writing …",
}
_EXCERPT: Final = 320
"""Characters of a source that are shown; `--json` has all of it."""


def show(events: Iterable[AnswerEvent]) -> End:
    """Print an answer to standard output, streamed when that is a terminal; stages go to standard error."""
    streamed = sys.stdout.isatty()
    wrap = WordWrap(terminal_width() or sys.maxsize)
    shown = ""
    end: End | None = None
    with _status() as status:
        for event in events:
            match event:
                case StatusChanged():
                    if status is not None and not shown:
                        status.update(_STAGES[event.stage])
                case TextDelta():
                    if streamed:
                        if status is not None:
                            status.stop()
                        shown += event.text
                        say(wrap.feed(safe(event.text)), end="")
                case TextReset():
                    if shown:
                        say(wrap.finish() + "\n\n(Written anew:)\n")
                        wrap = WordWrap(terminal_width() or sys.maxsize)
                        shown = ""
                case _:
                    end = event
    if end is None:
        message = "the engine ended without an answer"
        raise RuntimeError(message)
    say(wrap.finish(), end="")
    _conclude(end, shown)
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


def _conclude(end: End, shown: str) -> None:
    match end:
        case Answered(answer=answer):
            if not shown:
                say(wrapped(safe(answer.text)))
            elif not shown.endswith("\n"):
                say()
            if answer.notice:
                say(wrapped(f"\n({safe_line(answer.notice, 500)})"))
            for source in answer.sources:
                say(f"\n{_cited(source)}")
        case Abstained(abstention=abstention):
            if shown:
                say()
            say(wrapped(safe(abstention.text)))
        case Failed():
            if shown:
                say()
            tell(safe(end.text))


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


@contextmanager
def _status() -> Iterator[Status | None]:
    """A spinner on a terminal, nothing elsewhere."""
    if not (sys.stderr.isatty() and sys.stdout.isatty()):
        yield None
        return
    with console(stderr=True).status("Searching …") as status:
        yield status
