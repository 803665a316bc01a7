from __future__ import annotations

import string

import pytest

from bot.phrases import _PHRASES, phrase

LANGUAGES = {"en", "de", "fr", "es", "it", "pt", "ja", "zh", "ko"}


@pytest.mark.parametrize("key", _PHRASES)
def test_every_phrase_stands_in_every_language(key: str) -> None:
    assert set(_PHRASES[key]) == LANGUAGES
    assert len(set(_PHRASES[key].values())) == len(LANGUAGES)


@pytest.mark.parametrize("key", _PHRASES)
def test_translations_have_the_same_places_to_fill(key: str) -> None:
    places = {
        language: {name for _, name, _, _ in string.Formatter().parse(text) if name}
        for language, text in _PHRASES[key].items()
    }
    assert set(map(frozenset, places.values())) == {frozenset(places["en"])}


def test_english_stands_in_for_other_languages() -> None:
    assert phrase("thanks", "sw") == phrase("thanks", "en")


def test_values_are_filled_in_and_not_read_as_places() -> None:
    assert "{id}" in phrase("failed", "en", id="{id}")
    assert "error abcd1234" in phrase("fallback", "en", why=phrase("model_busy", "en"), id="abcd1234")
