"""The screen: posts of the turn that was just asked as they come, those of earlier ones in one piece."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Self

from adapters.answering import AnswerPrinter, Stages, as_json
from adapters.cli.progress import IngestionDisplay
from adapters.printing import print_json_line, safe, say, tell
from adapters.terminal.earlier import EarlierTurn
from adapters.terminal.platform import ResultShown, Said, SourcesPosted, TurnClosed, Waits
from adapters.terminal.results import result_lines
from bot.results import JobReport
from bot.types import Abstained, Answered, StatusChanged, TextDelta, TextReset

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from adapters.terminal.platform import Event, Post, TerminalReply
    from bot.messages import Message, TurnId
    from bot.results import CommandResult

_ERROR_ID: Final = re.compile(r"\b[0-9a-f]{8}\b")


class Mode(Enum):
    """Who reads what we print."""

    PERSON = "person"
    """Somebody at a terminal."""
    PIPE = "pipe"
    """A file or a program: answers alone on standard output, each under its question."""
    JSON = "json"
    """A program: one JSON object for each question."""


class Screen:
    """Prints posts. Used by one thread."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Final = mode
        self.gone = False
        """Whether nobody can see it any more; then nothing is printed."""
        self._holding = False
        self._turn: TurnDisplay | None = None
        self._earlier: dict[TurnId, EarlierTurn] = {}
        self._dropped: set[TurnId] = set()

    @property
    def is_ready(self) -> bool:
        """Whether an earlier turn waits to be printed."""
        return any(turn.closed for turn in self._earlier.values())

    @contextmanager
    def held(self) -> Iterator[None]:
        """In here posts of earlier turns are taken, and not printed."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False

    def begin(self, message: Message) -> TurnDisplay:
        """From here on, posts of this message's turn are shown as they come: `with screen.begin(message) as turn`."""
        self._turn = TurnDisplay(self, message)
        return self._turn

    def end(self, turn: TurnDisplay) -> None:
        """The turn is over; what comes of it later is not printed any more when it was stopped."""
        self._turn = None
        if turn.stopped:
            self._dropped.add(turn.message.turn_id)
        self.print_earlier()

    def take(self, post: Post) -> None:
        """Print a post, now or when there is room for it."""
        if self.gone:
            post.printed()
        elif post.turn_id in self._dropped:
            if isinstance(post.event, TurnClosed):
                self._dropped.discard(post.turn_id)
            post.printed()
        elif self._turn is not None and post.turn_id == self._turn.message.turn_id:
            self._turn.take(post)
            post.printed()
        else:
            self._earlier.setdefault(post.turn_id, EarlierTurn(post.message)).take(post)
            if not self._holding and (self._turn is None or not self._turn.began):
                self.print_earlier()

    def print_earlier(self) -> None:
        """Print the earlier turns that have all of their posts."""
        for turn_id, turn in tuple(self._earlier.items()):
            if turn.closed:
                del self._earlier[turn_id]
                if self._turn is not None:
                    self._turn.make_room()
                if not self.gone:
                    # Where a program reads the answers, what it did not ask for goes beside them.
                    turn.print(_say if self.mode is Mode.PERSON else _tell)


