"""State inside this process, on burner-redis, kept in a file.

burner-redis answers within the call: nothing here waits, and a command cannot be cut short. Expiry does not depend on
the system's clock while the process runs.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from burner_redis import BurnerRedis
from redis.exceptions import ResponseError
from typing_extensions import override

from bot.errors import StateError, StateUnavailableError
from bot.ports import State
from bot.redis_keeping import Keeper, restore
from bot.redis_scripting import Scripting
from bot.state_file import StateFile, read_only
from bot.state_keys import milliseconds, state_key, stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from bot.ports import Script, Value

T = TypeVar("T")

_CLOSED: Final = "The state was closed."
_FAULT: Final = "The state inside the process could not do what was asked; the log tells more."
_PEXPIRE: Final = "return redis.call('PEXPIRE', KEYS[1], ARGV[1])"


class EmbeddedState(State):
    """One process's own state. Make one with `open`, or with `read` to look at another process's."""

    def __init__(self, client: BurnerRedis, namespace: str, keeper: Keeper | None = None) -> None:
        self._client = client
        self._namespace = namespace
        self._scripting = Scripting(client)
        # Does not jump when somebody sets the clock.
        self._epoch = time.time() - time.monotonic()
        self._closed = False
        self._keeper = keeper

    @classmethod
    async def open(cls, folder: Path | None, namespace: str = "footnote") -> Self:
        """The state that lies in `folder`, which is made when it is not there; None: in memory alone.

        Raises:
            StateMisconfiguredError: Another process uses it, or the folder cannot be used.
        """
        client = BurnerRedis()
        if folder is None:
            return cls(client, namespace)
        keeper = Keeper(client, StateFile(folder))
        try:
            await keeper.start()
        except BaseException:  # also when cancelled: the lock must not stay
            await keeper.close()
            raise
        return cls(client, namespace, keeper)

    @classmethod
    async def read(cls, folder: Path, namespace: str = "footnote") -> Self:
        """What another process keeps in `folder`, as of its last saving; changes are not kept.

        Raises:
            StateMisconfiguredError: It cannot be read.
        """
        client = BurnerRedis()
        await restore(client, await asyncio.to_thread(read_only, folder))
        return cls(client, namespace)

    @property
    @override
    def shared(self) -> bool:
        return False

    @override
    def key(self, tag: str, *parts: str) -> str:
        return state_key(self._namespace, tag, *parts)

    @override
    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:
        if self._closed:
            raise StateUnavailableError(_CLOSED)
        now = int((self._epoch + time.monotonic()) * 1000)
        try:
            answer, _ = self._scripting.run(
                script.text, [stored(key) for key in keys], [stored(arg) for arg in args], now
            )
        except ResponseError as error:
            raise StateError(_FAULT) from error
        finally:
            self._note(*self._scripting.written)
        return answer

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
        if self._keeper is not None:
            await self._keeper.close()
        await self._client.aclose()

    async def _do(self, command: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:  # noqa: ANN401 - as the commands take them
        if self._closed:
            raise StateUnavailableError(_CLOSED)
        try:
            return await command(*args, **options)
        except ResponseError as error:
            raise StateError(_FAULT) from error

    def _note(self, *keys: str | bytes) -> None:
        """These keys changed."""
        if self._keeper is not None and keys:
            self._keeper.note(map(stored, keys))
