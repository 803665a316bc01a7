"""Which entries somebody gets to see (pure), and how much of an entry is kept."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bot.clipping import clipped
from bot.messages import Outcome

if TYPE_CHECKING:
    from bot.messages import Author
    from bot.results import Feedback, HistoryEntry
    from bot.types import Source
    from retrieval.types import Audience

LONGEST_TEXT: Final = 8_000
"""Characters that are kept of a question and of a reply."""
LONGEST_EXCERPT: Final = 1_000
"""Characters that are kept of a source's passage, of a comment and of other sentences."""
_LONGEST_NAME: Final = 500
"""Characters of names, titles and headings."""
_LONGEST_URI: Final = 2_000
"""A longer one is left out: half an address leads nowhere."""
_MOST_SOURCES: Final = 50
_MOST_WORDS: Final = 50
"""Words of a search that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Entries of one author, with all of these words, without an answer; what is not set does not matter."""

    audience: Audience | None
    """Who looks; None: the operator, who sees all."""
    author: str | None = None
    words: tuple[str, ...] = ()
    """Folded, from `words_of`."""
    unanswered: bool = False

    def takes(self, entry: HistoryEntry) -> bool:
        """Whether the entry is one of them, and may be seen."""
        if self.audience is not None and not entry.audience.scopes <= self.audience.scopes:
            return False
        if self.author is not None and entry.author.id != self.author:
            return False
        if self.unanswered and entry.outcome not in {Outcome.ABSTAINED, Outcome.FAILED}:
            return False
        if not self.words:
            return True
        text = _folded("\n".join(_texts(entry)))
        return all(word in text for word in self.words)


def words_of(search: str) -> tuple[str, ...]:
    """The words to look for, in one form whatever their case, width or composition."""
    return tuple(dict.fromkeys(_folded(search).split()))[:_MOST_WORDS]


def bounded(entry: HistoryEntry) -> HistoryEntry:
    """The entry as it is kept: no text longer than the limits, every character and number one that JSON can hold.

    Opinions are kept beside it.
    """
    return replace(
        entry,
        author=_bounded_author(entry.author),
        question=clipped(entry.question, LONGEST_TEXT),
        reply=clipped(entry.reply, LONGEST_TEXT),
        reason=clipped(entry.reason, LONGEST_EXCERPT),
        notice=clipped(entry.notice, LONGEST_EXCERPT),
        sources=tuple(map(_bounded_source, entry.sources[:_MOST_SOURCES])),
        feedback=(),
    )


def bounded_feedback(feedback: Feedback) -> Feedback:
    """The same for an opinion."""
    return replace(
        feedback, author=_bounded_author(feedback.author), comment=clipped(feedback.comment.strip(), LONGEST_EXCERPT)
    )


def _bounded_author(author: Author) -> Author:
    return replace(author, name=clipped(author.name, _LONGEST_NAME))


def _bounded_source(source: Source) -> Source:
    return replace(
        source,
        title=clipped(source.title, _LONGEST_NAME),
        heading=clipped(source.heading, _LONGEST_NAME),
        uri=source.uri if len(source.uri) <= _LONGEST_URI else "",
        excerpt=clipped(source.excerpt, LONGEST_EXCERPT),
        score=source.score if math.isfinite(source.score) else 0.0,
    )


def _folded(text: str) -> str:
    # Folding can undo the composition, and the other way around.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _texts(entry: HistoryEntry) -> list[str]:
    return [entry.question, entry.reply, *(text for source in entry.sources for text in (source.title, source.excerpt))]
