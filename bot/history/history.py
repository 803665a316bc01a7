"""Keeps every question with what came of it, for a set time, and finds it again for those who may see it."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import structlog

from bot.codec import decode, encode
from bot.errors import MalformedStateError
from bot.history import scripts
from bot.history.selection import Selection, bounded, bounded_feedback, words_of
from bot.metrics import MALFORMED
from bot.results import Feedback, HistoryEntry, HistoryListed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.messages import TurnId
    from bot.ports import Script, State, Value
    from retrieval.types import Audience

Before: TypeAlias = "datetime | HistoryEntry | None"
"""Where a page begins: at what was asked before that time, or at what follows that entry in the list."""

_TAG: Final = "history"
_AT_ONCE: Final = 50
"""Entries that are read in one step."""
_MAKE_ROOM: Final = 16
"""Old entries that one record removes at most; one is enough as long as the settings stay."""
_MOST_OPINIONS: Final = 100
"""Opinions that are kept of one answer."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A place in a list of entries: this one. `rank` is where it was seen last."""

    score: bytes
    id: bytes
    rank: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """An entry as it is stored."""

    id: bytes
    score: bytes
    fields: dict[bytes, bytes]


class History:
    """The history in one state. Every call may raise a StateError.

    An entry is visible to those who belong to all circles that its asker belonged to at that place; what they do not
    see is not counted either.
    """

    def __init__(self, state: State, *, days: float, entries: int) -> None:
        """Use this state.

        Args:
            state: Where everything is kept.
            days: How long after it was asked an entry is kept; 0 keeps none.
            entries: Most entries; the oldest make room.
        """
        self._state = state
        self._days = days
        self._entries = entries
        self._times = state.key(_TAG, "times")
        prefixes = [state.key(_TAG, name, "") for name in ("entry", "author", "given")]
        self._entry_prefix = prefixes[0]
        self._common: tuple[Value, ...] = (*prefixes, round(days * 86_400_000))

    async def record(self, entry: HistoryEntry) -> None:
        """Keep an entry; once more in place of the former one, with the opinions that were given meanwhile.

        `entry.feedback` is not looked at.
        """
        kept = bounded(entry)
        where = (kept.id, _microseconds(kept.asked_at), _digest(kept.author.id))
        await self._run(scripts.RECORD, self._times, *where, encode(kept), self._entries, _MAKE_ROOM)

    async def entry(self, entry_id: TurnId) -> HistoryEntry | None:
        """One entry, whoever asked; None when there is none or it cannot be read."""
        fields = await self._state.hgetall(self._entry_prefix + entry_id)
        if not fields:
            return None
        try:
            entry = _read(fields)
        except MalformedStateError:
            _tell_malformed("history", entry_id)
            return None
        return entry if datetime.now(UTC) - entry.asked_at < timedelta(days=self._days) else None

    async def page(
        self,
        *,
        limit: int,
        before: Before = None,
        audience: Audience | None = None,
        author: str | None = None,
        search: str = "",
        unanswered: bool = False,
    ) -> HistoryListed:
        """The newest entries, newest first.

        Args:
            limit: Most entries; at least 1.
            before: From there on; to go on after a page, its last entry.
            audience: Only what these circles may see; None: everything.
            author: Only what this person asked.
            search: Only entries where every word occurs in the question, the reply or the sources; case, width and
                composition of characters do not matter, and a part of a word counts.
            unanswered: Only those that ended without an answer.
        """
        wanted = Selection(audience=audience, author=author, words=words_of(search), unanswered=unanswered)
        found: list[HistoryEntry] = []
        most = max(1, limit)
        async with aclosing(self._entries_of(wanted, "down", _place(before))) as entries:
            async for entry in entries:
                found.append(entry)
                if len(found) > most:
                    break
        return HistoryListed(entries=tuple(found[:most]), search=search, more=len(found) > most)

    async def export(
        self,
        *,
        audience: Audience | None = None,
        author: str | None = None,
        search: str = "",
        unanswered: bool = False,
    ) -> AsyncGenerator[HistoryEntry]:
        """All entries, oldest first, chosen as in `page`; read bit by bit."""
        wanted = Selection(audience=audience, author=author, words=words_of(search), unanswered=unanswered)
        async with aclosing(self._entries_of(wanted, "up", None)) as entries:
            async for entry in entries:
                yield entry

    async def feedback(self, entry_id: TurnId, feedback: Feedback) -> bool:
        """Keep a person's opinion, in place of an earlier one; False when there is no such entry."""
        kept = bounded_feedback(feedback)
        what = (entry_id, _digest(kept.author.id), encode(kept), _MOST_OPINIONS)
        return bool(await self._run(scripts.FEEDBACK, self._times, *what))

    async def erase(self, author: str) -> int:
        """Remove everything that a person asked, and their opinions of what others asked.

        Returns:
            How many entries are gone.
        """
        total = 0
        while True:
            erased, looked_at = await self._run(scripts.ERASE, self._times, _digest(author), _AT_ONCE)
            total += int(erased)
            if not looked_at:
                return total

    # ---- reading ------------------------------------------------------------------------------------------------

    async def _entries_of(
        self, wanted: Selection, direction: str, place: _Place | None
    ) -> AsyncGenerator[HistoryEntry]:
        """What the selection takes, from a place on."""
        whole = wanted.author is None
        list_key = self._times if whole else self._state.key(_TAG, "author", _digest(wanted.author or ""))
        while rows := await self._rows(list_key, direction, place):
            useless: list[_Row] = []
            for row, rank in rows:
                place = _Place(score=row.score, id=row.id, rank=rank)
                try:
                    entry = _read(row.fields)
                except MalformedStateError:
                    useless.append(row)
                    if row.fields:
                        _tell_malformed("history", row.id.decode("ascii", "replace"))
                    continue
                if wanted.takes(entry):
                    yield entry
            if useless:
                await self._prune(list_key, useless)
            # Inside the process nothing waited.
            await asyncio.sleep(0)

    async def _rows(self, list_key: str, direction: str, place: _Place | None) -> list[tuple[_Row, int]]:
        """The next rows in this direction, each with its rank."""
        where: tuple[Value, ...] = ("", "", -1) if place is None else (place.score, place.id, place.rank)
        last, found = await self._run(scripts.READ, list_key, direction, *where, _AT_ONCE)
        rows = [
            _Row(id=name, score=score, fields=dict(zip(fields[::2], fields[1::2], strict=True)))
            for name, score, fields in found
        ]
        if direction == "down":
            return [(row, int(last) + at) for at, row in reversed(list(enumerate(rows)))]
        return [(row, int(last) - len(rows) + 1 + at) for at, row in enumerate(rows)]

    async def _prune(self, list_key: str, rows: list[_Row]) -> None:
        """Take out what has expired or cannot be read, if it is still as we saw it."""
        expired = sum(not row.fields for row in rows)
        _log.info("history_pruned", expired=expired, malformed=len(rows) - expired)
        await self._run(
            scripts.PRUNE, list_key, *(part for row in rows for part in (row.id, row.fields.get(b"entry", b"")))
        )

    async def _run(self, script: Script, list_key: str, *args: Value) -> Any:  # noqa: ANN401 - what the script returns
        return await self._state.run(script, [self._times, list_key], [*self._common, *args])


