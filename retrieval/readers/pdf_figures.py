"""What is on a page but not of its text: running heads, page numbers, stamps, lettering of figures (pure)."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from retrieval.readers.pdf_types import Box, Item, Role
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_BAND = 0.1
"""The share of a page's height, at its top and at its bottom, where running heads and page numbers stand."""
_REPEATED = 0.25
"""A line that stands in a band on this share of the pages (three at least) is a running head."""
_NUMBER = re.compile(
    r"^\W*(?:(?:page|p\.|seite|s\.|ページ|頁|第)\s*)?(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of|von|de|／)\s*\d{1,4})?\s*(?:頁|ページ)?\W*$",
    re.IGNORECASE,
)
_STAMP = re.compile(r"^arXiv\s?:\s?\d{4}\.\d{4,5}(?:v\d+)?(?:\s+\[[\w.-]+\])?(?:\s+\d{1,2} \w{3,9} \d{4})?$")
_LABEL = r"\s*(?:\d|(?-i:[A-Z])(?![a-z])|[一二三四五六七八九十])"
_FIGURE = re.compile(
    rf"^(?:figure|fig\.?|abbildung|abb\.?|figura|рис(?:унок|\.)|図表?|图|圖|그림){_LABEL}", re.IGNORECASE
)
_TABLE = re.compile(rf"^(?:table|tab\.?|tabelle|tableau|tabla|таблица|表){_LABEL}", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?:;。！？：][\"'”’)\]」』）]*$")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_LONGEST_SOUP = 60
"""Tokens; a longer text repeats its words whatever it is."""
_TOKEN = re.compile(r"\S+")
_NUMERAL = re.compile(r"^[-−+]?(?=\D*\d)[\d,.]+%?$")


def is_figure_caption(text: str) -> bool:
    """`Figure 3: …`, `図 3 …`."""
    return bool(_FIGURE.match(text))


def is_table_caption(text: str) -> bool:
    """`Table 2: …`, `表 2 …`."""
    return bool(_TABLE.match(text))


def is_caption(text: str) -> bool:
    """A figure's or a table's caption, not a sentence that begins with a reference to one (`Figure 3 shows …`)."""
    found = _FIGURE.match(text) or _TABLE.match(text)
    if not found:
        return False
    rest = re.sub(r"^[\w一二三四五六七八九十.\-]*", "", text[found.end() - 1 :])
    return bool(re.match(r"^\s*[:.：。|—–-]|^\s*$|^\s+[A-Z\u3040-\u9fff(]|^[\u3000 ]", rest)) and not re.match(
        r"^\s+(?:shows?|presents?|depicts?|illustrates?|is|are|gives?|lists?|summari[sz]es?|and|in|to)\b", rest
    )


def without_furniture(items: Sequence[Item], pages: int) -> list[Item]:
    """Running heads and feet, page numbers and margin stamps go."""
    seen: defaultdict[tuple[str, bool], set[int]] = defaultdict(set)
    for item in items:
        if (key := _band_key(item)) is not None:
            seen[key].add(item.page)
    often = max(3.0, _REPEATED * pages)

    def is_furniture(item: Item) -> bool:
        if _STAMP.match(item.text):
            return True
        key = _band_key(item)
        if key is None or item.kind is BlockKind.TABLE:
            return False
        return bool(_NUMBER.match(item.text)) or (len(item.text) > 1 and len(seen[key]) >= often)

    return [item for item in items if not is_furniture(item)]


def _band_key(item: Item) -> tuple[str, bool] | None:
    """The text without its digits and which band it is in, for short items in a band."""
    if item.box is None or not item.page_height or len(item.text) > 150 or len(item.rows) > 2:
        return None
    top = item.box.bottom < _BAND * item.page_height
    if not top and item.box.y < (1 - _BAND) * item.page_height:
        return None
    return re.sub(r"\d+", "#", item.text.casefold()), top


