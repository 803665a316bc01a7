"""Where sentences begin and end.

`sentencex` (Wikimedia's segmenter, rules for some 300 languages) proposes the boundaries; this module feeds it
paragraph by paragraph in bounded pieces, because parts of it take quadratic time, and mends what it gets wrong in
technical and Japanese text: boundaries after abbreviations such as `Fig.` and `Eq.`, after list numbers, and after a
closing quote that the sentence goes on behind (`「そうだ。」と言った。`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import sentencex

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SENTENCE: Final = 4_000
"""Characters. Text without any end of sentence (Base64, logs) is cut here, at a space where there is one nearby."""

_BLANK_LINES: Final = re.compile(r"\n[^\S\n]*\n\s*")
_BULLET: Final = re.compile(r"(?:[-*+•‣◦▪●○■□・※]\s|\|)")
_NUMBER: Final = re.compile(r"(?:[(（]?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[)）]|\d{1,3}[.．])\s")
_LINE_END: Final = re.compile(r"[.!?:;。！？：；…」』”)）]\s*$")

_KANA: Final = re.compile(r"[\u3041-\u30ff]")
_HAN: Final = re.compile(r"[\u3400-\u9fff]")

_POSSESSIVE: Final = re.compile(r"(?<=\w)'")
_POSSESSIVE_CURLY: Final = re.compile(r"(?<=\w)[’']")

# Abbreviations that never end a sentence, and those that do not end one before a number, a bracket or a letter.
_GOES_ON: Final = re.compile(
    r"(?:^|[\s(\[（「“\"])(?:e\.\s?g|i\.\s?e|cf|vs|viz|resp|approx|ca|incl|excl|max|min|esp|w\.r\.t|Mme|Mlle|MM|M|Dr|Mr|Mrs|Ms|"
    r"Prof|St|Bzw|bzw|z\.\s?B|d\.\s?h|p\.\s?ex)\.\s*$"
)
_GOES_ON_TO_NUMBER: Final = re.compile(
    r"(?:^|[\s(\[（])(?:figs?|eqs?|eqns?|secs?|sect|sects|chs?|chap|vols?|refs?|tabs?|tbl|apps?|thms?|props?|defs?|algs?|lem|cor|"
    r"nos?|nrs?|pp?|arts?|paras?|ex|exs|sup|suppl|pt|al|bd|abs)\.\s*$",
    re.IGNORECASE,
)
_NUMBER_LIKE: Final = re.compile(r"[\d(\[（#§№]|[B-HJ-Z](?:[\s.,;:)\d]|$)|[AI](?:[.,;:)\d]|$)|[IVXLC]{2,}\b")
_ONLY_NUMBER: Final = re.compile(r"\s*(?:[(（]?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[)）.．]|[-*+•・])\s*$")
_DECIMAL: Final = re.compile(r"[\d０-９][.．]$")
_CITATION: Final = re.compile(r"(?:\[\d[\d,;–\-\s]*\])+\s*")
_CONTINUES: Final = re.compile(r"[」』”’»）)\]】〕》〉,，、;；:：。．！？!?…]")
_CLOSED_QUOTE: Final = re.compile(r"[.!?。．！？…][」』”’\"'）)\]】〕》〉]+\s*$")
_CLOSED_TITLE: Final = re.compile(r"[》〉]\s*$")
# What follows a closing quote inside one Japanese sentence: a particle or copula, not a word that begins with one.
_JAPANESE_TAIL: Final = re.compile(
    r"と(?!ても|ころ|きどき|にかく|りあえず|もかく|はいえ|もに)|って|など|なん|だ(?!が|から|け)|です(?!から)|でし|であ|でな|"
    r"の(?!ち)|を|が(?![、，])|に(?!もか)|へ|も(?!う|し|ち|の|っ)|は(?!い|じ)|で(?!も|は|す|き)|か(?!つ|な|れ|の)|や(?!は|が)|"
    r"から(?![、，])|まで|より"
)
_CHINESE_TAIL: Final = re.compile(
    r"[说說道问問喊答叫的就地]|[他她我你它](?:们|們)?.{0,3}[说說道问問喊答叫想]|(?:这|這|那)[样樣]"
)
# A sentence in brackets of its own, followed by another sentence.
_BRACKETED: Final = re.compile(r"[(（][^()（）]{1,500}[.!?。！？][)）]\s*(?=[A-Z\u3041-\u9fff])")


class Span(NamedTuple):
    """Character offsets into the text that was split: `text[start:end]`."""

    start: int
    end: int


def split_sentences(text: str, language: str | None) -> list[Span]:
    """Split `text` into sentences.

    Blank lines always end a sentence, line breaks only before a bullet, a table row or the next number of a list.
    Runs in linear time on any text.

    Args:
        text: Plain text or Markdown table lines.
        language: ISO 639-1 code of the text, None when unsure. Japanese and Chinese are recognised by their script.

    Returns:
        Spans in order, disjoint, without white space at their edges, none longer than `MAX_SENTENCE`. Together they
        hold every character that is not white space.
    """
    spans: list[Span] = []
    for paragraph in _paragraphs(text):
        for piece in cut_to_size(text, paragraph):
            spans.extend(_split_piece(text, piece, language))
    return spans


def _paragraphs(text: str) -> Iterator[Span]:
    """Parts between blank lines, and list items and table rows within them."""
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        yield from _list_lines(text, Span(start, gap.start()))
        start = gap.end()
    yield from _list_lines(text, Span(start, len(text)))


def _list_lines(text: str, part: Span) -> Iterator[Span]:
    start = part.start
    numbered = _NUMBER.match(text, start, part.end) is not None
    line = text.find("\n", start, part.end)
    while line != -1:
        following = line + 1
        while following < part.end and text[following] in " \t\u3000":
            following += 1
        number = _NUMBER.match(text, following, part.end) is not None
        ended = numbered or _LINE_END.search(text, max(start, line - 4), line) is not None
        if _BULLET.match(text, following, part.end) or (number and ended):
            yield Span(start, line)
            start, numbered = line + 1, number
        line = text.find("\n", line + 1, part.end)
    yield Span(start, part.end)


def cut_to_size(text: str, part: Span) -> Iterator[Span]:
    """Pieces of at most MAX_SENTENCE characters, cut behind the last likely end of a sentence, else at a space."""
    start = part.start
    while part.end - start > MAX_SENTENCE:
        limit = start + MAX_SENTENCE
        half = start + MAX_SENTENCE // 2
        cut = -1
        for ends in (("。", "！", "？"), (". ", ".\n", "! ", "? "), ("\n",), (" ", "\u3000")):
            cut = max(
                text.rfind(end, half, limit) + len(end) if text.rfind(end, half, limit) != -1 else -1 for end in ends
            )
            if cut != -1:
                break
        if cut == -1:
            cut = limit
        yield Span(start, cut)
        start = cut
    yield Span(start, part.end)


def _split_piece(text: str, piece: Span, language: str | None) -> Iterator[Span]:
    raw = text[piece.start : piece.end]
    is_row = raw.startswith("|")
    for start, end in [(0, len(raw))] if is_row else _mend(raw, _proposed(raw, language)):
        begin, stop = piece.start + start, piece.start + end
        while begin < stop and text[begin].isspace():
            begin += 1
        while stop > begin and text[stop - 1].isspace():
            stop -= 1
        if begin < stop:
            yield Span(begin, stop)


def _proposed(raw: str, language: str | None) -> list[int]:
    """Ends of the sentences that sentencex sees, the last one being the text's own end."""
    if not raw.strip():
        return []
    if _KANA.search(raw):
        language = "ja"
    elif _HAN.search(raw):
        language = "zh"
    # An apostrophe behind a letter is no quotation mark; sentencex would look for its partner and join what is between.
    # The replacement is one character of the same length, so the offsets hold.
    masked = (_POSSESSIVE if "‘" in raw else _POSSESSIVE_CURLY).sub("ʼ", raw)
    ends = [int(boundary["end_index"]) for boundary in sentencex.get_sentence_boundaries(language or "en", masked)]
    return [*ends[:-1], len(raw)]


