"""The names of the keys in the state."""

from __future__ import annotations

from urllib.parse import quote


def state_key(namespace: str, tag: str, *parts: str) -> str:
    """`namespace:{tag}:part:part`. A Redis Cluster places keys by what stands in braces: one tag, one node.

    Characters that would part or brace are percent-encoded, so that two names never make one key.
    """
    safe = [quote(part, safe="-_.~@#/+=,!") for part in (tag, *parts)]
    return ":".join((namespace, f"{{{safe[0]}}}", *safe[1:]))
