"""What Prometheus reads."""

from __future__ import annotations

import socket

import httpx
import pytest

from bot import metrics
from bot.errors import SettingsError


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_metrics_are_shown_while_the_process_runs_and_no_longer() -> None:
    port = free_port()
    for _ in range(2):
        with metrics.shown("127.0.0.1", port):
            metrics.EVENTS.labels("terminal", "answered").inc()
            page = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert 'footnote_events_total{outcome="answered",platform="terminal"}' in page
        assert "footnote_turns_in_hand" in page
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/metrics")


def test_without_a_port_nothing_listens() -> None:
    with metrics.shown("127.0.0.1", None):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "no.such.host.invalid", "." * 80])
def test_an_address_that_cannot_be_used_is_named_with_what_to_do(host: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        shown = metrics.shown(host, other.getsockname()[1])
        with pytest.raises(SettingsError, match=r"cannot be shown on .* set FOOTNOTE_METRICS_PORT"):
            shown.__enter__()
