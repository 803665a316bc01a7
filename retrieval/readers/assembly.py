"""Pieces of a source, in reading order → a `Document` with exact offsets (pure, but for the language model's file)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from retrieval.errors import DocumentTooLargeError, EmptyDocumentError
from retrieval.languages import language_of
from retrieval.normalising import normalise_inline
from retrieval.types import Block, BlockKind, Document, document_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from retrieval.types import SourceFile

_SEPARATOR = "\n\n"
_TITLE_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A block before it has a place in a document's text; fields as in `retrieval.types.Block`."""

    kind: BlockKind
    text: str
    page: int | None = None
    last_page: int | None = None
    level: int = 0
    turns: tuple[tuple[int, int], ...] = ()
    """Pairs (offset into `text`, page) where a page begins within the text; exact to some characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader found in a source. `title` is the source's own (metadata), not a guess from its text."""

    media_type: str
    pieces: tuple[Piece, ...]
    title: str | None = None
    page_count: int | None = None
    notes: tuple[str, ...] = ()


def assemble(source: SourceFile, reading: Reading, *, characters: int) -> Document:
    """Build the document.

    Args:
        source: Where the bytes came from.
        reading: Its pieces in reading order; empty ones are dropped.
        characters: The most that `Document.text` may have.

    Raises:
        EmptyDocumentError: No piece holds a letter or a digit.
        DocumentTooLargeError: Over `characters`.
    """
    text, blocks, page_starts = _lay_out(reading.pieces)
    if not any(character.isalnum() for character in text):
        msg = f"{source.name} holds no text. Check that it is the right file."
        raise EmptyDocumentError(msg)
    if len(text) > characters:
        msg = (
            f"{source.name} holds {len(text):,} characters of text; the limit is {characters:,}. "
            "Split it and ingest the parts."
        )
        raise DocumentTooLargeError(msg)
    return Document(
        id=document_id(source.uri),
        uri=source.uri,
        title=_title(source, reading),
        media_type=reading.media_type,
        digest=hashlib.sha256(source.data).hexdigest(),
        text=text,
        blocks=blocks,
        page_count=reading.page_count,
        language=language_of(blocks),
        page_starts=page_starts,
        notes=reading.notes,
    )


def _lay_out(pieces: Iterable[Piece]) -> tuple[str, tuple[Block, ...], tuple[tuple[int, int], ...]]:
    """The text, its blocks, and where the text changes to another page."""
    texts: list[str] = []
    page_starts: list[tuple[int, int]] = []
    blocks: list[Block] = []
    position = 0
    for piece in pieces:
        if not piece.text.strip():
            continue
        if texts:
            position += len(_SEPARATOR)
        last_page = piece.last_page if piece.last_page is not None else piece.page
        end = position + len(piece.text)
        blocks.append(
            Block(
                kind=piece.kind,
                text=piece.text,
                start=position,
                end=end,
                page=piece.page,
                last_page=last_page,
                level=piece.level,
            )
        )
        for offset, page in ((0, piece.page), *piece.turns):
            if page is not None and (not page_starts or page_starts[-1][1] != page):
                page_starts.append((position + min(offset, len(piece.text)), page))
        texts.append(piece.text)
        position = end
    return _SEPARATOR.join(texts), tuple(blocks), tuple(page_starts)


def _title(source: SourceFile, reading: Reading) -> str:
    """The source's own title, else the first heading of the highest rank near the start, else the file's name."""
    own = normalise_inline(reading.title or "")
    if own:
        return own[:_TITLE_LENGTH]
    start = [piece for piece in reading.pieces[:20] if piece.kind is BlockKind.HEADING and piece.text.strip()]
    if start:
        return min(start, key=lambda piece: piece.level).text[:_TITLE_LENGTH]
    name = normalise_inline(source.name)
    return PurePosixPath(name).stem or name or source.uri
