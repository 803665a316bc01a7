"""Plain text in any encoding → pieces."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

from retrieval.languages import detect_language
from retrieval.normalising import LineBreak, join_lines, normalise, normalise_inline, settle_hyphenation
from retrieval.readers.assembly import Piece, Reading
from retrieval.types import BlockKind

_BOMS = (
    # UTF-32's mark begins with UTF-16's, so it is asked first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_CODE_PAGES = [
    "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1251", "cp866", "koi8_r", "cp1252", "cp1250", "cp1253",
    "cp1254", "cp1255", "cp1256", "cp1257", "iso8859_2", "cp850", "cp874",
]  # fmt: skip
"""What is on people's disks; the more exotic neighbours of these only steal their texts."""
_LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1257", "cp1254", "cp850")
"""Code pages of the Latin script: nearly any bytes are valid in each of them, only the language tells them apart."""
_ISO_2022_JP = re.compile(rb"\x1b\$[@B]|\x1b\([BJ]")
_SAMPLE = 64 * 1024
_KANA = re.compile(r"[\u3041-\u30ff]")
_BULLET = re.compile(r"^(\s*)(?:[-*+•‣◦・●○■□▪]|\(?\d{1,3}[.)]|[①-⑳])\s+")
_WIDTH = 60
"""A text whose usual line is longer than this, in lines of like length, has been wrapped at a column."""


def decode(data: bytes) -> str:
    """Bytes of a text in an unknown encoding → text.

    A byte-order mark decides; then UTF-16/32 without one, UTF-8 and ISO-2022-JP, each of which proves itself; then
    charset-normalizer's guess among the usual code pages. What cannot be decoded at all comes back as Latin-1.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\0" in data[:_SAMPLE] or not _looks_narrow(data):
        wide = _decode_wide(data)
        if wide is not None:
            return wide
    text = _decode_utf8(data)
    if text is None:
        return _decode_code_page(data)
    japanese = _try(data, "iso2022_jp_ext") if _ISO_2022_JP.search(data[:_SAMPLE]) else None
    return text if japanese is None else japanese


def _decode_utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A file cut off within its last character is still UTF-8.
        if error.reason == "unexpected end of data" and error.start > 0 and not data[: error.start].isascii():
            return data[: error.start].decode("utf-8")
        return None


def _looks_narrow(data: bytes) -> bool:
    """Whether this is surely not UTF-16 of a script without NUL bytes (Chinese, Japanese, Korean)."""
    return len(data) % 2 == 1 or _decode_utf8(data) is not None


def _decode_wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, if one of them gives text of a few scripts and no control characters."""
    best: tuple[float, str] | None = None
    for encoding in _WIDE:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        score = _plausibility(text[:4096])
        if score > 0.9 and (best is None or score > best[0]):
            best = (score, text)
    return best[1] if best else None


def _plausibility(text: str) -> float:
    """Share of characters that stand in the two most frequent 256-character rows, CJK as one, or are ASCII."""
    if not text:
        return 0.0
    if any(character < " " and character not in "\t\n\r\f\v" for character in text):
        return 0.0
    rows: dict[int, int] = {}
    for character in text:
        code = ord(character)
        if 0xE000 <= code < 0xF900 or code > 0x323AF:
            continue
        row = 0x30 if 0x3000 <= code < 0x3100 or 0x4E00 <= code < 0xA000 or code >= 0xFF00 else code >> 8
        row = 0xAC if 0xAC00 <= code < 0xD7A4 else row
        rows[row] = rows.get(row, 0) + 1
    main = rows.pop(0, 0)
    usual = main + sum(sorted(rows.values(), reverse=True)[:2])
    # A CJK text has its own spaces, full stops or kana; Latin bytes read two by two look like rare ideographs only.
    if rows.get(0x30, 0) > len(text) / 2 and not main and not re.search(r"[\u3000-\u30ff，。]", text):
        return 0.0
    return usual / len(text)


def _decode_code_page(data: bytes) -> str:
    sample = _sample(data)
    guess = from_bytes(sample, cp_isolation=_CODE_PAGES).best()
    names = [guess.encoding] if guess else []
    if not names or names[0] in _LATIN:
        return _decode_latin(data, sample, names)
    if names[0] in {"cp949", "gb18030", "big5"}:
        # Short EUC-JP is valid in all three; kana give it away.
        text = _try(data, "euc_jp")
        if text is not None and _KANA.search(text):
            names.insert(0, "euc_jp")
    for name in names:
        text = _try(data, name)
        if text is not None:
            return text
    return data.decode(names[0], errors="replace")


