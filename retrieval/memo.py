"""Values that are asked for again and again, and are right until somebody writes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

K = TypeVar("K")
V = TypeVar("V")

MOST: Final = 8192


class Memo(Generic[K, V]):
    """Keeps loaded values until `clear`, and `most` of them: with one more, all are dropped. Safe to share."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: dict[K, V] = {}
        self._clears = 0

    def known(self, keys: Iterable[K]) -> dict[K, V]:
        """Those that are here, by key."""
        with self._lock:
            return {key: self._values[key] for key in keys if key in self._values}

    def get(self, keys: Iterable[K], load: Callable[[list[K]], dict[K, V]]) -> dict[K, V]:
        """All of these; the missing ones by `load`, which may leave out what does not exist.

        What was loaded while somebody wrote is returned and not kept: it may be from before.
        """
        wanted = list(keys)
        with self._lock:
            clears = self._clears
            values = {key: self._values[key] for key in wanted if key in self._values}
        missing = [key for key in wanted if key not in values]
        if not missing:
            return values
        loaded = load(missing)
        with self._lock:
            if clears == self._clears:
                if len(self._values) + len(loaded) > self._most:
                    self._values.clear()
                self._values.update(loaded)
        return values | loaded

    def clear(self) -> None:
        """Forget all: something was written."""
        with self._lock:
            self._clears += 1
            self._values.clear()
