"""Lines from a keyboard or a pipe, and what somebody means by one."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapters.local_files import LocalFile, find_files
from adapters.printing import safe_line, say, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

LONGEST: Final = 100_000
"""Characters of a line."""
QUIT: Final = frozenset({"quit", "exit", "q"})
_COMMANDS: Final = frozenset({"ingest", "documents", "forget", "history", "good", "bad", "new", "help"})
_ALIASES: Final = {"?": "help"}
_NEEDS: Final = {
    "ingest": "/ingest needs a path, for example: /ingest report.pdf",
    "forget": "/forget needs a title or an id, for example: /forget Travel policy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A question, or a command with its arguments. `refusal`: why it is neither, for the person."""

    text: str
    command: str = ""
    paths: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def leaves(self) -> bool:
        """Whether it ends the chat."""
        return self.command in QUIT


def read(line: str) -> Line | None:
    """What is meant; None by an empty line."""
    text = typed(line).strip()
    if not text.startswith("/"):
        return Line(text=text) if text else None
    name, _, rest = text[1:].partition(" ")
    name = _ALIASES.get(name, name.casefold())
    rest = rest.strip()
    if name in QUIT:
        return Line(text=rest, command=name)
    if name not in _COMMANDS:
        shown = safe_line(text.partition(" ")[0], 40)
        return Line(text=text, refusal=f"There is no command {shown}; /help lists them.")
    unquoted = rest.strip("\"'")
    if name in _NEEDS and not unquoted:
        return Line(text=text, refusal=_NEEDS[name])
    paths = _paths(rest) if name == "ingest" else ()
    return Line(text=unquoted if name == "forget" else rest, command=name, paths=paths)


def _paths(rest: str) -> tuple[str, ...]:
    """The paths of `/ingest`: several, or one with blanks in its name."""
    whole = rest.strip("\"'")
    if not any(map(str.isspace, whole)) or isinstance(next(iter(find_files([whole])), None), LocalFile):
        return (whole,)
    try:
        parts = shlex.split(rest, posix=os.name == "posix")
    except ValueError:
        return (whole,)
    paths = tuple(part.strip("\"'") for part in parts)
    return paths if all(paths) and paths else (whole,)


def typed_lines(reading: Callable[[], AbstractContextManager[None]]) -> Iterator[str]:
    """Lines from the keyboard, with arrow keys and history where readline is there. Ctrl-C twice ends them.

    `reading` is entered while keys are waited for.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - `input` uses it once it is loaded; missing on some systems
    warned = False
    while True:
        try:
            with reading():
                line = input(prompt())
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


def prompt() -> str:
    """What stands before the line that is typed."""
    return "› " if "utf" in (sys.stdout.encoding or "").casefold() else "> "


def being_typed() -> str:
    """What stands on the line that is being typed, where the system tells."""
    readline = sys.modules.get("readline")
    return str(readline.get_line_buffer()) if readline is not None else ""


def piped_lines() -> Iterator[str]:
    """Lines from a pipe or a file, in UTF-8 whatever the locale is; what is longer than a line may be is cut off."""
    stream = sys.stdin.buffer
    while raw := stream.readline(4 * LONGEST):
        line = raw.decode("utf-8-sig", "replace")
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(4 * LONGEST)
        yield line[:LONGEST]
