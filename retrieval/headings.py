"""Title and headings as they stand before a chunk's text: in full where that fits, else clipped in a defined way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import regex  # type: ignore[import-untyped]  # ships no types

from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from retrieval.types import Document

_TITLE_SHARE: Final = 6
_HEADING_SHARE: Final = 9
_PATH_SHARE: Final = 6
_SEPARATOR_TOKENS: Final = 2
_ELLIPSIS: Final = "…"
_GRAPHEME: Final = regex.compile(r"\X")


class HeadingPaths:
    """The title and heading paths of one document's chunks.

    The title has at most a sixth of `max_tokens`, each heading a ninth, a path a sixth: longer ones end in an ellipsis,
    and of a longer path the outermost headings are left out. A heading that repeats the title is not said again.
    """

    def __init__(self, document: Document, count_tokens: Callable[[Sequence[str]], list[int]], max_tokens: int) -> None:
        indices = [index for index, block in enumerate(document.blocks) if block.kind is BlockKind.HEADING]
        title = " ".join(document.title.split())
        texts = {index: " ".join(document.blocks[index].text.split()) for index in indices}
        unique = list(dict.fromkeys([title, *texts.values()]))
        self._tokens = dict(zip(unique, count_tokens(unique), strict=True))
        self._count = count_tokens
        self._room = max_tokens // _PATH_SHARE
        self.title = self._clipped(title, max_tokens // _TITLE_SHARE)
        self._labels = {index: self._clipped(text, max_tokens // _HEADING_SHARE) for index, text in texts.items()}
        self._said_by_title = {index for index, text in texts.items() if text == self.title}
        self._in_full = {index for index, text in texts.items() if self._labels[index] == text}

    def fitted(self, path: Sequence[int]) -> tuple[tuple[int, ...], frozenset[int]]:
        """The headings of a path (block indices) to be named, and those of `path` that are said in full that way."""
        named: list[int] = []
        left = self._room
        for index in reversed(path):
            if index in self._said_by_title:
                continue
            left -= self._tokens[self._labels[index]] + _SEPARATOR_TOKENS
            if left < 0:
                break
            named.insert(0, index)
        said = frozenset(
            index for index in path if index in self._said_by_title or index in self._in_full.intersection(named)
        )
        return tuple(named), said

    def labels(self, named: Sequence[int]) -> tuple[str, ...]:
        """The texts of the headings to be named."""
        return tuple(self._labels[index] for index in named)

    def tokens(self, named: Sequence[int]) -> int:
        """Length of the line before a chunk's text, an upper estimate."""
        labels = [self.title, *self.labels(named)]
        return sum(self._tokens[label] + _SEPARATOR_TOKENS for label in labels if label)

    def _clipped(self, text: str, limit: int) -> str:
        """`text` when it has at most `limit` tokens, else its beginning with an ellipsis; remembers its length."""
        length = self._tokens[text]
        clipped = text
        while length > limit and clipped:
            graphemes = _GRAPHEME.findall(clipped.removesuffix(_ELLIPSIS)[: 16 * limit])
            keep = min(len(graphemes) - 1, int(len(graphemes) * limit / length * 0.95))
            beginning = "".join(graphemes[:keep])[: 16 * limit].rstrip()
            word = beginning.rfind(" ")
            beginning = beginning[:word].rstrip() if word > len(beginning) // 2 else beginning
            clipped = beginning + _ELLIPSIS if beginning else ""
            length = self._count([clipped])[0]
        self._tokens[clipped] = length
        return clipped
