"""The library in a folder: opened, rebuilt, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.qdrant_edge.backend import EdgeBackend
from retrieval.versioned import VersionedStore

if TYPE_CHECKING:
    from pathlib import Path

    from retrieval.points import LibraryIdentity
    from retrieval.types import DocumentRecord


class EdgeStore(VersionedStore):
    """The store in a folder. Make one with `open` or `rebuild`."""

    def __init__(self, backend: EdgeBackend) -> None:
        super().__init__(backend)
        self._edge = backend

    @classmethod
    async def open(cls, path: Path, identity: LibraryIdentity | None) -> EdgeStore:
        """Open the library in `path`; an empty one is made when there is none.

        Without an identity, a library of any identity is opened and none is made.

        Raises:
            StoreAbsentError: There is no library, and none was to be made.
            StoreLockedError: Another process uses it.
            StoreMismatchError: It was built with another identity.
            StoreError: It is damaged, or the folder cannot be written.
        """
        return cls(await EdgeBackend.open(path, identity))

    @classmethod
    async def rebuild(cls, path: Path, identity: LibraryIdentity) -> EdgeStore:
        """An empty library with a new identity beside the present one.

        `publish` puts it in the old one's place; closing without that leaves the old one as it was.
        """
        return cls(await EdgeBackend.open(path, identity, rebuild=True))

    async def publish(self) -> None:
        """Make the rebuilt library the library, in one step, and delete the old one."""
        await self._edge.publish()


async def read_records(path: Path) -> list[DocumentRecord]:
    """All records of the library in `path`, whatever it was built with; empty when there is no library.

    Raises:
        StoreLockedError: Another process uses it.
        StoreError: It is damaged.
    """
    if not (path / "current").is_file():
        return []
    store = VersionedStore(await EdgeBackend.open(path, None))
    try:
        return await store.records(None)
    finally:
        await store.close()
