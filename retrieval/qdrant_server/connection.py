"""Talking to a Qdrant server: the client, repeats, time limits, and a sentence for every failure."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx
import stamina
import stamina.instrumentation
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from retrieval.errors import StoreAbsentError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

P = ParamSpec("P")
T = TypeVar("T")

REQUEST_TIMEOUT = 15
"""Seconds that one request may take."""
TOTAL_TIMEOUT = 45.0
"""Seconds that one operation may take, repeats included."""
ATTEMPTS = 3


class CollectionExistsError(StoreError):
    """The collection or alias is there already."""


class Connection:
    """A client, and how it is called. A client that was given in place of a URL is its giver's to close."""

    def __init__(self, server: str | AsyncQdrantClient, library: str, *, api_key: str | None = None) -> None:
        """Take the server's URL or a client of it, and the library's name, for what is said of it. Sends nothing."""
        self._owned = isinstance(server, str)
        self.client = _client(server, api_key) if isinstance(server, str) else server
        self.address = _address(server) if isinstance(server, str) else "here"
        self._library = library

    async def close(self) -> None:
        """Close the client if it is ours."""
        if self._owned:
            await self.client.close()

    async def call(self, request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Send a request, again if that may help, and turn every failure into a sentence."""
        try:
            async with asyncio.timeout(TOTAL_TIMEOUT):
                return await _RETRY(_is_passing, request, *args, **kwargs)
        except (ApiException, ResourceExhaustedResponse, httpx.HTTPError, TimeoutError, ValueError) as error:
            raise self._sentence(error) from error

    def _sentence(self, error: Exception) -> StoreError:
        if isinstance(error, UnexpectedResponse):
            return self._status(error.status_code or 0)
        if isinstance(error, ResourceExhaustedResponse):
            return self._status(429)
        if isinstance(error, ValueError) and not self._owned:  # a client in local mode raises these
            local = {"not found": 404, "already exists": 409}
            return self._status(next((status for text, status in local.items() if text in str(error)), 400))
        alien = isinstance(error, ResponseHandlingException) and not isinstance(error.source, httpx.HTTPError)
        if alien or isinstance(error, ValueError):
            return StoreUnavailableError(f"What answers at {self.address} is not a Qdrant server. Check QDRANT_URL.")
        return StoreUnavailableError(
            f"The Qdrant server at {self.address} does not answer. "
            "Check that it runs and that QDRANT_URL is right, then try again."
        )

    def _status(self, status: int) -> StoreError:
        where = f"The Qdrant server at {self.address}"
        if status >= 500 or status == 429:
            return StoreUnavailableError(f"{where} is in trouble (HTTP {status}). Try again later; its log says more.")
        sentences: dict[int, StoreError] = {
            401: StoreUnavailableError(f"{where} refuses access. Check QDRANT_API_KEY."),
            403: StoreUnavailableError(f"{where} refuses access. Check what QDRANT_API_KEY may do."),
            404: StoreAbsentError(f"{where} has no library called “{self._library}”."),
            409: CollectionExistsError(f"{where} has a library called “{self._library}” already."),
        }
        refused = StoreError(
            f"{where} refused a request (HTTP {status}). Check that its version is 1.15 or later; "
            "if the library stays unusable, run `footnote reindex`."
        )
        return sentences.get(status, refused)


_RETRY = stamina.AsyncRetryingCaller(attempts=ATTEMPTS, timeout=TOTAL_TIMEOUT, wait_initial=0.1, wait_max=2.0)


def _is_passing(error: Exception) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, UnexpectedResponse):
        return (error.status_code or 0) >= 500 or error.status_code == 429
    if isinstance(error, ResponseHandlingException):
        return isinstance(error.source, httpx.TransportError)
    return isinstance(error, ResourceExhaustedResponse)


def _client(url: str, api_key: str | None) -> AsyncQdrantClient:
    # Its log of repeats quotes what failed, and comes on somebody's screen.
    stamina.instrumentation.set_on_retry_hooks([])
    with warnings.catch_warnings():
        # A server inside one's own network often speaks plain HTTP; whether to is the operator's decision.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        # The compatibility check would block on a request of its own.
        return AsyncQdrantClient(url=url, api_key=api_key, timeout=REQUEST_TIMEOUT, check_compatibility=False)


def _address(url: str) -> str:
    """The URL as it may be shown: without user, password and query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "the given QDRANT_URL"
