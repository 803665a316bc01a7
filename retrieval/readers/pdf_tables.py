"""Tables that the parser left in fragments → one table, from where the words stand (pure)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from retrieval.readers.markdown import table_text
from retrieval.readers.pdf_figures import is_table_caption
from retrieval.readers.pdf_markup import plain
from retrieval.readers.pdf_types import Item, Role, Row, Word
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_SENTENCE_END = re.compile(r"[.!?。！？][\"'”’)\]」』）]*$")
_NUMBER = re.compile(r"^[-−–+±~<>≤≥]?(?=\D*\d)[\d,.]+[%‡†*]?$|^[-–—]$")
_REACH = 30.0
"""Points between two fragments of one table, or between the table and its caption, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    text: str
    x: float
    right: float
    words: tuple[Word, ...]


def rebuild_tables(items: Sequence[Item], body: float) -> list[Item]:
    """Put together the fragments that stand between a table's caption and the text around it.

    A table is rebuilt when it lies in several fragments, or when its words show more columns than the parser saw.
    Where the words do not stand in columns, everything stays as it was.
    """
    found = list(items)
    for caption in items:
        if caption.role is not Role.CAPTION or caption.box is None or not is_table_caption(caption.text):
            continue
        for fragments in (_fragments(found, caption, body, up=True), _fragments(found, caption, body, up=False)):
            table = _table(fragments)
            if table is not None:
                gone = {id(fragment) for fragment in fragments}
                found = [item for item in found if id(item) not in gone]
                found.insert(next(n for n, item in enumerate(found) if item is caption), table)
                break
    return found


def _fragments(items: Sequence[Item], caption: Item, body: float, *, up: bool) -> list[Item]:
    """What stands next to the caption in its columns, without a gap, and is not text."""
    if caption.box is None:
        return []
    edge = caption.box.y if up else caption.box.bottom
    near = [
        (item, item.box)
        for item in items
        if item.page == caption.page
        and item is not caption
        and item.box is not None
        and item.box.overlaps_sideways(caption.box)
        and (item.box.bottom <= edge + 4 if up else item.box.y >= edge - 4)
    ]
    near.sort(key=lambda found: -found[1].bottom if up else found[1].y)
    fragments: list[Item] = []
    for item, box in near:
        gap = edge - box.bottom if up else box.y - edge
        if gap > _REACH or not _is_fragment(item, body):
            break
        fragments.append(item)
        edge = min(edge, box.y) if up else max(edge, box.bottom)
    return fragments


def _is_fragment(item: Item, body: float) -> bool:
    if item.kind is BlockKind.TABLE:
        return True
    if item.kind not in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM} or item.role is not Role.BODY or not item.rows:
        return False
    tokens = item.text.split()
    if _SENTENCE_END.search(item.text) and len(tokens) >= 8:
        return False
    numbers = sum(bool(_NUMBER.match(token)) for token in tokens)
    return item.size < 0.97 * body or numbers >= 0.3 * len(tokens) or len(tokens) <= 4


def _table(fragments: Sequence[Item]) -> Item | None:
    if not fragments or not all(fragment.rows for fragment in fragments):
        return None
    rows = _visual_rows([row for fragment in fragments for row in fragment.rows])
    grid = _grid(rows)
    if grid is None:
        return None
    width = len(grid[0])
    if len(fragments) == 1 and fragments[0].kind is BlockKind.TABLE:
        known = fragments[0].text.split("\n", 1)[0]
        if len(re.findall(r"(?<!\\)\|", known)) - 1 >= width:
            return None
    first = min(fragments, key=lambda item: item.box.y if item.box else 0)
    return replace(first, kind=BlockKind.TABLE, level=0, raw="", text=table_text(grid[0], grid[1:]))


def _visual_rows(rows: Sequence[Row]) -> list[list[_Cell]]:
    """Rows of all fragments, those at one height together, each cut into cells at its gaps."""
    groups: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.box.y + row.box.height / 2, row.box.x)):
        last = groups[-1][0].box if groups else None
        if last is not None and abs(row.box.y + row.box.height / 2 - last.y - last.height / 2) < 0.5 * last.height:
            groups[-1].append(row)
        else:
            groups.append([row])
    return [_cells(group) for group in groups]


