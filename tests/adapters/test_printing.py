from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.printing import print_json, safe, safe_line


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = safe(text)
    assert not [
        character for character in shown if unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t"
    ]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    shown.encode("utf-8")


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 50))
def test_a_line_is_one_line_of_at_most_its_length(text: str, limit: int) -> None:
    line = safe_line(text, limit)
    assert len(line.splitlines()) <= 1
    assert len(line) <= limit


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Größe: 5 µm – 日本語\n\tﬁ 👩‍👩‍👧"
    assert safe(text) == text


def test_an_escape_sequence_is_shown_and_not_obeyed() -> None:
    assert safe("\x1b[2J\x1b]0;title\x07") == "␛[2J␛]0;title␇"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "cp1252"])
def test_json_is_utf_8_in_every_locale(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    value = {"text": "日本 [red]x[/red] \x1b", "name": "broken \udcff"}
    print_json(value)
    assert json.loads(written.getvalue().decode("utf-8")) == value
    assert "日本" in written.getvalue().decode("utf-8")
