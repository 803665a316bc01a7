"""Paragraphs made whole: headings that are none, labels at their start, parts on both sides of a page's end (pure)."""

from __future__ import annotations

import re
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from retrieval.normalising import LineBreak, join_lines, line_break
from retrieval.readers.pdf_markup import plain
from retrieval.readers.pdf_types import Box, Item, Role, Row
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_SENTENCE_END = re.compile(r"[.!?:;。！？：][\"'”’)\]」』）]*$")
_NUMBERED = re.compile(r"^(?:\d{1,2}|[A-Z])(?:\.\d{1,2})*\.?\s+\S|^第.{1,4}[章節条]")
_NOTE = re.compile(r"^(?:\d{1,3}|[*†‡§¶])\s?(?=[^\W\d_]|[\"“(])")
_CJK_START = re.compile(r"^[\u3040-\u30ff\u3400-\u9fff]")
_LABEL_LENGTH = 70
_LABEL_WORDS = 9
_BOLD_RUN = re.compile(r"(?<=[.!?:)]) \*\*([^*]{3,70})\*\* (?=[A-Z(\"“])")


def mark_notes(items: Sequence[Item], body: float) -> None:
    """Footnotes: in small type, in a page's lower half, beginning with their mark or right below such a one."""
    last: Item | None = None
    for item in items:
        if item.kind is not BlockKind.PARAGRAPH or item.role is not Role.BODY or item.box is None:
            continue
        if item.size > 0.93 * body or item.box.y < 0.5 * item.page_height:
            continue
        below = last is not None and last.page == item.page and _is_right_below(last, item)
        carried = last is not None and last.page < item.page and not _SENTENCE_END.search(last.text)
        if _NOTE.match(item.text) or below or carried:
            item.role = Role.NOTE
            last = item


def unmask_code(item: Item) -> list[Item]:
    """Prose in a font of fixed width, which the parser takes for code, becomes paragraphs.

    That is most Japanese office text, and letters written on a typewriter. A paragraph ends where a line falls short
    of the right edge, or where the next line is indented.
    """
    if item.kind is not BlockKind.CODE or not item.rows or not _is_prose(item.text):
        return [item]
    edge = max(row.box.right for row in item.rows)
    groups: list[list[Row]] = []
    for row in item.rows:
        above = groups[-1][-1] if groups else None
        if above is None or above.box.right < edge - 2.2 * row.size or row.box.x > above.box.x + 0.6 * row.size:
            groups.append([row])
        else:
            groups[-1].append(row)
    return [_paragraph(item, group) for group in groups]


def _is_prose(text: str) -> bool:
    solid = [character for character in text if not character.isspace()]
    if not solid:
        return False
    if sum(bool(_CJK_START.match(character)) for character in solid) > 0.2 * len(solid):
        return True
    signs = sum(character in "{}[]<>;=_\\|/#$&@" for character in solid)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return signs < 0.015 * len(solid) and sum(map(len, lines)) >= 7 * len(lines)


def _paragraph(item: Item, rows: Sequence[Row]) -> Item:
    first, last = rows[0].box, rows[-1].box
    x, right = min(row.box.x for row in rows), max(row.box.right for row in rows)
    text, _ = join_lines([plain(row.text) for row in rows])
    return replace(
        item,
        kind=BlockKind.PARAGRAPH,
        text=text,
        raw="",
        rows=tuple(rows),
        box=Box(x=x, y=first.y, width=right - x, height=last.bottom - first.y),
    )


def unmask_headings(items: Sequence[Item]) -> list[Item]:
    """Headings that begin or continue a paragraph become a part of it; wrapped ones get their second line back."""
    found: list[Item] = []
    waiting = list(reversed(items))
    while waiting:
        item = waiting.pop()
        following = waiting[-1] if waiting else None
        before = found[-1] if found else None
        if item.kind is not BlockKind.HEADING:
            found.append(item)
        elif before is not None and _is_amid(before, item):
            found.append(replace(item, kind=BlockKind.PARAGRAPH, level=0))
        elif following is not None and _begins(item, following):
            waiting.pop()
            text, _ = join_lines([item.text, following.text])
            found.append(
                replace(
                    following, text=text, raw="", rows=(*item.rows, *following.rows), page=item.page, role=Role.BODY
                )
            )
        elif following is not None and _is_second_line(item, following):
            waiting.pop()
            text, _ = join_lines([item.text, following.text.rstrip(".")])
            found.append(replace(item, text=text, rows=(*item.rows, *following.rows)))
        else:
            found.append(item)
    return found


