"""The contract about citations in one file: writes the numbered sources into the prompt, reads citations back.

Writing (`numbered`, `fenced`, `harmless`). Whatever comes from documents and people is data, and is made unable to look
like structure:

* the tags that fence the parts of the prompt (`<source n="1">` …) lose their `<` when they stand in data, as do the
  control tokens of chat templates; invisible characters that could hide either are taken out;
* what would be read as a citation (`[12]`, a paper's own reference marker) is shown as `⟨12⟩`, so that a model that
  copies it cites nothing; code keeps its brackets, because code is never read for citations either;
* the sentinel `NO_ANSWER` loses its underscore.

Reading (`CitationReader`). `[n]`, n being a hit's number, is a citation; so are `[1, 2]`, `[1–3]`, `[^1]`, `[[1]]`,
`【1】`, `[Source 2]`. Not citations: anything in code, an index directly behind an identifier (`a[0]`), the text of a
link (`[1](url)`), an interval from zero (`[0, 1]`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from bot.clipping import clipped
from retrieval.types import ChunkKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.types import Hit

NO_ANSWER: Final = "NO_ANSWER"
"""What a model replies, alone, when the passages do not tell."""

Style = Literal["markers", "native"]
"""How a model cites: it writes `[n]` itself, or its server attaches citations to the text."""

# ---- markers, as both directions understand them ----------------------------------------------------------------

_SPACE = r"[ \t\u3000]*"
_LABEL = (
    rf"(?:\^|#|(?:sources?|src|refs?|passages?|quellen?|fuentes?|fontes?|出典|資料|来源|來源|ソース){_SPACE}[:#.]?)"
)
_ITEM = rf"(?:{_LABEL}{_SPACE})?\d{{1,9}}(?:{_SPACE}[-‐‑–—~〜～]{_SPACE}\d{{1,9}})?"
_ITEMS = rf"{_SPACE}{_ITEM}(?:{_SPACE}(?:[,;&、，；]|and|und|y|et){_SPACE}{_ITEM})*{_SPACE}(?:†[^\[\]【】［］\n]*)?"
_BRACKETED = rf"(?:(?P<double>\[)?\[{_ITEMS}\](?(double)\])|【{_ITEMS}】|［{_ITEMS}］)"
_MARKER = re.compile(rf"{_BRACKETED}(?!\()", re.IGNORECASE)
_NUMBERS = re.compile(rf"(\d+)(?:{_SPACE}[-‐‑–—~〜～]{_SPACE}(\d+))?")
_OPENERS = "[【［"
_CLOSERS = "]】］"
_INDEX = re.compile(r"\[\d")
"""How an index looks that stands directly behind an identifier; `BERT【1】` and `BERT[^1]` are citations."""
_MAX_MARKER = 48
"""Characters. What is longer is no marker; bounds how much text an open bracket holds back."""

# ---- writing ----------------------------------------------------------------------------------------------------

CITING: Final[dict[Style, str]] = {
    "markers": """\
- After each claim put the number of the source that it stands on in square brackets, after a space and before the \
full stop, like this: The limit is 20 requests [2]. Several sources: [1][3]. Every claim needs a marker. Use no \
numbers but those of the sources, and no square brackets with numbers for anything else.""",
    "native": "- Cite the source of every claim.",
}
"""What a model is told about citing, by style."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A hit as the model is shown it: everything made harmless and clipped."""

    number: int
    title: str
    where: str
    """`page 3`, `pages 3–4`, with the heading path behind it; empty when neither is known."""
    text: str


def numbered(hits: Sequence[Hit], *, room: int, label: int) -> tuple[Passage, ...]:
    """The hits as a model is shown them, numbered from 1.

    Where they are longer than `room` characters together, all are clipped to one common length, the largest that fits,
    so that only the longest lose something: first their neighbours, then their end. Titles and heading paths have
    `label` characters.
    """
    each = _common_length([len(hit.passage) for hit in hits], room)
    return tuple(_passage(number, hit, each, label) for number, hit in enumerate(hits, start=1))


