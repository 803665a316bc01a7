"""PDF → pieces, parsed by liteparse in processes of its own, so that no file can stall or kill this one."""

from __future__ import annotations

import asyncio
import html
import logging
import re
import signal
import sys
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

from retrieval.errors import (
    CorruptDocumentError,
    DocumentTooLargeError,
    EmptyDocumentError,
    EncryptedDocumentError,
    ReadError,
    ReadTimeoutError,
)
from retrieval.normalising import normalise_inline
from retrieval.readers.assembly import Reading
from retrieval.readers.pdf_layout import lay_out
from retrieval.readers.pdf_types import Box, Line, Page, RawBlock, Word
from retrieval.readers.sniffing import HEADER_REACH
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from liteparse import LiteParse
    from liteparse.types import LayoutBlock, ParsedPage, ParseResult

    from retrieval.readers.assembly import Piece
    from retrieval.readers.limits import ReadLimits
    from retrieval.types import SourceFile

_log = logging.getLogger(__name__)

_GRACE = 30.0
"""Seconds beyond the parse's own limit: starting a process, sending the bytes, fetching the result."""
_ATTEMPTS = 2
_WORKER_MEMORY = 2 * 1024**3
"""Bytes of data that a parsing process may hold (a 400-page book takes 0.2 GB)."""
_XMP_TITLE = re.compile(r"<dc:title>\s*<rdf:Alt>\s*<rdf:li[^>]*[^>/]>([^<]*)</rdf:li>")
_GARBLED = "garbled"
_PICTURES = frozenset({"scanned", "embedded-images", "vector-text"})


class PdfReader:
    """Reads PDFs in a pool of processes that starts with the first PDF. `close` ends them."""

    def __init__(self, limits: ReadLimits, *, pool_size: int = 1) -> None:
        self._limits = limits
        self._pool_size = pool_size
        self._free = asyncio.Semaphore(pool_size)
        self._lock = threading.Lock()
        self._parser: LiteParse | None = None
        self._closed = False

    async def read(self, source: SourceFile) -> Reading:
        """Parse and lay out.

        Raises:
            EncryptedDocumentError: A password is needed.
            CorruptDocumentError: No page can be read, or the parsing process died.
            EmptyDocumentError: No page holds text (a scan), or all of it is garbled.
            DocumentTooLargeError: More pages than allowed.
            ReadTimeoutError: Took too long.
        """
        async with self._free:
            try:
                async with asyncio.timeout(self._limits.seconds + _GRACE):
                    result = await asyncio.to_thread(self._parse, source)
            except TimeoutError as error:
                raise self._too_slow(source) from error
        if result.total_pages > self._limits.pages:
            msg = (
                f"{source.name} has {result.total_pages:,} pages; the limit is {self._limits.pages:,}. "
                "Split it and ingest the parts."
            )
            raise DocumentTooLargeError(msg)
        return await asyncio.to_thread(_reading, source, result)

    async def close(self) -> None:
        """End the processes. A later `read` fails."""
        self._closed = True
        parser, self._parser = self._parser, None
        if parser is not None:
            await asyncio.to_thread(parser.close)

    def _parse(self, source: SourceFile) -> ParseResult:
        from liteparse import ParseError, ParseTimeoutError  # noqa: PLC0415 - heavy: a native library of 30 MB

        # Bytes before the header are allowed, but liteparse would take the file for something else and convert it.
        data = source.data[max(source.data.find(b"%PDF-", 0, HEADER_REACH), 0) :]
        for attempt in range(_ATTEMPTS):
            try:
                with _deaf_to_interrupts():
                    result: ParseResult = self._pool().parse(data)
            except ParseTimeoutError as error:
                raise self._too_slow(source) from error
            except ParseError as error:
                # A process that died may have died of something else (killed while idle): the next one tries again.
                if attempt + 1 == _ATTEMPTS or not _has_died(error):
                    raise _failure(source, error) from error
            else:
                return result
        msg = "unreachable: the last attempt returns or raises"
        raise AssertionError(msg)

    def _pool(self) -> LiteParse:
        from liteparse import LiteParse  # noqa: PLC0415 - heavy, see above

        with self._lock:
            if self._closed:
                msg = "this reader has been closed"
                raise RuntimeError(msg)
            if self._parser is None:
                self._parser = LiteParse(
                    pool_size=self._pool_size,
                    parse_timeout=self._limits.seconds,
                    max_pages=self._limits.pages,
                    output_format="markdown",  # the only one that keeps columns apart
                    extract_blocks=True,
                    emit_word_boxes=True,
                    include_complexity=True,
                    extract_document_metadata=True,
                    continue_on_page_error=True,
                    ocr_enabled=False,  # it would try to fetch language data
                    extract_links=False,
                    image_mode="off",
                    quiet=True,
                )
                # A pool that is still open when the interpreter shuts down aborts the process.
                weakref.finalize(self, self._parser.close)
            _bound_memory(self._parser)
            return self._parser

    def _too_slow(self, source: SourceFile) -> ReadTimeoutError:
        msg = (
            f"Reading {source.name} took longer than {self._limits.seconds:g} seconds, so it was given up. "
            "Split it, or print it to a new PDF."
        )
        return ReadTimeoutError(msg)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes in here that Ctrl-C does not reach: a terminal sends it to all, and they would print a trace.

    A process inherits what the thread that starts it blocks. The main thread, which heeds Ctrl-C, is not meant by it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_died(error: Exception) -> bool:
    # liteparse tells its reasons apart by words only.
    return "worker process died" in str(error)


