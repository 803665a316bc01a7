"""Cited hits → the numbered sources under an answer, each with the part of its passage that the answer stands on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bot.types import Source
from retrieval.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.types import Chunk, Hit

_LONGEST_EXCERPT: Final = 500
_MARKER: Final = re.compile(r"\[(\d+)\]")
_WORD: Final = re.compile(r"[^\W_]+")
_CJK: Final = re.compile(r"[぀-ヿ㐀-鿿가-힣]")


def build_sources(text: str, order: Sequence[int], hits: Sequence[Hit]) -> tuple[Source, ...]:
    """The sources of an answer. `order[k - 1]` is the index (from 0) of the hit that marker `[k]` in `text` names."""
    claims = _claims(text)
    return tuple(_source(marker, hits[index], claims.get(marker, "")) for marker, index in enumerate(order, start=1))


def _claims(text: str) -> dict[int, str]:
    """The words before each marker's first place, back to the marker before; markers side by side share them."""
    claims: dict[int, str] = {}
    start, claim = 0, ""
    for match in _MARKER.finditer(text):
        before = text[start : match.start()].strip()
        if _WORD.search(before):
            claim = before
        start = match.end()
        claims.setdefault(int(match[1]), claim)
    return claims


def _source(marker: int, hit: Hit, claim: str) -> Source:
    chunk, start, excerpt = _best_part(hit, claim)
    return Source(
        marker=marker,
        document_id=chunk.document_id,
        title=chunk.title,
        uri=chunk.uri,
        page=chunk.page_at(start),
        last_page=chunk.page_at(start + max(0, len(excerpt) - 1)),
        heading=" > ".join(chunk.heading_path),
        excerpt=excerpt,
        score=hit.score,
    )


def _best_part(hit: Hit, claim: str) -> tuple[Chunk, int, str]:
    """The chunk (the hit's own or a neighbour), the offset in its text and the sentences nearest to the claim."""
    wanted = _words(claim)
    best: tuple[float, Chunk, int, int] | None = None
    for chunk in (hit.chunk, *hit.neighbours):
        spans = split_sentences(chunk.text, "ja" if _CJK.search(chunk.text) else None)
        for span in spans:
            found = _words(chunk.text[span.start : span.end])
            score = len(found & wanted) / (len(found | wanted) or 1)
            if best is None or score > best[0]:
                best = (score, chunk, span.start, span.end)
    if best is None:
        return hit.chunk, 0, hit.chunk.text[:_LONGEST_EXCERPT].strip()
    _, chunk, start, end = best
    return chunk, start, _grown(chunk.text, start, end)


def _grown(text: str, start: int, end: int) -> str:
    """The sentence and as many of those after it as fit; a sentence that is too long by itself is cut at a blank."""
    if end - start > _LONGEST_EXCERPT:
        blank = text.rfind(" ", start + _LONGEST_EXCERPT // 2, start + _LONGEST_EXCERPT)
        return text[start : blank if blank > 0 else start + _LONGEST_EXCERPT].rstrip()
    offset = end
    for span in split_sentences(text[offset:], "ja" if _CJK.search(text) else None):
        if offset + span.end - start > _LONGEST_EXCERPT:
            break
        end = offset + span.end
    return text[start:end].rstrip()


def _words(text: str) -> frozenset[str]:
    folded = _MARKER.sub(" ", text).casefold()
    words = set(_WORD.findall(folded))
    if _CJK.search(folded):
        words = {folded[i : i + 2] for i in range(len(folded) - 1) if not folded[i : i + 2].isspace()}
    return frozenset(words)
