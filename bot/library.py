"""The documents of a library: list, find, forget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.ports import Store
    from retrieval.types import Audience, DocumentRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What `forget` did: the documents that are gone, or several that the key could have meant (then none is gone)."""

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
        """The documents that a person may mean: by id (or its beginning, of eight characters or more), URI or title.

        The first of these that matches decides: exact id, URI or title; the beginning of an id; the title in any case;
        a part of the title or of the URI's last part.
        """
        wanted = key.strip()
        if not wanted:
            return []
        folded = wanted.casefold()
        records = await self._store.records(audience)
        ways = (
            lambda record: wanted in {record.id, record.uri, record.title},
            lambda record: len(wanted) >= 8 and record.id.startswith(folded),
            lambda record: folded == record.title.casefold(),
            lambda record: folded in record.title.casefold() or folded in record.uri.rpartition("/")[2].casefold(),
        )
        for matches in ways:
            found = [record for record in records if matches(record)]
            if found:
                return found
        return []

    async def forget(self, key: str, audience: Audience | None) -> Forgotten:
        """Take the document that `key` names out of the library, at once. Nothing happens when it names several."""
        found = await self.find(key, audience)
        if len(found) > 1:
            return Forgotten(ambiguous=tuple(found))
        removed = [record for record in found if await self._store.delete(record.id)]
        return Forgotten(removed=tuple(removed))