def _is_right_below(above: Item, item: Item) -> bool:
    if above.box is None or item.box is None:
        return False
    gap = item.box.y - above.box.bottom
    return -2 <= gap < 0.8 * max(item.size, 6) and above.box.overlaps_sideways(item.box)


def _is_amid(before: Item, heading: Item) -> bool:
    """Whether a bold line is the middle of the paragraph above it."""
    return (
        before.kind is BlockKind.PARAGRAPH
        and before.role is Role.BODY
        and before.page == heading.page
        and not _SENTENCE_END.search(before.text)
        and len(before.text) > 40
        and not _NUMBERED.match(heading.text)
        and abs(before.size - heading.size) < 0.7
        and _is_right_below(before, heading)
        and _first_x(before) == _first_x(heading)
    )


def _first_x(item: Item) -> int:
    """The left edge of an item's lines, in points."""
    return round(min((row.box.x for row in item.rows), default=item.box.x if item.box else 0))


def _begins(heading: Item, following: Item) -> bool:
    """Whether a bold line is the first line of the paragraph below it."""
    if following.kind is not BlockKind.PARAGRAPH or following.role is not Role.BODY:
        return False
    if following.page != heading.page or following.text[:1].isspace():
        return False
    if heading.text.endswith("-") and line_break(heading.text, following.text) is not None:
        return True
    # A numbered heading is one, whatever stands below it, and so is a line that leaves much of its column empty.
    column = max([0.3 * heading.page_width, *(row.box.width for row in following.rows)])
    is_wide = not heading.rows or max(row.box.width for row in heading.rows) >= 0.7 * column
    return is_wide and following.text[:1].islower() and not _NUMBERED.match(heading.text)


def _is_second_line(heading: Item, following: Item) -> bool:
    return (
        following.kind is BlockKind.PARAGRAPH
        and following.page == heading.page
        and len(following.rows) == 1
        and following.rows[0].bold
        and bool(heading.rows)
        and heading.rows[0].bold
        and abs(following.size - heading.size) < 0.3
        and len(following.text) < 80
        and _is_right_below(heading, following)
    )


def cut_labels(items: Sequence[Item]) -> list[Item]:
    """Bold labels at a paragraph's start (`Task #1: Masked LM   Intuitively, …`) become headings of their own."""
    found: list[Item] = []
    for item in items:
        if item.kind is BlockKind.PARAGRAPH and item.role is Role.BODY:
            found.extend(part for whole in _cut_inner(item) for part in _cut_first(whole))
        else:
            found.append(item)
    return found


def _cut_first(item: Item) -> list[Item]:
    label = run_in_label(item.rows[0]) if item.rows else None
    if label is None or not item.text.startswith(label):
        return [item]
    rest = item.text[len(label) :].strip()
    if not rest:
        return [item]
    return [replace(item, kind=BlockKind.HEADING, role=Role.LABEL, text=label.rstrip(" .:"), raw="", rows=()),
            replace(item, text=rest, raw="")]  # fmt: skip


def run_in_label(row: Row) -> str | None:
    """The words before the first wide gap of a row that begins in bold, or None.

    Typesetters put about one em between a run-in heading and its paragraph, more than between any two words.
    """
    if not row.bold or len(row.words) < 2:
        return None
    gaps = [after.x - before.right for before, after in zip(row.words, row.words[1:], strict=False)]
    for place, gap in enumerate(gaps[:_LABEL_WORDS]):
        others = [other for number, other in enumerate(gaps) if number != place] or [0.25 * row.size]
        if gap >= 0.7 * row.size and gap >= 1.5 * median(others):
            label = plain(" ".join(word.text for word in row.words[: place + 1]))
            enough = sum(map(str.isalpha, label)) >= 3 and not label[0].islower()
            if enough and len(label) <= _LABEL_LENGTH:
                return label
    return None


