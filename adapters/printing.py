"""What goes to a terminal or a pipe. Texts of documents and names of files are data: they never steer the terminal."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

_BIDI: Final = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}
"""Direction marks can show a text in another order than it has."""


def safe(text: str) -> str:
    """Text that may be printed: control characters and lone surrogates are shown as signs, lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def safe_line(text: str, limit: int = 200) -> str:
    """The same on one line, at most `limit` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _shown(character: str) -> str:
    code = ord(character)
    if character in "\n\t":
        return character
    if code < 0x20:
        return "" if character == "\r" else chr(0x2400 + code)
    if code in _BIDI:
        return ""
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if unicodedata.category(character) in {"Cc", "Cs"} else character


def typed(text: str) -> str:
    """What somebody typed, as Unicode that can be encoded: bytes that were none become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def prepare_streams() -> None:
    """Make printing safe with every encoding: what it lacks becomes a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def say(text: str = "", *, end: str = "\n") -> None:
    """Print to standard output at once. The text has to be safe."""
    sys.stdout.write(text + end)
    sys.stdout.flush()


def tell(text: str) -> None:
    """Print a line about the work to standard error. The text has to be safe."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def print_json(value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Print one JSON document in UTF-8 whatever the locale is, indented for a terminal."""
    _write_json(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None, allow_nan=False))


def print_json_line(value: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Print a JSON document on one line, for streams of them."""
    _write_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _write_json(text: str) -> None:
    # A lone surrogate becomes an escape, which JSON reads back.
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def console(*, stderr: bool = False) -> Console:
    """A console that takes texts literally: no markup, no emoji names, no highlighting."""
    from rich.console import Console  # noqa: PLC0415 - a tenth of a second that `--help` does not need

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)
