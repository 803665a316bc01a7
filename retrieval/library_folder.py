"""The folder that an embedded library lies in.

lock            held while a process uses the library; the system frees it when the process dies
current         the name of the shard folder that holds the library; replaced atomically
shard-<hex>/    Qdrant's files; a shard that `current` does not name is left over and removed at the next start
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from filelock import FileLock, Timeout

from retrieval.errors import StoreError, StoreLockedError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

READ_AHEAD_BYTES = 256 * 1024 * 1024
"""Read into the system's cache when a library is opened: about 60,000 chunks."""
_READ_AT_ONCE = 1024 * 1024
_ELSEWHERE = "or name another folder with FOOTNOTE_HOME or --home"


class LibraryFolder:
    """Its lock and which shard is current. Called from one thread only, but for `read_ahead`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path / "lock", thread_local=False)
        self._shard: Path | None = None

    def enter(self, *, rebuild: bool) -> Path:
        """Take the lock and name the shard's folder, which does not exist when it is to be made."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            message = (
                f"Another Footnote process is using the library in {self.path}; stop it first, "
                "or set QDRANT_URL to a Qdrant server so that several processes can share one library."
            )
            raise StoreLockedError(message) from error
        current = self._current()
        for folder in self.path.glob("shard-*"):
            if folder != current:
                shutil.rmtree(folder, ignore_errors=True)
        if current is None or rebuild:
            current = self.path / f"shard-{uuid.uuid4().hex}"
        elif not current.is_dir():
            message = f"The library in {self.path} is damaged. Run `footnote reindex` to rebuild it."
            raise StoreError(message)
        self._shard = current
        return current

    def read_ahead(self) -> None:
        """Read what searches jump about in into the system's cache: page by page they would wait for the disk."""
        if self._shard is None:
            return
        left = READ_AHEAD_BYTES
        # What cannot be read now, a search or a write will tell of.
        with contextlib.suppress(OSError):
            for file in self._shard.rglob("page_*.dat"):
                with file.open("rb", buffering=0) as opened:
                    while left > 0 and self._lock.is_locked and (read := opened.read(_READ_AT_ONCE)):
                        left -= len(read)

    def holds_library(self) -> bool:
        """Whether there is one; makes nothing."""
        return self._current() is not None

    def publish(self) -> None:
        """Make the shard the current one and remove the one before."""
        if self._shard is None:
            return
        old = self._current()
        draft = self.path / "current.tmp"
        with draft.open("w", encoding="utf-8") as file:
            file.write(self._shard.name)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path / "current")
        if old is not None and old != self._shard:
            shutil.rmtree(old, ignore_errors=True)

    def leave(self) -> None:
        """Drop a shard that was never published, and free the lock."""
        if self._lock.is_locked:
            if self._shard is not None and self._shard != self._current():
                shutil.rmtree(self._shard, ignore_errors=True)
            self._lock.release()

    def require_space(self, size: int) -> None:
        """Raise StoreError when the disk is nearly full."""
        if shutil.disk_usage(self.path).free < size:
            message = f"The disk that holds {self.path} is full. Free some space and try again."
            raise StoreError(message)

    def _current(self) -> Path | None:
        try:
            name = (self.path / "current").read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        # The file is ours, yet a name from a file never leads out of the folder.
        return self.path / Path(name).name


def guarded(work: Callable[[], T], path: Path) -> T:
    """Run in a worker thread; whatever the engine raises becomes a sentence."""
    try:
        return work()
    except StoreError:
        raise
    except PermissionError as error:
        raise StoreError(_forbidden(path)) from error
    except (FileExistsError, NotADirectoryError) as error:
        message = f"The library cannot lie in {path}: there is a file in its place. Move it, {_ELSEWHERE}."
        raise StoreError(message) from error
    except BaseException as error:
        # The binding raises bare Exception, and a panic as a BaseException; in a worker thread nothing else comes here.
        if _is_forbidden(path):
            raise StoreError(_forbidden(path)) from error
        message = (
            f"The library in {path} could not be read or written; it may be damaged or the disk may be full. "
            "Check the disk; if the library stays broken, run `footnote reindex`."
        )
        raise StoreError(message) from error


def _forbidden(path: Path) -> str:
    return f"The library in {path} cannot be read and written. Check who owns the folder and its files, {_ELSEWHERE}."


def _is_forbidden(path: Path) -> bool:
    """Whether something in the folder belongs to others: the binding does not tell that from damage."""
    places = (Path(folder, name) for folder, folders, files in os.walk(path) for name in (*folders, *files))
    return os.path.lexists(path) and not all(os.access(place, os.R_OK | os.W_OK) for place in (path, *places))
