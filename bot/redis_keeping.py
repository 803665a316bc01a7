"""Keeps what burner-redis holds in a file: notes which keys changed, and writes those every second.

burner-redis can write a snapshot of its own, but holds the interpreter for all of that time (half a second at 40 MB),
writes it again when the process ends and begins empty over a file that it cannot read. Streams are not kept.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
from redis.exceptions import ResponseError

from bot.state_file import Kept, StateFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from burner_redis import BurnerRedis

T = TypeVar("T")
_log: Final = structlog.get_logger(__name__)

SAVE_EVERY: Final = 1.0
"""Seconds between two savings at the least."""
SAVING_SHARE: Final = 0.05
"""The part of the time that may be spent saving."""
RETRY_SECONDS: Final = 30.0
"""The longest pause before saving is tried again when it failed."""
CLOSE_SECONDS: Final = 20.0
_AT_ONCE: Final = 100
"""Keys that are read or restored before others get their turn; some milliseconds."""
_OF_ONE_TAG: Final = 2_000
"""Keys of one tag that are read in one go, so that they belong together. More of them change at once in no turn."""


class Keeper:
    """Between an engine and its file. Called from the loop alone; the file has a thread of its own."""

    def __init__(self, client: BurnerRedis, file: StateFile) -> None:
        self._client = client
        self._file = file
        self._thread = ThreadPoolExecutor(1, "state")
        self._dirty: set[bytes] = set()
        self._all_dirty = False
        self._changed = asyncio.Event()
        self._saver: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take the file, put what it holds into the engine, and save from now on. Raises StateMisconfiguredError."""
        await restore(self._client, await self._in_thread(self._file.enter))
        self._saver = asyncio.create_task(self._save_for_ever())  # noqa: TID251 - close() awaits it

    def note(self, keys: Iterable[bytes]) -> None:
        """These keys changed."""
        self._dirty.update(keys)
        self._changed.set()

    def note_all(self) -> None:
        """Any key may have changed."""
        self._all_dirty = True
        self._changed.set()

    async def close(self) -> None:
        """Save what is pending and let go of the file."""
        if self._saver is not None:
            self._saver.cancel()
            await asyncio.wait([self._saver])
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._save()
                await self._in_thread(self._file.leave)
        except (sqlite3.Error, OSError, TimeoutError) as error:
            self._tell(error)
        finally:
            # Whatever happened; doing it twice does no harm.
            left = self._thread.submit(self._file.leave)
            self._thread.shutdown(wait=False)
        await asyncio.wait([asyncio.wrap_future(left)], timeout=CLOSE_SECONDS)

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    async def _save_for_ever(self) -> None:
        failures = 0
        while True:
            await self._changed.wait()
            self._changed.clear()
            started = time.monotonic()
            try:
                await self._save()
            except (sqlite3.Error, OSError) as error:
                self._tell(error)
                failures += 1
                self._changed.set()
                await asyncio.sleep(min(SAVE_EVERY * 2**failures, RETRY_SECONDS))
                continue
            if failures:
                _log.warning("state_saved_again")
                failures = 0
            await asyncio.sleep(max(SAVE_EVERY, (time.monotonic() - started) / SAVING_SHARE))

    def _tell(self, error: Exception) -> None:
        _log.error("state_not_saved", folder=str(self._file.folder), error=type(error).__name__)

    async def _save(self) -> None:
        """Write what changed. What could not be written is written the next time."""
        if not (self._dirty or self._all_dirty):
            return
        keys, all_keys = self._dirty, self._all_dirty
        self._dirty, self._all_dirty = set(), False
        try:
            if all_keys:
                keys = keys | set(await self._client.keys("*")) | await self._in_thread(self._file.keys)
            changed = await self._look_up(keys)
            await self._in_thread(self._file.write, changed)
        except BaseException:  # also when cancelled: it is not saved, and stays to be
            self._dirty |= keys
            self._all_dirty |= all_keys
            raise

    async def _look_up(self, keys: Iterable[bytes]) -> dict[bytes, Kept | None]:
        """What the keys hold now. Those of one tag are read in one go, so that they belong together."""
        changed: dict[bytes, Kept | None] = {}
        looked_up = 0
        tag = None
        for key in sorted(keys):
            if looked_up >= (_OF_ONE_TAG if key.partition(b"}")[0] == tag else _AT_ONCE):
                await asyncio.sleep(0)
                looked_up = 0
            tag = key.partition(b"}")[0]
            changed[key] = await self._kept(key)
            looked_up += 1
        return changed

    async def _kept(self, key: bytes) -> Kept | None:
        """What a key holds; burner-redis has no way to ask for its type."""
        readers: tuple[tuple[str, Callable[[], Awaitable[Any]]], ...] = (
            ("string", partial(self._client.get, key)),
            ("hash", partial(self._client.hgetall, key)),
            ("zset", partial(self._client.zrange, key, 0, -1, withscores=True)),
            ("list", partial(self._client.lrange, key, 0, -1)),
            ("set", partial(self._client.smembers, key)),
        )
        for kind, read in readers:
            try:
                content = await read()
            except ResponseError:
                continue
            if not content and content != b"":
                return None
            seconds = await self._client.ttl(key)  # whole seconds, rounded down
            return Kept(
                kind=kind,
                content=dict(content) if kind == "zset" else content,
                seconds=None if seconds == -1 else max(0, seconds) + 1,
            )
        return None


async def restore(client: BurnerRedis, entries: Mapping[bytes, Kept]) -> None:
    """Put contents into an engine."""
    for count, (key, kept) in enumerate(entries.items()):
        if count % _AT_ONCE == 0:
            await asyncio.sleep(0)
        content = kept.content
        # Whole seconds are enough here, and setting milliseconds would need a script for each.
        seconds = None if kept.seconds is None else math.ceil(kept.seconds)
        if kept.kind == "string":
            await client.set(key, content, ex=seconds)
        elif kept.kind == "hash":
            await client.hset(key, mapping=content)
        elif kept.kind == "zset":
            await client.zadd(key, content)
        elif kept.kind == "list":
            await client.rpush(key, *content)
        else:
            await client.sadd(key, *content)
        if seconds is not None and kept.kind != "string":
            await client.expire(key, seconds)
