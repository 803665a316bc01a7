"""The names of the keys in the state, and the bytes of its values: the same in every implementation."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from bot.ports import Value


@lru_cache(maxsize=8_192)
def state_key(namespace: str, tag: str, *parts: str) -> str:
    """`namespace:{tag}:part:part`. A Redis Cluster places keys by what stands in braces: one tag, one node.

    Characters that would part or brace are percent-encoded, so that two names never make one key.
    """
    safe = [quote(part, safe="-_.~@#/+=,!", errors="surrogatepass") for part in (tag, *parts)]
    # Empty braces are no tag for a cluster; no other tag becomes a bare percent sign.
    return ":".join((namespace, f"{{{safe[0] or '%'}}}", *safe[1:]))


def stored(value: Value) -> bytes:
    """What is kept of a value. Half a surrogate pair, which UTF-8 has no bytes for, becomes a question mark."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    # True is the number 1, as it is for every other reader of numbers.
    return (repr(value) if isinstance(value, float) else str(int(value))).encode()


def milliseconds(seconds: float) -> int:
    """For an expiry, which has to be at least 1 ms away."""
    return max(1, round(seconds * 1000))
