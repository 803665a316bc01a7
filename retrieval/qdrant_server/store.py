"""The library on a server: opened, rebuilt, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.qdrant_server.backend import ServerBackend
from retrieval.versioned import VersionedStore

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

    from retrieval.points import LibraryIdentity
    from retrieval.types import DocumentRecord

DEFAULT_COLLECTION = "footnote"


class ServerStore(VersionedStore):
    """The store on a server. Make one with `open` or `rebuild`."""

    def __init__(self, backend: ServerBackend) -> None:
        super().__init__(backend)
        self._server = backend

    @classmethod
    async def open(
        cls,
        server: str | AsyncQdrantClient,
        identity: LibraryIdentity | None,
        *,
        api_key: str | None = None,
        collection: str = DEFAULT_COLLECTION,
    ) -> ServerStore:
        """Open the library called `collection` on the server at this URL; an empty one is made when there is none.

        Without an identity, a library of any identity is opened and none is made.

        Raises:
            StoreUnavailableError: The server does not answer, or refuses the key.
            StoreMismatchError: The library was built with another identity.
        """
        return cls(await ServerBackend.open(server, identity, api_key=api_key, collection=collection))

    @classmethod
    async def rebuild(
        cls,
        server: str | AsyncQdrantClient,
        identity: LibraryIdentity,
        *,
        api_key: str | None = None,
        collection: str = DEFAULT_COLLECTION,
    ) -> ServerStore:
        """An empty library with a new identity beside the present one, which stays in use meanwhile.

        `publish` puts it in the old one's place; closing without that leaves the old one as it was.
        """
        return cls(await ServerBackend.open(server, identity, api_key=api_key, collection=collection, rebuild=True))

    async def publish(self) -> None:
        """Make the rebuilt library the library, in one step, and delete the old one."""
        await self._server.publish()


async def read_records(
    server: str | AsyncQdrantClient, *, api_key: str | None = None, collection: str = DEFAULT_COLLECTION
) -> list[DocumentRecord]:
    """All records of the library, whatever it was built with; empty when there is no library."""
    backend = await ServerBackend.open(server, None, api_key=api_key, collection=collection)
    store = VersionedStore(backend)
    try:
        return await store.records(None) if await backend.exists() else []
    finally:
        await store.close()
