"""Runs Lua scripts on burner-redis: in a Lua 5.1 that stays, as in Redis, where burner's own makes a new one each time.

A script calls plain commands, which burner answers within the call, and nothing else runs meanwhile: so a script is one
step, as on a server. Making a new Lua and compiling took 110 µs and more of each script; a call here takes 3 to 5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from lupa import lua51
from redis.exceptions import ResponseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from burner_redis import BurnerRedis

    Handler = Callable[[list[bytes]], object]

_SANDBOX: Final = b"""
for _, name in ipairs({'os', 'io', 'package', 'require', 'debug', 'dofile', 'loadfile', 'load', 'loadstring', 'python',
    'module', 'newproxy', 'collectgarbage', 'jit', 'ffi', 'print'}) do _G[name] = nil end
"""
"""As in Redis: a script computes and calls commands, and reaches nothing of the machine."""
_SHORT: Final = 10_000
"""ms. burner's EXPIRE counts whole seconds: shorter times of what is no string go a slower way, longer are rounded."""

_MOST_KNOWN: Final = 4_096
"""Hashes of which a field is known to be there."""


class Scripting:
    """The scripts of one engine."""

    def __init__(self, client: BurnerRedis) -> None:
        self._client = client
        self._lua = lua51.LuaRuntime(
            encoding=None, unpack_returned_tuples=False, register_eval=False, register_builtins=False
        )
        self._lua.execute(_SANDBOX)
        self._compiled: dict[str, Any] = {}
        self._written: set[bytes] = set()
        self._known_fields: dict[bytes, bytes] = {}
        calls = {b"call": self._call, b"pcall": self._pcall}
        self._lua.globals()[b"redis"] = self._lua.table_from(calls)
        self._handlers: dict[bytes, Handler] = {
            b"GET": lambda given: _now(client.get(given[0])),
            b"EXISTS": lambda given: _now(client.exists(*given)),
            b"HGET": lambda given: _now(client.hget(*given)),
            b"HMGET": lambda given: [_now(client.hget(given[0], name)) for name in given[1:]],
            b"HGETALL": lambda given: [part for pair in _now(client.hgetall(given[0])).items() for part in pair],
            b"LRANGE": lambda given: _now(client.lrange(given[0], int(given[1]), int(given[2]))),
            b"LLEN": lambda given: _now(client.llen(given[0])),
            b"LINDEX": lambda given: _now(client.lindex(given[0], int(given[1]))),
            b"SMEMBERS": lambda given: sorted(_now(client.smembers(given[0]))),
            b"SISMEMBER": lambda given: _now(client.sismember(*given)),
            b"ZSCORE": lambda given: _score(_now(client.zscore(*given))),
            b"ZCARD": lambda given: _now(client.zcard(given[0])),
            b"ZRANGE": self._zrange,
            b"ZRANGEBYSCORE": self._zrangebyscore,
        }
        self._writers: dict[bytes, Handler] = {
            b"SET": self._set,
            b"DEL": lambda given: _now(client.delete(*given)),
            b"PEXPIRE": self._pexpire,
            b"EXPIRE": lambda given: self._pexpire([given[0], b"%d" % (int(given[1]) * 1000)]),
            b"HSET": lambda given: _now(
                client.hset(given[0], mapping=dict(zip(given[1::2], given[2::2], strict=True)))
            ),
            b"HINCRBY": lambda given: _now(client.hincrby(given[0], given[1], int(given[2]))),
            b"LPUSH": lambda given: _now(client.lpush(*given)),
            b"RPUSH": lambda given: _now(client.rpush(*given)),
            b"LPOP": lambda given: _now(client.lpop(given[0])),
            b"RPOP": lambda given: _now(client.rpop(given[0])),
            b"LREM": lambda given: _now(client.lrem(given[0], int(given[1]), given[2])),
            b"LTRIM": lambda given: _done(_now(client.ltrim(given[0], int(given[1]), int(given[2])))),
            b"SADD": lambda given: _now(client.sadd(*given)),
            b"ZADD": lambda given: _now(
                client.zadd(given[0], dict(zip(given[2::2], map(float, given[1::2]), strict=True)))
            ),
            # burner keeps a hash or a set whose last member has gone; Redis has none any more.
            b"HDEL": self._hdel,
            b"SREM": lambda given: self._taking(client.srem(*given), given[0], client.smembers),
            b"ZREM": lambda given: self._taking(client.zrem(*given), given[0], client.zcard),
            b"ZREMRANGEBYSCORE": lambda given: self._taking(
                client.zremrangebyscore(given[0], _bound(given[1]), _bound(given[2])), given[0], client.zcard
            ),
        }

    def run(self, text: str, keys: Sequence[bytes], args: Sequence[bytes], now: int) -> tuple[Any, set[bytes]]:
        """What the script returns, and which keys it wrote to. `now` is its `NOW`, in ms.

        Raises:
            ResponseError: The script has a fault, or a command could not be run.
        """
        self._written = set()
        try:
            if text not in self._compiled:
                source = f"return function(KEYS, ARGV, NOW)\n{text}\nend"
                self._compiled[text] = self._lua.execute(source.encode())
            table = self._lua.table_from
            return _answer(self._compiled[text](table(keys), table(args), now)), self._written
        except (lua51.LuaError, ValueError, IndexError, TypeError, KeyError) as error:
            message = "a script failed"
            raise ResponseError(message) from error

    @property
    def written(self) -> set[bytes]:
        """The keys that the last script wrote to, also when it failed."""
        return self._written

    def _call(self, command: bytes, *given: object) -> object:
        name, values = command.upper(), [item if type(item) is bytes else _value(item) for item in given]
        handler = self._handlers.get(name)
        if handler is None:
            handler = self._writers[name]
            self._written.update(values if name == b"DEL" else values[:1])
        answer = handler(values)
        return answer if type(answer) is bytes or type(answer) is int else self._reply(answer)

    def _pcall(self, command: bytes, *given: object) -> object:
        try:
            return self._call(command, *given)
        except (ResponseError, ValueError, KeyError, IndexError) as error:
            return self._lua.table_from({b"err": str(error).encode()})

    def _reply(self, answer: object) -> object:
        """What a command answers, as Lua sees it in Redis."""
        if answer is None:
            return False
        if isinstance(answer, bool):
            return int(answer)
        if isinstance(answer, list):
            return self._lua.table_from([item if type(item) is bytes else self._reply(item) for item in answer])
        return self._lua.table_from({b"ok": answer.encode()}) if isinstance(answer, str) else answer

    # ---- commands that take some doing -------------------------------------------------------------------------

    def _set(self, given: list[bytes]) -> object:
        key, value, *options = given
        names = [option.upper() for option in options]
        lifetime = int(options[names.index(b"PX") + 1]) if b"PX" in names else None
        answer = _now(self._client.set(key, value, px=lifetime, nx=b"NX" in names, xx=b"XX" in names))
        return "OK" if answer else None

    def _pexpire(self, given: list[bytes]) -> object:
        key, lifetime = given[0], int(float(given[1]))
        if lifetime <= 0:
            return _now(self._client.delete(key))
        if lifetime % 1000 == 0:
            return _now(self._client.expire(key, lifetime // 1000))
        try:
            value = _now(self._client.get(key))
        except ResponseError:
            if lifetime > _SHORT:
                return _now(self._client.expire(key, math.ceil(lifetime / 1000)))
            script = "return redis.call('PEXPIRE', KEYS[1], ARGV[1])"
            return _now(self._client.eval(script, 1, key, str(lifetime)))
        return 0 if value is None else int(bool(_now(self._client.set(key, value, px=lifetime))))

    def _taking(self, taken: Awaitable[int], key: bytes, rest: Callable[[bytes], Awaitable[object]]) -> int:
        count = _now(taken)
        if count and not _now(rest(key)):
            _now(self._client.delete(key))
        return int(count)

    def _hdel(self, given: list[bytes]) -> int:
        """Asks for a field known to be there first: burner does not tell how many there are."""
        key = given[0]
        count = _now(self._client.hdel(*given))
        if count and not ((known := self._known_fields.get(key)) and _now(self._client.hexists(key, known))):
            rest = _now(self._client.hgetall(key))
            if not rest:
                _now(self._client.delete(key))
            elif len(self._known_fields) < _MOST_KNOWN or key in self._known_fields:
                self._known_fields[key] = next(iter(rest))
            else:
                self._known_fields.clear()
        return int(count)

    def _zrange(self, given: list[bytes]) -> object:
        first, last = int(given[1]), int(given[2])
        if len(given) == 3:
            return _now(self._client.zrange(given[0], first, last))
        return _flat(_now(self._client.zrange(given[0], first, last, withscores=True)))

    def _zrangebyscore(self, given: list[bytes]) -> object:
        names = [option.upper() for option in given]
        bounds = (_bound(given[1]), _bound(given[2]))
        found = _now(self._client.zrangebyscore(given[0], *bounds, withscores=True))
        if b"LIMIT" in names:
            at = names.index(b"LIMIT")
            start, count = int(given[at + 1]), int(given[at + 2])
            found = found[start : start + count if count >= 0 else None]
        return _flat(found) if b"WITHSCORES" in names else [member for member, _ in found]


def _now(call: Awaitable[Any]) -> Any:  # noqa: ANN401 - what the command answers
    """The answer of a command that needs no waiting."""
    steps = call.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    message = "burner-redis did not answer within the call"
    raise RuntimeError(message)


def _value(item: object) -> bytes:
    """An argument, as Redis takes it from Lua: numbers with 17 digits."""
    if isinstance(item, bytes):
        return item
    if isinstance(item, bool) or not isinstance(item, int | float):
        message = "Lua redis lib command arguments must be strings or integers"
        raise ResponseError(message)
    return b"%d" % item if isinstance(item, int) else f"{item:.17g}".encode()


def _bound(given: bytes) -> str | float:
    return given.decode() if given in {b"-inf", b"+inf"} else float(given)


def _score(score: float | None) -> bytes | None:
    return None if score is None else f"{score:.17g}".encode()


def _flat(pairs: Sequence[tuple[bytes, float]]) -> list[bytes | None]:
    return [part for member, score in pairs for part in (member, _score(score))]


def _done(_: object) -> str:
    return "OK"


def _answer(value: Any) -> Any:  # noqa: ANN401 - whatever a script returns
    """What a script returns, as a client gets it: Lua's false and nil are None, fractions are cut off."""
    if value is None or value is False:
        return None
    if value is True:
        return 1
    if isinstance(value, int | float):
        return int(value)
    if isinstance(value, bytes):
        return value
    if (said := value[b"ok"]) is not None:
        return said
    if (fault := value[b"err"]) is not None:
        raise ResponseError(fault.decode("utf-8", "replace"))
    items: list[Any] = []
    while (item := value[len(items) + 1]) is not None:
        items.append(_answer(item))
    return items
