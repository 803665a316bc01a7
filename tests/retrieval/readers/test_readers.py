from __future__ import annotations

import io
import zipfile

import pytest
from making_documents import simple_pdf, source

from retrieval.errors import DocumentTooLargeError, EmptyDocumentError, UnsupportedFormatError
from retrieval.readers import Readers, ReadLimits
from retrieval.readers.sniffing import Format, sniff

TEXT = "Requests for leave are to be made two weeks in advance.\n"


def zip_of(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "found"),
    [
        (simple_pdf("Text."), "wrong.txt", Format.PDF),
        (b"\n\n" + simple_pdf("Text."), "noname", Format.PDF),
        (b"<!DOCTYPE html><html><body><p>x</p></body></html>", "noname", Format.HTML),
        (b"<html><body>x</body></html>", "page.txt", Format.HTML),
        ("<p>日本語</p>".encode("utf-16"), "page", Format.HTML),
        (b"<!-- note --><div>x</div>", "page", Format.HTML),
        (b"# Title\n\n- a\n- b\n", "README", Format.MARKDOWN),
        (b"just a line", "notes.md", Format.MARKDOWN),
        (b"<p align=center>logo</p>\n\n# Title\n", "README.md", Format.MARKDOWN),
        (TEXT.encode(), "noname", Format.TEXT),
        (TEXT.encode("utf-16-le"), "noname", Format.TEXT),
        ("Größe".encode("latin-1"), "noname", Format.TEXT),
        (b"a < b and b > c <br> in a log", "x.log", Format.TEXT),
        (b"BMW is a maker of cars", "cars", Format.TEXT),
        (b"MZ is the name of a newspaper", "press", Format.TEXT),
        (bytes(range(256)) * 8, "noname", Format.UNSUPPORTED),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "picture.txt", Format.UNSUPPORTED),
    ],
)
def test_the_format_is_told_from_the_content(data: bytes, name: str, found: Format) -> None:
    assert sniff(data, name) is found


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (zip_of("[Content_Types].xml", "word/document.xml"), "a Word document"),
        (zip_of("[Content_Types].xml", "ppt/presentation.xml"), "a PowerPoint presentation"),
        (zip_of("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook"),
        (zip_of("holiday.txt"), "a ZIP archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "an old Office file"),
        (b"{\\rtf1 text}", "an RTF file"),
        (b"\xff\xd8\xff\xe0" + bytes(99), "a JPEG image"),
        (bytes(range(1, 256)) * 8, "binary data"),
    ],
)
async def test_what_is_not_read_is_named_with_what_is(data: bytes, kind: str) -> None:
    with pytest.raises(UnsupportedFormatError) as caught:
        await Readers().read(source(data, "some.file"))
    message = str(caught.value)
    assert message.startswith(f"some.file is {kind}")
    assert "PDF, Markdown, HTML and plain text" in message


@pytest.mark.parametrize("data", [b"", b" \r\n\t ", bytes(5_000)])
async def test_an_empty_file_is_told(data: bytes) -> None:
    with pytest.raises(EmptyDocumentError, match=r"a\.txt is empty"):
        await Readers().read(source(data, "a.txt"))


async def test_markup_without_words_is_empty() -> None:
    with pytest.raises(EmptyDocumentError, match=r"a\.html"):
        await Readers().read(source(b"<html><body><script>var x = 1;</script></body></html>", "a.html"))


async def test_limits_are_named() -> None:
    readers = Readers(ReadLimits(bytes=1_000_000, characters=20))
    with pytest.raises(DocumentTooLargeError, match=r"1\.5 MB; the limit is 1\.0 MB"):
        await readers.read(source(b"a" * 1_500_000, "a.txt"))
    with pytest.raises(DocumentTooLargeError, match="limit is 20"):
        await readers.read(source(TEXT.encode(), "a.txt"))


async def test_each_kind_becomes_a_document() -> None:
    readers = Readers()
    for data, name, media_type in [
        (f"# Leave\n\n{TEXT}".encode(), "a.md", "text/markdown"),
        (f"<title>Leave</title><p>{TEXT}</p>".encode(), "a.html", "text/html"),
        (TEXT.encode(), "a.txt", "text/plain"),
    ]:
        document = await readers.read(source(data, name))
        assert document.media_type == media_type
        assert TEXT.strip() in document.text
        assert document.page_count is None
        assert all(block.page is None for block in document.blocks)
    await readers.close()
    await readers.close()


async def test_what_was_read_ahead_is_what_reading_gives() -> None:
    readers = Readers()
    wanted, other = source(TEXT.encode(), "leave.txt"), source(b"Other words.\n", "other.txt")
    for first, then in ((wanted, wanted), (other, wanted)):
        readers.read_ahead(first)
        assert await readers.read(then) == await readers.read(wanted)
    await readers.close()


async def test_what_fails_ahead_fails_when_it_is_read() -> None:
    readers = Readers()
    empty = source(b"", "empty.txt")
    readers.read_ahead(empty)
    with pytest.raises(EmptyDocumentError):
        await readers.read(empty)
    readers.read_ahead(empty)
    await readers.close()
