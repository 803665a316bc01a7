"""What is counted, for Prometheus. Labels never hold anybody's words or names."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge, Histogram, start_http_server

from bot.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS: Final = Counter(
    "footnote_events", "Events from chat platforms by how they ended; each ends once.", ["platform", "outcome"]
)
TURN_SECONDS: Final = Histogram(
    "footnote_turn_seconds",
    "From the beginning of a turn to its last post.",
    ["platform", "outcome"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300),
)
TAKEN_OVER: Final = Counter(
    "footnote_turns_taken_over", "Turns of a process that died or was silent for too long.", ["platform"]
)
DECORATIONS_FAILED: Final = Counter(
    "footnote_decorations_failed", "Progress signs and streamed pieces that a platform did not take.", ["platform"]
)
MALFORMED: Final = Counter(
    "footnote_malformed_state", "Stored values that could not be read and were left out.", ["kind"]
)
TURNS_IN_HAND: Final = Gauge("footnote_turns_in_hand", "Conversations that this process is answering in.")


def platform_label(name: str) -> str:
    """`terminal` of `terminal:alice@host`: a label must have few values, and name nobody."""
    return name.partition(":")[0]


@contextmanager
def shown(host: str, port: int | None) -> Iterator[None]:
    """Show the metrics to Prometheus at `/metrics` while the block runs; not at all without a port.

    Raises:
        SettingsError: The address cannot be used.
    """
    if port is None:
        yield
        return
    try:
        server, thread = start_http_server(port, host)
    except (OSError, UnicodeError) as error:
        message = (
            f"The metrics cannot be shown on {host}:{port}: another process may use the port. Each process needs its "
            "own: set FOOTNOTE_METRICS_PORT (and FOOTNOTE_METRICS_HOST) to one that is free, or leave it unset."
        )
        raise SettingsError(message) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
