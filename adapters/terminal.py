"""The terminal as a chat: questions and commands line by line, from a keyboard or a pipe.

The main thread reads and prints; the application lives in a background loop. So Ctrl-C stops what is running, at the
prompt or in mid-answer, and the terminal is never left in a strange state.
"""

from __future__ import annotations

import contextlib
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from adapters.answering import as_json, collect, show
from adapters.background import BackgroundLoop
from adapters.circles import asked_by
from adapters.cli.progress import IngestionDisplay
from adapters.ingesting import count_gone, ingest_paths, told_gone
from adapters.listing import document_line
from adapters.printing import print_json_line, safe, safe_line, say, tell, typed
from bot.app import open_app
from bot.errors import BotError
from bot.types import Abstained, Answered, Conversation, Question, Turn
from bot.wording import verdict_summary
from retrieval.errors import RetrievalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from adapters.answering import End
    from bot.app import App
    from bot.settings import Settings
    from retrieval.types import Audience

_TURNS: Final = 8
"""Turns of the conversation that a follow-up can refer to."""
_LONGEST: Final = 100_000
"""Characters of a line."""
_HELP: Final = """\
Type a question; follow-ups such as “and how often?” work.
  /ingest PATH    take a file, a folder or a pattern into the library
  /documents      list what is in the library
  /forget TITLE   take a document out of the library (its id works as well)
  /new            begin a new conversation
  /help           show this
  /quit           leave (Ctrl-D does the same)
Ctrl-C stops an answer."""
_USES: Final = {
    "/ingest": "/ingest needs a path, for example: /ingest report.pdf",
    "/forget": "/forget needs a title or an id, for example: /forget Travel policy",
}


def chat(
    settings: Settings, circles: Sequence[str], *, as_json: bool = False, first_library: Path | None = None
) -> int:
    """Talk until the end of input. Returns the exit code, 0 whatever became of the questions."""
    with BackgroundLoop() as loop:
        stack = AsyncExitStack()
        try:
            app = loop.run(stack.enter_async_context(open_app(settings, tell)))
            talk = _Chat(app=app, loop=loop, audience=asked_by(circles), json=as_json)
            if first_library is not None:
                talk.fill(first_library)
            talk.greet()
            for line in _lines(interactive=talk.interactive):
                if not talk.take(line):
                    break
        finally:
            loop.run(stack.aclose())
    return 0


@dataclass(slots=True, kw_only=True)
class _Chat:
    """One conversation."""

    app: App
    loop: BackgroundLoop
    audience: Audience
    json: bool
    turns: list[Turn] = field(default_factory=list)
    interactive: bool = field(default_factory=lambda: sys.stdin.isatty() and sys.stdout.isatty())

    def fill(self, folder: Path) -> None:
        """Ingest a folder when the library is empty."""
        if self.loop.run(self.app.store.count(None)):
            return
        tell(f"The library is empty: ingesting the documents in {safe_line(str(folder))} first.")
        self._ingest(str(folder))

    def greet(self) -> None:
        """Say what this is; into a pipe's side channel when nobody sits there."""
        count = self.loop.run(self.app.store.count(None))
        holds = f"{count:,} document{'' if count == 1 else 's'}" if count else "no documents yet: /ingest PATH adds one"
        text = f"Footnote {version('footnote-bot')}, {holds}."
        if self.interactive:
            say(f"{text} Ask a question; /help lists commands, Ctrl-D leaves.")
        else:
            tell(text)

    def take(self, line: str) -> bool:
        """Answer a line, whatever it is. False: leave."""
        line = typed(line).strip()
        if not line:
            return True
        if line.casefold() in {"/quit", "/exit", "/q"}:
            return False
        try:
            if line.startswith("/"):
                self._command(line)
            else:
                self._answer(line)
        except KeyboardInterrupt:
            say("\n(Stopped.)")
            if not self.interactive:
                raise
        except (BotError, RetrievalError) as error:
            tell(safe(str(error)))
        return True

    def _answer(self, text: str) -> None:
        if not self.interactive and not self.json:
            say(f"> {safe(text)}")
        conversation = Conversation(id="terminal", turns=tuple(self.turns))
        question = Question(text=text, audience=self.audience, conversation=conversation)
        events = self.loop.stream(self.app.engine.answer(question))
        if self.json:
            end = collect(events)
            print_json_line({"question": text, **as_json(end)})
        else:
            end = show(events)
            say()
        self._remember(text, end)

    def _remember(self, text: str, end: End) -> None:
        match end:
            case Answered(answer=answer):
                reply, sources = answer.text, answer.sources
            case Abstained(abstention=abstention):
                reply, sources = abstention.text, ()
            case _:
                return
        self.turns.append(Turn(question=text, reply=reply, author="you", asked_at=datetime.now(UTC), sources=sources))
        del self.turns[:-_TURNS]

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        rest = rest.strip().strip("\"'")
        match name.casefold():
            case "/help" | "/?":
                tell(_HELP)
            case "/new":
                self.turns.clear()
                tell("A new conversation.")
            case "/documents":
                self._documents()
            case "/ingest" if rest:
                self._ingest(rest)
            case "/forget" if rest:
                self._forget(rest)
            case "/ingest" | "/forget":
                tell(_USES[name.casefold()])
            case _:
                tell(f"There is no command {safe_line(name, 40)}; /help lists them.")

    def _ingest(self, path: str) -> None:
        with IngestionDisplay(results=False) as display:
            verdicts = self.loop.run(ingest_paths(self.app, [path], None, display, self.audience))
        tell(verdict_summary(verdicts))
        gone = self.loop.run(count_gone(self.app, [path], self.audience))
        if gone:
            tell(told_gone(gone, "/forget"))

    def _documents(self) -> None:
        records = self.loop.run(self.app.library.documents(self.audience))
        for record in records:
            tell(document_line(record))
        if not records:
            tell("The library is empty. /ingest PATH adds a document.")

    def _forget(self, key: str) -> None:
        forgotten = self.loop.run(self.app.library.forget(key, self.audience))
        for record in forgotten.removed:
            tell(f"Forgotten: {document_line(record)}")
        if forgotten.ambiguous:
            tell("Nothing was done. Name one of these in full, or by its id:")
            for record in forgotten.ambiguous:
                tell(f"  {document_line(record)}")
        elif not forgotten.removed:
            tell(f"There is no document called {safe_line(key, 80)}; /documents lists them.")


def _lines(*, interactive: bool) -> Iterator[str]:
    return _typed() if interactive else _piped()


def _typed() -> Iterator[str]:
    """Lines from the keyboard, with arrow keys and history where readline is there. Ctrl-C twice ends them."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - `input` uses it once it is loaded; missing on some systems
    prompt = "> " if "utf" not in (sys.stdout.encoding or "").casefold() else "› "
    warned = False
    while True:
        try:
            line = input(prompt)
        except EOFError:
            say()
            return
        except KeyboardInterrupt:
            say()
            if warned:
                return
            say("(Ctrl-C again leaves, as does Ctrl-D.)")
            warned = True
            continue
        warned = False
        yield line


def _piped() -> Iterator[str]:
    """Lines from a pipe or a file, in UTF-8 whatever the locale is; what is longer than a line may be is cut off."""
    stream = sys.stdin.buffer
    while raw := stream.readline(4 * _LONGEST):
        line = raw.decode("utf-8-sig", "replace")
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(4 * _LONGEST)
        yield line[:_LONGEST]