def _cells(rows: Sequence[Row]) -> list[_Cell]:
    words = sorted(((word, row.size) for row in rows for word in row.words), key=lambda found: found[0].x)
    cells: list[_Cell] = []
    for word, size in words:
        last = cells[-1] if cells else None
        # Two numbers side by side are two cells even where they stand close.
        numbers = last is not None and bool(_NUMBER.match(word.text) and _NUMBER.match(last.words[-1].text))
        if last is not None and word.x - last.right < (0.5 if numbers else 0.75) * size:
            text, right = f"{last.text} {word.text}", max(word.right, last.right)
            cells[-1] = _Cell(text=text, x=last.x, right=right, words=(*last.words, word))
        else:
            cells.append(_Cell(text=word.text, x=word.x, right=word.right, words=(word,)))
    return cells


def _grid(rows: Sequence[Sequence[_Cell]]) -> list[list[str]] | None:
    """Cells by row and column, the header's rows in one; None when the rows share no columns."""
    counts = Counter(len(row) for row in rows if len(row) > 1)
    usual = [count for count, times in counts.items() if times >= 2]
    if not usual or len(rows) < 3:
        return None
    width = max(usual)
    base = [row for row in rows if len(row) == width]
    spans = [(min(row[n].x for row in base), max(row[n].right for row in base)) for n in range(width)]
    if any(before[1] > after[0] for before, after in pairwise(spans)):
        return None
    head = _header_length(rows)
    header = _header(rows[:head], spans) if head else [""] * width
    return [header, *(_fill(row, spans) for row in rows[head:])]


def _header_length(rows: Sequence[Sequence[_Cell]]) -> int:
    """Rows above the first with numbers; a lone cell below a whole row names a part of the table, not a column."""
    whole = False
    for n, row in enumerate(rows):
        if _has_numbers(row):
            return n
        if whole and len(row) == 1:
            return n
        whole = whole or len(row) > 1
    return 1


def _has_numbers(row: Sequence[_Cell]) -> bool:
    return sum(bool(_NUMBER.match(cell.text)) for cell in row[1:]) >= max(1, (len(row) - 1) / 2)


def _fill(row: Sequence[_Cell], spans: Sequence[tuple[float, float]]) -> list[str]:
    """Each cell into the column that it overlaps most, or else into the nearest."""
    filled = [""] * len(spans)
    for cell in [part for whole in row for part in _split_number(whole, spans)]:
        place = max(range(len(spans)), key=lambda n: min(cell.right, spans[n][1]) - max(cell.x, spans[n][0]))
        filled[place] = f"{filled[place]} {plain(cell.text)}".strip()
    return filled


def _split_number(cell: _Cell, spans: Sequence[tuple[float, float]]) -> list[_Cell]:
    """A label that has grown into the column of numbers beside it, and the number by itself."""
    *label, last = cell.words
    centre = (last.x + last.right) / 2
    if (
        not label
        or not _NUMBER.match(last.text)
        or not any(x <= centre <= right < cell.right + 1 for x, right in spans[1:])
    ):
        return [cell]
    if cell.x > spans[0][1]:
        return [cell]
    text = " ".join(word.text for word in label)
    return [
        _Cell(text=text, x=cell.x, right=label[-1].right, words=tuple(label)),
        _Cell(text=last.text, x=last.x, right=last.right, words=(last,)),
    ]


def _header(rows: Sequence[Sequence[_Cell]], spans: Sequence[tuple[float, float]]) -> list[str]:
    """The header's rows in one: what stands above several columns is said of each of them."""
    header = [""] * len(spans)
    for row in rows:
        words = [word for cell in row for word in cell.words]
        if len(row) < len(spans) <= len(words):
            # Set so close that the gaps do not tell: word by word.
            named = _fill([_Cell(text=word.text, x=word.x, right=word.right, words=(word,)) for word in words], spans)
        else:
            named = _fill(row, spans)
            if 1 < len(row) < len(spans) and row is not rows[-1]:
                named = _spread(named, row, spans)
        header = [f"{above} {name}".strip() for above, name in zip(header, named, strict=True)]
    return header


def _spread(named: Sequence[str], row: Sequence[_Cell], spans: Sequence[tuple[float, float]]) -> list[str]:
    """Every column but the first takes the nearest of the row's cells."""
    tops = [cell for cell in row if cell.x > spans[0][1]]
    if not tops:
        return list(named)

    def nearest(span: tuple[float, float]) -> str:
        return plain(min(tops, key=lambda cell: abs(cell.x + cell.right - sum(span))).text)

    return [named[0], *(nearest(span) for span in spans[1:])]
