from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from adapters.wrapping import WordWrap


def wrap(text: str, width: int, indent: str = "") -> str:
    wrapping = WordWrap(width, indent)
    return wrapping.feed(text) + wrapping.finish()


def test_lines_break_between_words() -> None:
    assert wrap("one two three four", 9) == "one two\nthree\nfour"
    assert wrap("one two three", 9, "  ") == "one two\n  three"


def test_lines_that_are_there_stay() -> None:
    assert wrap("a list:\n- one\n- two\n\nend", 40) == "a list:\n- one\n- two\n\nend"


def test_japanese_breaks_anywhere_and_counts_two_columns_a_sign() -> None:
    assert wrap("梅雨は雨季である", 6) == "梅雨は\n雨季で\nある"


def test_a_long_word_and_a_table_are_left_alone() -> None:
    assert wrap("see https://example.org/a/very/long/path now", 12) == "see\nhttps://example.org/a/very/long/path\nnow"
    assert (
        wrap("| a long header | another one |\n| --- | --- |", 12) == "| a long header | another one |\n| --- | --- |"
    )


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pieces_make_no_difference(size: int) -> None:
    text = "The masked 言語モデル randomly masks  some of the tokens.\n\nAnd more [1]."
    wrapping = WordWrap(14)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert "".join(map(wrapping.feed, pieces)) + wrapping.finish() == wrap(text, 14)


@given(st.text(alphabet="ab |-漢字 \n", max_size=80), st.integers(4, 30))
def test_nothing_but_blanks_at_line_ends_is_lost(text: str, width: int) -> None:
    result = wrap(text, width)
    assert "".join(result.split()) == "".join(text.split())
    for line in result.split("\n"):
        assert cell_len(line.rstrip()) <= width or line.lstrip().startswith("|") or len(line.split()) == 1
