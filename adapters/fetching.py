"""What brings the documents that are to be ingested, by kind of platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.local_fetching import LocalFetcher
from bot.jobs import LOCAL

if TYPE_CHECKING:
    from bot.ports import Fetcher


def fetchers() -> dict[str, Fetcher]:
    """All there are, as `bot.jobs.Jobs` takes them."""
    return {LOCAL: LocalFetcher()}
