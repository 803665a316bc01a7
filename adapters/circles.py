"""Circles of people as they are typed: `--audience hr --audience board` or `--audience hr,board`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.printing import typed
from retrieval.types import PUBLIC, Audience

if TYPE_CHECKING:
    from collections.abc import Iterable


def shown_to(circles: Iterable[str]) -> Audience:
    """Who may see a document: these circles, or everyone when none is named."""
    names = _names(circles)
    return Audience.of(*names) if names else PUBLIC


def asked_by(circles: Iterable[str]) -> Audience:
    """Somebody who belongs to these circles and, as all do, to everyone."""
    return Audience.asker(*_names(circles))


def _names(circles: Iterable[str]) -> list[str]:
    return [name for circle in circles for name in (part.strip() for part in typed(circle).split(",")) if name]
