"""Blocks → segments: the smallest pieces that a chunk is put together from, each with its length in tokens.

A segment is a sentence of prose, a list item's sentence, a line of code, a heading, a whole small table or a row of a
large one. One that is longer than a chunk may be is halved at clause marks (cell borders in a table), then at spaces,
then between graphemes, until it fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import regex  # type: ignore[import-untyped]  # ships no types

from retrieval.sentences import Span, cut_to_size, split_sentences
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from retrieval.types import Block, Document

    TokenCounter = Callable[[Sequence[str]], list[int]]

_CLAUSE_END: Final = regex.compile(r"[,;:][\s]|[、，；：。！？]|\s[–—]\s|\.\s|\|")
_SPACE: Final = regex.compile(r"\s+")
_GRAPHEME: Final = regex.compile(r"\X")
_RULE_LINE: Final = regex.compile(r"\s*\|?[\s:|-]+\|?\s*")
_LINE: Final = regex.compile(r"[^\n]*[^\s][^\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """`document.text[start:end]`, part of the block with index `block`.

    `opens` marks the first segment of its block; `header` a table's header, which is not to be parted from its rows.
    """

    block: int
    kind: BlockKind
    start: int
    end: int
    tokens: int
    opens: bool
    header: bool = False


def segment(document: Document, *, limit: int, count_tokens: TokenCounter) -> list[Segment]:
    """Cut every block into segments of at most `limit` tokens, in order; what is between them is white space.

    A table of up to `limit` tokens is one segment. Tokens are counted in a few large batches.
    """
    whole = _counted(
        document,
        [
            Segment(block=index, kind=block.kind, start=block.start, end=block.end, tokens=0, opens=True)
            for index, block in enumerate(document.blocks)
            if block.kind is BlockKind.TABLE
        ],
        count_tokens,
    )
    tables = {table.block: table for table in whole}
    segments: list[Segment] = []
    for index, block in enumerate(document.blocks):
        table = tables.get(index)
        if table is not None and table.tokens <= limit and block.text.strip():
            segments.append(table)
        else:
            segments.extend(_parts(index, block, document.language))
    return _fitting(document, _counted(document, segments, count_tokens), limit, count_tokens)


def _parts(index: int, block: Block, language: str | None) -> Iterator[Segment]:
    header = False
    if block.kind in {BlockKind.TABLE, BlockKind.CODE}:
        lines = [Span(*match.span()) for match in _LINE.finditer(block.text)]
        if block.kind is BlockKind.TABLE and len(lines) > 1:
            rule = block.text[lines[1].start : lines[1].end]
            header = "-" in rule and _RULE_LINE.fullmatch(rule) is not None
            lines = [Span(lines[0].start, lines[1].end), *lines[2:]] if header else lines
        spans = [piece for line in lines for piece in cut_to_size(block.text, line)]
    elif block.kind is BlockKind.HEADING:
        spans = list(cut_to_size(block.text, Span(0, len(block.text))))
    else:
        spans = list(split_sentences(block.text, language))
    opens = True
    for start, end in spans:
        if block.text[start:end].strip():
            yield Segment(
                block=index,
                kind=block.kind,
                start=block.start + start,
                end=block.start + end,
                tokens=0,
                opens=opens,
                header=header and opens,
            )
            opens = False


def _counted(document: Document, segments: list[Segment], count_tokens: TokenCounter) -> list[Segment]:
    """The same segments with their tokens counted in one call."""
    if not segments:
        return []
    counts = count_tokens([document.text[item.start : item.end] for item in segments])
    return [replace(item, tokens=tokens) for item, tokens in zip(segments, counts, strict=True)]


def _fitting(document: Document, segments: list[Segment], limit: int, count_tokens: TokenCounter) -> list[Segment]:
    """Halve what is over the limit, one batch of counting for each round."""
    while any(item.tokens > limit and item.end - item.start > 1 for item in segments):
        halves = [half for item in segments if item.tokens > limit for half in halved(document.text, item)]
        counted = iter(_counted(document, halves, count_tokens))
        segments = [
            part
            for item in segments
            for part in ([item] if item.tokens <= limit else [next(counted) for _ in halved(document.text, item)])
        ]
    return segments


def halved(text: str, item: Segment) -> list[Segment]:
    """Two parts, cut near the middle at the best place there is; the segment itself when it is one character."""
    cut = _middle(text, item.start, item.end)
    if cut is None:
        return [item]
    return [
        replace(item, end=_trimmed(text, item.start, cut), header=False),
        replace(item, start=cut, opens=False, header=False),
    ]


def _trimmed(text: str, start: int, end: int) -> int:
    """`end` without the white space before it, unless nothing would be left."""
    return start + len(text[start:end].rstrip()) if text[start:end].strip() else end


def _middle(text: str, start: int, end: int) -> int | None:
    """Where to cut: behind a clause mark or a space in the middle half, else between two graphemes."""
    if end - start < 2:
        return None
    center, quarter = (start + end) / 2, max(1, (end - start) // 4)
    for mark in (_CLAUSE_END, _SPACE):
        cuts = [match.end() for match in mark.finditer(text, start + quarter, end - quarter)]
        if cuts:
            return int(min(cuts, key=lambda cut: abs(cut - center)))
    cuts = [match.end() for match in _GRAPHEME.finditer(text, start, end)][:-1]
    # One endless grapheme (a letter under hundreds of accents) is cut by characters.
    return int(min(cuts, key=lambda cut: abs(cut - center))) if cuts else int(center)
