"""LanguageModel without a language model: quotes the sentences that answer best, each with its marker.

A sentence is judged by its similarity to the question, by the rare words of the question that it contains, and by the
rank of its passage. A sentence that announces a list brings the list along.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bot.followups import joined
from bot.prompting import NO_ANSWER, harmless, unclosed_fence
from bot.types import EXTRACTIVE, ModelStop, ModelText, StopReason, Usage
from retrieval.bm25 import Bm25Encoder
from retrieval.sentences import split_sentences
from retrieval.types import ChunkKind

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from numpy.typing import NDArray

    from bot.types import Conversation, Prompt
    from retrieval.ports import Embedder
    from retrieval.types import Hit

_PASSAGES: Final = 5
"""Hits whose sentences are looked at."""
_EMBEDDED: Final = 28
"""Sentences that are embedded, the lexically best ones: about half a second."""
_QUOTED: Final = 3
_LONGEST_QUOTE: Final = 600
_LIST_LINES: Final = 10
_LIST_LINE: Final = re.compile(
    r"^\s*(?:[-*+•‣◦▪●○・※]|\(?\d{1,3}[.)]|(?:Task|Step|Schritt|Étape|Paso|手順|課題)\s*#?\d)\s*"
)
_LONGEST_LINE: Final = 240
_ANNOUNCING: Final = 2
_LONGEST_HEADING: Final = 80
_SLIDE_LINES: Final = 4
"""Short lines that are quoted together."""
_ENDED: Final = re.compile(r"[.!?。！？…:：;；|][)\]」』”\"']*$")
_CJK: Final = re.compile(r"[぀-ヿ㐀-鿿]")
# Weights of the three signals; measured on the answerable questions of three sets (docs/quality.md).
_LEXICAL: Final = 0.6
_RANK: Final = 0.2
_GAP: Final = 0.5
"""A further sentence is quoted when it is at most this much worse than the best."""


class _Unit(NamedTuple):
    """Text that can be quoted, and the heading in the passage that it stands under."""

    text: str
    under: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A sentence (with the list that it announces) of hit number `hit`, counted from 1."""

    hit: int
    position: int
    text: str
    under: str
    """The heading inside the passage that it stands under; empty when there is none."""
    terms: frozenset[int]


class Extractive:
    """Answers with the documents' own sentences."""

    def __init__(self, embedder: Embedder) -> None:
        """Judge similarity with this embedder."""
        self._embedder = embedder
        self._bm25 = Bm25Encoder()

    @property
    def name(self) -> str:
        """Its name beside answers."""
        return EXTRACTIVE

    async def generate(self, prompt: Prompt) -> AsyncGenerator[ModelText | ModelStop]:
        """Yield the quotes, one paragraph each, best first. Raises EmbeddingError."""
        quotes = await asyncio.to_thread(self._candidates, prompt)
        chosen = await self._choose(prompt, quotes)
        if not chosen:
            yield ModelText(text=NO_ANSWER)
        for number, quote in enumerate(chosen):
            yield ModelText(text=("\n\n" if number else "") + _shown(quote))
        yield ModelStop(reason=StopReason.DONE, usage=Usage())

    async def condense(self, conversation: Conversation, question: str) -> str:
        """Put what a follow-up leans on before it."""
        return joined(conversation.turns, question, conversation.remarks)

    async def close(self) -> None:
        """Nothing to let go of."""

    def _candidates(self, prompt: Prompt) -> list[Quote]:
        quotes = []
        for number, hit in enumerate(prompt.hits[:_PASSAGES], start=1):
            for position, unit in enumerate(_units(hit)):
                terms = frozenset(self._bm25.encode_query(f"{unit.under}\n{unit.text}").indices)
                quotes.append(Quote(hit=number, position=position, text=unit.text, under=unit.under, terms=terms))
        return quotes

    async def _choose(self, prompt: Prompt, quotes: Sequence[Quote]) -> list[Quote]:
        question = frozenset(self._bm25.encode_query(prompt.question).indices)
        lexical = _coverage(question, quotes)
        order = sorted(range(len(quotes)), key=lambda index: -(lexical[index] - 0.02 * quotes[index].hit))[:_EMBEDDED]
        if not order:
            return []
        vectors = await self._embedder.embed_passages(
            [_embedded(prompt.hits[quotes[i].hit - 1], quotes[i]) for i in order]
        )
        similarity = vectors @ await self._embedder.embed_query(prompt.question)
        scores = _scores(similarity, np.array([lexical[i] for i in order]), np.array([quotes[i].hit for i in order]))
        return _pick([(quotes[i], float(score)) for i, score in zip(order, scores, strict=True)], question)


def _units(hit: Hit) -> list[_Unit]:
    """What can be quoted of a passage: its sentences, each list with a sentence before it, the rows of a table."""
    if hit.chunk.kind is ChunkKind.TABLE:
        parts = sorted((hit.chunk, *hit.neighbours), key=lambda chunk: chunk.ordinal)
        return [_Unit(row) for part in parts for row in _table_rows(part.text)]
    text = hit.passage
    found = _Units()
    for span in split_sentences(text, "ja" if _CJK.search(text) else None):
        sentence = text[span.start : span.end].strip()
        if _LIST_LINE.match(sentence) and len(sentence) <= _LONGEST_LINE:
            found.items.append(sentence)
        elif _is_heading(sentence, text, span.end):
            found.take_heading(sentence)
        else:
            found.take_sentence(sentence)
    return found.finish()


