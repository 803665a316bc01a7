from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.codec import decode, encode
from bot.errors import MalformedStateError
from bot.types import Turn


def turn(question: str) -> Turn:
    return Turn(question=question, reply="", author="Ada", asked_at=datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC))


@given(st.text())
def test_what_is_stored_comes_back_in_one_line(text: str) -> None:
    assert "\n" not in encode(turn(text))
    assert decode(Turn, encode(turn(text)).encode()) == turn(text)


def test_half_a_surrogate_pair_stops_nothing() -> None:
    assert decode(Turn, encode(turn("a\ud800b"))) == turn("a?b")


def test_unknown_fields_are_left_out() -> None:
    assert decode(Turn, encode(turn("q")).replace("{", '{"new": [1], ', 1)) == turn("q")


@pytest.mark.parametrize("data", [b"", b"\xff", b"null", b"[]", b'{"question": 1}', b"x" * 100_000, b"[" * 100_000])
def test_what_cannot_be_read_is_an_error_of_its_own(data: bytes) -> None:
    with pytest.raises(MalformedStateError):
        decode(Turn, data)
