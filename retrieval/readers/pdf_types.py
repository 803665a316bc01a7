"""What the parser found on a page, as plain values: lines with their fonts, and blocks made of them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.types import BlockKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle in points, origin at the page's top left."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height

    def overlaps_sideways(self, other: Box) -> bool:
        """Whether the two stand in the same column, at least in part."""
        return min(self.right, other.right) - max(self.x, other.x) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word of a line with its left and right edge."""

    text: str
    x: float
    right: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of text, or a part of one. `size` is the font size of its first character in points."""

    text: str
    box: Box
    size: float
    font: str = ""
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBlock:
    """A block as the parser classified it.

    `kind` is heading, paragraph, list_item, code, table, grid_fallback, rule or figure; `text` holds Markdown emphasis
    and `$…$` formulas. A table's first row is its header, possibly empty.
    """

    kind: str
    text: str = ""
    level: int = 0
    marker: str = ""
    ordered: bool = False
    rows: tuple[tuple[str, ...], ...] = ()
    raw_lines: tuple[str, ...] = ()
    box: Box | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its physical number from 1, its size in points, blocks in reading order, lines in any order."""

    number: int
    width: float
    height: float
    blocks: tuple[RawBlock, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line as the eye sees it: all its parts, left to right. `bold` tells of the first part's font."""

    text: str
    box: Box
    size: float
    bold: bool
    words: tuple[Word, ...]


class Role(Enum):
    """What a paragraph is to the text around it."""

    BODY = auto()
    NOTE = auto()
    CAPTION = auto()
    FRONT = auto()
    """Authors, affiliations and the like, above the abstract."""
    LABEL = auto()
    """A heading that stood at the start of its paragraph's first line."""


@dataclass(slots=True, kw_only=True)
class Item:
    """A block on its way to a piece; the steps of the layout change it.

    `text` is plain, `raw` still has the parser's markup. `size` is the font size of most of its characters.
    """

    kind: BlockKind
    text: str
    page: int
    last_page: int
    raw: str = ""
    level: int = 0
    box: Box | None = None
    rows: tuple[Row, ...] = ()
    size: float = 0.0
    role: Role = Role.BODY
    page_height: float = 0.0
    page_width: float = 0.0
    turns: tuple[tuple[int, int], ...] = ()
    """Where in `text` another page begins: (offset, page)."""


_BOLD = re.compile(r"bold|medi(?!um)|black|heavy|semibold|demi|[-,]B\b|CMBX|W[6-9]\b", re.IGNORECASE)


def rows_of(lines: Sequence[Line], page_width: float) -> tuple[Row, ...]:
    """Lines → rows from top to bottom, column by column when the lines stand in two columns."""
    columns = _columns(lines, page_width)
    return tuple(row for column in columns for row in _rows_of_column(column))


def _columns(lines: Sequence[Line], page_width: float) -> list[list[Line]]:
    middle = page_width / 2
    left = [line for line in lines if line.box.right < middle + 15]
    right = [line for line in lines if line.box.x > middle - 15]
    # Two columns: nothing crosses the middle, and the right side has an edge of its own.
    if len(left) + len(right) == len(lines) and len(left) > 1 and len(right) > 1:
        edges = Counter(round(line.box.x) for line in right)
        if edges.most_common(1)[0][1] >= max(2, len(right) / 2):
            return [left, right]
    return [list(lines)]


def _rows_of_column(lines: Sequence[Line]) -> list[Row]:
    groups: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.box.y + line.box.height / 2, line.box.x)):
        centre = line.box.y + line.box.height / 2
        if groups:
            last = groups[-1][-1].box
            if abs(centre - last.y - last.height / 2) < 0.4 * min(line.box.height, last.height):
                groups[-1].append(line)
                continue
        groups.append([line])
    return [_row(sorted(group, key=lambda line: line.box.x)) for group in groups]


def _row(parts: Sequence[Line]) -> Row:
    x, y = min(part.box.x for part in parts), min(part.box.y for part in parts)
    right, bottom = max(part.box.right for part in parts), max(part.box.bottom for part in parts)
    return Row(
        text=" ".join(part.text.strip() for part in parts),
        box=Box(x=x, y=y, width=right - x, height=bottom - y),
        size=max(parts, key=lambda part: len(part.text)).size,
        bold=bool(_BOLD.search(parts[0].font)),
        words=tuple(word for part in parts for word in part.words),
    )
