"""Entries of the history as text and JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from adapters.printing import safe, safe_line
from adapters.wrapping import wrapped
from bot.messages import Outcome
from bot.results import Opinion
from bot.types import AbstentionReason

if TYPE_CHECKING:
    from bot.results import Feedback, HistoryEntry
    from bot.types import Source

_INDENT: Final = "    "
_WHY: Final = {
    AbstentionReason.EMPTY_LIBRARY: "the library held nothing that the asker may see",
    AbstentionReason.NO_EVIDENCE: "no passage could answer it",
    AbstentionReason.MODEL_ABSTAINED: "the language model found no answer in the passages",
    AbstentionReason.NOT_A_QUESTION: "there was nothing to search for",
}
_OUTCOMES: Final = {
    Outcome.ABSTAINED: "not answered",
    Outcome.FAILED: "failed",
    Outcome.LIMITED: "not answered: too many questions",
    Outcome.REFUSED_AUDIENCE: "not answered: not allowed here",
    Outcome.REFUSED_SIZE: "not answered: too long",
}


def entry_text(entry: HistoryEntry) -> str:
    """Question, reply or refusal, the sources with their passages, opinions, and who asked when and where."""
    parts = [wrapped(f"Q: {safe(entry.question).strip()}"), wrapped(safe(entry.reply).strip())]
    if entry.notice:
        parts.append(wrapped(f"({safe_line(entry.notice, 500)})"))
    if entry.sources:
        count = len(entry.sources)
        parts.append(f"{count} source{'' if count == 1 else 's'}")
        parts += map(_source_text, entry.sources)
    parts += map(_opinion_text, entry.feedback)
    parts += [wrapped(_asked(entry)), wrapped(_came_of(entry))]
    return "\n".join(parts)


def entry_dict(entry: HistoryEntry) -> dict[str, Any]:
    """All that is kept of an entry, for `--json` and `--export`."""
    return {
        "id": entry.id,
        "asked_at": entry.asked_at.isoformat(),
        "question": entry.question,
        "outcome": str(entry.outcome),
        "reason": entry.reason or None,
        "reply": entry.reply,
        "notice": entry.notice,
        "sources": [_source_dict(source) for source in entry.sources],
        "author": {"id": entry.author.id, "name": entry.author.name},
        "platform": entry.platform,
        "workspace": entry.workspace,
        "channel": entry.channel,
        "conversation": entry.conversation,
        "audience": sorted(entry.audience.scopes),
        "model": entry.model or None,
        "tokens": {"input": entry.usage.input_tokens, "output": entry.usage.output_tokens},
        "timings": {name: round(getattr(entry.timings, name), 4) for name in ("search", "generate", "total")},
        "feedback": [
            {
                "author": {"id": opinion.author.id, "name": opinion.author.name},
                "opinion": str(opinion.opinion),
                "comment": opinion.comment,
                "given_at": opinion.given_at.isoformat(),
            }
            for opinion in entry.feedback
        ],
    }


def _source_text(source: Source) -> str:
    head = f"[{source.marker}] {safe_line(source.title)}"
    if source.page is not None:
        more = source.last_page is not None and source.last_page != source.page
        head += f", pp. {source.page}–{source.last_page}" if more else f", p. {source.page}"
    if source.heading:
        head += f" — {safe_line(source.heading)}"
    passage = f"{_INDENT}“{safe_line(source.excerpt, 1_000)}”"
    return f"{wrapped(head, _INDENT)}\n{wrapped(passage, _INDENT)}"


def _source_dict(source: Source) -> dict[str, Any]:
    return {
        "marker": source.marker,
        "document": source.document_id,
        "title": source.title,
        "uri": source.uri,
        "page": source.page,
        "last_page": source.last_page,
        "heading": source.heading,
        "excerpt": source.excerpt,
        "score": round(source.score, 6),
    }


def _opinion_text(opinion: Feedback) -> str:
    good = opinion.opinion is Opinion.GOOD
    sign = ("👍" if good else "👎") if "utf" in (sys.stdout.encoding or "").casefold() else "+1" if good else "-1"
    comment = f": {safe_line(opinion.comment, 1_000)}" if opinion.comment else ""
    return wrapped(f"{sign} {_name(opinion.author.name, opinion.author.id)}{comment}", _INDENT)


def _asked(entry: HistoryEntry) -> str:
    """The time here, who, and where."""
    place = "/".join(filter(None, (entry.workspace, entry.channel)))
    where = safe_line(entry.platform) + (f" {safe_line(place)}" if place else "")
    circles = sorted(safe_line(scope) for scope in entry.audience.scopes)
    asked_by = _name(entry.author.name, entry.author.id)
    when = f"{entry.asked_at.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"{when}, {asked_by}, in {where}, circles {', '.join(circles) or 'none'}"


def _came_of(entry: HistoryEntry) -> str:
    """How it ended, what it took, and the entry's id."""
    parts = [_OUTCOMES.get(entry.outcome, str(entry.outcome))]
    if entry.reason:
        parts[0] += f": {_WHY.get(entry.reason, safe_line(entry.reason))}"  # type: ignore[call-overload] # a StrEnum's value finds it
    if entry.model:
        parts.append(safe_line(entry.model))
    if entry.timings.total:
        parts.append(f"{entry.timings.total:.1f} s")
    if entry.usage.input_tokens or entry.usage.output_tokens:
        parts.append(f"{entry.usage.input_tokens:,} + {entry.usage.output_tokens:,} tokens")
    return ", ".join([*parts, f"id {safe_line(entry.id, 40)}"])


def _name(name: str, person: str) -> str:
    return f"{safe_line(name, 80)} ({safe_line(person)})" if name and name != person else safe_line(person)
