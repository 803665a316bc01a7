"""How much a reader may take in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """The most that one document may cost; over it, reading ends with an error that names the limit."""

    bytes: int = 100 * 1024 * 1024
    """Size of the source."""
    pages: int = 5_000
    characters: int = 20_000_000
    """Length of `Document.text`."""
    seconds: float = 60.0
    """Wall time of the parse; the time spent waiting for a free parser does not count."""
