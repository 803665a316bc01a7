"""State on a Redis server or cluster, for many processes.

redis-py sends a command again when its connection breaks, and a script that already ran would run twice: its retries
are off. Its own timeouts are off too, because one around the whole call bounds waiting for a free connection, the name
look-up and the greeting as well. A call that ends early, by a timeout or because its caller was cancelled, closes its
connection, so that no late reply is read by the next one.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast
from urllib.parse import urlsplit

from redis import exceptions as faults
from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from typing_extensions import override

from bot.errors import StateError, StateMisconfiguredError, StateUnavailableError
from bot.ports import Script, State
from bot.redis_faults import ADVICE, FAULTS, Breaker, fault
from bot.state_keys import milliseconds, state_key, stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import SecretStr

    from bot.ports import Value

_Client: TypeAlias = "Redis | RedisCluster"

TIMEOUT: Final = 2.0
"""Seconds that one call may take."""
CONNECTIONS: Final = 32
"""Calls under way at once; others wait their turn."""

# The server's clock, so that the processes' own do not matter.
_PRELUDE: Final = "local NOW = redis.call('TIME')\nNOW = NOW[1] * 1000 + math.floor(NOW[2] / 1000)\n"
_CHECK: Final = Script(
    name="check",
    text="redis.call('SET', KEYS[1], NOW, 'PX', 1000)\nreturn redis.call('GET', KEYS[1])",
)


class ServerState(State):
    """The state on a server. Make one with `open`."""

    def __init__(self, client: _Client, namespace: str, *, address: str, timeout: float) -> None:
        self.address = address
        """The URL without secrets."""
        self._client = client
        self._namespace = namespace
        self._timeout = timeout
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._breaker = Breaker(address)
        self._scripts: dict[str, tuple[str, str]] = {}
        self._started = False
        self._closed = False

    @classmethod
    async def open(
        cls,
        url: SecretStr | str,
        namespace: str = "footnote",
        *,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - of each later call as well
    ) -> Self:
        """Connect, and see that scripts run and may write.

        Args:
            url: `redis://`, `rediss://` (TLS), `unix://`, `redis+cluster://` or `rediss+cluster://`.
            namespace: What all keys begin with.
            timeout: Seconds that each call may take.

        Raises:
            StateUnavailableError: It is down, too slow, still loading, or full.
            StateMisconfiguredError: The address, the password or the certificate is wrong, or it is no Redis.
        """
        text = url if isinstance(url, str) else url.get_secret_value()
        address = _without_secrets(text)
        state = cls(_client(text, timeout), namespace, address=address, timeout=timeout)
        try:
            await state.run(_CHECK, [state.key("check")])
        except BaseException:  # also when cancelled: the connection must not stay
            await state.close()
            raise
        state._started = True
        return state

    @property
    @override
    def shared(self) -> bool:
        return True

    @override
    def key(self, tag: str, *parts: str) -> str:
        return state_key(self._namespace, tag, *parts)

    @override
    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:
        if script.text not in self._scripts:
            text = _PRELUDE + script.text
            self._scripts[script.text] = (text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
        text, digest = self._scripts[script.text]
        values = [stored(arg) for arg in args]
        with suppress(_UnknownScriptError):
            return await self._do("EVALSHA", digest, len(keys), *keys, *values)
        # A server that began anew has forgotten it.
        return await self._do("EVAL", text, len(keys), *keys, *values)

    @override
    async def get(self, key: str) -> bytes | None:
        return cast("bytes | None", await self._do("GET", key))

    @override
    async def set(self, key: str, value: Value, *, seconds: float | None = None) -> None:
        expiry = () if seconds is None else ("PX", milliseconds(seconds))
        await self._do("SET", key, stored(value), *expiry)

    @override
    async def delete(self, *keys: str) -> int:
        return cast("int", await self._do("DEL", *keys)) if keys else 0

    @override
    async def expire(self, key: str, seconds: float) -> None:
        await self._do("PEXPIRE", key, milliseconds(seconds))

    @override
    async def hset(self, key: str, fields: Mapping[str, Value]) -> None:
        if fields:
            pairs = (part for name, value in fields.items() for part in (stored(name), stored(value)))
            await self._do("HSET", key, *pairs)

    @override
    async def hgetall(self, key: str) -> dict[bytes, bytes]:
        return cast("dict[bytes, bytes]", await self._do("HGETALL", key))

    @override
    async def hdel(self, key: str, *fields: str) -> int:
        return cast("int", await self._do("HDEL", key, *map(stored, fields))) if fields else 0

    @override
    async def lrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._do("LRANGE", key, start, stop))

    @override
    async def zadd(self, key: str, scores: Mapping[str, float]) -> None:
        if scores:
            pairs = (part for member, score in scores.items() for part in (repr(float(score)), stored(member)))
            await self._do("ZADD", key, *pairs)

    @override
    async def zrem(self, key: str, *members: str) -> int:
        return cast("int", await self._do("ZREM", key, *map(stored, members))) if members else 0

    @override
    async def zrange(self, key: str, start: int, stop: int) -> list[bytes]:
        return cast("list[bytes]", await self._do("ZRANGE", key, start, stop))

    @override
    async def zcard(self, key: str) -> int:
        return cast("int", await self._do("ZCARD", key))

    @override
    async def close(self) -> None:
        self._closed = True
        with suppress(*FAULTS):
            await asyncio.wait_for(self._client.aclose(), self._timeout)

    async def facts(self) -> ServerFacts:
        """What an operator should know of the server. Raises StateError."""
        info = await self._do("INFO")
        if "redis_version" not in info:  # a cluster answers by node
            info = next(iter(info.values()), {})
        evicts = info.get("maxmemory", 0) > 0 and info.get("maxmemory_policy", "noeviction") != "noeviction"
        try:
            save = b"".join(map(stored, (await self._do("CONFIG", "GET", "save"))[1::2]))
        except StateError:
            save = b"?"  # hosted servers do not tell
        return ServerFacts(
            address=self.address,
            version=str(info.get("redis_version", "unknown")),
            evicts=str(info["maxmemory_policy"]) if evicts else None,
            keeps=bool(info.get("aof_enabled")) or bool(save),
        )

    async def _do(self, *command: str | bytes | float) -> Any:  # noqa: ANN401 - as the command answers
        """One command, within its time; every fault is a StateError."""
        if self._closed:
            message = "The connection to Redis was closed."
            raise StateUnavailableError(message)
        with self._breaker.guarding():
            try:
                async with asyncio.timeout(self._timeout), self._slots:
                    return await self._client.execute_command(*command)
            except faults.NoScriptError as error:
                raise _UnknownScriptError from error
            except FAULTS as error:
                raise self._explained(error) from error

    def _explained(self, error: Exception) -> StateError:
        kind, what = fault(error)
        if kind is StateMisconfiguredError and self._started:
            # It was right at the start, so an operator is at work on it; turns go on without it meanwhile.
            kind = StateUnavailableError
        elif kind is StateError and not self._started:
            kind = StateMisconfiguredError
        return kind(f"The Redis at {self.address} {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What `footnote doctor` tells of a server."""

    address: str
    """Its URL without secrets."""
    version: str
    evicts: str | None
    """The policy by which it throws keys away when its memory is full; None when it does not."""
    keeps: bool
    """Whether anything is written to its disk; also True when it does not tell."""


