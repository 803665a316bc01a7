"""The documents of a library: list, find, forget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from retrieval.ports import Store
    from retrieval.types import Audience, DocumentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What `forget` did: the document that is gone, or those that the key could have meant (then none is gone)."""

    removed: tuple[DocumentRecord, ...] = ()
    ambiguous: tuple[DocumentRecord, ...] = ()


class Library:
    """What is in the library, and taking things out of it."""

    def __init__(self, store: Store) -> None:
        """Manage the documents of this store."""
        self._store = store

    async def documents(self, audience: Audience | None) -> list[DocumentRecord]:
        """What this audience may see (None: the operator sees all), newest first."""
        return await self._store.records(audience)

    async def find(self, key: str, audience: Audience | None) -> list[DocumentRecord]:
        """The documents that a person may mean: those that `key` names, else those whose names contain it."""
        records = await self._store.records(audience)
        return _named(records, key.strip()) or _resembling(records, key.strip())

    async def forget(self, key: str, audience: Audience | None) -> Forgotten:
        """Take the document that `key` names out of the library, at once.

        Nothing happens when it names several, or is only a part of names: a guess must not delete anything.
        """
        wanted = key.strip()
        records = await self._store.records(audience)
        named = _named(records, wanted)
        if len(named) != 1:
            return Forgotten(ambiguous=tuple(named or _resembling(records, wanted)))
        removed = [record for record in named if await self._store.delete(record.id)]
        return Forgotten(removed=tuple(removed))


def _named(records: Sequence[DocumentRecord], wanted: str) -> list[DocumentRecord]:
    """By id, URI or title; else by an id's first eight characters or more; else by title or file name in any case."""
    folded = wanted.casefold()
    ways: tuple[Callable[[DocumentRecord], bool], ...] = (
        lambda record: wanted in {record.id, record.uri, record.title},
        lambda record: len(wanted) >= 8 and record.id.startswith(folded),
        lambda record: folded in {record.title.casefold(), _file_name(record).casefold()},
    )
    return next((found for way in ways if wanted and (found := list(filter(way, records)))), [])


def _resembling(records: Sequence[DocumentRecord], wanted: str) -> list[DocumentRecord]:
    folded = wanted.casefold()
    return [
        record
        for record in records
        if folded and (folded in record.title.casefold() or folded in _file_name(record).casefold())
    ]


def _file_name(record: DocumentRecord) -> str:
    return unquote(record.uri.rpartition("/")[2])
