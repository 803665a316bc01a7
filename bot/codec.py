"""Values of the bot as JSON and back, for the state. What cannot be read back is an error of its own, never a crash."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from bot.errors import MalformedStateError

T = TypeVar("T")


def encode(value: object) -> str:
    """JSON of a dataclass, in one line. Half a surrogate pair, which JSON cannot hold, becomes a question mark."""
    adapter = _adapter(type(value))
    try:
        return adapter.dump_json(value).decode()
    except ValueError:  # what pydantic raises derives from it
        whole = json.dumps(adapter.dump_python(value, mode="json"), ensure_ascii=False)
        return whole.encode("utf-8", "replace").decode()


def decode(kind: type[T], data: bytes | str) -> T:
    """The value back. Raises MalformedStateError; fields that this version does not know are left out."""
    try:
        value: T = _adapter(kind).validate_json(data)
    except (ValidationError, ValueError) as error:
        message = "Stored data could not be read; it was skipped."
        raise MalformedStateError(message) from error
    return value


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


_ADAPTERS: Final[dict[type[Any], TypeAdapter[Any]]] = {}
