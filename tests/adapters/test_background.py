from __future__ import annotations

import asyncio
import queue
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from adapters import background
from adapters.background import BackgroundLoop, Held

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def numbers(count: int, ended: list[str]) -> AsyncIterator[int]:
    try:
        for number in range(count):
            await asyncio.sleep(0)
            yield number
        ended.append("whole")
    except (asyncio.CancelledError, GeneratorExit):
        ended.append("early")
        raise


async def for_ever(ended: list[str], begun: threading.Event) -> None:
    try:
        begun.set()
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(0.01)
        ended.append("closed")


def interrupt_when(begun: threading.Event) -> threading.Thread:
    def interrupt() -> None:
        begun.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


def test_results_and_errors_come_back() -> None:
    async def fail() -> None:
        raise LookupError

    with BackgroundLoop() as loop:
        assert loop.run(asyncio.sleep(0, "done")) == "done"
        with pytest.raises(LookupError):
            loop.run(fail())


def test_a_timeout_of_the_work_is_its_error() -> None:
    async def late() -> None:
        raise TimeoutError

    with BackgroundLoop() as loop, pytest.raises(TimeoutError):
        loop.run(late())


def test_items_come_in_order_and_all() -> None:
    ended: list[str] = []
    with BackgroundLoop() as loop:
        assert list(loop.stream(numbers(1000, ended))) == list(range(1000))
    assert ended == ["whole"]


def test_an_error_in_a_stream_comes_after_its_items() -> None:
    async def some() -> AsyncIterator[int]:
        yield 1
        raise LookupError

    with BackgroundLoop() as loop:
        items = loop.stream(some())
        assert next(items) == 1
        with pytest.raises(LookupError):
            next(items)


def test_leaving_a_stream_early_ends_its_making() -> None:
    made = threading.Event()
    ended: list[str] = []

    async def slow() -> AsyncIterator[int]:
        yield 1
        await for_ever(ended, made)

    with BackgroundLoop() as loop:
        for _ in loop.stream(slow()):
            made.wait(10)
            break
    assert ended == ["closed"]


def test_ctrl_c_cancels_the_work_and_waits_for_its_end() -> None:
    begun, ended = threading.Event(), []
    with BackgroundLoop() as loop:
        thread = interrupt_when(begun)
        with pytest.raises(KeyboardInterrupt):
            loop.run(for_ever(ended, begun))
        assert ended == ["closed"]
        thread.join()
        assert loop.run(asyncio.sleep(0, "still there")) == "still there"


def test_the_end_of_the_loop_ends_what_still_runs() -> None:
    ended: list[str] = []
    begun = threading.Event()
    tasks = []

    async def leave_behind() -> None:
        tasks.append(asyncio.create_task(for_ever(ended, begun)))
        await asyncio.sleep(0.01)

    with BackgroundLoop() as loop:
        loop.run(leave_behind())
    assert ended == ["closed"]


@pytest.mark.parametrize("begin_first", [True, False])
def test_ctrl_c_in_the_moment_of_starting_cancels_the_work(
    monkeypatch: pytest.MonkeyPatch, *, begin_first: bool
) -> None:
    begun, ended = threading.Event(), []
    begin = background._Job.begin

    def interrupted(job: background._Job[None]) -> None:
        if begin_first:
            begin(job)
            begun.wait(10)
        raise KeyboardInterrupt

    with BackgroundLoop() as loop:
        with monkeypatch.context() as patch:
            patch.setattr(background._Job, "begin", interrupted)
            with pytest.raises(KeyboardInterrupt):
                loop.run(for_ever(ended, begun))
        assert ended == (["closed"] if begin_first else [])
        assert loop.run(asyncio.sleep(0, "still there")) == "still there"


def test_events_are_taken_here_while_the_work_goes_on_there() -> None:
    events: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    taken: list[tuple[int, int]] = []

    async def work() -> str:
        for number in range(100):
            events.put(number)
            await asyncio.sleep(0)
        return "done"

    with BackgroundLoop() as loop:
        here = threading.get_ident()
        assert loop.attend(work(), events, lambda number: taken.append((number, threading.get_ident()))) == "done"
    assert taken == [(number, here) for number in range(100)]


def test_what_cannot_be_taken_ends_the_work() -> None:
    events: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    begun, ended = threading.Event(), []
    events.put(1)

    def refuse(_: int) -> None:
        begun.wait(10)
        raise BrokenPipeError

    with BackgroundLoop() as loop:
        with pytest.raises(BrokenPipeError):
            loop.attend(for_ever(ended, begun), events, refuse)
        assert ended == ["closed"]


class _House:
    """An async context manager that minds which task comes and goes."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.tasks: list[asyncio.Task[Any] | None] = []

    async def __aenter__(self) -> str:
        self.tasks.append(asyncio.current_task())
        if self.fault is not None:
            raise self.fault
        await asyncio.sleep(0.01)
        return "inside"

    async def __aexit__(self, *_: object) -> None:
        self.tasks.append(asyncio.current_task())


def test_what_is_held_is_entered_and_left_by_one_task() -> None:
    house = _House()
    with BackgroundLoop() as loop:
        held = Held(house)
        assert loop.run(held.enter()) == "inside"
        assert len(house.tasks) == 1
        loop.run(held.leave())
        loop.run(held.leave())
    first, last = house.tasks
    assert first is last


def test_what_cannot_be_entered_is_told_and_need_not_be_left() -> None:
    with BackgroundLoop() as loop:
        held = Held(_House(LookupError()))
        with pytest.raises(LookupError):
            loop.run(held.enter())
        loop.run(held.leave())


def test_what_nobody_leaves_is_left_with_the_loop() -> None:
    house = _House()
    with BackgroundLoop() as loop:
        loop.run(Held(house).enter())
    assert len(house.tasks) == 2
