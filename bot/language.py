"""Which language a question is in: by script where that decides, else by a small model that is part of a package."""

from __future__ import annotations

import re
from typing import Final

from retrieval.languages import detect_language

_KANA: Final = re.compile(r"[぀-ヿｦ-ﾟ]")
_HANGUL: Final = re.compile(r"[가-힣]")
_HAN: Final = re.compile(r"[㐀-鿿]")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
_SURE: Final = 0.5
"""Below this a few words are as likely a name or a term as a sentence in that language."""


def question_language(text: str, otherwise: str = "en") -> str:
    """The ISO 639-1 code of the language to answer in; `otherwise` when the words do not tell."""
    if _KANA.search(text):
        return "ja"
    if _HANGUL.search(text):
        return "ko"
    if _HAN.search(text):
        return "zh"
    if len(_LETTERS.findall(text)) < 2:
        return otherwise
    code, certainty = detect_language(text)
    return code if certainty >= _SURE else otherwise
