"""Reading order of a page in two columns: the left one down to its end, then the right one (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.readers.pdf_types import Item

_PROSE = 0.6
"""The share of a page's characters that must stand in paragraphs as wide as a column."""


def in_column_order(items: Sequence[Item]) -> list[Item]:
    """Put a page's items into column order where the parser has gone back from the right column to the left.

    Only pages set in two columns of prose are touched. What reaches across both columns parts the page: all above it
    comes first.
    """
    sides = [_side(item) for item in items]
    if not _is_two_columns(items, sides):
        return list(items)
    bars = sorted(item.box.y for item, side in zip(items, sides, strict=True) if side == 0 and item.box)
    keys: list[tuple[int, int]] = []
    for item, side in zip(items, sides, strict=True):
        if item.box is None:
            keys.append(keys[-1] if keys else (0, 0))
            continue
        above = sum(bar < item.box.y for bar in bars)
        keys.append((2 * above + 1, 0) if side == 0 else (2 * above, side))
    order = sorted(range(len(items)), key=lambda n: keys[n])
    return [items[n] for n in order]


def _side(item: Item) -> int:
    """-1 left, 1 right, 0 across the middle; by the first row, since a paragraph may run into the next column."""
    middle = item.page_width / 2
    box = item.rows[0].box if item.rows else item.box
    if box is None or (box.x < middle - 20 and box.right > middle + 20):
        return 0
    if any(row.box.x < middle - 20 and row.box.right > middle + 20 for row in item.rows):
        return 0
    return -1 if box.x + box.width / 2 < middle else 1


def _is_two_columns(items: Sequence[Item], sides: Sequence[int]) -> bool:
    total = sum(len(item.text) for item in items)
    columns = {-1: 0, 1: 0}
    for item, side in zip(items, sides, strict=True):
        kinds = {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}
        wide = max((row.box.width for row in item.rows), default=0) >= 0.3 * item.page_width
        if side and item.kind in kinds and len(item.rows) >= 2 and wide:
            columns[side] += len(item.text)
    return min(columns.values()) > 200 and sum(columns.values()) >= _PROSE * total
