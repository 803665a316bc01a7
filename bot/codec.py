"""Values of the bot as JSON and back, for the state. What cannot be read back is an error of its own, never a crash."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from bot.errors import MalformedStateError

T = TypeVar("T")


def encode(value: object) -> str:
    """JSON of a dataclass."""
    return _adapter(type(value)).dump_json(value).decode()


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