class _Units:
    """Collects the units of a passage, sentence by sentence."""

    def __init__(self) -> None:
        self.items: list[str] = []
        """The list that is being read."""
        self._units: list[_Unit] = []
        self._sentences: list[_Unit] = []
        self._headings: list[str] = []

    def take_sentence(self, sentence: str) -> None:
        """A sentence, under the heading just before it; several short lines before it are a slide's text."""
        self._end_list()
        unit = _Unit(sentence, self._headings[-1] if self._headings else "")
        if len(self._headings) > 1:
            self._end_headings()
        self._headings.clear()
        self._sentences.append(unit)
        self._units.append(unit)

    def take_heading(self, line: str) -> None:
        self._end_list()
        self._headings.append(line)
        if len(self._headings) == _SLIDE_LINES:
            self._end_headings()

    def finish(self) -> list[_Unit]:
        """All units; a heading at the end of a passage is all that there is of its section."""
        self._end_list()
        self._end_headings()
        return [unit for unit in self._units if _says_something(unit.text)]

    def _end_list(self) -> None:
        # Which sentence announces the list is for the question to decide: the last or the last but one.
        if not self.items:
            return
        lines = "\n".join(self.items[:_LIST_LINES])
        before = self._sentences[-_ANNOUNCING:]
        self._units.extend(_Unit(f"{sentence.text}\n{lines}", sentence.under) for sentence in before)
        if not before:
            self._units.extend(map(_Unit, self.items))
        self.items.clear()

    def _end_headings(self) -> None:
        if self._headings:
            self._units.append(_Unit("\n".join(self._headings)))
        self._headings.clear()


def _is_heading(sentence: str, text: str, end: int) -> bool:
    """A short line of its own without a sentence's end: it names what follows and answers nothing itself."""
    alone = end >= len(text.rstrip()) or text[end : end + 1] == "\n" or text[end - 1 : end] == "\n"
    return alone and len(sentence) <= _LONGEST_HEADING and not _ENDED.search(sentence)


def _table_rows(markdown: str) -> list[str]:
    """Each row with the header before it; the lines as they are when it is no table of Markdown."""
    lines = markdown.splitlines()
    rows = [line for line in lines if line.lstrip().startswith("|")]
    if len(rows) < 3:
        return list(filter(_says_something, lines))
    header, rule = rows[0], rows[1]
    return [f"{header}\n{rule}\n{row}" for row in filter(_says_something, rows[2:])]


def _says_something(text: str) -> bool:
    return any(char.isalnum() for char in text)


def _coverage(question: frozenset[int], quotes: Sequence[Quote]) -> list[float]:
    """The share of the question's terms in each sentence, terms weighted by how few of these sentences have them."""
    counts = Counter(term for quote in quotes for term in quote.terms & question)
    total = len(quotes)
    weight = {term: math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5)) for term in question}
    whole = sum(weight[term] for term in question if counts[term]) or 1.0
    return [sum(weight[term] for term in quote.terms & question) / whole for quote in quotes]


def _scores(
    similarity: NDArray[np.float32], lexical: NDArray[np.float64], hits: NDArray[np.int64]
) -> NDArray[np.float64]:
    spread = float(similarity.std()) or 1.0
    near = (similarity - similarity.mean()) / (3 * spread)
    return np.asarray(near + _LEXICAL * lexical - _RANK * np.log2(hits), dtype=np.float64)


def _pick(scored: list[tuple[Quote, float]], question: frozenset[int]) -> list[Quote]:
    """The best sentence, and further ones that are nearly as good and say something else."""
    scored.sort(key=lambda item: -item[1])
    near = [quote for quote, score in scored if score >= scored[0][1] - _GAP]
    chosen: list[Quote] = []
    for quote in near:
        if len(chosen) == _QUOTED:
            break
        if all(_differs(quote.terms - question, other.terms - question) for other in chosen):
            chosen.append(quote)
    return [_with_list(quote, near) for quote in chosen]


def _with_list(quote: Quote, near: Sequence[Quote]) -> Quote:
    """The sentence with the list that it announces, when that is nearly as good: half an enumeration answers little."""
    longer = (other for other in near if other.hit == quote.hit and other.text.startswith(f"{quote.text}\n"))
    return next(longer, quote)


def _differs(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether the first sentence adds something to the other; both without the question's terms, which tell nothing."""
    return bool(one) and len(one & other) < 0.6 * max(1, min(len(one), len(other)))


def _embedded(hit: Hit, quote: Quote) -> str:
    heading = quote.under or (hit.chunk.heading_path[-1] if hit.chunk.heading_path else hit.chunk.title)
    return f"{heading}\n{quote.text}"


def _shown(quote: Quote) -> str:
    text = harmless(quote.text)
    if text.startswith(NO_ANSWER.replace("_", " ")):
        text = f"… {text}"  # a document's own words, not the sentinel
    if len(text) > _LONGEST_QUOTE:
        cut = text.rfind(" ", 0, _LONGEST_QUOTE)
        text = text[: cut if cut > _LONGEST_QUOTE // 2 else _LONGEST_QUOTE] + " …"
    if fence := unclosed_fence(text):
        text = f"{text}\n{fence}"  # what follows, the marker first, is no code
    marker = f"[{quote.hit}]"
    return f"{text}\n\n{marker}" if "\n" in text else f"{text} {marker}"
