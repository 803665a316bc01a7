"""Document → chunks, by structure (pure).

Sections (`retrieval.sections`) are cut into sentences, list items, rows and lines (`retrieval.segments`), and these are
packed into chunks of about `target_tokens`, none over `max_tokens`. Breaks fall where the text breaks: before a
heading, else between paragraphs, else between list items or sentences; never behind a heading, a table's header or the
sentence that introduces a list, as long as that fits.

A chunk's text is a slice of the document's text. What the slice needs and does not say is repeated around it: the
headings above as `heading_path`; a split table's header row or the sentence that introduces a split list as first
lines; and behind a text that introduces several subsections their headings, a line each (a question about "the two
tasks" finds the sentence that announces them together with their names).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from retrieval.headings import HeadingPaths
from retrieval.packing import pack, runs
from retrieval.sections import common_path, group, sections, subsections
from retrieval.segments import Segment, halved, segment
from retrieval.types import BlockKind, Chunk, ChunkKind, chunk_id, embedded_text, page_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from retrieval.types import Audience, Document, VersionId

CHUNKER: Final = "structure-2"
"""Stored with the library; another value means that documents must be chunked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """Sizes in the embedding model's tokens.

    Attributes:
        target_tokens: Length of text that a chunk should have.
        max_tokens: Most that a chunk's `embedded_text` may have, title and heading path included; at most what the
            model reads.
        small_tokens: A section under this shares a chunk with its neighbours; a table over it stands alone.
    """

    target_tokens: int = 250
    max_tokens: int = 480
    small_tokens: int = 80

    def __post_init__(self) -> None:
        if not 0 < self.small_tokens <= self.target_tokens <= self.max_tokens or self.max_tokens < _LEAST_TOKENS:
            msg = f"chunk limits need 0 < small <= target <= max and max >= {_LEAST_TOKENS}, not {self}"
            raise ValueError(msg)

    @classmethod
    def within(cls, window: int) -> ChunkLimits:
        """The defaults, made smaller where a model reads only `window` tokens."""
        default = cls()
        longest = min(default.max_tokens, window)
        target = min(default.target_tokens, longest)
        return cls(target_tokens=target, max_tokens=longest, small_tokens=min(default.small_tokens, target))


_MOST_CONTENTS: Final = 8
"""A text that introduces more subsections than this does not name them."""
_LEAST_TOKENS: Final = 32
"""Below this there is no room for a title and a text."""


