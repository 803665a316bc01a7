"""Text → BM25 vectors, the same for every store: Qdrant's tokenizers, stemmer, stop words and term hashes.

One setting serves all languages: words of spaced scripts are stemmed as English, Chinese and Japanese are cut into
words by dictionary, stop words of English and Japanese are left out. On top of that:

- The tokenizer guesses between Chinese and Japanese from the whole text and would cut a question of a few characters
  otherwise than the document it is about. So these runs are encoded apart, with a tail that settles the guess.
- Pairs of neighbouring Han characters are indexed too: dictionaries cut a long compound in more than one way.
- Compounds are indexed joined up as well as in parts, so that `pre-training`, `pretraining`, `e-mail` and `email` find
  each other.
- The tokenizer drops bare numbers; they are put back (`1,000` as `1000`).

Weights follow Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), eq. 3.15; the
stores multiply by the inverse document frequency.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import qdrant_edge as edge

from retrieval.types import SparseVector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

K = 1.6
"""Saturation of the term frequency."""
B = 0.75
"""How far long texts are discounted."""
AVERAGE_LENGTH = 100.0
"""Terms of a usual chunk; a constant, so that a chunk's vector does not depend on the others."""
MAX_COMPOUND = 40
"""Characters of the longest compound that is joined up."""

_COUNTING_K = 1000.0
_HYPHENS = str.maketrans({"\u2010": "-", "\u2011": "-", "\u00ad": None})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?!\w)")
_COMPOUND = re.compile(r"(?<![\w-])[^\W_]+(?:[-&][^\W_]+)+(?![\w-])")
# Digits inside a word (`H2O`, `v2`) are part of it for the tokenizer; those beside Chinese or Japanese are not.
_NUMBER = re.compile(r"(?<![A-Za-z\d_.])\d+(?:\.\d+)*(?![A-Za-z\d_])")
_HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_UNSPACED = re.compile(f"[\u3040-\u30ff{_HAN}]+")
_HAN_RUN = re.compile(f"[{_HAN}]{{2,}}")
# Nothing but Japanese stop words and punctuation.
_TAIL = "\n。これはのです。"
_WORD = re.compile(r"[^\W_]+")
_LONGEST_SEGMENT = 12


class Bm25Encoder:
    """Makes BM25 vectors. Holds no state that changes; safe to share between threads."""

    VERSION = "bm25-1"
    """Changes whenever the same text may give another vector; stored with the library."""

    def __init__(self) -> None:
        # With b = 0 the library's weight is tf * (k + 1) / (tf + k), from which the frequency can be read back.
        self._words = edge.Bm25(
            edge.Bm25Config(
                k=_COUNTING_K,
                b=0.0,
                tokenizer=edge.TokenizerType.Multilingual,
                stopwords=edge.StopwordsSet(languages={edge.Language.English, edge.Language.Japanese}),
            )
        )
        self._literal = edge.Bm25(
            edge.Bm25Config(
                k=_COUNTING_K,
                b=0.0,
                tokenizer=edge.TokenizerType.Whitespace,
                stopwords=edge.StopwordsSet(languages=set(), custom=set()),
                stemmer=edge.DisabledStemmer(),
            )
        )

    def encode_document(self, text: str) -> SparseVector:
        """The vector of a text to be found: saturated, length-discounted term frequencies."""
        counts = self._count(text)
        discount = K * (1 - B + B * counts.total() / AVERAGE_LENGTH)
        indices = sorted(counts)
        values = (counts[index] * (K + 1) / (counts[index] + discount) for index in indices)
        return SparseVector(indices=tuple(indices), values=tuple(values))

    def encode_documents(self, texts: Iterable[str]) -> list[SparseVector]:
        """`encode_document` for each text."""
        return [self.encode_document(text) for text in texts]

    def encode_query(self, text: str) -> SparseVector:
        """The vector of a question: every different term once, with weight 1."""
        indices = sorted(self._count(text))
        return SparseVector(indices=tuple(indices), values=(1.0,) * len(indices))

    def terms(self, text: str) -> dict[int, str]:
        """The words of a question by their index in `encode_query`, as they stand in its NFKC-folded text.

        For showing and highlighting. A joined compound stands as it is written (`pre-training`). A term that cannot be
        traced to a piece of the text is left out.
        """
        wanted = set(self._count(text))
        found: dict[int, str] = {}
        for surface, vector in self._readings(_fold(text)):
            for index in wanted.intersection(vector.indices):
                found.setdefault(index, surface)
        return found

    def _readings(self, folded: str) -> Iterator[tuple[str, edge.SparseVector]]:
        """Pieces of the text with the terms that they may stand for."""
        for number in _NUMBER.findall(folded):
            yield number, self._literal.embed_query(number)
        unspaced = _UNSPACED.findall(folded)
        for word in _WORD.findall(_UNSPACED.sub(" ", folded)):
            vector = self._words.embed_query(word)
            if len(vector.indices) == 1:
                yield word, vector
            elif not word.isascii():
                unspaced.append(word)
        for run in unspaced:
            # Words cut out of unspaced script are not stemmed, so their hash tells them.
            for piece in _pieces(run):
                yield piece, self._literal.embed_query(piece.lower())
        for compound in _COMPOUND.findall(folded):
            yield compound, self._words.embed_query(_joined(compound))

    def _count(self, text: str) -> Counter[int]:
        """How often each term occurs."""
        text = _fold(text)
        counts = _frequencies(self._words.embed_document(_UNSPACED.sub(" ", text)))
        compounds = " ".join(_joined(compound) for compound in _COMPOUND.findall(text))
        if compounds:
            counts += _frequencies(self._words.embed_document(compounds))
        numbers = " ".join(_NUMBER.findall(text))
        if numbers:
            counts += _frequencies(self._literal.embed_document(numbers))
        runs = "\n".join(_UNSPACED.findall(text))
        if runs:
            words = _frequencies(self._words.embed_document(runs + _TAIL))
            pairs = _frequencies(self._literal.embed_document(" ".join(_pairs(runs))))
            counts += words | pairs  # the union takes the larger count: a word of two characters is one term
        return counts


def _pairs(runs: str) -> Iterator[str]:
    for run in _HAN_RUN.findall(runs):
        for start in range(len(run) - 1):
            yield run[start : start + 2]


def _fold(text: str) -> str:
    text = unicodedata.normalize("NFKC", _LONE_SURROGATE.sub(" ", text)).translate(_HYPHENS)
    return _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)


def _pieces(run: str) -> Iterator[str]:
    """All substrings up to the length of a long word."""
    for start in range(len(run)):
        for end in range(start + 1, min(start + _LONGEST_SEGMENT, len(run)) + 1):
            yield run[start:end]


def _joined(compound: str) -> str:
    """The compound without its joints, or nothing when that would be a monster or all numbers."""
    parts = re.split("[-&]", compound)
    joined = "".join(parts)
    return "" if len(joined) > MAX_COMPOUND or joined.isdecimal() else joined


def _frequencies(vector: edge.SparseVector) -> Counter[int]:
    """Read the frequencies out of the counting model's weights."""
    return Counter(
        {
            index: max(1, round(_COUNTING_K * value / (_COUNTING_K + 1 - value)))
            for index, value in zip(vector.indices, vector.values, strict=True)
        }
    )
