"""State inside this process, on burner-redis, kept in a file.

burner-redis answers within the call: nothing here waits, and a command cannot be cut short. It can write a snapshot of
its own, but holds the interpreter for all of that time (half a second at 40 MB), writes it again when the process ends
and begins empty over a file that it cannot read. So this module notes which keys change, and writes those
(`bot.state_file`) every second. Streams are not kept. Expiry does not depend on the system's clock while the process
runs.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

import structlog
from burner_redis import BurnerRedis
from redis.exceptions import ResponseError
from typing_extensions import override

from bot.errors import StateError, StateUnavailableError
from bot.ports import State
from bot.state_file import Kept, StateFile, read_only
from bot.state_keys import milliseconds, state_key, stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from bot.ports import Script, Value

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

# Scripts tell which keys they write: the list begins with what the script returns. A script with a fault tells nothing,
# and then all keys are looked at. burner-redis keeps a hash or a set whose last member was removed, with its expiry,
# where Redis has none any more: it is deleted here.
_PRELUDE: Final = """
local NOW = tonumber(table.remove(ARGV))
local _written, _count = {}, 1
local _reads = {GET=1, EXISTS=1, TTL=1, HGET=1, HGETALL=1, LRANGE=1, LLEN=1, LINDEX=1, ZSCORE=1, ZCARD=1, ZRANGE=1,
    ZRANGEBYSCORE=1, SISMEMBER=1, SMEMBERS=1, XRANGE=1, PUBLISH=1}
local _removes = {HDEL='HGETALL', ZREM='ZCARD', ZREMRANGEBYSCORE='ZCARD', SREM='SMEMBERS'}
local function _noting(call)
    return function(command, key, ...)
        local name = string.upper(command)
        if _reads[name] then return call(command, key, ...) end
        _count = _count + 1
        _written[_count] = key
        if name == 'DEL' then
            for _, other in ipairs({...}) do
                _count = _count + 1
                _written[_count] = other
            end
        end
        local answer = call(command, key, ...)
        if _removes[name] then
            local left = call(_removes[name], key)
            if left == 0 or type(left) == 'table' and #left == 0 then call('DEL', key) end
        end
        return answer
    end
