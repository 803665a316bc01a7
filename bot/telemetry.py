"""The log, one line an event: on standard error, or in a file where standard error is somebody's screen.

Holds nobody's words unless the operator wants that.
"""

from __future__ import annotations

import contextlib
import io
import logging
import logging.handlers
import os
import secrets
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from typing_extensions import override

from bot.types import ErrorId

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from types import TracebackType
    from typing import Any

    from structlog.typing import Processor

_FRAMES: Final = 12
"""The innermost frames that are logged of each exception."""
_OURS: Final = "footnote"
_FILE_BYTES: Final = 1_000_000
"""The log file's size; one former file of that size is kept beside it."""


def configure_logging(level: str, *, texts: bool = False, file: Path | None = None) -> None:
    """Log from this level on (`debug`, `info`, `warning`, `error`).

    Where standard error is a terminal the log goes to `file`, which the first line makes, so that it stays off the
    screen; a line that the file does not take is shown nevertheless.

    An exception is logged as its type and the places it passed, on the same line. Its message, which may quote a
    document or a question, and the whole traceback come only with `texts`.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    to_file = file is not None and sys.stderr.isatty()
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
        logger_factory=lambda *_: logging.getLogger(_OURS) if to_file else structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    # Libraries speak up from warnings on, and may quote requests: without `texts`, only who spoke and where.
    line = "%(asctime)s %(levelname)s %(name)s " + ("%(message)s" if texts else "%(filename)s:%(lineno)d")
    handler = _LogFile(file) if file is not None and to_file else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(line))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)
    logging.getLogger(_OURS).setLevel(number)


def log_retries_quietly() -> None:
    """Log a retry in the debug log alone, without what was called: who gives up at last tells of it."""
    # Takes a tenth of a second to import, which commands that end at once do without.
    from stamina import instrumentation  # noqa: PLC0415 - see above

    def log_retry(details: instrumentation.RetryDetails) -> None:
        structlog.get_logger(_OURS).debug("retry", number=details.retry_num, kind=type(details.caused_by).__name__)

    instrumentation.set_on_retry_hooks([log_retry])


class _Formatter(logging.Formatter):
    """Our own lines come ready; those of libraries are put into the format."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return record.getMessage() if record.name == _OURS else super().format(record)


class _LogFile(logging.handlers.RotatingFileHandler):
    """A file that only its owner reads, opened with the first line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=_FILE_BYTES, backupCount=1, encoding="utf-8", delay=True, errors="replace")

    @override
    def _open(self) -> io.TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not through a link, and not waiting for a pipe's other end.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags, 0o600)
        with contextlib.suppress(OSError, AttributeError):
            os.fchmod(descriptor, 0o600)
        return io.TextIOWrapper(os.fdopen(descriptor, "ab"), encoding="utf-8", errors="replace", write_through=True)

    @override
    def handleError(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):
            sys.stderr.write(self.format(record) + "\n")


def new_error_id() -> ErrorId:
    """Eight characters that a user can quote and an operator can find in the log."""
    return ErrorId(secrets.token_hex(4))


def log_crash(error: BaseException, error_id: ErrorId) -> None:
    """Log an exception that nobody expected."""
    structlog.get_logger(_OURS).error("crashed", error_id=error_id, exc_info=error)


def log_failure(error: BaseException) -> None:
    """Log an error that the user was told in a sentence, with what it came from."""
    structlog.get_logger(_OURS).info("failed", exc_info=error)


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