def fenced(passages: Sequence[Passage]) -> str:
    """The passages as one text."""
    return "\n".join(("<sources>", *map(_fenced, passages), "</sources>"))


def _passage(number: int, hit: Hit, room: int, label: int) -> Passage:
    chunk = hit.chunk
    text = hit.passage if len(hit.passage) <= room else chunk.text
    pages = ""
    if chunk.page is not None:
        last = chunk.last_page or chunk.page
        pages = f"page {chunk.page}" if last == chunk.page else f"pages {chunk.page}–{last}"
    return Passage(
        number=number,
        title=one_line(chunk.title, label),
        where=", ".join(filter(None, (pages, one_line(" > ".join(chunk.heading_path), label)))),
        text=harmless(clipped(text, room), code=chunk.kind is ChunkKind.CODE),
    )


def _fenced(passage: Passage) -> str:
    where = f"\nWhere: {passage.where}" if passage.where else ""
    return f'<source n="{passage.number}">\nTitle: {passage.title}{where}\n\n{passage.text}\n</source>'


def _common_length(lengths: Sequence[int], total: int) -> int:
    """The largest `room` with `sum(min(length, room)) <= total`."""
    left, waiting = total, len(lengths)
    for length in sorted(lengths):
        if length * waiting > left:
            return left // waiting
        left, waiting = left - length, waiting - 1
    return max(lengths, default=0)


def one_line(text: str, room: int) -> str:
    """A title or a name, harmless."""
    return clipped(harmless(" ".join(text.split())), room)


_TAG = re.compile(
    r"<(?=[^\w<>]{0,8}(?:sources?|conversation|question|system|user|assistant|start_of_turn|end_of_turn)\b|\||/?s>)",
    re.IGNORECASE,
)
# Bidirectional controls, zero-width characters, the tag block and other format characters that nobody sees; U+200C and
# U+200D only beside ASCII, where no script needs them. Control characters but tab and newline.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    "|[\x00-\x08\x0b-\x1f\x7f]|(?<=[\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?=[\x00-\x7f])"
)
_OLD_MARKER: Final = re.compile(rf"{_SPACE}(?<![A-Za-z0-9_])\[\d{{1,9}}\](?!\()")
_CODE_OR_MARKER = re.compile(rf"(?P<code>```.*?(?:```|\Z)|`[^`\n]+`)|{_BRACKETED}", re.IGNORECASE | re.DOTALL)
_ANY_MARKER = re.compile(rf"(?P<code>(?!))|{_BRACKETED}", re.IGNORECASE)


def harmless(text: str, *, code: bool = False) -> str:
    """Make data unable to pass for structure, citations or the sentinel (see the head of this module)."""
    text = _TAG.sub("‹", _INVISIBLE.sub("", text)).replace(NO_ANSWER, NO_ANSWER.replace("_", " "))
    if code:
        return text
    spared = _CODE_OR_MARKER.sub(_unmarked, text)
    # Code whose backticks do not pair up is read as text: its brackets are not spared.
    return _ANY_MARKER.sub(_unmarked, text) if "`" in spared and _is_citing(spared) else spared


def unclosed_fence(text: str) -> str:
    """The run that opened a code fence which `text` does not close; empty when there is none."""
    reader = CitationReader(0)
    reader.feed(f"{text}\n")
    return reader.fence


def _is_citing(text: str) -> bool:
    reader = CitationReader(1)
    reader.feed(text)
    result = reader.finish()
    return bool(result.order or result.dropped)


def without_markers(text: str) -> str:
    """An earlier reply: its markers named other sources."""
    return _OLD_MARKER.sub("", text)


def _unmarked(match: re.Match[str]) -> str:
    return match[0] if match["code"] else f"⟨{match[0].strip(_OPENERS + _CLOSERS)}⟩"


# ---- reading ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationResult:
    """A model's text, read to its end."""

    text: str
    """The whole text, markers renumbered from 1."""
    rest: str
    """The end of `text` that no `feed` has returned."""
    order: tuple[int, ...]
    """Indexes into the prompt's hits (from 0): `order[k - 1]` is the hit that marker `[k]` names."""
    dropped: int
    """Markers that named no hit and were taken out."""
    no_answer: bool
    """The model says that the passages do not tell. `text` is what it wrote besides (all of it void), mostly empty."""


