"""Reference lists: where they are, and one piece for every entry (pure)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from retrieval.normalising import LineBreak, join_lines
from retrieval.readers.pdf_markup import plain
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.readers.pdf_types import Item, Row

_NAME = re.compile(
    r"^(?:(?:\d{1,2}|[A-ZIVX]{1,4})(?:\.\d+)*[.)]?\s+)?"
    r"(?:references?|reference list|list of references|bibliography|works cited|"
    r"literature cited|literature|literatur(?:verzeichnis|angaben)?|quellen(?:verzeichnis|angaben)?|références"
    r"(?: bibliographiques)?|bibliographie|referencias(?: bibliográficas)?|bibliografía|bibliografia|riferimenti"
    r"(?: bibliografici)?|referências(?: bibliográficas)?|литература|список литературы|"
    r"参考文献(?:一覧)?|引用文献|参考・引用文献|参考资料|參考文獻|참고 ?문헌)\s*[:：]?$",
    re.IGNORECASE,
)
_MARK = re.compile(r"^(?:\[[^\]\s]{1,12}\]|\(\d{1,3}\)|\d{1,3}[.)]\s|[•‣]\s)")
_INDENT = 3.0
"""Points that a continued line must stand in from the edge."""


def is_reference_heading(text: str) -> bool:
    """`References`, `7. Bibliography`, `参考文献`."""
    return bool(_NAME.match(text.strip()))


def gather_references(items: Sequence[Item]) -> tuple[list[Item], list[LineBreak]]:
    """Rewrite the sections under a reference heading into one item an entry.

    Entries are told apart by their hanging indent, else by marks such as `[3]` or `3.`; without either, the parser's
    paragraphs stay as they are and are marked only. Returns the words cut at line ends too.
    """
    found: list[Item] = []
    breaks: list[LineBreak] = []
    section: list[Item] = []
    heading: Item | None = None

    def close() -> None:
        if section:
            entries, cut = _entries(section)
            found.extend(entries)
            breaks.extend(cut)
            section.clear()

    for item in items:
        if item.kind is BlockKind.HEADING and (heading is None or _ends_section(heading, item)):
            close()
            heading = item if is_reference_heading(item.text) else None
            found.append(item)
        elif heading is not None and item.kind is not BlockKind.TABLE:
            section.append(item)
        else:
            found.append(item)
    close()
    return found, breaks


def _ends_section(references: Item, item: Item) -> bool:
    """Whether a heading is of the same rank or a higher one; a bold author name is neither."""
    return item.level <= references.level and item.size >= references.size - 0.5


def _entries(section: Sequence[Item]) -> tuple[list[Item], list[LineBreak]]:
    rows = [(item, row) for item in section for row in item.rows]
    starts = _starts(rows)
    if starts is None or any(not item.rows for item in section):
        return [replace(item, kind=BlockKind.REFERENCE, level=0) for item in section], []
    entries: list[Item] = []
    breaks: list[LineBreak] = []
    for begin, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        text, cut = join_lines([plain(row.text.replace("*", r"\*")) for _, row in rows[begin:end]])
        breaks.extend(cut)
        first, last = rows[begin][0], rows[end - 1][0]
        entries.append(
            replace(first, kind=BlockKind.REFERENCE, level=0, text=text, raw="", rows=(), last_page=last.page)
        )
    return entries, breaks


def _starts(rows: Sequence[tuple[Item, Row]]) -> list[int] | None:
    """Where entries begin, or None when nothing tells."""
    if not rows:
        return None
    marked = [number for number, (_, row) in enumerate(rows) if _MARK.match(row.text)]
    if len(marked) >= 3 and len(marked) > 0.15 * len(rows):
        return marked if marked[0] == 0 else [0, *marked]
    edges = _edges(rows)
    flush = [number for number, (item, row) in enumerate(rows) if row.box.x <= edges[_column(item, row)] + _INDENT]
    if not flush or not 0.1 * len(rows) < len(flush) < 0.85 * len(rows):
        return None
    return flush if flush[0] == 0 else [0, *flush]


def _column(item: Item, row: Row) -> tuple[int, bool]:
    return item.page, row.box.x > 0.48 * item.page_width


def _edges(rows: Sequence[tuple[Item, Row]]) -> dict[tuple[int, bool], float]:
    """The left edge of each column of each page."""
    edges: dict[tuple[int, bool], float] = {}
    for item, row in rows:
        key = _column(item, row)
        edges[key] = min(edges.get(key, row.box.x), row.box.x)
    return edges
