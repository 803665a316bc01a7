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
    from collections.abc import Iterator

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
_BREAK = "\x0b"
"""Stands for `<br>` while a text is gathered; the source's own line feeds mean nothing."""
_BLANK_LINE = re.compile(rf"{_BREAK}\s*{_BREAK}[\s{_BREAK}]*")
_LONGEST_CELL = 1_000
_ENOUGH = 0.5
"""The share of the page's own text (links and navigation not counted) that an extraction must hold to be trusted."""


_TELLING = 20
"""Letters from which on a text is taken to be the same wherever it stands."""


def read_html(data: bytes) -> Reading:
    """Headings, paragraphs, list items, tables and code of a page; scripts, styles and navigation are left out."""
    text = _DECLARATION.sub("", decode_html(data)).replace("\0", "")
    if not text.strip():
        return Reading(media_type="text/html", pieces=())
    # huge_tree stays off: it would lift libxml's own guards against bombs.
    root = html.document_fromstring(text, parser=html.HTMLParser(remove_comments=True, remove_pis=True, encoding=None))
    title = normalise_inline(" ".join(root.xpath("//head/title[1]//text()"))) or None
    body = root.find("body")
    whole = tuple(_Walk().walk(body if body is not None else root))
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
    """The pieces that trafilatura takes for the main text, or all when it finds too little of the page.

    Only its choice is used: our own walk keeps tables, code and nesting that its output has lost.
    """
    extracted = _extracted(text)
    chosen = _letters(extracted)
    if not chosen:
        return whole
    lines = {_letters(line) for line in extracted.splitlines()}

    def is_chosen(piece: Piece) -> bool:
        letters = _letters(piece.text)
        # A short text occurs somewhere in every long one, so it has to be a line of its own.
        return letters in lines or (len(letters) >= _TELLING and letters in chosen)

    inside = [n for n, piece in enumerate(whole) if is_chosen(piece)]
    if not inside or sum(len(whole[n].text) for n in inside) < _ENOUGH * own:
        return whole
    kept = set(inside)
    between = range(inside[0], inside[-1])
    kept.update(n for n in between if whole[n].kind in {BlockKind.TABLE, BlockKind.CODE})
    return tuple(piece for n, piece in enumerate(whole) if n in kept)


def _extracted(text: str) -> str:
    try:
        found = trafilatura.extract(text, include_comments=False, include_tables=True, include_links=False)
    except Exception:  # noqa: BLE001 - trafilatura meets pages that it fails on; the whole page is what remains then
        return ""
    return found or ""


def _letters(text: str) -> str:
    """Letters and digits only, so that spaces and markup do not matter when texts are compared."""
    return "".join(character for character in normalise_inline(text) if character.isalnum())


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
    """Walks a tree of HTML: inline content is gathered until a block begins or ends."""

    def __init__(self) -> None:
        self._inline: list[str] = []

    def walk(self, root: _Element) -> Iterator[Piece]:
        """Pieces in document order."""
        yield from self._element(root, BlockKind.PARAGRAPH, 0)
        yield from self._flush(BlockKind.PARAGRAPH, 0)

    def _flush(self, kind: BlockKind, level: int) -> Iterator[Piece]:
        text = "".join(self._inline)
        self._inline.clear()
        # Two line breaks are how old pages make paragraphs.
        parts = _BLANK_LINE.split(text) if kind is BlockKind.PARAGRAPH else [text.replace(_BREAK, "\n")]
        for part in parts:
            inline = normalise_inline(part.replace(_BREAK, "\n"))
            if inline:
                yield Piece(kind=kind, text=inline, level=level)

    def _element(self, element: _Element, kind: BlockKind, level: int) -> Iterator[Piece]:
        self._inline.append(element.text or "")
        for child in element:
            if isinstance(child.tag, str) and _visible(child):
                yield from self._child(child, kind, level)
            self._inline.append(child.tail or "")

    def _child(self, child: _Element, kind: BlockKind, level: int) -> Iterator[Piece]:
        tag = child.tag
        if tag in {"br", "hr"}:
            self._inline.append(_BREAK)
        elif tag in _INLINE:
            yield from self._element(child, kind, level)
        else:
            yield from self._flush(kind, level)
            yield from self._block(child, kind, level)

    def _block(self, child: _Element, kind: BlockKind, level: int) -> Iterator[Piece]:
        tag = child.tag
        if tag == "pre":
            yield Piece(kind=BlockKind.CODE, text=normalise_code("".join(child.itertext())))
        elif tag == "table" and _is_data(child):
            yield from _table(child)
        elif re.fullmatch("h[1-6]", tag):
            number = int(tag[1])
            yield from self._element(child, BlockKind.HEADING, number)
            yield from self._flush(BlockKind.HEADING, number)
        elif tag in {"ul", "ol"}:
            depth = level + 1 if kind is BlockKind.LIST_ITEM else 0
            yield from self._element(child, BlockKind.LIST_ITEM, depth)
            yield from self._flush(BlockKind.LIST_ITEM, depth)
        else:
            inner = kind if kind is BlockKind.LIST_ITEM else BlockKind.PARAGRAPH
            yield from self._element(child, inner, level if inner is kind else 0)
            yield from self._flush(inner, level if inner is kind else 0)


def _rows(table: _Element) -> list[list[str]]:
    """A table's own rows, without those of tables inside its cells."""
    rows: list[list[str]] = []
    for row in table.xpath("./tr | ./thead/tr | ./tbody/tr | ./tfoot/tr"):
        cells = [cell for cell in row if cell.tag in {"td", "th"} and _visible(cell)]
        rows.append([normalise_inline(" ".join(_seen_text(cell))) for cell in cells])
    return [row for row in rows if any(row)]


def _seen_text(element: _Element) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str) and _visible(child):
            yield from _seen_text(child)
        yield child.tail or ""


def _is_data(table: _Element) -> bool:
    """Whether a table holds data, and not a page's layout: rows, columns, and no cell as long as an article."""
    rows = _rows(table)
    if len(rows) < 2 or max(map(len, rows)) < 2:
        return False
    lengths = [len(cell) for row in rows for cell in row]
    inner = sum(len("".join(found.itertext())) for found in table.iter("table") if found is not table)
    return max(lengths) < _LONGEST_CELL and inner < sum(lengths) / 2


def _table(table: _Element) -> Iterator[Piece]:
    caption = normalise_inline(" ".join("".join(found.itertext()) for found in table.iter("caption")))
    if caption:
        yield Piece(kind=BlockKind.PARAGRAPH, text=caption)
    rows = _rows(table)
    yield Piece(kind=BlockKind.TABLE, text=table_text(rows[0], rows[1:]))
