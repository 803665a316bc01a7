"""HTML → pieces: the main text where trafilatura finds it, the whole page where it does not."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import trafilatura
from lxml import html  # type: ignore[import-untyped]  # lxml ships no types

from retrieval.normalising import normalise_code, normalise_inline
from retrieval.readers.assembly import Piece, Reading
from retrieval.readers.markdown import table_text
from retrieval.readers.text import decode
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Element: TypeAlias = Any
"""An element of an lxml tree; lxml ships no types."""
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_HEAD = 4096
_ALIASES = {"shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "x-sjis": "cp932", "gb2312": "gb18030",
            "gbk": "gb18030", "iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252",
            "euc-kr": "cp949", "ks_c_5601-1987": "cp949"}  # fmt: skip
"""What pages call their encoding → what browsers take it for (WHATWG Encoding)."""

_NEVER_SEEN = frozenset(
    [
        "script",
        "style",
        "noscript",
        "template",
        "head",
        "svg",
        "canvas",
        "iframe",
        "object",
        "embed",
        "audio",
        "video",
        "map",
        "datalist",
        "dialog",
    ]
)
_ROUND_ABOUT = frozenset({"nav", "footer", "aside", "menu"})
_ROUND_ABOUT_ROLES = frozenset({"navigation", "banner", "contentinfo", "complementary", "search"})
_INLINE = frozenset(
    [
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "big",
        "button",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "ins",
        "kbd",
        "label",
        "mark",
        "q",
        "rp",
        "rt",
        "ruby",
        "s",
        "samp",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "var",
        "wbr",
        "img",
        "input",
        "select",
        "option",
        "textarea",
    ]
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_ENOUGH = 0.5
"""The share of the page's own text (links and navigation not counted) that an extraction must hold to be trusted."""


def read_html(data: bytes) -> Reading:
    """Headings, paragraphs, list items, tables and code of a page; scripts, styles and navigation are left out."""
    text = _DECLARATION.sub("", decode_html(data)).replace("\0", "")
    if not text.strip():
        return Reading(media_type="text/html", pieces=())
    # huge_tree stays off: it would lift libxml's own guards against bombs.
    root = html.document_fromstring(text, parser=html.HTMLParser(remove_comments=True, remove_pis=True, encoding=None))
    title = normalise_inline(" ".join(root.xpath("//head/title[1]//text()"))) or None
    body = root.find("body")
    whole = tuple(_Walk().walk(body if body is not None else root, _visible))
    pieces = _main(text, whole, _own_length(root))
    return Reading(media_type="text/html", title=title, pieces=pieces)


def decode_html(data: bytes) -> str:
    """Bytes of a page → text: byte-order mark, then the page's own word, then a guess."""
    if not data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        declared = _CHARSET.search(data[:_HEAD]) or _XML_ENCODING.search(data[:_HEAD])
        if declared:
            name = declared.group(1).decode("ascii", "ignore").lower()
            try:
                return data.decode(_ALIASES.get(name, name))
            except (LookupError, UnicodeDecodeError):
                # An unknown name or a wrong one: the bytes are asked instead.
                return decode(data)
    return decode(data)


def _main(text: str, whole: tuple[Piece, ...], own: int) -> tuple[Piece, ...]:
    try:
        found: Any = trafilatura.bare_extraction(
            text, include_comments=False, include_tables=True, include_links=False, include_formatting=True
        )
    except Exception:  # noqa: BLE001 - trafilatura meets pages that it fails on; the whole page is what remains then
        return whole
    if found is None or found.body is None:
        return whole
    pieces = tuple(_Walk().walk(found.body, lambda _: True))
    length = sum(len(piece.text) for piece in pieces)
    if length < _ENOUGH * own:
        return whole
    return pieces


def _visible(element: _Element) -> bool:
    """Whether an element belongs to what a person reads on the page."""
    if element.tag in _NEVER_SEEN or element.tag in _ROUND_ABOUT:
        return False
    if element.get("role") in _ROUND_ABOUT_ROLES or element.get("aria-hidden") == "true":
        return False
    return element.get("hidden") is None and not _HIDDEN.search(element.get("style") or "")