_IDENTIFIER = re.compile(r"[A-Za-z0-9_\\]")
_PLAIN = re.compile(r"(?:[^\[【［`~N \t]|[ \t]+(?=[^\[【［ \t]))+")
_LINE_START = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_DECORATION = " \t\r\n*_`\"'“„«「『（(#>-"
_SENTINELS = (NO_ANSWER, NO_ANSWER.replace("_", r"\_"), NO_ANSWER.replace("_", " "))
_MAX_DECORATION = 32
_MAX_CODE_SPAN = 400
_MAX_FENCE_LINE = 200


class CitationReader:
    """Reads a model's text piece by piece. The result does not depend on where the pieces are cut.

    Held back, each within a bound: the beginning while it may become `NO_ANSWER`; blanks and an open bracket until it
    is clear whether they belong to a marker; inline code until it closes (at most to the end of the line).
    """

    def __init__(self, hits: int) -> None:
        """`hits` is how many the prompt numbered."""
        self._hits = hits
        self._pending = ""
        self._shown: list[str] = []
        self._new: list[str] = []
        self._order: list[int] = []
        self._dropped = 0
        self._begun = False
        self._refused = False
        self._sentinel_inside = False
        self._previous = ""  # the last character read
        self._line = ""  # what was read of the current line, cut short
        self._fence = ""  # the run that opened the code fence we are in

    @property
    def fence(self) -> str:
        """The run that opened the code fence in which the text has come to stand; mostly empty."""
        return self._fence

    def feed(self, text: str) -> str:
        """Take the next piece; return what may be shown now."""
        self._pending += text
        return self._read(final=False)

    def finish(self) -> CitationResult:
        """Take the end of the text."""
        rest = self._read(final=True)
        return CitationResult(
            text="".join(self._shown),
            rest=rest,
            order=tuple(self._order),
            dropped=self._dropped,
            no_answer=self._refused or (self._sentinel_inside and not self._order),
        )

    def _read(self, *, final: bool) -> str:
        if not self._begun:
            self._begin(final=final)
        if self._refused:
            self._pending = ""
        while self._begun and self._pending and self._advance(final=final):
            pass
        new, self._new = "".join(self._new), []
        self._shown.append(new)
        return new

    def _begin(self, *, final: bool) -> None:
        """Decide whether the text begins with the sentinel, once enough of it is there."""
        lead = self._pending.lstrip(_DECORATION)
        if len(self._pending) - len(lead) <= _MAX_DECORATION:
            for sentinel in _SENTINELS:
                if lead.startswith(sentinel) and (final or len(lead) > len(sentinel)):
                    self._refused = self._refused or not _IDENTIFIER.match(lead, len(sentinel))
                elif sentinel.startswith(lead) and not final:
                    return
        self._begun = True

    def _advance(self, *, final: bool) -> bool:
        """Read one token off `_pending`; False when more text is needed to tell what it is."""
        if self._fence:
            return self._inside_fence()
        head = self._pending[0]
        if head in "`~":
            return self._code(final=final)
        if head in _OPENERS or head in " \t":
            return self._bracket(final=final)
        if head == "N":
            return self._sentinel(final=final)
        plain = _PLAIN.match(self._pending)
        return self._take(plain.end() if plain else 1)

    def _take(self, length: int, shown: str | None = None) -> bool:
        """Move `length` characters out of `_pending`; show them, or `shown` in their place."""
        raw, self._pending = self._pending[:length], self._pending[length:]
        self._new.append(raw if shown is None else shown)
        self._previous = raw[-1:]
        line = raw.rpartition("\n")
        self._line = (line[2] if line[1] else self._line + raw)[:_MAX_FENCE_LINE]
        return True

    def _bracket(self, *, final: bool) -> bool:
        """Blanks and perhaps a marker behind them."""
        text = self._pending
        start = len(text) - len(text.lstrip(" \t"))
        if start == len(text):
            return final and self._take(start)
        if text[start] not in _OPENERS:
            return self._take(start)
        if not final and not _decided(text, start):
            return False
        match = _MARKER.match(text, start, start + _MAX_MARKER)
        if match is None or _is_interval(match[0]):
            return self._take(start + 1)
        if not start and _INDEX.match(match[0]) and _IDENTIFIER.match(self._previous):
            self._take(match.end())
            self._previous = "_"  # so that the second index of a[0][1] is one, too
            return True
        marker = self._renumbered(match[0])
        return self._take(match.end(), f"{text[:start]}{marker}" if marker else "")

    def _renumbered(self, marker: str) -> str:
        """`[4, 2]` → `[1][2]` when 4 and 2 are the first hits cited; empty when no number names a hit."""
        numbers: list[int] = []
        for first, last in _NUMBERS.findall(marker):
            low, high = int(first), int(last or first)
            named = range(max(low, 1), min(high, self._hits) + 1)
            if len(named) != high - low + 1 or not named:
                self._dropped += 1
            for hit in named:
                if hit - 1 not in self._order:
                    self._order.append(hit - 1)
                number = self._order.index(hit - 1) + 1
                if number not in numbers:
                    numbers.append(number)
        return "".join(f"[{number}]" for number in numbers)

    def _sentinel(self, *, final: bool) -> bool:
        """A sentinel in mid-text is never shown."""
        text = self._pending
        if not _IDENTIFIER.match(self._previous):
            if text.startswith(NO_ANSWER) and (final or len(text) > len(NO_ANSWER)):
                if not _IDENTIFIER.match(text, len(NO_ANSWER)):
                    self._sentinel_inside = True
                    return self._take(len(NO_ANSWER), "")
            elif NO_ANSWER.startswith(text) and not final:
                return False
        return self._take(1)

    def _code(self, *, final: bool) -> bool:
        """A run of backticks or tildes: a fence, inline code, or nothing special."""
        text = self._pending
        run = len(text) - len(text.lstrip(text[0]))
        if run == len(text) and not final:
            return False
        if run >= 3 and _LINE_START.fullmatch(self._line):
            newline = text.find("\n", 0, _MAX_FENCE_LINE)
            if newline < 0 and not final and len(text) < _MAX_FENCE_LINE:
                return False
            info = text[run : newline if newline >= 0 else None]
            if (newline >= 0 or len(text) < _MAX_FENCE_LINE) and (text[0] == "~" or "`" not in info):
                self._fence = text[:run]
                return self._take(newline + 1 if newline >= 0 else len(text))
        if text[0] == "~":
            return self._take(run)
        newline = text.find("\n", 0, _MAX_CODE_SPAN)
        limit = newline if newline >= 0 else _MAX_CODE_SPAN
        close = re.compile(rf"(?<!`)`{{{run}}}(?!`)").search(text, run, limit)
        bounded = final or newline >= 0 or len(text) >= _MAX_CODE_SPAN
        if not bounded and (close is None or close.end() == len(text)):
            return False
        return self._take(close.end() if close else run)

    def _inside_fence(self) -> bool:
        text = self._pending
        newline = text.find("\n")
        if newline < 0:
            return self._take(len(text))
        line = (self._line + text[:newline]).strip(" \t>\r")
        if len(line) >= len(self._fence) and not line.strip(self._fence[0]):
            self._fence = ""
        return self._take(newline + 1)


def _decided(text: str, start: int) -> bool:
    """Is enough there to tell whether a marker begins at `start`? Two characters behind a closing bracket suffice."""
    window = text[start : start + _MAX_MARKER]
    closers = [place for place in map(window.find, _CLOSERS) if place >= 0]
    closed = bool(closers) and len(text) > start + min(closers) + 2
    return closed or "\n" in window or len(text) > start + _MAX_MARKER


def _is_interval(marker: str) -> bool:
    """`[0, 1]` is an interval or a list of values; sources count from 1."""
    numbers = [int(number) for pair in _NUMBERS.findall(marker) for number in pair if number]
    return len(numbers) > 1 and 0 in numbers
