"""Text as it is stored: one form for every character, no invisible ones, words whole again after line ends (pure).

What is done to characters, and where it departs from Unicode's NFKC:

- Ligatures, full-width Latin, half-width katakana, CJK compatibility ideographs and Kangxi radicals (U+2F00…) take
  their NFKC form. Radicals of the CJK Radicals Supplement, which NFKC leaves alone, take the ideograph that Unicode's
  `EquivalentUnifiedIdeograph` data names.
- A superscript number after a digit is written with a caret (`10⁵` → `10^5`), and a fraction or circled number beside a
  digit gets a space (`1½` → `1 1/2`), because NFKC alone would make 105 and 11/2 of them. After a letter the
  superscript becomes a plain digit as in NFKC (`m²` → `m2`): that is what people type when they search.
- Spacing accents (`´`, `¨`) stay, since NFKC would turn them into a space with a combining mark.
- Soft hyphens, zero-width spaces, byte-order marks, bidirectional controls, variation selectors, tag characters,
  noncharacters (U+FFFE is what a PDF library puts for a hyphen at a line's end), lone surrogates and control characters
  other than line feed and tab go. Joiners (U+200C, U+200D) stay: Persian and the Indic scripts need them.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_SUPPLEMENT = (
    "⺁厂⺂乛⺃乚⺄乙⺅亻⺆冂⺈刀⺉刂⺊卜⺋㔾⺌小⺍小⺎兀⺏尣⺐尢⺒巳⺓幺⺔彑⺖忄⺗心⺘扌⺙攵⺛旡⺜日⺝月⺞歺⺠民⺡氵⺢氺⺣灬⺤爫⺥爫⺦丬⺧牛⺨犭⺩王⺫罒⺬示⺭礻⺮竹"
    "⺯糹⺰纟⺱罓⺲罒⺳㓁⺶羊⺹耂⺺肀⺻聿⺼月⺽臼⺾艹⺿艹⻀艹⻁虎⻂衤⻃覀⻄西⻅见⻆角⻈讠⻉贝⻊足⻋车⻌辶⻍辶⻎辶⻏阝⻐钅⻑長⻒镸⻓长⻔门⻕阜⻖阝⻗雨⻘青⻙韦⻚页⻛风⻜飞⻝食"
    "⻞飠⻟飠⻠饣⻡首⻢马⻣骨⻤鬼⻥鱼⻦鸟⻧卤⻨麦⻩黄⻪黾⻫斉⻬齐⻭歯⻮齿⻯竜⻰龙⻱龜⻲亀"
)
_RADICALS = dict(zip(_SUPPLEMENT[::2], _SUPPLEMENT[1::2], strict=True))
"""CJK Radicals Supplement (U+2E80 to U+2EF3) → unified ideograph, as far as a Basic-Multilingual-Plane one exists."""

_LINE_BREAKS = dict.fromkeys(map(ord, "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), "\n")
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f"  # control characters; line breaks are dealt with before
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufe00-\ufe0f\ufff0-\ufffb\ufdd0-\ufdef\ud800-\udfff\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
    + "]"
)
_SOFT_BREAK = re.compile("[\xad\ufffe][ \t]*\n[ \t]*")
_POWER = re.compile(r"(?<=[0-9])[⁰¹²³⁴-⁹⁺⁻]*[⁰¹²³⁴-⁹][⁰¹²³⁴-⁹⁺⁻]*")
_SPACES = re.compile(r"[^\S\n]+")
_MARGINS = re.compile(r" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_CJK = "\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60"
_CJK_GAP = re.compile(f"(?<=[{_CJK}])\n(?=[{_CJK}])")
_LINE_END_HYPHEN = re.compile(r"([^\W_]+(?:-[^\W_]+)*)[-‐\xad\ufffe]\Z")
_LONGEST_WORD = 80
_STEM = 4
"""Letters that two words must share to be kin, or that a part of a compound must have."""
_LINE_START_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")


class _Forms(dict[int, str]):
    """Code point → its stored form, filled as characters turn up (`str.translate` asks `__missing__`)."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        form = unicodedata.normalize("NFKC", character)
        if len(form) > 1 and form[0] == " " and unicodedata.combining(form[1]):
            form = character
        form = "".join(_RADICALS.get(part, part) for part in form).replace("\u2044", "/")
        self[code] = form
        return form


_FORMS = _Forms()