def _own_length(root: _Element) -> int:
    """Characters of the page's own text: visible, outside navigation and not a link."""
    total = 0
    stack = [root.find("body") if root.find("body") is not None else root]
    while stack:
        element = stack.pop()
        if not isinstance(element.tag, str) or not _visible(element) or element.tag == "a":
            continue
        total += len((element.text or "").strip())
        for child in element:
            total += len((child.tail or "").strip())
            stack.append(child)
    return total


class _Walk:
    """Walks a tree of HTML, or of trafilatura's kindred XML (`head`, `p`, `list`, `item`, `row`, `cell`, `hi`)."""

    def __init__(self) -> None:
        self._inline: list[str] = []

    def walk(self, root: _Element, visible: Callable[[_Element], bool]) -> Iterator[Piece]:
        """Pieces in document order."""
        yield from self._element(root, visible, BlockKind.PARAGRAPH, 0)
        yield from self._flush(BlockKind.PARAGRAPH, 0)

    def _flush(self, kind: BlockKind, level: int) -> Iterator[Piece]:
        text = normalise_inline("".join(self._inline))
        self._inline.clear()
        if text:
            yield Piece(kind=kind, text=text, level=level)

    def _element(
        self, element: _Element, visible: Callable[[_Element], bool], kind: BlockKind, level: int
    ) -> Iterator[Piece]:
        self._inline.append(element.text or "")
        for child in element:
            if isinstance(child.tag, str) and visible(child):
                yield from self._child(child, visible, kind, level)
            self._inline.append(child.tail or "")

    def _child(
        self, child: _Element, visible: Callable[[_Element], bool], kind: BlockKind, level: int
    ) -> Iterator[Piece]:
        tag = child.tag
        if tag in {"br", "hr", "lb"}:
            self._inline.append("\n")
        elif tag in _INLINE or tag in {"hi", "ref", "del"} or (tag == "code" and not _is_block_code(child)):
            yield from self._element(child, visible, kind, level)
        else:
            yield from self._flush(kind, level)
            yield from self._block(child, visible, kind, level)

    def _block(
        self, child: _Element, visible: Callable[[_Element], bool], kind: BlockKind, level: int
    ) -> Iterator[Piece]:
        tag = child.tag
        if tag == "pre" or (tag == "code" and _is_block_code(child)):
            yield Piece(kind=BlockKind.CODE, text=normalise_code("".join(child.itertext())))
        elif tag == "table" and _is_data(child):
            yield from _table(child)
        elif re.fullmatch("h[1-6]|head", tag):
            rank = tag if tag != "head" else (child.get("rend") or "h2")
            number = int(rank[1]) if re.fullmatch("h[1-6]", rank) else 2
            yield from self._element(child, visible, BlockKind.HEADING, number)
            yield from self._flush(BlockKind.HEADING, number)
        elif tag in {"ul", "ol", "list"}:
            depth = level + 1 if kind is BlockKind.LIST_ITEM else 0
            yield from self._element(child, visible, BlockKind.LIST_ITEM, depth)
            yield from self._flush(BlockKind.LIST_ITEM, depth)
        else:
            inner = kind if kind is BlockKind.LIST_ITEM else BlockKind.PARAGRAPH
            yield from self._element(child, visible, inner, level if inner is kind else 0)
            yield from self._flush(inner, level if inner is kind else 0)


def _is_block_code(element: _Element) -> bool:
    return "\n" in "".join(element.itertext()).strip()


def _rows(table: _Element) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in table.iter("tr", "row"):
        cells = [cell for cell in row if cell.tag in {"td", "th", "cell"}]
        rows.append([normalise_inline(" ".join(cell.itertext())) for cell in cells])
    return [row for row in rows if any(row)]


def _is_data(table: _Element) -> bool:
    """Whether a table holds data: two rows and columns at least, no table within, no cell as long as an article."""
    if any(inner is not table for inner in table.iter("table")):
        return False
    rows = _rows(table)
    return len(rows) > 1 and max(map(len, rows)) > 1 and max(len(cell) for row in rows for cell in row) < 1_000


def _table(table: _Element) -> Iterator[Piece]:
    caption = normalise_inline(" ".join("".join(found.itertext()) for found in table.iter("caption")))
    if caption:
        yield Piece(kind=BlockKind.PARAGRAPH, text=caption)
    rows = _rows(table)
    yield Piece(kind=BlockKind.TABLE, text=table_text(rows[0], rows[1:]))
