"""Bytes → `Document`. The type is told from the content, never from the name alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from retrieval.errors import DocumentTooLargeError, EmptyDocumentError, ReadTimeoutError, UnsupportedFormatError
from retrieval.readers.assembly import assemble
from retrieval.readers.limits import ReadLimits
from retrieval.readers.markdown import read_markdown
from retrieval.readers.pdf import PdfReader
from retrieval.readers.sniffing import Format, sniff, unsupported_name
from retrieval.readers.text import read_text

if TYPE_CHECKING:
    from retrieval.readers.assembly import Reading
    from retrieval.types import Document, SourceFile

__all__ = ["ReadLimits", "Readers"]

READABLE = "PDF, Markdown, HTML and plain text"


class Readers:
    """Reads everything that this version can: a `Reader`. `close` ends the PDF parser's processes."""

    def __init__(self, limits: ReadLimits | None = None, *, pdf_processes: int = 1) -> None:
        """Take limits; no process starts before the first PDF."""
        self._limits = limits or ReadLimits()
        self._pdf = PdfReader(self._limits, pool_size=pdf_processes)
        self._ahead: tuple[SourceFile, asyncio.Task[Document]] | None = None

    async def read(self, source: SourceFile) -> Document:
        """Read within the limits; the event loop is not held up.

        Raises:
            ReadError: One of its kinds, with a sentence that says what to do.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return await self._read(source)
        known, task = ahead
        if known == source:
            return await task
        await _give_up(task)
        return await self._read(source)

    def read_ahead(self, source: SourceFile) -> None:
        """Begin with what will be the next `read`, e.g. while a model is loading. What comes of it is told there."""
        task = asyncio.ensure_future(self._read(source))  # noqa: TID251 - `read` or `close` awaits it
        self._ahead = (source, task)

    async def _read(self, source: SourceFile) -> Document:
        size = len(source.data)
        if not source.data.strip(b"\0 \t\r\n"):
            msg = f"{source.name} is empty. Check that it was saved or copied in full."
            raise EmptyDocumentError(msg)
        if size > self._limits.bytes:
            msg = (
                f"{source.name} is {size / 1_000_000:,.1f} MB; the limit is {self._limits.bytes / 1_000_000:,.1f} MB. "
                "Split it and ingest the parts."
            )
            raise DocumentTooLargeError(msg)
        found = sniff(source.data, source.name)
        if found is Format.UNSUPPORTED:
            msg = (
                f"{source.name} is {unsupported_name(source.data, source.name)}, which this version does not read. "
                f"It reads {READABLE}; export it as one of these."
            )
            raise UnsupportedFormatError(msg)
        if found is Format.PDF:
            reading = await self._pdf.read(source)
            return await asyncio.to_thread(assemble, source, reading, characters=self._limits.characters)
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await asyncio.to_thread(self._read_text, source, found)
        except TimeoutError as error:
            msg = (
                f"Reading {source.name} took longer than {self._limits.seconds:g} seconds, so it was given up. "
                "Split it and ingest the parts."
            )
            raise ReadTimeoutError(msg) from error

    async def close(self) -> None:
        """End the PDF parser's processes."""
        if self._ahead is not None:
            await _give_up(self._ahead[1])
        await self._pdf.close()

    def _read_text(self, source: SourceFile, found: Format) -> Document:
        return assemble(source, _text_reading(source.data, found), characters=self._limits.characters)


async def _give_up(task: asyncio.Task[Document]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _text_reading(data: bytes, found: Format) -> Reading:
    if found is Format.HTML:
        from retrieval.readers.web import read_html  # noqa: PLC0415 - heavy: trafilatura, only for pages

        return read_html(data)
    return read_markdown(data) if found is Format.MARKDOWN else read_text(data)
