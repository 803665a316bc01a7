"""Signals of the terminal chat: the first SIGTERM ends it in order, the second one at once.

Also wakes a main thread that waits for keys, so that it can print what came in: with a signal that nobody else minds.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

TERMINATED: Final = 128 + signal.SIGTERM
"""The exit code, as shells tell it."""
_WAKE: Final = getattr(signal, "SIGURG", None)
"""Ignored unless somebody handles it, so that one that comes late does no harm; not on every system."""
_SHOW_CURSOR: Final = "\x1b[?25h"


class TerminatedError(BaseException):
    """The process was asked to end. No Exception: like Ctrl-C, it passes every `except Exception`."""


class Signals:
    """`with Signals() as signals`, in the main thread. `leaving` is set by the first SIGTERM.

    It raises TerminatedError inside `at_once`, and calls `on_leave` where something has to come to its end first.
    """

    def __init__(self) -> None:
        self.leaving = False
        self.on_leave: Callable[[], None] = _nothing
        self.on_wake: Callable[[], None] = _nothing
        """Called in the main thread, while it waits for keys."""
        self._raises = False
        self._reading = False
        self._before: dict[int, object] = {}
        self._main = threading.main_thread().ident

    def __enter__(self) -> Self:
        self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._terminate)
        if _WAKE is not None:
            self._before[_WAKE] = signal.signal(_WAKE, self._woken)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what `signal` gave out

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """In here a SIGTERM raises TerminatedError; one that came before raises it now."""
        with self._raising(raises=True):
            if self.leaving:
                raise TerminatedError
            yield

    @contextlib.contextmanager
    def in_order(self) -> Iterator[None]:
        """In here, inside `at_once`, it does not: what is being done comes to its end."""
        with self._raising(raises=False):
            yield

    @contextlib.contextmanager
    def _raising(self, *, raises: bool) -> Iterator[None]:
        before, self._raises = self._raises, raises
        try:
            yield
        finally:
            self._raises = before

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """In here the main thread waits for keys."""
        self._reading = True
        try:
            yield
        finally:
            self._reading = False

    def wake(self) -> None:
        """Have the main thread call `on_wake` if it waits for keys. From any thread."""
        if self._reading and _WAKE is not None and self._main is not None:
            signal.pthread_kill(self._main, _WAKE)

    def _woken(self, _number: int, _frame: FrameType | None) -> None:
        if self._reading:
            self.on_wake()

    def _terminate(self, number: int, _frame: FrameType | None) -> None:
        if self.leaving:
            signal.signal(number, signal.SIG_DFL)
            if sys.stderr.isatty():
                sys.stderr.write(_SHOW_CURSOR)
                sys.stderr.flush()
            signal.raise_signal(number)
            return
        self.leaving = True
        if self._raises:
            raise TerminatedError
        self.on_leave()


def _nothing() -> None:
    """Nobody minds yet."""