def chunk(
    document: Document,
    *,
    version: VersionId,
    audience: Audience,
    count_tokens: Callable[[Sequence[str]], list[int]],
    limits: ChunkLimits,
) -> tuple[Chunk, ...]:
    """Cut a document into chunks.

    Every character of every block that is not white space is in some chunk's slice, heading path or title. Slices are
    disjoint and in order. A title or heading too long to stand before every text is clipped (`retrieval.headings`); a
    heading that is not said in full that way stands in the text.

    Args:
        document: What a reader made.
        version: The version that the chunks belong to; their ids come from it and their ordinal.
        audience: Who may see them.
        count_tokens: Lengths in the embedding model's tokens, without special tokens. Called with large batches.
        limits: Sizes.

    Returns:
        Chunks in reading order, `ordinal` counting from 0; empty for a document without text.
    """
    paths = HeadingPaths(document, count_tokens, limits.max_tokens)
    cutter = _Cutter(document, paths, count_tokens, limits)
    drafts = cutter.fitted(cutter.drafts())
    return tuple(
        Chunk(
            id=chunk_id(version, ordinal),
            document_id=document.id,
            version=version,
            ordinal=ordinal,
            kind=draft.kind,
            text=draft.text,
            title=paths.title,
            uri=document.uri,
            heading_path=draft.path,
            page=draft.pages[0],
            last_page=draft.pages[1],
            start=draft.pieces[0].start,
            end=draft.pieces[-1].end,
            tokens=tokens,
            audience=audience,
            page_starts=draft.page_starts,
        )
        for ordinal, (draft, tokens) in enumerate(drafts)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A chunk in the making: its segments, and what is said before them."""

    pieces: tuple[Segment, ...]
    path: tuple[str, ...]
    text: str
    repeats: bool
    kind: ChunkKind
    pages: tuple[int | None, int | None]
    page_starts: tuple[tuple[int, int], ...]


class _Cutter:
    """One document's way through sections, groups, runs and packs."""

    def __init__(
        self,
        document: Document,
        paths: HeadingPaths,
        count_tokens: Callable[[Sequence[str]], list[int]],
        limits: ChunkLimits,
    ) -> None:
        self._document = document
        self._paths = paths
        self._count = count_tokens
        self._limits = limits
        self._sections = sections(document.blocks)
        self._anchors = [section.anchor for section in self._sections for _ in range(section.first, section.stop)]
        longest = max((paths.tokens(paths.fitted(section.path)[0]) for section in self._sections), default=0)
        self._room = max(limits.max_tokens - longest - 1, 1)
        self._segments = segment(document, limit=self._room, count_tokens=count_tokens)
        self._headers = {item.block: item for item in self._segments if item.header}
        self._introductions = self._find_introductions()
        self._last_segments = {item.block: item.end for item in self._segments}
        self._subsections = subsections(self._sections)

    def drafts(self) -> list[_Draft]:
        """All chunks, sized by the sum of their segments' tokens: an estimate that `fitted` checks."""
        lengths = [0] * len(self._document.blocks)
        by_block: list[list[Segment]] = [[] for _ in self._document.blocks]
        for item in self._segments:
            lengths[item.block] += item.tokens
            by_block[item.block].append(item)
        target, small = min(self._limits.target_tokens, self._room), self._limits.small_tokens
        found = self._sections
        sizes = [sum(lengths[section.first : section.stop]) for section in found]
        drafts: list[_Draft] = []
        for members in group(found, sizes, target=target, small=small):
            pieces = [item for block in range(members[0].first, members[-1].stop) for item in by_block[block]]
            for run in runs(pieces, self._document, small=small, room=self._room):
                packs = pack(run, target=target, room=self._room, repeated=self._repeated_tokens)
                drafts.extend(self._draft(tuple(part)) for part in packs)
        return drafts

    def fitted(self, drafts: list[_Draft]) -> list[tuple[_Draft, int]]:
        """Each draft with its exact length; one over the limit loses what it repeats, then is halved until it fits."""
        counts = self._count([embedded_text(self._paths.title, draft.path, draft.text) for draft in drafts])
        result: list[tuple[_Draft, int]] = []
        for draft, tokens in zip(drafts, counts, strict=True):
            smaller = self._smaller(draft) if tokens > self._limits.max_tokens else []
            result.extend(self.fitted(smaller) if smaller else [(draft, tokens)])
        return result

    def _smaller(self, draft: _Draft) -> list[_Draft]:
        """The draft without what it repeats, else its halves; none when it is a single character."""
        if draft.repeats:
            return [self._draft(draft.pieces, repeat=False)]
        if len(draft.pieces) > 1:
            middle = len(draft.pieces) // 2
            return [self._draft(half, repeat=False) for half in (draft.pieces[:middle], draft.pieces[middle:])]
        parts = halved(self._document.text, draft.pieces[0])
        return [self._draft((part,), repeat=False) for part in parts] if len(parts) > 1 else []

    def _draft(self, pieces: tuple[Segment, ...], *, repeat: bool = True) -> _Draft:
        """Say before the text what the text does not say itself."""
        blocks = self._document.blocks
        named, said = self._paths.fitted(common_path([self._anchors[item.block] for item in pieces]))
        first = 0
        while first < len(pieces) - 1 and pieces[first].block in said:
            first += 1
        pieces = pieces[first:]
        slice_ = self._document.text[pieces[0].start : pieces[-1].end]
        text = self._surrounded(slice_, pieces) if repeat else slice_
        starts = _page_starts(self._document, pieces[0].start, pieces[-1].end)
        pages = [page for _, page in starts]
        if not pages:
            covered = blocks[pieces[0].block : pieces[-1].block + 1]
            pages = [page for block in covered for page in (block.page, block.last_page) if page is not None]
        shift = max(0, text.find(slice_))
        return _Draft(
            pieces=pieces,
            path=self._paths.labels(named),
            text=text,
            repeats=len(text) > len(slice_),
            kind=_kind(pieces),
            pages=(min(pages), max(pages)) if pages else (None, None),
            # What is repeated before the slice counts as standing on the slice's first page.
            page_starts=tuple((offset + shift if number else 0, page) for number, (offset, page) in enumerate(starts)),
        )

    def _surrounded(self, text: str, pieces: tuple[Segment, ...]) -> str:
        """The slice with the lines repeated above it and behind it."""
        repeated = self._repeated(pieces[0])
        if repeated is not None:
            lead = self._document.text[repeated.start : repeated.end]
            text = f"{lead}\n{text}" if repeated.header else f"{lead}\n\n{text}"
        contents = self._contents(pieces)
        return f"{text}\n\n{contents}" if contents else text

    def _repeated(self, first: Segment) -> Segment | None:
        """What a chunk that begins with this segment repeats: the header of its table, the sentence above its list."""
        if first.kind is BlockKind.TABLE:
            lead = self._headers.get(first.block)
        elif first.kind is BlockKind.LIST_ITEM:
            lead = self._introductions.get(first.block)
        else:
            return None
        return lead if lead is not None and lead.start < first.start and lead.tokens <= self._room // 3 else None

    def _contents(self, pieces: tuple[Segment, ...]) -> str:
        """The headings of the subsections that a text introduces and that are still to come, a line each."""
        last = pieces[-1]
        coming: list[int] = []
        for block in range(pieces[0].block, last.block + 1):
            if self._last_segments.get(block, last.end) <= last.end:
                coming += [heading for heading in self._subsections.get(block, ()) if heading > last.block]
        length = sum(item.tokens for item in pieces) + self._paths.tokens(coming)
        if len(coming) > _MOST_CONTENTS or length > self._room:
            return ""
        return "\n".join(self._paths.labels(coming))

    def _repeated_tokens(self, first: Segment) -> int:
        repeated = self._repeated(first)
        return 0 if repeated is None else repeated.tokens

    def _find_introductions(self) -> dict[int, Segment]:
        """For every list item the sentence, ending in a colon, that stands right above its list."""
        found: dict[int, Segment] = {}
        above: Segment | None = None
        for item in self._segments:
            if item.kind is BlockKind.LIST_ITEM:
                if above is not None:
                    found[item.block] = above
            else:
                ends_in_colon = self._document.text[item.end - 1] in ":："
                above = item if item.kind is BlockKind.PARAGRAPH and ends_in_colon else None
        return found


_KINDS: Final = {
    BlockKind.TABLE: ChunkKind.TABLE,
    BlockKind.CODE: ChunkKind.CODE,
    BlockKind.REFERENCE: ChunkKind.REFERENCES,
}


def _page_starts(document: Document, start: int, end: int) -> list[tuple[int, int]]:
    """Where pages begin in this slice of the text, offsets counted from its start; the page it begins on at 0."""
    first = page_at(document.page_starts, start)
    inside = [(offset - start, page) for offset, page in document.page_starts if start < offset < end]
    return [(0, first), *inside] if first is not None else inside


def _kind(pieces: Sequence[Segment]) -> ChunkKind:
    """The kind that most of the tokens are of."""
    tokens: dict[ChunkKind, int] = {}
    for item in pieces:
        kind = _KINDS.get(item.kind, ChunkKind.PROSE)
        tokens[kind] = tokens.get(kind, 0) + item.tokens
    return max(tokens, key=lambda kind: tokens[kind])
