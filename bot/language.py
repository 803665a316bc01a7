"""Which language to answer a question in."""

from __future__ import annotations

import re
from typing import Final

from retrieval.languages import detect_language, language_by_script

_WORDS: Final = re.compile(r"[^\W\d_]{2,}")
_SURE: Final = 0.5
"""Below this a few words are as likely a name or a term as a sentence in that language."""


def question_language(text: str, otherwise: str = "en") -> str:
    """The ISO 639-1 code of the language to answer in; `otherwise` when the words do not tell."""
    script = language_by_script(text)
    if script is not None:
        return script
    if len(_WORDS.findall(text)) < 2:
        return otherwise
    code, certainty = detect_language(text)
    return code if certainty >= _SURE else otherwise