def _read(fields: dict[bytes, bytes]) -> HistoryEntry:
    """Raises MalformedStateError. An opinion that cannot be read is left out."""
    entry = decode(HistoryEntry, fields.get(b"entry", b""))
    if entry.asked_at.tzinfo is None:
        message = "a time without a zone"
        raise MalformedStateError(message)
    opinions = []
    # Each begins with the state's time when it came.
    for value in sorted(value for name, value in fields.items() if name.startswith(b"by:")):
        try:
            opinions.append(decode(Feedback, value.partition(b" ")[2]))
        except MalformedStateError:
            _tell_malformed("feedback", entry.id)
    return replace(entry, feedback=tuple(opinions))


def _tell_malformed(kind: str, key: str) -> None:
    MALFORMED.labels(kind).inc()
    _log.warning("malformed_state", kind=kind, key=key[:100])


def _place(before: Before) -> _Place | None:
    if before is None:
        return None
    if isinstance(before, datetime):
        return _Place(score=b"%d" % _microseconds(before), id=b"")
    return _Place(score=b"%d" % _microseconds(before.asked_at), id=before.id.encode())


def _microseconds(moment: datetime) -> int:
    """Since 1970; a time without a zone is taken as UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _digest(author: str) -> str:
    """Names a person in keys: of one length, and with no character that parts them."""
    return hashlib.blake2b(author.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