def _mend(raw: str, ends: list[int]) -> Iterator[tuple[int, int]]:
    """Join what belongs together, move citation marks to the sentence they stand behind, free bracketed sentences."""
    start = 0
    for end in ends:
        cut = end
        citation = _CITATION.match(raw, cut)
        if citation and cut and not raw[cut - 1].isspace():
            cut = citation.end()
        if cut < start or (cut < len(raw) and _belongs(raw, start, cut)):
            continue
        bracketed = _BRACKETED.match(raw, start, cut)
        if bracketed and not _JAPANESE_TAIL.match(raw, bracketed.end()):
            yield start, bracketed.end()
            start = bracketed.end()
        yield start, cut
        start = cut
    if start < len(raw):
        yield start, len(raw)


def _belongs(raw: str, start: int, cut: int) -> bool:
    """Whether the text from `cut` on continues the sentence that began at `start`."""
    left = raw[max(start, cut - 40) : cut]
    right = raw[cut : cut + 12].lstrip()
    if not right:
        return True
    if _CONTINUES.match(right) or _GOES_ON.search(left):
        return True
    if _GOES_ON_TO_NUMBER.search(left) and _NUMBER_LIKE.match(right):
        return True
    if _ONLY_NUMBER.fullmatch(raw, start, cut) or (_DECIMAL.search(left) and right[0].isdigit()):
        return True
    if _CLOSED_QUOTE.search(left):
        return bool(_CLOSED_TITLE.search(left) or _JAPANESE_TAIL.match(right) or _CHINESE_TAIL.match(right))
    return False