def _decode_latin(data: bytes, sample: bytes, guesses: list[str]) -> str:
    """Among the Latin code pages, the one in which the sample reads most surely as some language."""
    best: tuple[float, str] = (-1.0, "latin-1")
    marked = _lines_with_accents(sample)
    for name in dict.fromkeys(("cp1252", *guesses, *_LATIN)):
        if _try(data, name) is None:
            continue
        # Line by line, since a file may hold several languages.
        texts = [text for line in marked if (text := _try(line, name))]
        score = sum(detect_language(text)[1] - 0.02 * _oddities(text) for text in texts) / max(len(texts), 1)
        if score > best[0] + 0.02:
            best = (score, name)
    return data.decode(best[1], errors="replace")


def _lines_with_accents(sample: bytes) -> list[bytes]:
    """The lines that tell code pages apart: up to 40 with bytes outside ASCII."""
    return [line[:500] for line in sample.splitlines() if not line.isascii()][:40]


def _oddities(text: str) -> int:
    """Characters that stand where no language puts them: symbols inside words, capitals after small letters."""
    return len(
        re.findall(r"(?<=[^\W\d_])[^\w\s'’.,;:!?()\"“”»«„…/–—-](?=[^\W\d_])|(?<=[a-z])[^\W\d_a-z](?<=[À-ÞŁŚŻŽŠ])", text)
    )


def _try(data: bytes, name: str) -> str | None:
    try:
        return data.decode(name)
    except UnicodeDecodeError:
        return None


def _sample(data: bytes) -> bytes:
    """The part that the guess is made from: around the first bytes outside ASCII, cut at line ends."""
    if len(data) <= _SAMPLE:
        return data
    first = re.search(rb"[\x80-\xff]", data)
    start = data.rfind(b"\n", 0, first.start() if first else 0) + 1
    end = data.find(b"\n", start + _SAMPLE)
    return data[start : end if 0 < end < start + 2 * _SAMPLE else start + _SAMPLE]


def read_text(data: bytes) -> Reading:
    """Paragraphs are what blank lines part; lines of a wrapped text are joined, other lines stay lines."""
    text = normalise(decode(data))
    pieces: list[Piece] = []
    breaks: list[LineBreak] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.split("\n") if line.strip()]
        pieces.extend(_pieces(lines, breaks))
    settled = settle_hyphenation([piece.text for piece in pieces], breaks) if breaks else [p.text for p in pieces]
    return Reading(
        media_type="text/plain",
        pieces=tuple(
            Piece(kind=piece.kind, text=new, level=piece.level) for piece, new in zip(pieces, settled, strict=True)
        ),
    )


def _pieces(lines: list[str], breaks: list[LineBreak]) -> list[Piece]:
    if any(_BULLET.match(line) for line in lines):
        return _list_pieces(lines, breaks)
    if _is_wrapped(lines):
        text, found = join_lines(lines)
        breaks.extend(found)
        return [Piece(kind=BlockKind.PARAGRAPH, text=normalise_inline(text))]
    return [Piece(kind=BlockKind.PARAGRAPH, text="\n".join(lines))] if lines else []


def _list_pieces(lines: list[str], breaks: list[LineBreak]) -> list[Piece]:
    """Items begin at bullets; a line without one continues what stands above it."""
    groups: list[tuple[BlockKind, list[str]]] = []
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet:
            # A number is kept, because people ask for "step 3"; a bullet says nothing.
            body = line.strip() if bullet.group().strip()[:1].isalnum() else line[bullet.end() :].strip()
            groups.append((BlockKind.LIST_ITEM, [body]))
        elif groups:
            groups[-1][1].append(line)
        else:
            groups.append((BlockKind.PARAGRAPH, [line]))
    pieces: list[Piece] = []
    for kind, group in groups:
        text, found = join_lines(group)
        breaks.extend(found)
        pieces.append(Piece(kind=kind, text=normalise_inline(text)))
    return pieces


def _is_wrapped(lines: list[str]) -> bool:
    """Whether the lines were one paragraph, wrapped at a column: all but the last long and of like length."""
    if len(lines) < 2:
        return True
    full = [len(line) for line in lines[:-1]]
    longest = max(full)
    return longest >= _WIDTH / 2 and sum(full) / len(full) >= 0.75 * longest and len(lines[-1]) <= 1.1 * longest
