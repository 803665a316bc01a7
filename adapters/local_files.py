"""Files of this machine: which ones a path, a folder or a pattern means, and their bytes.

Only regular files are opened, and never more than the limit is read: a pipe, a device or an endless file neither hangs
us nor fills the memory.
"""

from __future__ import annotations

import contextlib
import glob
import mimetypes
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from adapters.printing import safe_line
from retrieval.types import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEFT_OUT: Final = frozenset({"node_modules", "__pycache__", "venv", ".venv"})
"""Folders that hold other people's files; hidden ones are left out as well."""
_NO_DOCUMENTS: Final = frozenset({"audio", "font", "image", "video"})
"""Kinds of files that nobody means when naming the folder they lie in."""
_DEEPEST: Final = 64
"""Folders inside folders."""
_FORBIDDEN: Final = "may not be read. Check who owns it, and its permissions."


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file to read. `named`: the user named it, so that failing to read it is a failure."""

    path: Path
    named: bool

    @property
    def uri(self) -> str:
        """The document's identity: the absolute path with links followed."""
        return self.path.as_uri()

    @property
    def name(self) -> str:
        """The file's name as it may be shown."""
        return _name(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAFile:
    """Something that cannot be ingested, and why. `named` as in LocalFile; also what may not be read counts as that."""

    uri: str
    name: str
    reason: str
    named: bool


class UnreadableFileError(Exception):
    """A file cannot be read; the message is a sentence for the user.

    `skippable`: lying in a folder, it is passed over and is no failure.
    """

    def __init__(self, message: str, *, skippable: bool) -> None:
        super().__init__(message)
        self.skippable = skippable


def find_files(paths: Iterable[str]) -> Iterator[LocalFile | NotAFile]:
    """What these files, folders, patterns and `file:` addresses mean, in a stable order, each file once."""
    seen: set[Path] = set()
    for given in paths:
        for found in _meant(given):
            if isinstance(found, LocalFile):
                if found.path in seen:
                    continue
                seen.add(found.path)
            yield found


def read_file(file: LocalFile, limit: int) -> SourceFile:
    """The file's bytes. Blocks: call it in a thread. Raises UnreadableFileError; `limit` in bytes."""
    name = file.name
    try:
        # Without O_NONBLOCK, opening a pipe would wait for its other end.
        descriptor = os.open(file.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(file, error) from error
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(name)
        if status.st_size > limit:
            raise _too_large(file, status.st_size, limit)
        try:
            data = opened.read(limit + 1)
        except OSError as error:
            raise _unreadable(file, error) from error
    if len(data) > limit:
        raise _too_large(file, len(data), limit)
    return SourceFile(uri=file.uri, name=name, data=data)


def path_of(uri: str) -> Path | None:
    """The path in a `file:` address of this machine, else None."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    return Path(os.fsdecode(unquote(parts.path, errors="surrogateescape")))


def _path(given: str) -> Path | None:
    """What was typed as a path; None for what is elsewhere, and a home folder that cannot be told stays as it is."""
    if given.startswith("file:"):
        return path_of(given)
    if "://" in given:
        return None
    return Path(os.path.expanduser(given))  # noqa: PTH111 - pathlib's raises where there is no such user


def folder_of(given: str) -> Path | None:
    """The folder that was named, None when it was something else."""
    path = _path(given)
    try:
        return path if given.strip() and path is not None and path.is_dir() else None
    except (OSError, ValueError):
        return None


def is_gone(path: Path) -> bool:
    """Whether no file is there; what cannot be looked at is not gone."""
    try:
        return not _is_there(path)
    except (OSError, ValueError):
        return False


def _meant(given: str) -> Iterator[LocalFile | NotAFile]:
    shown = safe_line(given)
    if not given.strip():
        # Not the present folder: an unset variable in a script comes here.
        yield NotAFile(uri="", name="", reason="A path is empty. Name a file or a folder; . is this one.", named=True)
        return
    path = _path(given)
    if path is None:
        yield _refused(
            given, f"{shown} is not on this machine. This version reads local files only; download it first."
        )
        return
    try:
        if _is_there(path):
            yield from _at(path, shown)
        elif glob.has_magic(given) and given != str(path.parent):
            matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - takes absolute patterns, too
            if not matches:
                yield _refused(given, f"Nothing matches {shown}. Check the pattern.")
            for match in matches:
                yield from _at(Path(match), safe_line(match))
        else:
            yield _refused(given, f"There is no such file: {shown}. Check the path.")
    except PermissionError:
        yield _forbidden(path, shown)
    except (OSError, ValueError, RuntimeError):
        # A NUL in the name, a name that is too long, a ring of links, a home folder that cannot be told.
        yield _refused(given, f"{shown} cannot be opened. Check the path.")


def _at(path: Path, shown: str) -> Iterator[LocalFile | NotAFile]:
    try:
        resolved = path.resolve(strict=True)
    except PermissionError:
        yield _forbidden(path, shown)
        return
    except (OSError, RuntimeError):
        yield _refused(str(path), f"{shown} is a link that leads nowhere. Check where it points.")
        return
    if resolved.is_dir():
        yield from _inside(resolved, set(), 0)
    else:
        yield LocalFile(path=resolved, named=True)


def _inside(folder: Path, visited: set[tuple[int, int]], depth: int) -> Iterator[LocalFile | NotAFile]:
    """The files in a folder and its folders, sorted by name; each folder once, so that rings of links end."""
    try:
        status = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except PermissionError:
        yield _forbidden(folder, "The folder")
        return
    except OSError:
        yield _skipped(folder, "The folder is gone, or the disk does not give it.")
        return
    identity = (status.st_dev, status.st_ino)
    if identity in visited:
        return
    visited.add(identity)
    if depth > _DEEPEST:
        yield _skipped(folder, "The folder lies too deep inside others; name it by itself.")
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith(".") or entry.name in LEFT_OUT:
            continue
        try:
            resolved = path.resolve(strict=True) if entry.is_symlink() else path
            is_folder = resolved.is_dir()
        except PermissionError:
            yield _forbidden(path, _name(path))
            continue
        except (OSError, RuntimeError):
            yield _skipped(path, "A link that leads nowhere.")
            continue
        if is_folder:
            yield from _inside(resolved, visited, depth + 1)
        else:
            yield LocalFile(path=resolved, named=False)


def _is_there(path: Path) -> bool:
    """As `os.path.lexists`, which takes what may not be looked at for absent."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _forbidden(path: Path, shown: str) -> NotAFile:
    """A failure wherever it lies: nobody would learn otherwise that a part of a folder is missing."""
    return NotAFile(uri=path.absolute().as_uri(), name=_name(path), reason=f"{shown} {_FORBIDDEN}", named=True)


def _name(path: Path) -> str:
    return safe_line(os.fsencode(path.name).decode("utf-8", "replace"))


def _refused(given: str, reason: str) -> NotAFile:
    uri = given if "://" in given else Path(given.replace("\0", "\ufffd")).absolute().as_uri()
    return NotAFile(uri=safe_line(uri, 4096), name=safe_line(given), reason=reason, named=True)


def _skipped(path: Path, reason: str) -> NotAFile:
    return NotAFile(uri=path.as_uri(), name=_name(path), reason=reason, named=False)


def _unreadable(file: LocalFile, error: OSError) -> UnreadableFileError:
    name = file.name
    with contextlib.suppress(OSError):
        # A socket cannot be opened, nor a pipe of somebody else's.
        if not stat.S_ISREG(file.path.stat().st_mode):
            return _not_regular(name)
    if isinstance(error, PermissionError):
        return UnreadableFileError(f"{name} {_FORBIDDEN}", skippable=False)
    if isinstance(error, FileNotFoundError):
        return UnreadableFileError(f"{name} is gone. Check the path.", skippable=True)
    return UnreadableFileError(
        f"{name} cannot be read from the disk. Copy it elsewhere and try again.", skippable=False
    )


def _not_regular(name: str) -> UnreadableFileError:
    return UnreadableFileError(f"{name} is not a regular file. Only regular files are read.", skippable=True)


def _too_large(file: LocalFile, size: int, limit: int) -> UnreadableFileError:
    kind = (mimetypes.guess_type(file.path.name)[0] or "").partition("/")[0]
    message = (
        f"{file.name} is {size / 1_048_576:,.0f} MB; the limit is {limit / 1_048_576:,.0f} MB (FOOTNOTE_MAX_FILE_MB). "
        "Split it and ingest the parts."
    )
    return UnreadableFileError(message, skippable=kind in _NO_DOCUMENTS)
