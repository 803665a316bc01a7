"""Markdown → pieces, through markdown-it's tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from retrieval.normalising import normalise_code, normalise_inline
from retrieval.readers.assembly import Piece, Reading
from retrieval.readers.text import decode
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>|</?[a-zA-Z][^>]*>", re.DOTALL | re.IGNORECASE)


def read_markdown(data: bytes) -> Reading:
    """Headings, paragraphs, list items (with depth), tables and code; links become their text."""
    text = decode(data).replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    title = None
    front = _FRONT_MATTER.match(text)
    if front:
        found = _FRONT_TITLE.search(front.group(1))
        title = found.group(1) if found else None
        text = text[front.end() :]
    # "commonmark" with tables: raw HTML comes as tokens of its own and is stripped of its tags below.
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return Reading(media_type="text/markdown", title=title, pieces=tuple(_pieces(parser.parse(text))))


def _pieces(tokens: Sequence[Token]) -> Iterator[Piece]:
    depth = -1
    numbers: list[int | None] = []
    fresh_item = False
    heading = 0
    rows: list[list[str]] | None = None
    for token in tokens:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                depth += 1
                start = token.attrGet("start")
                numbers.append((int(start) if start is not None else 1) if token.type[0] == "o" else None)
            case "bullet_list_close" | "ordered_list_close":
                depth -= 1
                numbers.pop()
            case "list_item_open":
                fresh_item = True
            case "heading_open":
                heading = int(token.tag[1])
            case "heading_close":
                heading = 0
            case "table_open":
                rows = []
            case "tr_open" if rows is not None:
                rows.append([])
            case "table_close" if rows is not None:
                yield Piece(kind=BlockKind.TABLE, text=table_text(rows[0], rows[1:]))
                rows = None
            case "inline" if rows is not None:
                rows[-1].append(inline_text(token))
            case "inline" if heading:
                yield Piece(kind=BlockKind.HEADING, text=inline_text(token), level=heading)
            case "inline" if depth >= 0:
                text = inline_text(token)
                if fresh_item and numbers[-1] is not None:
                    text = f"{numbers[-1]}. {text}"
                    numbers[-1] += 1
                yield Piece(kind=BlockKind.LIST_ITEM, text=text, level=depth)
                fresh_item = False
            case "inline":
                yield Piece(kind=BlockKind.PARAGRAPH, text=inline_text(token))
            case "fence" | "code_block":
                yield Piece(kind=BlockKind.CODE, text=normalise_code(token.content))
            case "html_block":
                for part in re.split(r"\n\s*\n", _TAG.sub(" ", token.content)):
                    yield Piece(kind=BlockKind.PARAGRAPH, text=normalise_inline(part))


def inline_text(token: Token) -> str:
    """The text of an inline token without markup: link and image texts stay, addresses and tags go."""
    parts: list[str] = []
    for child in token.children or ():
        match child.type:
            case "text" | "code_inline":
                parts.append(child.content)
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(child.content)
            case "html_inline" if child.content.lower().startswith("<br"):
                parts.append("\n")
    return normalise_inline("".join(parts))


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: header line, rule line, one line a row; short rows are filled up, bars escaped.

    An empty header (a layout without one) gives the first row that place.
    """
    if not any(header) and rows:
        header, rows = rows[0], rows[1:]
    width = max([len(header), *(len(row) for row in rows)])

    def line(cells: Sequence[str]) -> str:
        filled = [cell.replace("\n", " ").replace("|", "\\|") for cell in cells] + [""] * (width - len(cells))
        return f"| {' | '.join(filled)} |"

    rule = f"|{' --- |' * width}"
    return "\n".join((line(header), rule, *(line(row) for row in rows if any(row))))
