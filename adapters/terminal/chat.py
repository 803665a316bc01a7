"""The chat in the terminal: lines in, through the dispatcher, and printed.

The main thread reads and prints; the application lives in a background loop. So Ctrl-C stops what is running, at the
prompt or in mid-answer, and the terminal is never left in a strange state.
"""

from __future__ import annotations

import asyncio
import errno
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from adapters.background import BackgroundLoop, Held, drain
from adapters.circles import asked_by
from adapters.ingesting import count_gone, told_gone
from adapters.local_fetching import local_attachment
from adapters.printing import safe, safe_line, say, tell
from adapters.terminal.asking import TurnDesk
from adapters.terminal.conversation import Thread
from adapters.terminal.display import Mode, Screen
from adapters.terminal.lines import Line, being_typed, piped_lines, prompt, read, typed_lines
from adapters.terminal.platform import TerminalPlatform
from adapters.terminal.results import stopped_line
from adapters.terminal.signals import TERMINATED, Signals, TerminatedError
from bot.app import open_app, open_state
from bot.errors import BotError
from bot.messages import Author, Message, Outcome
from bot.results import JobState
from retrieval.errors import RetrievalError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from adapters.terminal.display import TurnDisplay
    from bot.app import App
    from bot.ports import Fetcher
    from bot.service import Service
    from bot.settings import Settings
    from retrieval.types import Audience

_CLEAR_LINE: Final = "\r\x1b[K"
_INTERRUPTED: Final = "(Interrupted; the answer comes when Footnote is started again.)"
_NOT_ANSWERED: Final = {
    Outcome.CLOSING: "Footnote is ending; ask again when it is started.",
    Outcome.WITHDRAWN: "The question was taken back.",
}


def chat(
    settings: Settings,
    circles: Sequence[str],
    *,
    as_json: bool = False,
    first_library: Path | None = None,
    goes_on: bool = False,
) -> int:
    """Talk until the end of input. Returns the exit code, 0 whatever became of the questions.

    Args:
        settings: How everything is opened.
        circles: Who asks.
        as_json: One JSON object for each question.
        first_library: A folder to ingest when the library is empty.
        goes_on: Go on with the last conversation.

    Raises:
        KeyboardInterrupt: Ctrl-C where nobody sits at a keyboard.
        BotError: Something cannot be opened, and so do RetrievalErrors tell.
    """
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    mode = Mode.JSON if as_json else Mode.PERSON if interactive else Mode.PIPE
    audience = asked_by(circles)
    with Signals() as signals, BackgroundLoop() as loop:
        terminal = TerminalPlatform.here()
        held = Held(_open(settings, terminal, audience))
        screen = Screen(mode)
        try:
            with signals.at_once():
                opened = loop.run(held.enter())
                talk = _Chat(
                    opened=opened,
                    loop=loop,
                    terminal=terminal,
                    screen=screen,
                    signals=signals,
                    audience=audience,
                    interactive=interactive,
                )
                talk.run(first_library, goes_on=goes_on)
        except TerminatedError:
            pass  # `signals.leaving` tells
        except BrokenPipeError:
            screen.gone = True
            raise
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            screen.gone = True  # the terminal's window was closed
        finally:
            loop.attend(held.leave(), terminal.posts, screen.take)
            screen.print_earlier()
    return TERMINATED if signals.leaving else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """The application with what turns need."""

    app: App
    desk: TurnDesk
    thread: Thread


@asynccontextmanager
async def _open(settings: Settings, terminal: TerminalPlatform, audience: Audience) -> AsyncIterator[_Opened]:
    async with AsyncExitStack() as stack:
        # What keeps turns takes a second to import: that is done while the model loads.
        app = await stack.enter_async_context(open_app(settings, tell, meanwhile=_composition))
        open_service, fetchers = await asyncio.to_thread(_composition)
        state = await stack.enter_async_context(open_state(settings))
        service = await stack.enter_async_context(open_service(app, state, [terminal], fetchers(), at_home=True))
        desk = TurnDesk(dispatcher=service.dispatcher)
        thread = Thread(
            state,
            service.conversations,
            name=terminal.name,
            audience=audience,
            seconds=settings.conversation_days * 86_400,
        )
        yield _Opened(app=app, desk=desk, thread=thread)


def _composition() -> tuple[Callable[..., AbstractAsyncContextManager[Service]], Callable[[], dict[str, Fetcher]]]:
    from adapters.fetching import fetchers  # noqa: PLC0415 - see above
    from bot.service import open_service  # noqa: PLC0415 - see above

    return open_service, fetchers


