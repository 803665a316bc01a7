"""State inside this process: burner-redis, with a snapshot in a file."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Self, cast

from burner_redis import BurnerRedis

from bot.state_keys import state_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bot.ports import Script, Value

_PRELUDE = "local NOW = tonumber(table.remove(ARGV))\n"


class EmbeddedState:
    """One process's own state. Without a file it is forgotten at the end."""

    def __init__(self, client: BurnerRedis, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._scripts: dict[str, Any] = {}
        # Does not jump when somebody sets the clock.
        self._epoch = time.time() - time.monotonic()

    @classmethod
    async def open(cls, file: Path | None, namespace: str = "footnote") -> Self:
        """Load what the file holds, if anything."""
        client = await asyncio.to_thread(BurnerRedis, persistence_path=None if file is None else str(file))
        return cls(client, namespace)

    @property
    def shared(self) -> bool:
        return False

    def key(self, tag: str, *parts: str) -> str:
        return state_key(self._namespace, tag, *parts)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:
        if script.name not in self._scripts:
            self._scripts[script.name] = self._client.register_script(_PRELUDE + script.text)
        now = int((self._epoch + time.monotonic()) * 1000)
        return await self._scripts[script.name](keys=list(keys), args=[*args, now])

    async def get(self, key: str) -> bytes | None:
        return cast("bytes | None", await self._client.get(key))

    async def set(self, key: str, value: Value, *, seconds: float | None = None) -> None:
        await self._client.set(key, value, px=None if seconds is None else max(1, round(seconds * 1000)))

    async def delete(self, *keys: str) -> int:
        return cast("int", await self._client.delete(*keys))

    async def expire(self, key: str, seconds: float) -> None:
        await self._client.expire(key, max(1, round(seconds)))

    async def hset(self, key: str, fields: Mapping[str, Value]) -> None:
        await self._client.hset(key, mapping={name: _stored(value) for name, value in fields.items()})

    async def hgetall(self, key: str) -> dict[bytes, bytes]:
        return cast("dict[bytes, bytes]", await self._client.hgetall(key))

    async def hdel(self, key: str, *fields: str) -> int:
        return cast("int", await self._client.hdel(key, *fields))

    async def lrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._client.lrange(key, start, stop))

    async def zadd(self, key: str, scores: Mapping[str, float]) -> None:
        await self._client.zadd(key, dict(scores))

    async def zrem(self, key: str, *members: str) -> int:
        return cast("int", await self._client.zrem(key, *members))

    async def zrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._client.zrange(key, start, stop))

    async def zcard(self, key: str) -> int:
        return cast("int", await self._client.zcard(key))

    async def close(self) -> None:
        if self._client.persistence_path is not None:
            await self._client.save()
        await self._client.aclose()


def _stored(value: Value) -> str | bytes:
    return value if isinstance(value, str | bytes) else str(value)
