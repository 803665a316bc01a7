"""What can go wrong with a Redis server, in sentences, and how not to wait for it again and again."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import structlog
from redis import exceptions as faults

from bot.errors import StateError, StateMisconfiguredError, StateUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_log: Final = structlog.get_logger(__name__)

PAUSE: Final = 0.25
"""Seconds after a failed call in which others fail at once; after that one at a time tries."""
ADVICE: Final = "Correct REDIS_URL, or unset it to keep the state inside this process."
FAULTS: Final = (faults.RedisError, faults.RedisClusterException, OSError, RuntimeError, TimeoutError)
"""What redis-py raises; RuntimeError where a connection was closed under its hands."""


class BrokenError(StateUnavailableError):
    """Nothing came back."""


def fault(error: Exception) -> tuple[type[StateError], str]:
    """The kind of a fault, and what follows on "The Redis at … " in its sentence. It never quotes the error."""
    chain = tuple(_chain(error))
    if any(isinstance(cause, ssl.SSLError) for cause in chain):
        return StateMisconfiguredError, _NO_TLS
    if isinstance(error, faults.RedisClusterException):
        if any("cluster support disabled" in str(cause) for cause in chain):
            return StateMisconfiguredError, f"is not part of a cluster: write redis:// in REDIS_URL. {ADVICE}"
        # What the last node said that was asked.
        error = next((cause for cause in chain if isinstance(cause, faults.RedisError)), error)
    if any(isinstance(cause, TimeoutError | faults.TimeoutError) for cause in chain):
        return BrokenError, f"does not answer. Start it, or see what keeps it busy. {ADVICE}"
    code = str(error).partition(" ")[0].rstrip(":")
    for types, codes, kind, what in _TABLE:
        if isinstance(error, types) and (not codes or code in codes):
            return kind, what
    if isinstance(error, faults.ConnectionError) and not any(isinstance(cause, _UNREACHED) for cause in chain):
        return BrokenError, f"closed the connection. Start it again; if it speaks TLS, write rediss://. {ADVICE}"
    return BrokenError, f"cannot be reached. Start it. {ADVICE}"


_UNREACHED: Final = (ConnectionRefusedError, FileNotFoundError, socket.gaierror)
_NO_TLS: Final = (
    "cannot be spoken to over TLS. Check its certificate (?ssl_ca_certs=FILE in REDIS_URL), and whether it speaks TLS "
    f"(rediss://) or not (redis://). {ADVICE}"
)
_NO_PASSWORD: Final = f"wants a password, as in redis://:PASSWORD@localhost:6379/0. {ADVICE}"
_CLUSTER_DOWN: Final = "is a cluster of which a part is down. See the state of its nodes."
_Row = tuple[type[Exception] | tuple[type[Exception], ...], set[str], type[StateError], str]
# The exceptions, the codes that the server's replies begin with where that is needed to tell them apart, and what they
# mean. The first row that fits holds.
_TABLE: Final[tuple[_Row, ...]] = (
    (faults.AuthenticationError, {"NOAUTH", "Authentication"}, StateMisconfiguredError, _NO_PASSWORD),
    (
        (faults.AuthenticationError, faults.AuthenticationWrongNumberOfArgsError),
        set(),
        StateMisconfiguredError,
        f"does not take the user or the password. {ADVICE}",
    ),
    (
        faults.NoPermissionError,
        set(),
        StateMisconfiguredError,
        f"does not let this user do what Footnote needs. {ADVICE}",
    ),
    (faults.InvalidResponse, set(), StateMisconfiguredError, f"does not answer like a Redis. {ADVICE}"),
    (
        faults.AskError,
        set(),
        StateMisconfiguredError,
        f"is part of a cluster: write redis+cluster:// in REDIS_URL. {ADVICE}",
    ),
    (faults.ResponseError, {"DB"}, StateMisconfiguredError, f"has no database of this number. {ADVICE}"),
    (faults.BusyLoadingError, set(), StateUnavailableError, "is still loading its data. Wait a little."),
    (
        faults.ReadOnlyError,
        set(),
        StateUnavailableError,
        f"is a replica that takes no writes. Name the primary instead. {ADVICE}",
    ),
    (faults.OutOfMemoryError, set(), StateUnavailableError, "has no memory left. Give it more (maxmemory)."),
    (faults.MaxConnectionsError, set(), StateUnavailableError, "has no connection free. Wait a little."),
    ((faults.ClusterDownError, faults.TryAgainError), set(), StateUnavailableError, _CLUSTER_DOWN),
    (
        faults.ResponseError,
        {"MISCONF", "NOREPLICAS"},
        StateUnavailableError,
        "takes no writes, because it cannot keep them. See its log.",
    ),
    (faults.ResponseError, {"BUSY"}, StateUnavailableError, "is busy with somebody's script. Wait a little."),
    ((faults.ResponseError, faults.DataError), set(), StateError, "could not do what was asked; the log tells more."),
    (faults.RedisClusterException, set(), StateUnavailableError, _CLUSTER_DOWN),
)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what it came from; redis-py does not always chain explicitly."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


class Breaker:
    """Keeps calls from waiting, each its full time, for a server that is away."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._trouble: BrokenError | None = None
        self._pause_ends = 0.0
        self._trying = False
        self._was_well = False

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Around one call. Raises BrokenError at once while the server is known to be away."""
        tries = self._trouble is not None
        if self._trouble is not None:
            if self._trying or time.monotonic() < self._pause_ends:
                raise BrokenError(str(self._trouble))
            self._trying = True
        try:
            yield
        except BrokenError as trouble:
            if self._trouble is None and self._was_well:
                _log.warning("state_unavailable", server=self._address)
            self._trouble, self._pause_ends = trouble, time.monotonic() + PAUSE
            raise
        except StateError:
            self._well()  # a refusal is an answer, too
            raise
        else:
            self._well()
        finally:
            if tries:
                self._trying = False

    def _well(self) -> None:
        self._was_well = True
        if self._trouble is not None:
            _log.warning("state_available", server=self._address)
            self._trouble = None