@dataclass(slots=True, kw_only=True)
class _Chat:
    """One person's chat."""

    opened: _Opened
    loop: BackgroundLoop
    terminal: TerminalPlatform
    screen: Screen
    signals: Signals
    audience: Audience
    interactive: bool

    def run(self, first_library: Path | None, *, goes_on: bool) -> None:
        """Greet, then line by line."""
        self.signals.on_leave = lambda: self.loop.soon(self.opened.desk.leave)
        if self.interactive:
            self.signals.on_wake = self._print_at_prompt
            self.terminal.on_news = self.signals.wake
        if first_library is not None:
            self._fill(first_library)
        self._greet()
        if goes_on:
            tell(self.loop.run(self.opened.thread.go_on()))
        for line in self._lines():
            if not self._take(line) or self.signals.leaving:
                return

    def _fill(self, folder: Path) -> None:
        """Ingest a folder when the library is empty."""
        if self.loop.run(self.opened.app.store.count(None)):
            return
        tell(f"The library is empty: ingesting the documents in {safe_line(str(folder))} first.")
        self._hand_in(Line(text=str(folder), command="ingest", paths=(str(folder),)))

    def _greet(self) -> None:
        """Say what this is; into a pipe's side channel when nobody sits there."""
        count = self.loop.run(self.opened.app.store.count(None))
        holds = f"{count:,} document{'' if count == 1 else 's'}" if count else "no documents yet: /ingest PATH adds one"
        text = f"Footnote {version('footnote-bot')}, {holds}."
        if self.interactive:
            say(f"{text} Ask a question; /help lists commands, Ctrl-D leaves.")
        else:
            tell(text)

    def _lines(self) -> Iterator[str]:
        """Lines as they come; what came in of earlier turns is printed first."""
        lines = typed_lines(self.signals.reading) if self.interactive else piped_lines()
        while True:
            drain(self.terminal.posts, self.screen.take)
            if (line := next(lines, None)) is None:
                return
            yield line

    def _print_at_prompt(self) -> None:
        """Something of an earlier turn came in while a line is being typed: it is taken, and printed when whole."""
        with self.screen.held():
            drain(self.terminal.posts, self.screen.take)
        if self.screen.is_ready:
            say(_CLEAR_LINE, end="")
            self.screen.print_earlier()
            say(prompt() + safe_line(being_typed(), 10_000), end="")

    def _take(self, typed: str) -> bool:
        """Answer a line, whatever it is. False: leave."""
        line = read(typed)
        if line is None:
            return True
        if line.leaves:
            return False
        if line.refusal:
            tell(line.refusal)
            return True
        try:
            self._hand_in(line)
        except KeyboardInterrupt:
            if not self.interactive:
                raise
        return True

    def _hand_in(self, line: Line) -> None:
        """One turn. Raises KeyboardInterrupt when it was stopped, having said so."""
        message = self._message(line)
        with self.signals.in_order(), self.screen.begin(message) as turn:
            try:
                if turn.is_question:
                    self.loop.run(self.opened.thread.remember())
                outcome = self.loop.attend(self.opened.desk.ask(message), self.terminal.posts, self.screen.take)
            except KeyboardInterrupt:
                turn.break_off()
                (say if self.screen.mode is Mode.PERSON else tell)(_stopped(turn))
                raise
            except (BotError, RetrievalError) as error:
                turn.tell(safe(str(error)))
            else:
                if outcome is None:
                    turn.break_off()
                    turn.tell(_INTERRUPTED)
                elif turn.silent:
                    turn.tell(_NOT_ANSWERED.get(outcome, f"There was no answer ({outcome})."))
            turn.end()
        self._after(line, turn)

    def _after(self, line: Line, turn: TurnDisplay) -> None:
        if line.command == "new":
            self.opened.thread.begin()
        if turn.report is not None and turn.report.state is JobState.DONE:
            gone = self.loop.run(count_gone(self.opened.app, line.paths, self.audience))
            if gone:
                tell(told_gone(gone, "/forget"))

    def _message(self, line: Line) -> Message:
        user = self.terminal.user
        return Message(
            platform=self.terminal.name,
            id=self.opened.thread.next_id(),
            conversation=self.opened.thread.id,
            author=Author(id=f"terminal:{user}", name=user),
            text=line.text,
            sent_at=datetime.now(UTC),
            audience=self.audience,
            command=line.command,
            attachments=tuple(map(local_attachment, line.paths)),
        )


def _stopped(turn: TurnDisplay) -> str:
    return "\n" + (stopped_line(len(turn.report.verdicts)) if turn.report is not None else "(Stopped.)")
