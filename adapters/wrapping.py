"""Lines broken between words at the terminal's width, also for text that arrives in pieces."""

from __future__ import annotations

import shutil
import sys
from typing import Final

_LEAST: Final = 20
"""Columns under which breaking lines helps nobody."""


class WordWrap:
    """Puts line ends in. A word longer than a line, and a table's row, is left to the terminal.

    Feed it pieces; every call returns what can be printed now. A word is held back until its end has come.
    """

    def __init__(self, width: int, indent: str = "") -> None:
        """Lines of at most `width` columns; those that we begin start with `indent`."""
        self._width = width
        self._indent = indent
        self._column = 0
        self._blanks = ""
        self._word = ""
        self._table = False

    def feed(self, text: str) -> str:
        """Take the next piece."""
        return "".join(map(self._take, text))

    def finish(self) -> str:
        """What was held back."""
        rest, self._blanks = self._flush() + self._blanks, ""
        return rest

    def _take(self, character: str) -> str:
        if self._column == 0 and not self._word:
            self._table = character == "|"
        if character == "\n":
            out = self._flush()
            self._blanks, self._column, self._table = "", 0, False
            return out + "\n"
        if character in " \t" and not self._table:
            out = self._flush()
            self._blanks += character
            return out
        if _columns(character) > 1:  # lines may break on either side of a wide character
            out = self._flush()
            self._word = character
            return out + self._flush()
        self._word += character
        return ""

    def _flush(self) -> str:
        if not self._word:
            return ""
        word, blanks = self._word, self._blanks
        self._word, self._blanks = "", ""
        size = sum(map(_columns, word))
        if self._column and self._column + len(blanks) + size > self._width and not self._table:
            self._column = len(self._indent) + size
            return f"\n{self._indent}{word}"
        self._column += len(blanks) + size
        return blanks + word


def wrapped(text: str, indent: str = "") -> str:
    """The text with lines broken for the terminal; unchanged where standard output is none."""
    width = terminal_width()
    if width is None:
        return text
    wrap = WordWrap(width, indent)
    return wrap.feed(text) + wrap.finish()


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is, or None."""
    if not sys.stdout.isatty():
        return None
    width = shutil.get_terminal_size().columns
    return width if width >= _LEAST else None


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    from rich.cells import cell_len  # noqa: PLC0415 - not needed for `--help`

    return cell_len(character)