def normalise(text: str) -> str:
    """Bring `text` into the stored form; line feeds stay, runs of blanks become one. Idempotent."""
    text = text.replace("\r\n", "\n")
    if not text.isascii() or not text.isprintable():
        text = text.translate(_LINE_BREAKS)
        text = _INVISIBLE.sub("", _SOFT_BREAK.sub("", text))
    if not text.isascii():
        text = _compose(text)
    text = _MARGINS.sub("\n", _SPACES.sub(" ", text))
    return _BLANK_LINES.sub("\n\n", text).strip()


def normalise_inline(text: str) -> str:
    """Like `normalise`, on one line: line feeds become spaces, and nothing between CJK characters."""
    text = _CJK_GAP.sub("", normalise(text))
    return _SPACES.sub(" ", text.replace("\n", " ")).strip()


def normalise_code(text: str) -> str:
    """Only what cannot be seen goes: indentation and every visible character of a program stay as they are."""
    text = text.replace("\r\n", "\n").translate(_LINE_BREAKS)
    return _INVISIBLE.sub("", text).strip("\n").rstrip()


def _compose(text: str) -> str:
    """Compatibility forms, one character at a time, then composed."""
    text = _POWER.sub(lambda match: "^" + match.group().replace("⁻", "-").replace("⁺", "+"), text)
    pieces: list[str] = []
    last = ""
    for piece in _split_numbers(text):
        form = piece.translate(_FORMS)
        if last.isdecimal() and form[:1].isdecimal():
            pieces.append(" ")
        pieces.append(form)
        last = form[-1:] or last
    composed = unicodedata.normalize("NFC", "".join(pieces))
    # A few compositions yield characters that the first pass has taken apart or has not seen.
    again = _INVISIBLE.sub("", unicodedata.normalize("NFC", composed.translate(_FORMS)))
    return again if again == composed else _settle(again)


def _settle(text: str) -> str:
    """Repeat until nothing changes: mixed combining marks need a second round, none known needs a third."""
    for _ in range(4):
        again = unicodedata.normalize("NFC", text.translate(_FORMS))
        if again == text:
            break
        text = again
    return text


_NUMBER_FORM = re.compile(r"[¼-¾⅐-⅟↉①-⑳⓪❶-➓㉑-㉟㊱-㊿⓫-⓿]")


def _split_numbers(text: str) -> Iterable[str]:
    """The text cut around characters that spell a whole number or fraction."""
    start = 0
    for match in _NUMBER_FORM.finditer(text):
        yield text[start : match.start()]
        yield match.group()
        start = match.end()
    yield text[start:]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBreak:
    """A word cut by a hyphen at a line's end: `head` before the hyphen, `tail` on the next line."""

    head: str
    tail: str

    @property
    def joined(self) -> str:
        """The word if the hyphen was put there by the line break."""
        return self.head + self.tail

    @property
    def kept(self) -> str:
        """The word if the hyphen belongs to it."""
        return f"{self.head}-{self.tail}"


def line_break(line: str, following: str) -> LineBreak | None:
    """The word that is cut between two lines, or None when the first does not end in a hyphen after a letter."""
    line = line.rstrip()[-_LONGEST_WORD:]
    head = _LINE_END_HYPHEN.search(line) if line[-1:] in "-‐\xad\ufffe" else None
    tail = _LINE_START_WORD.match(following.lstrip())
    if head is None or tail is None:
        return None
    return LineBreak(head=normalise_inline(head.group(1)), tail=normalise_inline(tail.group()))


def join_lines(lines: Sequence[str]) -> tuple[str, list[LineBreak]]:
    """Lines of a paragraph → its text and the words that were cut.

    A hyphen at a line's end goes when the next line begins in lower case and stays when it begins with a capital or a
    digit (`settle_hyphenation` looks at the cut words again with the whole document's evidence). No space is put
    between CJK characters.
    """
    parts: list[str] = []
    breaks: list[LineBreak] = []
    for line in (line.strip() for line in lines):
        if not line:
            continue
        if not parts:
            parts.append(line)
            continue
        cut = line_break(parts[-1], line)
        if cut is not None:
            breaks.append(cut)
            if line[0].islower():
                parts[-1] = parts[-1][:-1]
        elif not _CJK_GAP.search(f"{parts[-1][-1:]}\n{line[0]}"):
            parts.append(" ")
        parts.append(line)
    return "".join(parts), breaks


