"""The file that keeps the embedded state: what changed is written in one step, so that it costs what changed.

state/lock          held while a process uses the state; the system frees it when the process dies
state/state.db      SQLite, one row a key; readable by its owner only
state/*.damaged-…   a file that could not be read, kept for whoever wants to look at it
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import structlog
from filelock import FileLock, Timeout

from bot.errors import StateMisconfiguredError
from bot.metrics import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_log: Final = structlog.get_logger(__name__)

Content: TypeAlias = "bytes | dict[bytes, bytes] | list[bytes] | dict[bytes, float] | set[bytes]"

FILE: Final = "state.db"
_VERSION: Final = 1
_BUSY_SECONDS: Final = 5.0
"""How long to wait for whoever reads the file at the moment."""
_GRACE_SECONDS: Final = 86_400
"""Expired rows go a day later: a clock that jumps must not take what is still in use."""
_ELSEWHERE: Final = "or name another folder with FOOTNOTE_HOME or --home"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The content of one key. `kind` is string, hash, list, zset or set."""

    kind: str
    content: Content
    seconds: float | None = None
    """How much longer; None: for good."""


class StateFile:
    """The folder with the file and its lock. Everything here blocks; one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = FileLock(folder / "lock", thread_local=False)
        self._base: sqlite3.Connection | None = None

    def enter(self) -> dict[bytes, Kept]:
        """Take the lock and read everything. A file that cannot be read is put aside, and an empty one is begun.

        Raises:
            StateMisconfiguredError: Another process uses the state, or the folder cannot be used.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock.acquire(timeout=0)
        except Timeout as error:
            message = (
                f"Another Footnote process is using the state in {self.folder}; stop it first, "
                "or set REDIS_URL to a Redis server so that several processes can share one state."
            )
            raise StateMisconfiguredError(message) from error
        except OSError as error:
            raise _unusable(self.folder) from error
        try:
            return self._load()
        except BaseException:  # also Ctrl-C: the lock must not stay
            self.leave()
            raise

    def _load(self) -> dict[bytes, Kept]:
        file = self.folder / FILE
        try:
            self._base = _connect(file)
            return dict(_rows(self._base))
        except sqlite3.OperationalError as error:
            raise _unusable(self.folder) from error
        except sqlite3.DatabaseError as error:
            if self._base is not None:
                self._base.close()
            aside = f"{FILE}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
            _log.error("state_damaged", file=str(file), put_aside=aside, error=type(error).__name__)
            try:
                file.replace(self.folder / aside)
                self.folder.joinpath(f"{FILE}-journal").unlink(missing_ok=True)
                self._base = _connect(file)
            except (OSError, sqlite3.Error) as second:
                raise _unusable(self.folder) from second
            return {}
        except OSError as error:
            raise _unusable(self.folder) from error

    def write(self, changed: Mapping[bytes, Kept | None]) -> None:
        """Store what changed, all of it or nothing; None: the key is gone. Raises sqlite3.Error."""
        if self._base is None:
            return
        now = time.time()
        gone = [(key,) for key, kept in changed.items() if kept is None]
        there = [
            (key, kept.kind, _packed(kept), None if kept.seconds is None else now + kept.seconds)
            for key, kept in changed.items()
            if kept is not None
        ]
        with self._base as transaction:
            transaction.executemany("DELETE FROM entry WHERE key = ?", gone)
            transaction.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", there)
            transaction.execute("DELETE FROM entry WHERE expires_at < ?", (now - _GRACE_SECONDS,))

    def keys(self) -> set[bytes]:
        """Every key that has a row. Raises sqlite3.Error."""
        return set() if self._base is None else {row[0] for row in self._base.execute("SELECT key FROM entry")}

    def leave(self) -> None:
        """Let go of the file and the lock."""
        if self._base is not None:
            self._base.close()
            self._base = None
        self._lock.release()


