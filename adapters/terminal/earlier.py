"""Turns of a chat that ended before their answers: what comes of them is shown in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapters.answering import AnswerPrinter
from adapters.ingesting import verdict_line
from adapters.printing import safe, safe_line
from adapters.terminal.platform import ResultShown, Said, SourcesPosted, TurnClosed, Waits
from adapters.terminal.results import result_lines
from adapters.wrapping import wrapped
from bot.results import JobReport
from bot.types import Abstained, Answered, StatusChanged, TextDelta, TextReset

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.terminal.platform import Post
    from bot.messages import Message
    from bot.results import CommandResult

_QUESTION: Final = 500
"""Characters of an earlier question that are repeated above its answer."""


class EarlierTurn:
    """A turn whose posts are collected until it is over."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self._posts: list[Post] = []
        self.closed = False

    def take(self, post: Post) -> None:
        """Keep what has to be shown."""
        match post.event:
            case StatusChanged() | Waits() | TextDelta() | TextReset():
                pass
            case ResultShown(result=JobReport(state=state)) if not state.is_over:
                pass
            case TurnClosed():
                self.closed = True
            case _:
                # It is in line and will be printed: what comes after it must not wait for the screen.
                self._posts.append(post)
                post.printed()

    def print(self, write: Callable[[str], None]) -> None:
        """Show it; `write` prints safe text as it is, without a line end."""
        if not self._posts:
            return
        asked = f"/{self._message.command} {self._message.text}" if self._message.command else self._message.text
        write(wrapped(f"You asked before: {safe_line(asked, _QUESTION)}") + "\n\n")
        printer = AnswerPrinter(write, streamed=False)
        for post in self._posts:
            match post.event:
                case Answered() | Abstained():
                    printer.take(post.event)
                case SourcesPosted(sources=sources):
                    printer.sources(sources)
                case Said(text=text):
                    write(safe(text) + "\n")
                case ResultShown(result=result):
                    _write_result(result, write)
                case _:
                    pass
        write("\n")


def _write_result(result: CommandResult, write: Callable[[str], None]) -> None:
    if isinstance(result, JobReport):
        for verdict in result.verdicts:
            write(verdict_line(verdict) + "\n")
    for line in result_lines(result):
        write(line + "\n")
