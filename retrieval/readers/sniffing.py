"""What kind of file is this? Told from its bytes (pure); the name only decides between Markdown and plain text."""

from __future__ import annotations

import re
from enum import Enum, auto
from pathlib import PurePosixPath

from retrieval.readers.text import decode


class Format(Enum):
    """The formats that are read, and all the others."""

    PDF = auto()
    HTML = auto()
    MARKDOWN = auto()
    TEXT = auto()
    UNSUPPORTED = auto()


HEADER_REACH = 1024
"""A PDF's header may begin anywhere in this many bytes."""
_HEAD = 4096
_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (or a protected new one)"),
    (b"{\\rtf", "an RTF file"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"BM", "a bitmap image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a Windows program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"OggS", "an Ogg sound or video file"),
    (b"ID3", "an MP3 sound file"),
    (b"fLaC", "a FLAC sound file"),
    (b"%!PS", "a PostScript file"),
    (b"AT&TFORM", "a DjVu file"),
    (b"PAR1", "a Parquet file"),
    (b"\x00asm", "a WebAssembly program"),
    (b"\xca\xfe\xba\xbe", "a program"),
)
_SHORT_MAGIC = frozenset({b"BM", b"MZ", b"BZh", b"ID3", b"PAR1", b"GIF8"})
"""Marks that a text may begin with as well; they count only when bytes that no text has follow."""
_ZIPS = (
    (b"word/", "a Word document (DOCX)"),
    (b"ppt/", "a PowerPoint presentation (PPTX)"),
    (b"xl/", "an Excel workbook (XLSX)"),
    (b"application/epub+zip", "an EPUB book"),
    (b"opendocument.text", "an OpenDocument text (ODT)"),
    (b"opendocument.spreadsheet", "an OpenDocument spreadsheet (ODS)"),
    (b"opendocument.presentation", "an OpenDocument presentation (ODP)"),
)
_HTML_START = re.compile(
    r"\A\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*"
    r"<(?:!doctype\s+html|html|head|body|title|meta|div|p|h[1-6]|table|article|section|main|ul|ol|span|a|b|br|font"
    r"|script|style|link|base|center|nav|header)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_TAGS = re.compile(r"<(?:html|head|body)\b|</(?:html|head|body|p|div|table|td|ul|h[1-6])\s*>", re.IGNORECASE)
_MARKDOWN_NAMES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd"})
_WEB_NAMES = frozenset({".html", ".htm", ".xhtml", ".shtml"})
_TEXT_NAMES = frozenset({".txt", ".text", ".log", ".csv", ".tsv", ".json", ".yaml", ".yml", ".py", ".rst", ".xml"})
_MARKDOWN_SIGNS = (
    re.compile(r"^#{1,6} \S", re.MULTILINE),
    re.compile(r"^```", re.MULTILINE),
    re.compile(r"^\|?[ :-]*-{3,}[ :-]*\|", re.MULTILINE),
    re.compile(r"\[[^\]\n]+\]\([^)\s]+\)"),
    re.compile(r"^[-*] \S", re.MULTILINE),
    re.compile(r"\*\*\S[^*\n]*\*\*"),
)


def sniff(data: bytes, name: str) -> Format:
    """Tell the format from the content."""
    if b"%PDF-" in data[:HEADER_REACH]:
        return Format.PDF
    head = data[:_HEAD]
    if _magic(head) is not None:
        return Format.UNSUPPORTED
    start = decode(head)
    if _is_binary(start):
        return Format.UNSUPPORTED
    suffix = PurePosixPath(name).suffix.lower()
    if _is_html(start, suffix):
        return Format.HTML
    return Format.MARKDOWN if _is_markdown(start, suffix) else Format.TEXT


def _is_html(start: str, suffix: str) -> bool:
    if suffix in _MARKDOWN_NAMES | _TEXT_NAMES:
        # Markdown may begin with a tag, and a program or a log may hold many.
        return bool(re.match(r"\A\s*(?:<!doctype\s+html|<html)\b", start, re.IGNORECASE))
    if _HTML_START.match(start) or len(_HTML_TAGS.findall(start)) >= 3:
        return True
    return suffix in _WEB_NAMES and "<" in start


def _is_markdown(start: str, suffix: str) -> bool:
    if suffix in _MARKDOWN_NAMES | _TEXT_NAMES:
        return suffix in _MARKDOWN_NAMES
    return sum(bool(sign.search(start)) for sign in _MARKDOWN_SIGNS) >= 2


def unsupported_name(data: bytes, name: str) -> str:
    """What an unsupported file is, with its article: `a Word document (DOCX)`."""
    kind = _magic(data[:_HEAD])
    if kind == "a ZIP archive":
        for mark, found in _ZIPS:
            if mark in data[:_HEAD] or mark in data[-65_536:]:
                return found
    if kind is None and data[4:8] == b"ftyp":
        kind = "an HEIC image" if data[8:12] in {b"heic", b"mif1", b"heix"} else "a video or sound file"
    if kind is None and data[:4] == b"RIFF":
        kind = "a WebP image" if data[8:12] == b"WEBP" else "a sound or video file"
    suffix = PurePosixPath(name).suffix
    return kind or (f"binary data ({suffix})" if suffix else "binary data")


def _magic(head: bytes) -> str | None:
    for mark, kind in _MAGIC:
        if head.startswith(mark) and (mark not in _SHORT_MAGIC or _is_binary(head.decode("latin-1"))):
            return kind
    if head[4:8] == b"ftyp" or head[:4] == b"RIFF":
        return "a sound, image or video file"
    return None


def _is_binary(text: str) -> bool:
    """Whether more than a few characters are ones that no text has (control characters, replacement marks)."""
    odd = sum(1 for c in text if (c < " " and c not in "\t\n\r\f\v\x1b") or "\x7f" <= c <= "\x84" or c == "\ufffd")
    return odd > 0.02 * len(text)
