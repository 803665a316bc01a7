"""Cuts texts to a length without cutting what a reader sees as one character."""

from __future__ import annotations

import re
from typing import Final

import regex  # type: ignore[import-untyped]  # ships no types

_GRAPHEME: Final = regex.compile(r"\X")
_PLAIN: Final = re.compile(r"[ -~\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff]{2}")
"""Two characters that never are one grapheme."""
_LOOK_BACK: Final = 64


def clipped(text: str, room: int) -> str:
    """At most `room` code points (and 1 at the least) of whole graphemes, `…` showing that something is missing.

    The cut is at the last blank, if there is one in the last fifth.
    """
    if len(text) <= room:
        return text
    fifth = room * 4 // 5
    end, blank = _boundary(text, fifth), 0
    for match in _GRAPHEME.finditer(text, end):
        if match.end() > room - 1:
            break
        end = match.end()
        if match[0].isspace():
            blank = match.start()
    return f"{text[: blank if blank > fifth else end].rstrip()}…"


def _boundary(text: str, before: int) -> int:
    """Where a grapheme begins, to scan from; near to `before` where it can be told without reading all of the text."""
    plain = _PLAIN.search(text, max(0, before - _LOOK_BACK), before)
    return plain.start() + 1 if plain else 0
