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
    return Reading(media_type="text/markdown", title=title, pieces=tuple(_Walk().pieces(parser.parse(text))))


class _Walk:
    """Goes through markdown-it's tokens and keeps where it is: in which lists, heading or table."""

    def __init__(self) -> None:
        self._numbers: list[int | None] = []
        """For every open list its next number, or None for bullets."""
        self._fresh_item = False
        self._heading = 0
        self._rows: list[list[str]] | None = None

    def pieces(self, tokens: Sequence[Token]) -> Iterator[Piece]:
        """Pieces in document order."""
        for token in tokens:
            match token.type:
                case "inline":
                    yield from self._inline(token)
                case "table_close":
                    rows, self._rows = self._rows or [[]], None
                    yield Piece(kind=BlockKind.TABLE, text=table_text(rows[0], rows[1:]))
                case "fence" | "code_block":
                    yield Piece(kind=BlockKind.CODE, text=normalise_code(token.content))
                case "html_block":
                    for part in re.split(r"\n\s*\n", _TAG.sub(" ", token.content)):
                        yield Piece(kind=BlockKind.PARAGRAPH, text=normalise_inline(part))
                case _:
                    self._enter_or_leave(token)

    def _enter_or_leave(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._numbers.append(None)
            case "ordered_list_open":
                self._numbers.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
            case "list_item_open":
                self._fresh_item = True
            case "heading_open" | "heading_close":
                self._heading = int(token.tag[1]) if token.nesting > 0 else 0
            case "table_open":
                self._rows = []
            case "tr_open" if self._rows is not None:
                self._rows.append([])

    def _inline(self, token: Token) -> Iterator[Piece]:
        text = inline_text(token)
        if self._rows is not None:
            self._rows[-1].append(text)
        elif self._heading:
            yield Piece(kind=BlockKind.HEADING, text=text, level=self._heading)
        elif self._numbers:
            number = self._numbers[-1]
            if self._fresh_item and number is not None:
                text = f"{number}. {text}"
                self._numbers[-1] = number + 1
            self._fresh_item = False
            yield Piece(kind=BlockKind.LIST_ITEM, text=text, level=len(self._numbers) - 1)
        else:
            yield Piece(kind=BlockKind.PARAGRAPH, text=text)


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