def read_only(folder: Path) -> dict[bytes, Kept]:
    """What the file holds at the moment, also while a process uses it; nothing when there is none.

    Raises:
        StateMisconfiguredError: It cannot be read, or is damaged.
    """
    file = folder / FILE
    try:
        if not file.is_file():
            return {}
        with closing(sqlite3.connect(file, timeout=_BUSY_SECONDS)) as base:
            made = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'entry'").fetchone()[0]
            return dict(_rows(base)) if made else {}  # a process may just be making it
    except (OSError, sqlite3.OperationalError) as error:
        raise _unusable(folder) from error
    except sqlite3.Error as error:
        message = f"The state in {folder} is damaged. The next start puts the file aside and begins a new one."
        raise StateMisconfiguredError(message) from error


def is_used(folder: Path) -> bool:
    """Whether a process uses the state at the moment; makes nothing."""
    if not (folder / "lock").exists():
        return False
    lock = FileLock(folder / "lock", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def _connect(file: Path) -> sqlite3.Connection:
    # SQLite would make it readable by everybody.
    os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    base = sqlite3.connect(file, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        base.execute("PRAGMA journal_mode = TRUNCATE")
        base.execute("PRAGMA synchronous = FULL")
        version = base.execute("PRAGMA user_version").fetchone()[0]
        _require_sound(base, version)
        with base:
            base.execute(
                "CREATE TABLE IF NOT EXISTS entry"
                " (key BLOB PRIMARY KEY, kind TEXT NOT NULL, content BLOB NOT NULL, expires_at REAL)"
            )
            base.execute("CREATE INDEX IF NOT EXISTS expiring ON entry (expires_at) WHERE expires_at IS NOT NULL")
            if not version:
                base.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:  # also Ctrl-C: the file must not stay open
        base.close()
        raise
    return base


def _require_sound(base: sqlite3.Connection, version: int) -> None:
    # A file of a later Footnote is put aside like one that is damaged.
    known = version in {0, _VERSION}
    if not known or base.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        message = "damaged, or of a version that is not known"
        raise sqlite3.DatabaseError(message)


def _rows(base: sqlite3.Connection) -> Iterator[tuple[bytes, Kept]]:
    now = time.time()
    rows: Iterable[tuple[bytes, str, bytes, float | None]] = base.execute("SELECT * FROM entry")
    for key, kind, packed, expires_at in rows:
        if expires_at is not None and expires_at <= now:
            continue
        try:
            content = _unpacked(kind, packed)
        except (ValueError, TypeError, AttributeError, IndexError):
            MALFORMED.labels("row").inc()
            _log.warning("malformed_state", kind="row", key=repr(key)[:200])
            continue
        yield key, Kept(kind=kind, content=content, seconds=None if expires_at is None else expires_at - now)


def _packed(kept: Kept) -> bytes:
    """Bytes are kept as the characters of their numbers, which JSON can hold."""
    content = kept.content
    if isinstance(content, bytes):
        return content
    flat: list[object] = []
    if isinstance(content, dict):
        for name, value in content.items():
            flat += [name.decode("latin-1"), value.decode("latin-1") if isinstance(value, bytes) else value]
    else:
        flat += [value.decode("latin-1") for value in content]
    return json.dumps(flat, ensure_ascii=False).encode()


def _unpacked(kind: str, packed: bytes) -> Content:
    if kind == "string":
        return bytes(packed)
    flat = json.loads(packed)
    if kind == "zset":
        return {name.encode("latin-1"): float(score) for name, score in zip(flat[::2], flat[1::2], strict=True)}
    values = [value.encode("latin-1") for value in flat]
    if kind == "hash":
        return dict(zip(values[::2], values[1::2], strict=True))
    if kind == "set":
        return set(values)
    if kind == "list":
        return values
    raise ValueError(kind)


def _unusable(folder: Path) -> StateMisconfiguredError:
    return StateMisconfiguredError(
        f"The state in {folder} cannot be read and written. Check who owns the folder and its files and whether the "
        f"disk is full, {_ELSEWHERE}."
    )
