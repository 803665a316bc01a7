"""The log: structlog to standard error, one line an event. Holds nobody's words unless the operator wants that."""

from __future__ import annotations

import logging
import secrets
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from bot.types import ErrorId

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from types import TracebackType
    from typing import Any

    from structlog.typing import Processor

_FRAMES: Final = 12
"""The innermost frames that are logged of each exception."""


def configure_logging(level: str, *, texts: bool = False) -> None:
    """Log from this level on (`debug`, `info`, `warning`, `error`).

    An exception is logged as its type and the places it passed, on the same line. Its message, which may quote a
    document or a question, and the whole traceback come only with `texts`.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    processors: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    processors += [structlog.processors.format_exc_info] if texts else [_places]
    structlog.configure(
        processors=[*processors, structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"])]
        if not texts
        else [*processors, structlog.dev.ConsoleRenderer(colors=False)],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        # Looks the stream up at each line, so that a test or a daemon may redirect it.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    # Libraries speak up from warnings on, and may quote requests: without `texts`, only who spoke and where.
    line = "%(asctime)s %(levelname)s %(name)s " + ("%(message)s" if texts else "%(filename)s:%(lineno)d")
    logging.basicConfig(level=max(number, logging.WARNING), stream=sys.stderr, format=line, force=True)


def new_error_id() -> ErrorId:
    """Eight characters that a user can quote and an operator can find in the log."""
    return ErrorId(secrets.token_hex(4))


def log_crash(error: BaseException, error_id: ErrorId) -> None:
    """Log an exception that nobody expected."""
    structlog.get_logger("footnote").error("crashed", error_id=error_id, exc_info=error)


def log_failure(error: BaseException) -> None:
    """Log an error that the user was told in a sentence, with what it came from."""
    structlog.get_logger("footnote").info("failed", exc_info=error)


def _places(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace `exc_info` by `error` (types, outermost first) and `at` (file:line of the innermost frames)."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, tuple):
        error = error[1]
    if not isinstance(error, BaseException):
        return event
    kinds, places = [], []
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        kinds.append(type(cause).__name__)
        places.append(_trace(cause.__traceback__))
        cause = cause.__cause__ or cause.__context__
    event["error"] = " from ".join(kinds)
    event["at"] = " from ".join(places)
    return event


def _trace(trace: TracebackType | None) -> str:
    frames = traceback.extract_tb(trace)[-_FRAMES:]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)) or "nowhere"