def _failure(source: SourceFile, error: Exception) -> ReadError:
    reason = str(error).lower()
    if "password" in reason or "encrypt" in reason or "security" in reason:
        msg = f"{source.name} is protected by a password. Save a copy without one and ingest that."
        return EncryptedDocumentError(msg)
    if _has_died(error):
        msg = f"{source.name} brought the PDF parser down: it is damaged or built to do harm. Print it to a new PDF."
        return CorruptDocumentError(msg)
    msg = f"{source.name} is damaged: no page of it can be read. Get a fresh copy or export it again."
    return CorruptDocumentError(msg)


def _bound_memory(parser: LiteParse) -> None:
    """Give every parsing process a limit of memory, where the system can do that to another process (Linux).

    The pool has no setting for it and replaces processes that died, so this is done before each parse. It reaches into
    the pool; should a release of liteparse rename things, the processes go without the limit and the time limit stays.
    """
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 - exists on Unix only

    for worker in getattr(getattr(parser, "_pool", None), "_workers", ()):
        process = getattr(worker, "_proc", None)
        if process is not None and process.poll() is None:
            try:
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (_WORKER_MEMORY, _WORKER_MEMORY))
            except OSError as error:
                _log.debug("no memory limit for the parsing process: %s", type(error).__name__)


def _reading(source: SourceFile, result: ParseResult) -> Reading:
    failed = {error.page_num for error in result.page_errors}
    garbled, blank, pages = [], [], []
    for parsed in result.pages:
        page = _page(parsed)
        reasons = set(parsed.complexity.reasons) if parsed.complexity else set()
        if _GARBLED in reasons or (parsed.complexity and parsed.complexity.is_garbled):
            garbled.append(page.number)
        elif not any(block.text or block.rows or block.raw_lines for block in page.blocks):
            # A blank page is nothing to tell of; a picture of a page is.
            if reasons & _PICTURES or (parsed.complexity and parsed.complexity.full_page_image):
                blank.append(page.number)
        else:
            pages.append(page)
    if not result.pages:
        msg = f"{source.name} is damaged: none of its pages can be read. Get a fresh copy or export it again."
        raise CorruptDocumentError(msg)
    pieces = lay_out(pages)
    if not any(character.isalnum() for piece in pieces for character in piece.text):
        raise EmptyDocumentError(_nothing(source, garbled=bool(garbled), pages=result.total_pages))
    return Reading(
        media_type="application/pdf",
        pieces=pieces,
        title=_title(result, pieces),
        page_count=result.total_pages,
        notes=_notes(garbled, blank, sorted(failed)),
    )


def _nothing(source: SourceFile, *, garbled: bool, pages: int) -> str:
    if garbled:
        return (
            f"The text inside {source.name} is garbled (its fonts do not say which characters they show). "
            "Export it again from the program it was made with; reading it by OCR is not in this version."
        )
    several = "its pages are pictures" if pages != 1 else "its page is a picture"
    return (
        f"{source.name} holds no text: {several}, as in a scan. Reading pictures (OCR) is not in this version; "
        "run the file through an OCR program and ingest the result."
    )


def _notes(garbled: Sequence[int], blank: Sequence[int], failed: Sequence[int]) -> tuple[str, ...]:
    notes: list[str] = []
    if garbled:
        notes.append(f"{_name_pages(garbled)} left out: the text there is garbled.")
    if blank:
        notes.append(f"{_name_pages(blank)} left out: no text there, only a picture; OCR is not in this version.")
    if failed:
        notes.append(f"{_name_pages(failed)} left out: damaged.")
    return tuple(notes)


def _name_pages(numbers: Sequence[int]) -> str:
    """`Page 3 was`, `Pages 1–4, 7 were`."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    named = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ranges)
    return f"Page {named} was" if len(numbers) == 1 else f"Pages {named} were"


def _title(result: ParseResult, pieces: Sequence[Piece]) -> str | None:
    """The metadata's title if the first page shows it too; metadata alone is often a file name or a leftover."""
    found = _XMP_TITLE.search((result.doc_meta and result.doc_meta.xmp) or "")
    title = normalise_inline(html.unescape(found.group(1))) if found else ""
    if not title:
        return None
    first = _letters("".join(piece.text for piece in pieces if piece.page == pieces[0].page))
    if len(_letters(title)) > 3 and _letters(title) in first:
        return title
    return None if any(piece.kind is BlockKind.HEADING for piece in pieces[:20]) or "." in title[-5:] else title


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _page(parsed: ParsedPage) -> Page:
    return Page(
        number=parsed.page_num,
        width=parsed.width,
        height=parsed.height,
        blocks=tuple(_block(block) for block in parsed.blocks or ()),
        lines=tuple(
            Line(
                text=item.text,
                box=Box(x=item.x, y=item.y, width=item.width, height=item.height),
                size=_size(item.font_size, item.height),
                font=item.font_name or "",
                words=tuple(Word(text=word.text, x=word.x, right=word.x + word.width) for word in item.words),
            )
            for item in parsed.text_items
            if item.text.strip() and not item.rotation % 360
        ),
    )


def _size(nominal: float | None, height: float) -> float:
    """The font size in points; where the page scales its fonts (`1` with a matrix), the height of the line."""
    return nominal if nominal and nominal > 0.5 * height else height


def _block(block: LayoutBlock) -> RawBlock:
    box = block.bbox
    cells = [block.header, *(block.rows or ())] if block.kind == "table" else []
    return RawBlock(
        kind=block.kind,
        text=block.text or "",
        level=block.level or 0,
        marker=block.marker or "",
        ordered=bool(block.ordered),
        rows=tuple(tuple(cell.text for cell in row or ()) for row in cells),
        raw_lines=tuple(block.lines or ()),
        box=Box(x=box.x, y=box.y, width=box.width, height=box.height) if box else None,
    )
