"""A PDF's pages, block by block → pieces of a document (pure).

The parser finds columns, reading order and most of the structure. What it leaves is mended here, step by step:
furniture of the page, lettering of figures, tables in fragments, headings that are the first line of a paragraph,
paragraphs cut by columns and pages, the ranks of headings, reference lists, and words spelt in two ways by line ends.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from retrieval.normalising import LineBreak, join_lines, line_break, normalise_code, settle_hyphenation
from retrieval.readers.assembly import Piece
from retrieval.readers.markdown import table_text
from retrieval.readers.pdf_columns import in_column_order
from retrieval.readers.pdf_figures import is_caption, without_furniture, without_lettering
from retrieval.readers.pdf_headings import demote_slide_lines, promote_headings, rank_headings, settle_front_matter
from retrieval.readers.pdf_markup import plain
from retrieval.readers.pdf_paragraphs import cut_labels, join_parts, mark_notes, unmask_code, unmask_headings
from retrieval.readers.pdf_references import gather_references
from retrieval.readers.pdf_tables import rebuild_tables
from retrieval.readers.pdf_types import Item, Role, rows_of
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from retrieval.readers.pdf_types import Line, Page, RawBlock, Row

_CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uff60]")
_KINDS = {
    "heading": BlockKind.HEADING,
    "paragraph": BlockKind.PARAGRAPH,
    "list_item": BlockKind.LIST_ITEM,
    "table": BlockKind.TABLE,
    "code": BlockKind.CODE,
    "grid_fallback": BlockKind.CODE,
}


def lay_out(pages: Sequence[Page]) -> tuple[Piece, ...]:
    """Turn the parser's pages into a document's pieces, in reading order."""
    body = body_size(line for page in pages for line in page.lines)
    items = [item for page in pages for item in in_column_order(_items(page))]
    items = without_furniture(items, len(pages))
    items = without_lettering(rebuild_tables(items, body), body)
    mark_notes(items, body)
    items = demote_slide_lines(settle_front_matter(promote_headings(items, body)))
    items, cut = gather_references(items)
    breaks = [*cut, *(found for page in pages for found in _breaks(page))]
    items, cut = join_parts(cut_labels(unmask_headings(items)))
    breaks += cut
    rank_headings(items)
    prose = [item for item in items if item.kind not in {BlockKind.CODE, BlockKind.TABLE}]
    for item, text in zip(prose, settle_hyphenation([item.text for item in prose], breaks), strict=True):
        item.text = text
    return tuple(
        Piece(
            kind=item.kind,
            text=item.text,
            page=item.page,
            last_page=item.last_page,
            level=item.level,
            turns=item.turns,
        )
        for item in items
        if item.text
    )


def body_size(lines: Iterable[Line]) -> float:
    """The font size that most characters of the document have, in points."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[round(line.size * 2) / 2] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def _items(page: Page) -> list[Item]:
    """A page's blocks, each with the lines that lie in it (in the smallest one, where blocks overlap)."""
    # Edges as plain numbers: a page has a hundred lines and fifty blocks, and this asks for each pair.
    boxed = sorted(
        (box.width * box.height, n, box.x - 1, box.right + 1, box.y - 1, box.bottom + 1)
        for n, block in enumerate(page.blocks)
        if (box := block.box) and block.kind in _KINDS
    )
    lines: dict[int, list[Line]] = {}
    for line in page.lines:
        x, y = line.box.x + line.box.width / 2, line.box.y + line.box.height / 2
        for _, n, left, right, top, bottom in boxed:
            if left <= x <= right and top <= y <= bottom:
                lines.setdefault(n, []).append(line)
                break
    items = (_item(block, page, lines.get(n, [])) for n, block in enumerate(page.blocks))
    return [part for item in items if item is not None and item.text for part in unmask_code(item)]


def _item(block: RawBlock, page: Page, lines: Sequence[Line]) -> Item | None:
    kind = _KINDS.get(block.kind)
    if kind is None:
        return None
    text = _text(block)
    rows = rows_of(lines, page.width)
    if kind is BlockKind.TABLE and rows and is_caption(rows[0].text):
        # Words that happen to stand in columns.
        kind, text = BlockKind.PARAGRAPH, plain(join_lines([row.text for row in rows])[0])
    if kind is not BlockKind.CODE:
        text = _without_line_gaps(text, rows)
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return Item(
        kind=kind,
        text=text,
        raw=block.text,
        page=page.number,
        last_page=page.number,
        level=block.level,
        box=block.box,
        rows=rows,
        size=sizes.most_common(1)[0][0] if sizes else 0.0,
        role=Role.CAPTION if kind is BlockKind.PARAGRAPH and is_caption(text) else Role.BODY,
        page_height=page.height,
        page_width=page.width,
    )


def _without_line_gaps(text: str, rows: Sequence[Row]) -> str:
    """The spaces go that the parser has put where a line of Chinese or Japanese ends."""
    if not _CJK.search(text):
        return text
    for above, below in pairwise(rows):
        end, start = plain(above.text)[-4:], plain(below.text)[:4]
        if end and start and _CJK.match(end[-1]) and _CJK.match(start[0]):
            text = text.replace(f"{end} {start}", end + start, 1)
    return text


def _text(block: RawBlock) -> str:
    match block.kind:
        case "table":
            rows = [[plain(cell) for cell in row] for row in block.rows]
            return table_text(rows[0], rows[1:]) if any(map(any, rows)) else ""
        case "code" | "grid_fallback":
            return normalise_code("\n".join(block.raw_lines))
        case "list_item" if block.ordered and block.marker:
            return f"{block.marker} {plain(block.text)}"
        case _:
            return plain(block.text)


def _breaks(page: Page) -> list[LineBreak]:
    """Words cut at the ends of a page's lines: each with the line right below it that shares its column."""
    found: list[LineBreak] = []
    lines = sorted(page.lines, key=lambda line: line.box.y)
    for n, line in enumerate(lines):
        if not line.text.rstrip().endswith(("-", "‐", "\xad", "\ufffe")):
            continue
        limit = line.box.bottom + 1.5 * line.box.height
        for below in lines[n + 1 :]:
            if below.box.y > limit:
                break
            if below.box.y > line.box.y + 0.5 * line.box.height and below.box.overlaps_sideways(line.box):
                cut = line_break(line.text, below.text)
                found.extend([cut] if cut else [])
                break
    return found
