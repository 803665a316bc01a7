"""Headings → sections, and which neighbouring sections share a chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.types import Block


_BESIDE: Final = 10
"""Of the size under which a section is small, the part under which one is joined to those beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The blocks `first` to `stop` (exclusive): the headings on the way to a text, then the text.

    `path` holds the indices of all headings above the text, outermost first; those before `first` were met earlier.
    """

    path: tuple[int, ...]
    first: int
    body: int
    stop: int

    @property
    def anchor(self) -> tuple[int, ...]:
        """The path that this section's content stands under: a heading without any text under it is content itself."""
        return self.path if self.body < self.stop else self.path[:-1]


def sections(blocks: Sequence[Block]) -> list[Section]:
    """Cut the blocks at headings. Together the sections hold every block once, in order."""
    found: list[Section] = []
    open_headings: list[int] = []
    first = 0
    body: int | None = None

    def close(stop: int) -> None:
        nonlocal first, body
        if stop > first:
            path = tuple(open_headings)
            found.append(Section(path=path, first=first, body=stop if body is None else body, stop=stop))
        first, body = stop, None

    for index, block in enumerate(blocks):
        if block.kind is not BlockKind.HEADING:
            body = index if body is None else body
            continue
        deeper = bool(open_headings) and block.level > blocks[open_headings[-1]].level
        if body is not None or not deeper:
            close(index)
        while open_headings and blocks[open_headings[-1]].level >= block.level:
            open_headings.pop()
        open_headings.append(index)
    close(len(blocks))
    return found


def subsections(found: Sequence[Section]) -> dict[int, list[int]]:
    """The headings right under a section, for the last block of every text that has two or more of them."""
    under: dict[int, list[int]] = {}
    for section in found:
        fresh = [at for at, heading in enumerate(section.path) if heading >= section.first]
        for at in fresh:
            if at:
                under.setdefault(section.path[at - 1], []).append(section.path[at])
    return {
        section.stop - 1: under[section.path[-1]]
        for section in found
        if section.path and section.body < section.stop and len(under.get(section.path[-1], ())) > 1
    }


def common_path(paths: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The longest beginning that all paths share."""
    if not paths:
        return ()
    low, high = min(paths), max(paths)
    length = 0
    while length < min(len(low), len(high)) and low[length] == high[length]:
        length += 1
    return low[:length]


def group(found: Sequence[Section], tokens: Sequence[int], *, target: int, small: int) -> list[list[Section]]:
    """Let small sections share a chunk with their neighbours under a common parent.

    A section is joined to its own subsection when both, with all that stands under it, fit into `target` tokens and one
    of them is `small`. Sections beside each other are joined only when one of them is hardly more than a heading, so
    that a source can name its section. A small text at the head of a section is joined to its only subsection whatever
    that one's size; where there are several, its chunk names them (`subsections`). Text above the first heading, or
    under the one heading that stands over all others (an abstract, a list of authors), is not joined to what it does
    not introduce.

    Args:
        found: All sections in order.
        tokens: Each section's length, its headings included.
        target: Tokens that a chunk should have.
        small: Tokens under which a section is too small to stand alone.
    """
    groups: list[list[Section]] = []
    size = 0
    root = len(common_path([section.anchor for section in found]))
    named = subsections(found)
    for index, section in enumerate(found):
        if groups:
            current = groups[-1]
            head = current[0]
            shared = len(common_path([*(item.anchor for item in current), section.anchor]))
            related = shared >= len(head.path) - 1
            below = section.path[: len(head.path)] == head.path
            least = small if below else small // _BESIDE
            fits = min(size, tokens[index]) < least and size + _subtree(found, tokens, index, target) <= target
            leads = current[-1].stop - 1 not in named and shared >= len(head.path) > root
            introduces = size < small and (head.body == head.stop or leads)
            if related and (fits or introduces):
                current.append(section)
                size += tokens[index]
                continue
        groups.append([section])
        size = tokens[index]
    return groups


def _subtree(found: Sequence[Section], tokens: Sequence[int], index: int, enough: int) -> int:
    """Length of a section with all that stands under it, counted until it is over `enough`."""
    path, size = found[index].path, 0
    while index < len(found) and found[index].path[: len(path)] == path and size <= enough:
        size += tokens[index]
        index += 1
    return size
