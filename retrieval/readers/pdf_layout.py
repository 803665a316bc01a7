"""A PDF's pages, block by block → pieces of a document (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.normalising import normalise_code
from retrieval.readers.assembly import Piece
from retrieval.readers.markdown import table_text
from retrieval.readers.pdf_markup import plain
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.readers.pdf_types import Page, RawBlock


def lay_out(pages: Sequence[Page]) -> tuple[Piece, ...]:
    """Turn the parser's blocks into a document's pieces."""
    return tuple(
        piece for page in pages for block in page.blocks if (piece := _piece(block, page.number)) and piece.text
    )


def _piece(block: RawBlock, page: int) -> Piece | None:
    match block.kind:
        case "heading":
            return Piece(kind=BlockKind.HEADING, text=plain(block.text), page=page, level=block.level)
        case "table" if block.rows:
            rows = [[plain(cell) for cell in row] for row in block.rows]
            return Piece(kind=BlockKind.TABLE, text=table_text(rows[0], rows[1:]), page=page)
        case "code" | "grid_fallback":
            return Piece(kind=BlockKind.CODE, text=normalise_code("\n".join(block.raw_lines)), page=page)
        case "list_item":
            text = plain(block.text)
            text = f"{block.marker} {text}" if block.ordered and block.marker else text
            return Piece(kind=BlockKind.LIST_ITEM, text=text, page=page, level=block.level)
        case "paragraph":
            return Piece(kind=BlockKind.PARAGRAPH, text=plain(block.text), page=page)
        case _:
            return None
