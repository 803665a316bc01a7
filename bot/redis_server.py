"""State on a Redis server, for many processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import redis.asyncio as redis

from bot.state_keys import state_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.ports import Script, Value

_PRELUDE = "local _t = redis.call('TIME')\nlocal NOW = _t[1] * 1000 + math.floor(_t[2] / 1000)\n"


class ServerState:
    """The state on a server. Make one with `open`."""

    def __init__(self, client: redis.Redis, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._scripts: dict[str, Any] = {}

    @classmethod
    async def open(cls, url: str, namespace: str = "footnote", *, timeout: float = 2.0) -> Self:
        client = redis.Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout)
        await client.ping()
        return cls(client, namespace)

    @property
    def shared(self) -> bool:
        return True

    def key(self, tag: str, *parts: str) -> str:
        return state_key(self._namespace, tag, *parts)

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:
        if script.name not in self._scripts:
            self._scripts[script.name] = self._client.register_script(_PRELUDE + script.text)
        return await self._scripts[script.name](keys=list(keys), args=list(args))

    async def get(self, key: str) -> bytes | None:
        return cast("bytes | None", await self._client.get(key))

    async def set(self, key: str, value: Value, *, seconds: float | None = None) -> None:
        await self._client.set(key, value, px=None if seconds is None else max(1, round(seconds * 1000)))

    async def delete(self, *keys: str) -> int:
        return cast("int", await self._client.delete(*keys)) if keys else 0

    async def expire(self, key: str, seconds: float) -> None:
        await self._client.pexpire(key, max(1, round(seconds * 1000)))

    async def hset(self, key: str, fields: Mapping[str, Value]) -> None:
        if fields:
            await self._client.hset(key, mapping=dict(fields))

    async def hgetall(self, key: str) -> dict[bytes, bytes]:
        return cast("dict[bytes, bytes]", await self._client.hgetall(key))

    async def hdel(self, key: str, *fields: str) -> int:
        return cast("int", await self._client.hdel(key, *fields)) if fields else 0

    async def lrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._client.lrange(key, start, stop))

    async def zadd(self, key: str, scores: Mapping[str, float]) -> None:
        if scores:
            await self._client.zadd(key, dict(scores))

    async def zrem(self, key: str, *members: str) -> int:
        return cast("int", await self._client.zrem(key, *members)) if members else 0

    async def zrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._client.zrange(key, start, stop))

    async def zcard(self, key: str) -> int:
        return cast("int", await self._client.zcard(key))

    async def close(self) -> None:
        await self._client.aclose()
