"""What SIGTERM does, and waking up whoever waits for keys."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from adapters.terminal.signals import Signals, TerminatedError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")


def test_at_rest_it_ends_at_once() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Signals() as signals:
        with pytest.raises(TerminatedError), signals.at_once():
            signal.raise_signal(signal.SIGTERM)
        assert signals.leaving
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_the_middle_of_something_it_is_only_told() -> None:
    told: list[str] = []
    with Signals() as signals:
        signals.on_leave = lambda: told.append("leave")
        with signals.at_once(), signals.in_order():
            signal.raise_signal(signal.SIGTERM)
        assert told == ["leave"]
        assert signals.leaving


def test_one_that_came_before_ends_it_when_that_may_be() -> None:
    with Signals() as signals:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(TerminatedError), signals.at_once():
            pytest.fail("nothing is begun any more")


def test_only_who_waits_for_keys_is_woken_and_in_the_main_thread() -> None:
    woken: list[int] = []
    with Signals() as signals:
        signals.on_wake = lambda: woken.append(threading.get_ident())
        signals.wake()
        time.sleep(0.01)
        assert woken == []
        with signals.reading():
            thread = threading.Thread(target=signals.wake)
            thread.start()
            thread.join()
            time.sleep(0.01)
        assert woken == [threading.get_ident()]
    signals.wake()
