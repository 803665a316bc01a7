"""Which headings are headings, and of which rank (pure)."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from retrieval.readers.pdf_references import is_reference_heading
from retrieval.readers.pdf_types import Item, Role
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER = re.compile(r"^((?:\d{1,2}|[A-Z])(?:\.\d{1,3})*)\.?\s+(?=\S)")
_OPENING = re.compile(
    r"^(?:\d\.?\s+)?(?:abstract|summary|introduction|executive summary|zusammenfassung|einleitung|résumé|resumen|"
    r"概要|要旨|要約|あらまし|はじめに|まえがき|序論|摘要|引言|초록|서론)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?:;,。！？：、][\"'”’)\]」』）]*$")
_STANDING_ALONE = re.compile(
    r"^(?:abstract|acknowledge?ments?|appendix|appendices|conclusions?|about the authors?|謝辞|付録)\b", re.IGNORECASE
)


def settle_front_matter(items: Sequence[Item]) -> list[Item]:
    """Authors and affiliations between the title and the abstract are paragraphs, not sections of the paper."""
    place = next((n for n, item in enumerate(items[:40]) if _is_opening(item)), None)
    if place is None or items[place].page != items[0].page:
        return list(items)
    title = next((n for n, item in enumerate(items[:place]) if item.kind is BlockKind.HEADING), place)
    return [
        replace(item, kind=BlockKind.PARAGRAPH, level=0, role=Role.FRONT)
        if title < n < place and item.kind in {BlockKind.HEADING, BlockKind.PARAGRAPH}
        else item
        for n, item in enumerate(items)
    ]


def promote_headings(items: Sequence[Item], body: float) -> list[Item]:
    """Single lines in clearly larger or larger bold type are headings, also where the parser saw none."""
    return [
        replace(item, kind=BlockKind.HEADING, level=2) if _looks_like_heading(item, body) else item for item in items
    ]


def _looks_like_heading(item: Item, body: float) -> bool:
    if item.kind is not BlockKind.PARAGRAPH or item.role is not Role.BODY or len(item.rows) != 1:
        return False
    enough = 1.12 if item.rows[0].bold else 1.25
    words = 2 < len(item.text) <= 80 and sum(map(str.isalpha, item.text)) >= 0.6 * len(item.text.replace(" ", ""))
    return item.size >= enough * body and words and not _SENTENCE_END.search(item.text)


def demote_slide_lines(items: Sequence[Item]) -> list[Item]:
    """On pages that are mostly "headings" (slides in large type), only the first in the largest type stays one.

    The other lines become list items. Headings that are sentences become paragraphs on any page.
    """
    by_page: defaultdict[int, list[Item]] = defaultdict(list)
    for item in items:
        by_page[item.page].append(item)
    slides: dict[int, float] = {}
    for page, there in by_page.items():
        headings = [item for item in there if item.kind is BlockKind.HEADING]
        letters = sum(len(item.text) for item in there)
        if len(headings) > 2 and sum(len(item.text) for item in headings) > 0.5 * letters:
            slides[page] = max(item.size for item in headings)
    return [_demoted(item, slides.get(item.page), first=item is by_page[item.page][0]) for item in items]


def _demoted(item: Item, largest: float | None, *, first: bool) -> Item:
    if item.kind is not BlockKind.HEADING:
        return item
    if largest is not None and item.size < 0.95 * largest and not first:
        return replace(item, kind=BlockKind.LIST_ITEM, level=0)
    if re.search(r"[。！？]$|[^.]\.$", item.text) and len(item.text) > 30 and not _NUMBER.match(item.text):
        return replace(item, kind=BlockKind.PARAGRAPH, level=0)
    return item


def _is_opening(item: Item) -> bool:
    return item.kind is BlockKind.HEADING and bool(_OPENING.match(item.text))


def rank_headings(items: Sequence[Item]) -> None:
    """Give numbered headings the rank of their number, the others a place below or beside them by font size.

    Without a consistent numbering the parser's ranks stay; labels rank one below the heading that they stand under.
    """
    headings = [item for item in items if item.kind is BlockKind.HEADING]
    if not headings:
        return
    numbers = _numbering(headings)
    base = 1 if id(headings[0]) in numbers else headings[0].level + 1 if headings[0].level == 1 else 2
    tops = [item.size for item in headings if numbers.get(id(item)) == 1]
    top_size = median(tops) if tops else None
    current = base
    for n, item in enumerate(headings):
        depth = numbers.get(id(item))
        if depth is not None:
            item.level = current = base + depth - 1
        elif item.role is Role.LABEL:
            item.level = current + 1
        elif top_size is not None and n:
            alone = _STANDING_ALONE.match(item.text) or is_reference_heading(item.text)
            if alone or item.size >= top_size - 0.3:
                item.level = current = base
            else:
                item.level = current + 1
        else:
            current = item.level


def _numbering(headings: Sequence[Item]) -> dict[int, int]:
    """Depth of each numbered heading (by `id`), or nothing when the numbers do not make sense together."""
    found = [
        (item, match.group(1).split("."))
        for item in headings
        if item.role is not Role.LABEL and (match := _NUMBER.match(item.text))
    ]
    letters = {parts[0] for _, parts in found if parts[0].isalpha() and len(parts) > 1}
    found = [(item, parts) for item, parts in found if parts[0].isdecimal() or parts[0] in letters]
    keys = [[(part.isalpha(), int(part) if part.isdecimal() else ord(part)) for part in parts] for _, parts in found]
    ascending = sum(before < after for before, after in pairwise(keys))
    if len(keys) < 2 or ascending < 0.8 * (len(keys) - 1):
        return {}
    return {id(item): len(parts) for item, parts in found}
