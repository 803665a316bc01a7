"""Small documents made on the spot, so that tests need no files."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from retrieval.types import SourceFile

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = A4
LEFT, RIGHT_COLUMN, TOP, LEADING = 72, 307, 770, 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A line of print: its place in points from the page's lower left, its size and font."""

    text: str
    x: float = LEFT
    y: float = TOP
    size: float = 10
    font: str = "Times-Roman"


def source(data: bytes, name: str = "made.pdf", uri: str = "") -> SourceFile:
    """Bytes as a source file."""
    return SourceFile(uri=uri or f"file:///made/{name}", name=name, data=data)


def pdf_of_lines(pages: Sequence[Sequence[Printed]], *, title: str = "", password: str = "") -> bytes:
    """A PDF with these lines on these pages."""
    buffer = io.BytesIO()
    encryption = StandardEncryption(password, ownerPassword=password + "-owner") if password else None
    canvas = Canvas(buffer, pagesize=A4, encrypt=encryption, invariant=1)
    if title:
        canvas.setTitle(title)
    for page in pages:
        for line in page:
            canvas.setFont(line.font, line.size)
            canvas.drawString(line.x, line.y, line.text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def column(lines: Sequence[str], *, x: float = LEFT, y: float = TOP, size: float = 10) -> list[Printed]:
    """Lines under one another."""
    return [Printed(text=text, x=x, y=y - n * LEADING, size=size) for n, text in enumerate(lines)]


def simple_pdf(*paragraphs: str, title: str = "") -> bytes:
    """One page a paragraph, wrapped at about 80 characters."""
    return pdf_of_lines([column(_wrapped(text)) for text in paragraphs], title=title)


def image_only_pdf(pages: int = 1, *, text_page: str = "") -> bytes:
    """A "scan": each page is one grey picture; with `text_page`, a page of text follows."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    picture = ImageReader(io.BytesIO(_grey_ppm(200, 280)))
    for _ in range(pages):
        canvas.drawImage(picture, 0, 0, WIDTH, HEIGHT)
        canvas.showPage()
    if text_page:
        for line in column(_wrapped(text_page)):
            canvas.setFont(line.font, line.size)
            canvas.drawString(line.x, line.y, line.text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def cyclic_pdf() -> bytes:
    """A PDF whose page tree contains itself, written by hand."""
    return _hand_written(
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>",
        b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R] /Count 1 >>",
    )


def _hand_written(*objects: bytes) -> bytes:
    """Objects numbered from 1 (the first is the catalog) with header, cross-reference table and trailer."""
    data = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return (
        data
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
        + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(data))
    )


def _grey_ppm(width: int, height: int) -> bytes:
    """Noise-like grey rows, so that the picture is not one flat colour."""
    rows = bytes((x * 7 + y * 13) % 200 + 30 for y in range(height) for x in range(width) for _ in range(3))
    return b"P6 %d %d 255\n" % (width, height) + rows


def _wrapped(text: str, width: int = 80) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
