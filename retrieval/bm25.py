"""Text → BM25 vectors, the same for every store: Qdrant's tokenizers, stemmer, stop words and term hashes.

One setting serves all languages: words of spaced scripts are stemmed as English, Chinese and Japanese are cut into
words by dictionary, stop words of English, Japanese and Chinese are left out. Two things are added on top:

- Compounds are indexed joined up as well as in parts, so that `pre-training`, `pretraining`, `e-mail` and `email` find
  each other.
- The multilingual tokenizer drops bare numbers; they are put back (`1,000` as `1000`).

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
                stopwords=edge.StopwordsSet(
                    languages={edge.Language.English, edge.Language.Japanese}
                ),
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
        folded = _fold(text)
        wanted = set(self._count(text))
        found: dict[int, str] = {}

        def note(indices: Iterable[int], surface: str) -> None:
            for index in wanted.intersection(indices):
                found.setdefault(index, surface)

        for number in _NUMBER.findall(folded):
            note(self._literal.embed_query(number).indices, number)
        for run in _WORD.findall(folded):
            indices = self._words.embed_query(run).indices
            if len(indices) == 1:
                note(indices, run)
            if not run.isascii():
                # Words cut out of unspaced script are not stemmed, so their hash tells them.
                for piece in _pieces(run):
                    note(self._literal.embed_query(piece.lower()).indices, piece)
        for compound in _COMPOUND.findall(folded):
            note(self._words.embed_query(_joined(compound)).indices, compound)
        return found

    def _count(self, text: str) -> Counter[int]:
        """How often each term occurs."""
        text = _fold(text)
        counts = _frequencies(self._words.embed_document(text))
        compounds = " ".join(_joined(compound) for compound in _COMPOUND.findall(text))
        if compounds:
            counts += _frequencies(self._words.embed_document(compounds))
        numbers = " ".join(_NUMBER.findall(text))
        if numbers:
            counts += _frequencies(self._literal.embed_document(numbers))
        return counts


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