def without_lettering(items: Sequence[Item], body: float) -> list[Item]:
    """The words inside drawings go; captions, tables, list items and short lines of prose stay.

    Two signs: standing right above a figure's caption without being a sentence, and being made of tokens that no
    sentence has (the same few again and again, one or two characters each, the numbers of an axis).
    """
    dropped = {id(item) for item in items if _is_soup(item)}
    for caption in items:
        if caption.role is Role.CAPTION and caption.box is not None and is_figure_caption(caption.text):
            same_page = [item for item in items if item.page == caption.page and item is not caption]
            dropped |= {id(item) for item in _above(caption.box, same_page, body)}
    dropped |= {id(item) for item in _ticks(items)}
    return [item for item in items if id(item) not in dropped]


def _ticks(items: Sequence[Item]) -> list[Item]:
    """The numbers along a drawing's axis: four or more on a page, each a block of its own, under one another."""
    columns: defaultdict[tuple[int, bool, int], list[Item]] = defaultdict(list)
    for item in items:
        if item.kind is BlockKind.PARAGRAPH and item.box is not None and _NUMERAL.match(item.text):
            columns[item.page, True, round(item.box.x / 4)].append(item)
            columns[item.page, False, round(item.box.right / 4)].append(item)
    return [item for column in columns.values() if len(column) >= 4 for item in column]


def _above(caption: Box, items: Sequence[Item], body: float) -> list[Item]:
    """The lettering that stands above a caption in its columns, up to the first thing that is text."""
    candidates = [
        item
        for item in items
        if item.box is not None and item.box.bottom <= caption.y + 4 and item.box.overlaps_sideways(caption)
    ]
    found: list[Item] = []
    for item in sorted(candidates, key=lambda item: -(item.box.bottom if item.box else 0)):
        if not _is_lettering(item, body):
            break
        found.append(item)
    return found


def _is_lettering(item: Item, body: float) -> bool:
    if item.role is not Role.BODY or item.kind in {BlockKind.CODE, BlockKind.LIST_ITEM}:
        return False
    if item.kind is BlockKind.TABLE:
        cells = [cell.strip() for cell in re.split(r"[|\n]", item.text)]
        return _share_of_odd_tokens(" ".join(cell for cell in cells if not set(cell) <= {"-"})) >= 0.5
    tokens = _TOKEN.findall(item.text)
    small = item.size < 0.95 * body
    if item.kind is BlockKind.HEADING:
        return small and len(tokens) < 8
    if _CJK.search(item.text):
        return len(item.text) <= 12 and not _SENTENCE_END.search(item.text)
    if _SENTENCE_END.search(item.text) and len(tokens) >= 4 and _share_of_odd_tokens(item.text) < 0.5:
        return False
    return len(item.rows) < 2 or small or _share_of_odd_tokens(item.text) >= 0.5 or len(tokens) <= 12


def _is_soup(item: Item) -> bool:
    """Whether a paragraph cannot be prose wherever it stands."""
    if item.kind is not BlockKind.PARAGRAPH or item.role is not Role.BODY or _CJK.search(item.text):
        return False
    tokens = _TOKEN.findall(item.text)
    if len(tokens) > _LONGEST_SOUP:
        return False
    if len(tokens) == 1:
        return len(item.text) == 1
    if len(tokens) < 4:
        return len(item.text) <= 2 * len(tokens) and not any(token.isdecimal() for token in tokens)
    if all(_NUMERAL.match(token) for token in tokens):
        return _is_axis(tokens)
    return not _SENTENCE_END.search(item.text) and _share_of_odd_tokens(item.text) >= 0.6


def _share_of_odd_tokens(text: str) -> float:
    """The share of tokens that stand there again or have at most two characters and no place in a sentence."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        return 1.0
    seen: set[str] = set()
    odd = 0
    for token in tokens:
        word = token.casefold().strip(".,;:()'")
        if _NUMERAL.match(token):
            continue
        if word in seen or not word or (len(word) <= 2 and not token.islower()) or re.search(r"\[\w+\]", token):
            odd += 1
        seen.add(word)
    return odd / len(tokens)


def _is_axis(tokens: Sequence[str]) -> bool:
    """Numbers at equal steps."""
    try:
        values = [float(token.replace(",", "").replace("−", "-").rstrip("%")) for token in tokens]
    except ValueError:
        return False
    steps = {round(after - before, 6) for before, after in pairwise(values)}
    return len(steps) == 1 and steps != {0.0}
