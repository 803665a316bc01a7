"""The nouns of retrieval, each a frozen value: Document → Chunk → Hit, asked for by a Query."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NewType
from uuid import NAMESPACE_URL, UUID, uuid5

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

DocumentId = NewType("DocumentId", str)
"""A UUID string made from the document's URI: the same source is the same document."""
ChunkId = NewType("ChunkId", str)
"""A UUID string made from the document's version and the chunk's ordinal."""
VersionId = NewType("VersionId", str)
"""A UUID string, new for every indexing of a document."""
Scope = NewType("Scope", str)
"""One circle of people: `everyone`, or a platform's place or person such as `slack:T1:C1`."""

EVERYONE = Scope("everyone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """A set of scopes. On a chunk: who may see it. On a query: the circles that the asker belongs to.

    A chunk is visible to a query when the two sets share a scope; the store applies that inside its query.
    """

    scopes: frozenset[Scope]

    @classmethod
    def of(cls, *scopes: str) -> Audience:
        """Who may see: exactly these scopes; at least one is required, so that nothing becomes invisible to all."""
        if not scopes:
            msg = "an audience needs at least one scope"
            raise ValueError(msg)
        return cls(scopes=frozenset(Scope(scope) for scope in scopes))

    @classmethod
    def asker(cls, *scopes: str) -> Audience:
        """The circles of somebody who asks: the given ones and, always, everyone."""
        return cls(scopes=frozenset({EVERYONE, *(Scope(scope) for scope in scopes)}))


PUBLIC = Audience(scopes=frozenset({EVERYONE}))


class BlockKind(StrEnum):
    """What a block of a document is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"
    REFERENCE = "reference"
    """One entry (or one paragraph) of a bibliography."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One structural piece of a document in reading order.

    `start` and `end` are character offsets into `Document.text`, `text == document.text[start:end]`. `page` and
    `last_page` count from 1 (a paragraph may run over a page's end) and are None where the format has no pages.
    `level` is a heading's rank (1 is the highest) or a list item's nesting depth (0 is the outermost).
    A table's `text` is its Markdown (header line, rule line, one line a row); other kinds are plain text without
    markup.
    """

    kind: BlockKind
    text: str
    start: int
    end: int
    page: int | None = None
    last_page: int | None = None
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """Bytes to be read, and where they came from. `uri` is the document's identity (`file:///…`, `https://…`)."""

    uri: str
    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A source that has been read: normalised text with its structure. Not yet cut up, not yet anybody's to see."""

    id: DocumentId
    uri: str
    title: str
    media_type: str
    digest: str
    """SHA-256 of the source's bytes, in hex."""
    text: str = field(repr=False)
    blocks: tuple[Block, ...] = field(repr=False)
    page_count: int | None
    language: str | None
    """ISO 639-1 code of the main language, or None when unsure."""
    page_starts: tuple[tuple[int, int], ...] = ()
    """Pairs (offset into `text`, page): from this offset on the text stands on this page. Offsets ascend."""
    notes: tuple[str, ...] = ()
    """What the reader left out and why, as sentences for the ingester (e.g. pages without text)."""


class ChunkKind(StrEnum):
    """What a chunk holds."""

    PROSE = "prose"
    TABLE = "table"
    CODE = "code"
    REFERENCES = "references"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of a document, small enough for the embedding model, with all that is needed to show it as a source.

    `start`/`end` are character offsets into `Document.text`. `page`/`last_page` count from 1, None where there are no
    pages; `page_starts` are pairs (offset into `text`, page) that tell where each page begins. `ordinal` counts the
    document's chunks from 0 in reading order. `tokens` is the length of `embedded_text` in the embedding model's
    tokens.
    """

    id: ChunkId
    document_id: DocumentId
    version: VersionId
    ordinal: int
    kind: ChunkKind
    text: str
    title: str
    uri: str
    heading_path: tuple[str, ...]
    page: int | None
    last_page: int | None
    start: int
    end: int
    tokens: int
    audience: Audience
    page_starts: tuple[tuple[int, int], ...] = ()

    def page_at(self, offset: int) -> int | None:
        """The page that this offset into `text` stands on."""
        return page_at(self.page_starts, offset) or self.page

    @property
    def embedded_text(self) -> str:
        """What is embedded and indexed: title and heading path, then the text."""
        return embedded_text(self.title, self.heading_path, self.text)


def document_id(uri: str) -> DocumentId:
    """The document's identity: the same URI is the same document (UUID version 5 in the URL namespace)."""
    return DocumentId(str(uuid5(NAMESPACE_URL, uri)))


def chunk_id(version: VersionId, ordinal: int) -> ChunkId:
    """The id of a version's chunk: whoever knows one chunk can name its neighbours."""
    return ChunkId(str(uuid5(UUID(version), str(ordinal))))


def page_at(page_starts: Sequence[tuple[int, int]], offset: int) -> int | None:
    """The page of the last start at or before `offset`; None when there is none."""
    index = bisect_right(page_starts, offset, key=lambda start: start[0])
    return page_starts[index - 1][1] if index else None


def embedded_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """Join title and heading path (each once, ` > ` between) and the text on the lines below.

    A title that the text already begins with is not said twice.
    """
    path: list[str] = []
    for part in (title, *heading_path):
        if part and part not in path and not text.startswith(part):
            path.append(part)
    return f"{' > '.join(path)}\n{text}" if path else text


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRecord:
    """What the library remembers of an indexed document."""

    id: DocumentId
    version: VersionId
    uri: str
    title: str
    media_type: str
    digest: str
    page_count: int | None
    chunk_count: int
    language: str | None
    audience: Audience
    ingested_at: datetime
    """Aware, UTC."""
    ingested_by: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question put to the library. `audience` has no default: who asks decides what can be found."""

    text: str
    audience: Audience
    limit: int = 8
    """How many hits at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk that was found, and why.

    `cosine` is the dense similarity (-1 to 1) and `bm25` the sparse score (0 or more); each with its rank from 1, or
    None where that search did not return the chunk. `score` is the fused score: higher is better, comparable within
    one result only.
    """

    chunk: Chunk
    score: float
    cosine: float | None
    bm25: float | None
    dense_rank: int | None
    bm25_rank: int | None
    neighbours: tuple[Chunk, ...] = ()
    """Chunks just before or after in the same section, added where this one is cut off."""

    @property
    def passage(self) -> str:
        """The chunk's text with its neighbours', in reading order."""
        chunks = sorted((self.chunk, *self.neighbours), key=lambda chunk: chunk.ordinal)
        return "\n\n".join(chunk.text for chunk in chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """A BM25 vector: parallel tuples, indices ascending and unique."""

    indices: tuple[int, ...]
    values: tuple[float, ...]
