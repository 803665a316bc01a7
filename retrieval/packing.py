"""Segments → packs of about the target size, broken where the text breaks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, groupby
from math import ceil
from typing import TYPE_CHECKING, Final

import regex  # type: ignore[import-untyped]  # ships no types

from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from retrieval.segments import Segment
    from retrieval.types import Document

_CAPTION: Final = regex.compile(
    r"\s*(?:table|tab\.|tabelle|tableau|tabla|表)\s*(?:[A-Z]?\.?\d|[IVX]+\b)", regex.IGNORECASE
)
_WHOLE: Final = 1.25
"""What is at most this much over the target is not split."""
_SHORTEST, _LONGEST = 0.6, 1.35
"""Where a break is looked for, in parts of an even share."""
_DISTANCE_WEIGHT: Final = 1.5
"""How much a break's distance from the even share counts against how good a break it is."""


def runs(segments: Sequence[Segment], document: Document, *, small: int, room: int) -> list[list[Segment]]:
    """Part what does not share a chunk: prose with code and small tables, a larger table, references.

    A table takes along as many sentences of its caption as fit, the heading right above it, and a text before it that
    is too small to stand alone.
    """
    parts: list[tuple[bool, list[Segment]]] = []
    for block, members in groupby(segments, key=lambda item: item.block):
        items = list(members)
        size = sum(item.tokens for item in items)
        table = items[0].kind is BlockKind.TABLE and size >= small
        references = items[0].kind is BlockKind.REFERENCE
        caption = _CAPTION.match(document.blocks[block].text) is not None and items[0].kind is BlockKind.PARAGRAPH
        if parts and not table:
            last_is_table, last = parts[-1]
            last_is_references = last[-1].kind is BlockKind.REFERENCE
            if last_is_table and caption:
                left = room - sum(item.tokens for item in last)
                fitting = len(items) if size < small else bisect_right(list(accumulate(i.tokens for i in items)), left)
                last.extend(items[:fitting])
                items = items[fitting:]
                if not items:
                    continue
            if not last_is_table and last_is_references == references and last:
                last.extend(items)
                continue
        if parts and references and not parts[-1][0]:
            items = _headings_taken(parts[-1][1]) + items
        if parts and table and not parts[-1][0]:
            items = _taken_along(parts[-1][1], document, items, small=small, room=room) + items
        if parts and not parts[-1][1]:
            parts.pop()
        parts.append((table, items))
    return [items for _, items in parts]


def _fits(left: Sequence[Segment], right: Sequence[Segment], room: int) -> bool:
    return sum(item.tokens for item in left) + sum(item.tokens for item in right) <= room


def _headings_taken(before: list[Segment]) -> list[Segment]:
    """Remove the headings at the end of `before`, and return them."""
    cut = len(before)
    while cut and before[cut - 1].kind is BlockKind.HEADING:
        cut -= 1
    taken = before[cut:]
    del before[cut:]
    return taken


def _taken_along(
    before: list[Segment], document: Document, table: Sequence[Segment], *, small: int, room: int
) -> list[Segment]:
    """Remove from the end of `before` what belongs to the table behind it, and return that."""
    headings = _headings_taken(before)
    caption: list[Segment] = []
    if before and not headings and before[-1].kind is BlockKind.PARAGRAPH:
        block = before[-1].block
        start = next(index for index, item in enumerate(before) if item.block == block)
        if _CAPTION.match(document.blocks[block].text) and _fits(before[start:], table, room):
            caption = before[start:]
            del before[start:]
            headings = _headings_taken(before)
    taken = [*headings, *caption]
    if sum(item.tokens for item in before) < small and _fits([*before, *taken], table, room):
        taken = [*before, *taken]
        before.clear()
    return taken


def pack(
    segments: Sequence[Segment], *, target: int, room: int, repeated: Callable[[Segment], int]
) -> list[list[Segment]]:
    """Split a run into even shares of about `target` tokens, none over `room`.

    Args:
        segments: In order, each of at most `room` tokens.
        target: Tokens that a pack should have.
        room: Tokens that a pack may have.
        repeated: Tokens that a pack beginning with this segment repeats before it.
    """
    ends = list(accumulate((item.tokens for item in segments), initial=0))
    packs: list[list[Segment]] = []
    start = 0
    while start < len(segments):
        space = max(min(room - repeated(segments[start]), room), 1)
        rest = ends[-1] - ends[start]
        if rest <= min(target * _WHOLE, space):
            stop = len(segments)
        else:
            share = min(rest / ceil(rest / target), space)
            stop = _best_break(segments, ends, start, share=share, space=space)
        packs.append(list(segments[start:stop]))
        start = stop
    return packs


def _best_break(segments: Sequence[Segment], ends: Sequence[int], start: int, *, share: float, space: int) -> int:
    """Where the pack that begins at `start` ends: the break with the best mark, a little off the share or not."""
    base = ends[start]
    low = max(bisect_left(ends, base + share * _SHORTEST, lo=start + 1), start + 1)
    most = bisect_right(ends, base + space, lo=start + 1) - 1
    high = min(bisect_right(ends, base + share * _LONGEST, lo=start + 1) - 1, most)
    if low > high:  # the next segment reaches beyond the window: stop before it, or take it where nothing else is
        low = high = max(start + 1, min(low, most))

    def mark(stop: int) -> float:
        distance = abs(ends[stop] - base - share) / share
        return _strength(segments, stop) - _DISTANCE_WEIGHT * distance

    candidates = range(low, min(high, len(segments)) + 1)
    best = max(candidates, key=mark)
    while best > start + 1 and _strength(segments, best) < 0:  # never part what belongs together, if it can be helped
        best -= 1
    return best


def _strength(segments: Sequence[Segment], stop: int) -> float:
    """How good a place for a break is before segment `stop`; negative where there should be none."""
    if stop >= len(segments):
        return 1.0
    before, after = segments[stop - 1], segments[stop]
    introduces = before.kind is BlockKind.PARAGRAPH and after.kind is BlockKind.LIST_ITEM
    if before.kind is BlockKind.HEADING or before.header or introduces:
        return -9.0
    if after.kind is BlockKind.HEADING:
        return 1.0
    if not after.opens:
        return 0.0
    if after.kind is BlockKind.LIST_ITEM:
        return 0.35
    return 0.15 if after.kind is BlockKind.CODE else 0.5
