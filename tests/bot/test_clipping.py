from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bot.clipping import clipped

FAMILY = "👨‍👩‍👧‍👦"
PIECES = st.lists(
    st.sampled_from(
        [FAMILY, "🇫🇷", "é", "e\u0301", "한", "\u1112\u1161\u11ab", "か\u3099", "क्षि", "\r\n", " ", "a", "plain words"]
    )
)


def graphemes(text: str) -> list[str]:
    return regex.findall(r"\X", text)


@given(PIECES.map("".join) | st.text(), st.integers(1, 150))
def test_whole_graphemes_within_the_room(text: str, room: int) -> None:
    cut = clipped(text, room)
    assert len(cut) <= room
    if len(text) <= room:
        assert cut == text
    else:
        assert cut.endswith("…")
        kept = graphemes(cut.removesuffix("…"))
        assert kept == graphemes(text)[: len(kept)]


@pytest.mark.parametrize(
    ("text", "room", "cut"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("one two three", 9, "one two…"),
        ("a verylongword", 9, "a verylo…"),
        (f"a{FAMILY}b", 8, "a…"),
        (FAMILY, 3, "…"),
        ("日本語の文章", 4, "日本語…"),
        ("x" * 5, 0, "…"),
    ],
)
def test_where_it_is_cut(text: str, room: int, cut: str) -> None:
    assert clipped(text, room) == cut