class TurnDisplay:
    """The turn that was just asked."""

    def __init__(self, screen: Screen, message: Message) -> None:
        self.message: Final = message
        self.stopped = False
        self.report: JobReport | None = None
        """How far its ingestion is."""
        self._screen = screen
        self._mode = screen.mode
        self._stack = ExitStack()
        self._stages: Stages | None = None
        self._bar: IngestionDisplay | None = None
        self._printer = AnswerPrinter(_say, streamed=sys.stdout.isatty())
        self._reply: TerminalReply | None = None
        self._verdicts = 0
        self._said_something = False

    def __enter__(self) -> Self:
        if self.is_question:
            if self._mode is Mode.PIPE:
                say(f"> {safe(self.message.text)}")
            if self._mode is not Mode.JSON:
                self._stages = self._stack.enter_context(Stages())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self.stopped = kind is not None
        self._screen.end(self)

    @property
    def is_question(self) -> bool:
        """Whether it was typed as one; a word such as `help` may still be taken for a command."""
        return not self.message.command

    @property
    def began(self) -> bool:
        """Whether something would be torn in two by printing anything else now."""
        return self._printer.began or self._bar is not None

    @property
    def silent(self) -> bool:
        """Whether nothing has come that would be an answer."""
        return not self._said_something

    def make_room(self) -> None:
        """Take away the spinner: something is printed."""
        if self._stages is not None:
            self._stages.hide()

    def take(self, post: Post) -> None:
        """Show an event of this turn."""
        if self._reply is not None and post.reply is not self._reply:
            # Taken up again after the machine slept: whatever was streamed comes once more.
            self._printer.begin_anew()
        self._reply = post.reply
        if self._mode is Mode.JSON and self.is_question:
            self._as_json(post.event)
        else:
            self._as_text(post.event)

    def end(self) -> None:
        """Every post is there."""
        if self.is_question and self._mode is not Mode.JSON:
            say()

    def tell(self, sentence: str) -> None:
        """Say something in place of an answer. The sentence has to be safe."""
        self._said_something = True
        if self._mode is Mode.JSON and self.is_question:
            self._print_json({"error": sentence, "error_id": _error_id(sentence)})
            return
        self.make_room()
        self._printer.break_off()
        tell(sentence)

    def break_off(self) -> None:
        """Leave the line that was being printed."""
        self._stack.close()
        self._bar = None
        self._printer.break_off()

    def _as_text(self, event: Event) -> None:
        match event:
            case StatusChanged() | Waits():
                self._stage(event)
            case TextReset():
                self._printer.take(event)
            case ResultShown(result=result):
                self._result(result)
            case Said(text=text):
                self.tell(safe(text))
            case SourcesPosted(sources=sources):
                self._printer.sources(sources)
            case TextDelta() | Answered() | Abstained():
                self._said_something = True
                self.make_room()
                self._printer.take(event)
            case TurnClosed():
                pass

    def _stage(self, event: StatusChanged | Waits) -> None:
        if self._stages is None:
            return
        if isinstance(event, StatusChanged):
            self._stages.show(event.stage)
        else:
            self._stages.tell(f"Earlier questions are answered first; this is number {event.position} in line …")

    def _result(self, result: CommandResult) -> None:
        self._said_something = True
        if isinstance(result, JobReport):
            self._ingestion(result)
            return
        self.make_room()
        # Typed like a question into a pipe, its reply stands under it.
        write = say if self.is_question else tell
        for line in result_lines(result):
            write(line)

    def _ingestion(self, report: JobReport) -> None:
        self.report = report
        if self._bar is None:
            self.make_room()
            self._bar = self._stack.enter_context(IngestionDisplay(results=False))
        for verdict in report.verdicts[self._verdicts :]:
            self._bar.verdict(verdict)
        self._verdicts = max(self._verdicts, len(report.verdicts))
        if report.state.is_over:
            self._stack.close()
            self._bar = None
            for line in result_lines(report):
                tell(line)
        elif report.progress is not None:
            self._bar.progress(report.progress.name, report.progress)

    def _as_json(self, event: Event) -> None:
        match event:
            case Answered() | Abstained():
                self._print_json(as_json(event))
            case Said(text=text):
                self.tell(safe(text))
            case ResultShown(result=result):
                text = "\n".join(result_lines(result))
                self._print_json(_plain_json(text))
            case _:
                pass

    def _print_json(self, value: dict[str, Any]) -> None:
        self._said_something = True
        print_json_line({"question": self.message.text, **value})


def _plain_json(text: str) -> dict[str, Any]:
    """A command's reply in the form of an answer."""
    timings = {"search": 0.0, "generate": 0.0, "total": 0.0}
    return {"answer": text, "abstained": False, "reason": None, "sources": [], "model": None, "timings": timings}


def _error_id(sentence: str) -> str | None:
    found = _ERROR_ID.findall(sentence)
    return found[-1] if found else None


def _say(text: str) -> None:
    say(text, end="")


def _tell(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