def settle_hyphenation(texts: Sequence[str], breaks: Collection[LineBreak] | None = None) -> list[str]:
    """Make one spelling of words that line ends have spelt in two ways within a document.

    With `breaks` (where the lines are known) exactly the words that were cut are looked at: the spelling that stands
    uncut elsewhere in the document wins; where none does, the hyphen stays if both parts are words of the document, or
    if the first part is only ever a prefix with a hyphen. Without `breaks`, words are grouped by their form without
    hyphens, and the rarer spellings become the most frequent one when that has a hyphen and stands at least twice as
    often as all others together. Words that always stand without a hyphen stay. The case of the text stays.
    """
    counts = Counter(word.casefold() for text in texts for word in _WORD.findall(text))
    changes = _by_frequency(counts) if breaks is None else _by_breaks(counts, breaks)
    if not changes:
        return list(texts)

    def settle(match: re.Match[str]) -> str:
        word = match.group()
        wanted = changes.get(word.casefold())
        return word if wanted is None else _respell(word, wanted)

    return [_WORD.sub(settle, text) for text in texts]


def _by_frequency(counts: Counter[str]) -> dict[str, str]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for word in counts:
        groups[word.replace("-", "")].append(word)
    changes: dict[str, str] = {}
    for variants in groups.values():
        if len(variants) < 2:
            continue
        best = max(variants, key=lambda word: (counts[word], word.count("-"), word))
        others = sum(counts[word] for word in variants) - counts[best]
        if "-" in best and counts[best] >= max(2, 2 * others):
            changes.update({word: best for word in variants if word != best and _lost_hyphens(word, best)})
    return changes


def _lost_hyphens(word: str, best: str) -> bool:
    """Whether `word` is `best` with hyphens missing, none added."""
    parts = word.split("-")
    return set(_hyphen_places(parts)) < set(_hyphen_places(best.split("-")))


def _hyphen_places(parts: Sequence[str]) -> list[int]:
    places: list[int] = []
    for part in parts[:-1]:
        places.append((places[-1] if places else 0) + len(part))
    return places


def _by_breaks(counts: Counter[str], breaks: Collection[LineBreak]) -> dict[str, str]:
    cut = Counter((found.joined.casefold(), found.kept.casefold(), found) for found in breaks)
    broken: Counter[str] = Counter()
    for (joined, kept, found), times in cut.items():
        # The text holds one of the two spellings because of the cut, not because the author wrote it so.
        likely, other = (joined, kept) if found.tail[0].islower() else (kept, joined)
        broken[likely if counts[likely] else other] += times
    words = _Words({word: number - broken[word] for word, number in counts.items() if number > broken[word]})
    changes: dict[str, str] = {}
    for joined, kept, found in cut:
        together, apart = words.count(joined), words.count(kept)
        if apart > together or (apart == together == 0 and words.make_a_compound_of(found)):
            changes[joined] = kept
        elif together > apart:
            changes[kept] = joined
    return changes


class _Words:
    """The words of a document that stand whole, in lower case, and how often."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts
        self._sorted = sorted(counts)
        self._prefixes = Counter(word.split("-", 1)[0] for word in counts if "-" in word)

    def count(self, word: str) -> int:
        """How often `word` stands."""
        return self._counts.get(word, 0)

    def make_a_compound_of(self, found: LineBreak) -> bool:
        """Whether a cut word that stands nowhere whole has a hyphen of its own, judged by its parts and its kin."""
        head = found.head.casefold()
        tail = found.tail.casefold().split("-", 1)[0]
        first, last = head.split("-", 1)[0], head.rsplit("-", 1)[-1]
        if len(tail) >= _STEM:
            # Kin: `pre-training` for `pre-|trains`, `representation` for `represen-|tational`.
            apart = self._beginning(f"{head}-{tail[:_STEM]}")
            together = self._beginning(head + tail[:_STEM])
            if apart != together:
                return apart > together
        # A chain: `left-to-|right`, `stop-|the-world`.
        if "-" in head and self.count(tail) and self.count(head):
            return True
        if "-" in found.tail and len(head) >= _STEM - 1 and self.count(head):
            return True
        if min(len(last), len(tail)) >= _STEM and min(self.count(last), self.count(tail)) >= 2:
            return True
        # A part that is only ever a prefix with a hyphen: `fine-|grained` where `fine-tuning` stands and no `fine…`.
        return first == head and self._prefixes[head] >= 2 and self._beginning(head, solid=True) == 0

    def _beginning(self, start: str, *, solid: bool = False) -> int:
        """How many words begin so; with `solid`, longer ones without a hyphen, the plural not counted."""
        place = bisect_left(self._sorted, start)
        total = 0
        for word in self._sorted[place:]:
            if not word.startswith(start):
                break
            if not solid or ("-" not in word and word not in {start, start + "s"}):
                total += self._counts[word]
        return total


def _respell(word: str, wanted: str) -> str:
    """`word` with the hyphens of `wanted`, its letters as they are."""
    letters = iter(word.replace("-", ""))
    return "".join("-" if character == "-" else next(letters, "") for character in wanted)