class _UnknownScriptError(StateError):
    """The server does not know the script yet."""


def _client(url: str, timeout: float) -> _Client:
    """The client for the URL; connects to nothing yet."""
    cluster = "+cluster://" in url
    # These win over what the URL's query says.
    ours: dict[str, Any] = {
        "decode_responses": False,
        "encoding": "utf-8",
        "protocol": 2,
        "socket_timeout": None,
        "socket_connect_timeout": timeout,  # bounds closing, too
        "max_connections": CONNECTIONS + 1,
        "retry": Retry(NoBackoff(), 0),
    }
    try:
        if "://" not in url or not _names_database(url):
            raise ValueError  # noqa: TRY301 - the same sentence as for what redis-py finds
        options: dict[str, Any] = {**parse_url(url.replace("+cluster://", "://", 1)), **ours}
        # So that a wrong option of the URL is found now.
        if not cluster:
            pool = ConnectionPool(**options)
            pool.make_connection()  # type: ignore[no-untyped-call] # it has no types
            return Redis.from_pool(pool)  # closes it with itself
        if options.pop("connection_class", None) is SSLConnection:
            options["ssl"] = True
        options.setdefault("host", "localhost")
        return RedisCluster(**options)
    except (TypeError, ValueError, OSError, faults.RedisError, faults.RedisClusterException):
        message = (
            "REDIS_URL is not the address of a Redis, such as redis://localhost:6379/0, or has options that are not "
            f"known. {ADVICE}"
        )
        raise StateMisconfiguredError(message) from None  # the original may hold the password


def _without_secrets(url: str) -> str:
    """Scheme, host, port and database: what may be shown."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "REDIS_URL"
    if parts.scheme == "unix":
        return f"unix://{parts.path}"
    host = parts.hostname or "localhost"
    path = parts.path if parts.path.strip("/").isdecimal() else ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{path}"


def _names_database(url: str) -> bool:
    """Whether the path is a number or nothing: redis-py takes database 0 for any other."""
    parts = urlsplit(url)
    return parts.scheme == "unix" or not (path := parts.path.strip("/")) or path.isdecimal()