end
local redis = {call = _noting(redis.call), pcall = redis.pcall and _noting(redis.pcall)}
local function _script()
"""
_EPILOGUE: Final = "\nend\n_written[1] = _script() or false\nreturn _written"
_PEXPIRE: Final = "return redis.call('PEXPIRE', KEYS[1], ARGV[1])"


class EmbeddedState(State):
    """One process's own state. Make one with `open`, or with `read` to look at another process's."""

    def __init__(self, client: BurnerRedis, namespace: str, file: StateFile | None = None) -> None:
        self._client = client
        self._namespace = namespace
        self._scripts: dict[str, tuple[str, str]] = {}
        # Does not jump when somebody sets the clock.
        self._epoch = time.time() - time.monotonic()
        self._closed = False
        self._file = file
        self._dirty: set[bytes] = set()
        self._all_dirty = False
        self._changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "state") if file is not None else None
        self._saver: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, folder: Path | None, namespace: str = "footnote") -> Self:
        """The state that lies in `folder`, which is made when it is not there; None: in memory alone.

        Raises:
            StateMisconfiguredError: Another process uses it, or the folder cannot be used.
        """
        if folder is None:
            return cls(BurnerRedis(), namespace)
        file = StateFile(folder)
        state = cls(BurnerRedis(), namespace, file)
        try:
            await state._restore(await state._in_thread(file.enter))
        except BaseException:
            await state.close()
            raise
        state._saver = asyncio.create_task(state._save_for_ever())  # noqa: TID251 - close() awaits it
        return state

    @classmethod
    async def read(cls, folder: Path, namespace: str = "footnote") -> Self:
        """What another process keeps in `folder`, as of its last saving; changes are not kept.

        Raises:
            StateMisconfiguredError: It cannot be read.
        """
        state = cls(BurnerRedis(), namespace)
        await state._restore(await asyncio.to_thread(read_only, folder))
        return state

    @property
    @override
    def shared(self) -> bool:
        return False

    @override
    def key(self, tag: str, *parts: str) -> str:
        return state_key(self._namespace, tag, *parts)

    @override
    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:
        if script.text not in self._scripts:
            text = _PRELUDE + script.text + _EPILOGUE
            self._scripts[script.text] = (text, await self._do(self._client.script_load, text))
        text, digest = self._scripts[script.text]
        now = int((self._epoch + time.monotonic()) * 1000)
        given = [*keys, *map(stored, args), str(now)]
        try:
            answer = await self._do(self._client.evalsha, digest, len(keys), *given)
        except BaseException:
            # It may have written before it failed.
            self._all_dirty = True
            self._changed.set()
            raise
        self._note(*answer[1:])
        return answer[0]

    @override
    async def get(self, key: str) -> bytes | None:
        return cast("bytes | None", await self._do(self._client.get, key))

    @override
    async def set(self, key: str, value: Value, *, seconds: float | None = None) -> None:
        await self._do(self._client.set, key, stored(value), px=None if seconds is None else milliseconds(seconds))
        self._note(key)

    @override
    async def delete(self, *keys: str) -> int:
        count = await self._do(self._client.delete, *keys)
        self._note(*keys)
        return cast("int", count)

    @override
    async def expire(self, key: str, seconds: float) -> None:
        if seconds >= 1 and seconds == int(seconds):
            await self._do(self._client.expire, key, int(seconds))
        else:
            await self._do(self._client.eval, _PEXPIRE, 1, key, str(milliseconds(seconds)))
        self._note(key)

    @override
    async def hset(self, key: str, fields: Mapping[str, Value]) -> None:
        if not fields:
            return
        mapping = {stored(name): stored(value) for name, value in fields.items()}
        await self._do(partial(self._client.hset, key, mapping=mapping))
        self._note(key)

    @override
    async def hgetall(self, key: str) -> dict[bytes, bytes]:
        return cast("dict[bytes, bytes]", await self._do(self._client.hgetall, key))

    @override
    async def hdel(self, key: str, *fields: str) -> int:
        if not fields:
            return 0
        count = await self._do(self._client.hdel, key, *map(stored, fields))
        if count and not await self._do(self._client.hgetall, key):
            await self._do(self._client.delete, key)
        self._note(key)
        return cast("int", count)

    @override
    async def lrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._do(self._client.lrange, key, start, stop))

    @override
    async def zadd(self, key: str, scores: Mapping[str, float]) -> None:
        if not scores:
            return  # burner-redis would make an empty set, which Redis does not have
        await self._do(self._client.zadd, key, {stored(member): float(score) for member, score in scores.items()})
        self._note(key)

    @override
    async def zrem(self, key: str, *members: str) -> int:
        if not members:
            return 0
        count = await self._do(self._client.zrem, key, *map(stored, members))
        if count and not await self._do(self._client.zcard, key):
            await self._do(self._client.delete, key)
        self._note(key)
        return cast("int", count)

    @override
    async def zrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._do(self._client.zrange, key, start, stop))

    @override
    async def zcard(self, key: str) -> int:
        return cast("int", await self._do(self._client.zcard, key))

    @override
    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._saver is not None:
            self._saver.cancel()
            await asyncio.wait([self._saver])
        if self._file is not None and self._thread is not None:
            await self._leave(self._file, self._thread)
        await self._client.aclose()

    async def _leave(self, file: StateFile, thread: ThreadPoolExecutor) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._save()
                await self._in_thread(file.leave)
        except (sqlite3.Error, OSError, TimeoutError) as error:
            self._tell(error)
        finally:
            # Whatever happened; doing it twice does no harm.
            left = thread.submit(file.leave)
            thread.shutdown(wait=False)
        await asyncio.wait([asyncio.wrap_future(left)], timeout=CLOSE_SECONDS)

    async def _do(self, command: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:  # noqa: ANN401 - as the commands take them
        if self._closed:
            message = "The state was closed."
            raise StateUnavailableError(message)
        try:
            return await command(*args, **options)
        except ResponseError as error:
            message = "The state inside the process could not do what was asked; the log tells more."
            raise StateError(message) from error

    def _note(self, *keys: str | bytes) -> None:
        """These keys changed."""
        if self._file is not None and keys:
            self._dirty.update(map(stored, keys))
            self._changed.set()

    # ------------------------------------------------------------------------------------------------ keeping
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
        _log.error("state_not_saved", folder=str(self._file and self._file.folder), error=type(error).__name__)

    async def _save(self) -> None:
        """Write what changed. What could not be written is written the next time."""
        if self._file is None or not (self._dirty or self._all_dirty):
            return
        keys, all_keys = self._dirty, self._all_dirty
        self._dirty, self._all_dirty = set(), False
        try:
            if all_keys:
                keys = keys | set(await self._client.keys("*")) | await self._in_thread(self._file.keys)
            changed = await self._look_up(keys)
            await self._in_thread(self._file.write, changed)
        except BaseException:
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

    async def _restore(self, entries: Mapping[bytes, Kept]) -> None:
        for count, (key, kept) in enumerate(entries.items()):
            if count % _AT_ONCE == 0:
                await asyncio.sleep(0)
            content = kept.content
            # Whole seconds are enough here, and setting milliseconds would need a script for each.
            seconds = None if kept.seconds is None else math.ceil(kept.seconds)
            if kept.kind == "string":
                await self._client.set(key, content, ex=seconds)
            elif kept.kind == "hash":
                await self._client.hset(key, mapping=content)
            elif kept.kind == "zset":
                await self._client.zadd(key, content)
            elif kept.kind == "list":
                await self._client.rpush(key, *content)
            else:
                await self._client.sadd(key, *content)
            if seconds is not None and kept.kind != "string":
                await self._client.expire(key, seconds)
