"""What the parser found on a page, as plain values: lines with their fonts, and blocks made of them."""

from __future__ import annotations

from dataclasses import dataclass


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

    def holds(self, other: Box) -> bool:
        """Whether the other's centre lies in this box (a point of slack all around)."""
        x, y = other.x + other.width / 2, other.y + other.height / 2
        return self.x - 1 <= x <= self.right + 1 and self.y - 1 <= y <= self.bottom + 1

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