def _cut_inner(item: Item) -> list[Item]:
    """Labels that the parser left in mid-paragraph, where they begin a row in bold."""
    for match in _BOLD_RUN.finditer(item.raw):
        label = plain(match.group(1))
        if not any(row.bold and plain(row.text).startswith(label) for row in item.rows):
            continue
        before, after = plain(item.raw[: match.start()]), plain(item.raw[match.end() :])
        place = next(n for n, row in enumerate(item.rows) if row.bold and plain(row.text).startswith(label))
        rest = replace(item, text=after, raw=item.raw[match.end() :], rows=item.rows[place + 1 :])
        return [
            replace(item, text=before, raw=item.raw[: match.start()], rows=item.rows[:place]),
            replace(item, kind=BlockKind.HEADING, role=Role.LABEL, text=label.rstrip(" .:"), raw="", rows=()),
            *_cut_inner(rest),
        ]
    return [item]


def join_parts(items: Sequence[Item]) -> tuple[list[Item], list[LineBreak]]:
    """Join paragraphs that a column's or page's end, a table or a footnote has cut. Returns the words cut there too."""
    found: list[Item] = []
    breaks: list[LineBreak] = []
    # The last paragraph or list item of the running text, and the last footnote: what may go on.
    open_parts: dict[Role, Item] = {}
    for item in items:
        if item.kind is BlockKind.HEADING:
            open_parts.pop(Role.BODY, None)
        before = open_parts.get(item.role)
        if found and _goes_on_below(found[-1], item):
            before = found[-1]
        elif item.kind is not BlockKind.PARAGRAPH or before is None or not _continues(before, item):
            found.append(replace(item))
            if item.kind in {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM} and item.role in {Role.BODY, Role.NOTE}:
                open_parts[item.role] = found[-1]
            continue
        before.text, cut = join_lines([before.text, item.text])
        breaks.extend(cut)
        if item.page != before.last_page:
            before.turns = (*before.turns, (max(0, len(before.text) - len(item.text)), item.page))
        before.last_page = max(before.last_page, item.page)
        before.rows, before.box = item.rows or before.rows, item.box
    return found, breaks


def _goes_on_below(caption: Item, item: Item) -> bool:
    """Whether `item` is the next lines of an unfinished caption."""
    return (
        caption.role is Role.CAPTION
        and item.kind is BlockKind.PARAGRAPH
        and item.role in {Role.BODY, Role.NOTE}
        and item.page == caption.page
        and not _SENTENCE_END.search(caption.text)
        and abs(caption.size - item.size) < 0.12 * max(caption.size, 1)
        and _is_right_below(caption, item)
    )


def _continues(before: Item, item: Item) -> bool:
    """Whether `item` is the next part of `before`."""
    if _SENTENCE_END.search(before.text) or not before.text or not item.text or item.page > before.last_page + 2:
        return False
    below = before.last_page == item.page and _is_right_below(before, item)
    if item.role is Role.NOTE:
        if _NOTE.match(item.text):
            return False
    elif not below and abs(before.size - item.size) > 0.12 * max(before.size, 1):
        return False
    cut = before.text.endswith("-") and line_break(before.text, item.text) is not None
    if cut or item.text[0].islower() or (below and item.role is Role.NOTE):
        return True
    return _runs_on(before, item)


def _runs_on(before: Item, item: Item) -> bool:
    """Whether the shape of two parts of prose says that the sentence goes on, although the next word is capital."""
    is_prose = before.kind is BlockKind.PARAGRAPH and len(before.text) > 40
    if _CJK_START.match(item.text):
        is_prose = is_prose and len(before.rows) > 1
    return is_prose and _ends_full(before, item) and _starts_at_edge(before, item)


def _ends_full(before: Item, item: Item) -> bool:
    """Whether the last row of `before` reaches its column's right edge, so that the sentence may go on."""
    if not before.rows or item.box is None:
        return False
    last = before.rows[-1].box
    edge = max(row.box.right for row in before.rows)
    if len(before.rows) == 1:
        edge = max(edge, item.box.right) if abs(item.box.x - last.x) < 12 else last.right + 99
    return last.right >= edge - 0.04 * max(last.width, 1)


def _starts_at_edge(before: Item, item: Item) -> bool:
    """Whether `item` begins without an indent, right below `before` or at the top of another column or page."""
    if not item.rows or before.box is None or item.box is None:
        return False
    if item.rows[0].box.x - min(row.box.x for row in item.rows) > 4:
        return False
    if item.page > before.last_page or item.box.y < before.box.bottom - 20:
        return True
    gap = item.box.y - before.rows[-1].box.bottom
    return -3 <= gap < 0.8 * max(item.size, 6) and abs(item.rows[0].box.x - before.rows[-1].box.x) < 3
