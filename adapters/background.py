"""An event loop in a thread of its own, so that the main thread may wait for the keyboard and print.

The main thread gets Ctrl-C as KeyboardInterrupt, and what other signals raise, wherever it waits; what runs in the loop
is then cancelled and waited for, so that everything is closed in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

T = TypeVar("T")
E = TypeVar("E")

_LOOK: Final = 0.2
"""Seconds between two looks for Ctrl-C, on systems where it does not interrupt waiting."""
_PATIENCE: Final = 30.0
"""Seconds that cancelled work has to come to its end."""


class BackgroundLoop:
    """`with BackgroundLoop() as loop: loop.run(coroutine)`. Call it from one thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A daemon: work that cannot be stopped must not keep the process alive.
        self._thread = threading.Thread(target=self._loop.run_forever, name="event-loop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        job = _Job(self._loop, self._finish())
        job.begin()
        job.wait(_PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        if not self._thread.is_alive():
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end. On Ctrl-C the work is cancelled, waited for, and KeyboardInterrupt raised."""
        job = _Job(self._loop, work)
        try:
            job.begin()
            while not job.wait(_LOOK):
                pass
        except BaseException:  # Ctrl-C above all: the work must not go on
            job.cancel()
            raise
        return job.result()

    def attend(self, work: Coroutine[Any, Any, T], events: queue.SimpleQueue[E | None], take: Callable[[E], None]) -> T:
        """Run to the end, and meanwhile give `take`, in this thread, what is put into `events`; None only wakes it.

        When `take` raises, and on Ctrl-C, the work is cancelled and waited for.
        """
        job = _Job(self._loop, work, lambda: events.put(None))
        try:
            job.begin()
            while not job.wait(0):
                with contextlib.suppress(queue.Empty):
                    if (event := events.get(timeout=_LOOK)) is not None:
                        take(event)
            drain(events, take)
        except BaseException:  # as above, and whatever `take` raises
            job.cancel()
            raise
        return job.result()

    def soon(self, call: Callable[[], object]) -> None:
        """Call something in the loop, and don't wait for it."""
        self._loop.call_soon_threadsafe(call)

    def stream(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items as they come. Leaving the iteration, also by Ctrl-C, cancels their making and waits for it."""
        made: queue.SimpleQueue[T | _End] = queue.SimpleQueue()

        async def make() -> None:
            try:
                async for item in items:
                    made.put(item)
            finally:
                made.put(_End())

        job = _Job(self._loop, make())
        try:
            job.begin()
            while True:
                try:
                    item = made.get(timeout=_LOOK)
                except queue.Empty:
                    if job.wait(0):
                        break
                    continue
                if isinstance(item, _End):
                    break
                yield item
            job.wait(_PATIENCE)
            job.result()
        finally:
            job.cancel()

    async def _finish(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


class Held(Generic[T]):
    """An async context manager that is entered and left by one task, which task groups inside it need.

    `value = loop.run(held.enter())`, then `loop.run(held.leave())`, which may be called whatever became of `enter`.
    """

    def __init__(self, manager: AbstractAsyncContextManager[T]) -> None:
        self._manager = manager
        self._leaving = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def enter(self) -> T:
        """Enter it. Raises what entering raises; cancelled, it cancels that."""
        entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(entered))  # noqa: TID251 - awaited here or in leave()
        try:
            either: list[asyncio.Future[Any]] = [self._life, entered]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._life.cancel()
            await asyncio.wait({self._life})
            raise
        if not entered.done():
            self._life.result()
        return entered.result()

    async def leave(self) -> None:
        """Leave it, if it was entered. Raises what leaving raises."""
        self._leaving.set()
        if self._life is not None and not self._life.done():
            await self._life

    async def _live(self, entered: asyncio.Future[T]) -> None:
        async with self._manager as value:
            entered.set_result(value)
            await self._leaving.wait()


def drain(events: queue.SimpleQueue[E | None], take: Callable[[E], None]) -> None:
    """Give `take` what is there."""
    with contextlib.suppress(queue.Empty):
        while True:
            if (event := events.get_nowait()) is not None:
                take(event)


class _End:
    """Comes after the last item."""


class _Job(Generic[T]):
    """A coroutine that runs in the loop, seen from the other thread.

    Ctrl-C can come between any two lines of that thread: `begin` belongs inside the `try` whose end is `cancel`.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], ended: Callable[[], None] = lambda: None
    ) -> None:
        self._loop = loop
        self._work = work
        self._ended = ended
        self._task: asyncio.Task[T] | None = None
        self._finished = threading.Event()

    def begin(self) -> None:
        """Start it."""
        self._loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(lambda _: self._finish())

    def _finish(self) -> None:
        self._finished.set()
        self._ended()

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; whether it is over."""
        return self._finished.wait(seconds)

    def result(self) -> T:
        """What came of it, once it is over."""
        if self._task is None:
            message = "the work has not begun"
            raise RuntimeError(message)
        return self._task.result()

    def cancel(self) -> None:
        """Cancel and wait for the end; nothing happens when it is over."""
        if self._finished.is_set():
            return
        self._loop.call_soon_threadsafe(self._stop)
        self._finished.wait(_PATIENCE)

    def _stop(self) -> None:
        # The loop keeps the order of calls: what has no task by now was never begun.
        if self._task is not None:
            self._task.cancel()
        else:
            self._work.close()
            self._finished.set()
