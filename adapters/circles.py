"""Circles of people as they are typed: `--audience hr --audience board` or `--audience hr,board`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.printing import typed
from retrieval.types import Audience

if TYPE_CHECKING:
    from collections.abc import Iterable


def shown_to(circles: Iterable[str] | None) -> Audience | None:
    """Who may see a document: these circles; None when nobody was named, which changes nothing of a known one."""
    return None if circles is None else Audience.of(*names(circles))


def asked_by(circles: Iterable[str]) -> Audience:
    """Somebody who belongs to these circles and, as all do, to everyone."""
    return Audience.asker(*names(circles))


def names(circles: Iterable[str]) -> list[str]:
    """The circles one by one."""
    return [name for circle in circles for name in (part.strip() for part in typed(circle).split(",")) if name]
