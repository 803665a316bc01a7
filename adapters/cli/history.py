"""`footnote history`. No model is loaded and no library opened for it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from adapters.cli.running import ANSWERED, FAILED, USAGE, CommandError, Options
from adapters.history_listing import entry_dict, entry_text
from adapters.printing import print_json, print_json_line, safe_line, say, tell, typed
from bot.app import open_history, state_folder
from bot.messages import TurnId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bot.history import History
    from bot.results import HistoryEntry, HistoryListed
    from bot.settings import Settings

_PAGE: Final = 10
_ID: Final = re.compile(r"[0-9a-f]{16}")
_TIMES: Final = "a time such as 2026-01-31 or '2026-01-31 14:30', or the id of an entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of the command as they were given."""

    search: str = ""
    user: str | None = None
    unanswered: bool = False
    limit: int | None = None
    before: str | None = None
    export: str | None = None
    erase: str | None = None
    yes: bool = False

    @property
    def filters(self) -> dict[str, Any]:
        """What `page` and `export` choose by. The operator sees all."""
        user = typed(self.user).strip() if self.user is not None else None
        return {"author": user, "search": typed(self.search), "unanswered": self.unanswered}

    @property
    def chooses(self) -> bool:
        """Whether not all entries are meant."""
        return bool(self.search.strip() or self.user is not None or self.unanswered or self.before)


def history(settings: Settings, options: Options, asked: Asked) -> int:
    """List, export or erase."""
    _require_sense(options, asked)
    if asked.erase is not None:
        return _erase(settings, options, typed(asked.erase).strip(), sure=asked.yes)
    return asyncio.run(_look(settings, options, asked))


async def _look(settings: Settings, options: Options, asked: Asked) -> int:
    async with open_history(settings, reading=True) as kept:
        if asked.export is not None:
            return await _export(kept, options, asked)
        return await _list(settings, kept, options, asked)


def _require_sense(options: Options, asked: Asked) -> None:
    """Options that contradict each other are a mistake, and none is to be guessed away."""
    if asked.erase is not None and (asked.chooses or asked.export is not None or asked.limit is not None):
        message = "--erase takes everything of one person; leave out the options that choose or export entries."
    elif asked.yes and asked.erase is None:
        message = "--yes goes with --erase alone."
    elif asked.export is not None and (asked.limit is not None or asked.before is not None):
        message = "--export takes all that fits; --limit and --before are for listing."
    elif asked.export == "-" and options.json:
        message = "--export - writes JSON already, an entry a line; leave out --json."
    elif asked.export is not None and not asked.export.strip():
        message = "The file's name is empty. Name one, or - for standard output: footnote history --export past.jsonl"
    elif any(person is not None and not typed(person).strip() for person in (asked.user, asked.erase)):
        message = "The id is empty. `footnote history` shows the ids of those who asked, such as slack:T01:U02."
    else:
        return
    raise CommandError(message, USAGE)


# ---- listing ----------------------------------------------------------------------------------------------------


async def _list(settings: Settings, kept: History, options: Options, asked: Asked) -> int:
    before = await _before(kept, asked.before)
    listed = await kept.page(limit=asked.limit or _PAGE, before=before, **asked.filters)
    if options.json:
        print_json({"entries": [entry_dict(entry) for entry in listed.entries], "more": listed.more})
        return ANSWERED
    if not listed.entries:
        say(_nothing(settings, asked))
    for number, entry in enumerate(listed.entries):
        say(("\n" if number else "") + entry_text(entry))
    if listed.more:
        tell(f"\nThere is more: {_next_page(asked, listed)}")
    return ANSWERED


def _nothing(settings: Settings, asked: Asked) -> str:
    if settings.history_days == 0:
        return "Nothing is kept: FOOTNOTE_HISTORY_DAYS is 0."
    if asked.user is not None:
        return "Nothing in the history fits. People are named by their ids, such as slack:T01:U02, not by their names."
    if asked.chooses:
        return "Nothing in the history fits."
    return "The history is empty: nothing has been asked yet. Ask for example: footnote ask 'Who approves travel?'"


def _next_page(asked: Asked, listed: HistoryListed) -> str:
    words = ["footnote", "history"]
    if asked.search.strip():
        words += ["--search", asked.search]
    if asked.user is not None:
        words += ["--user", asked.user]
    if asked.unanswered:
        words.append("--unanswered")
    if asked.limit is not None:
        words += ["--limit", str(asked.limit)]
    return safe_line(shlex.join([*map(typed, words), "--before", listed.entries[-1].id]), 1_000)


async def _before(kept: History, given: str | None) -> datetime | HistoryEntry | None:
    """Where to begin: an entry by its id, or a time, that of this place when it names no zone."""
    if given is None:
        return None
    text = given.strip()
    if _ID.fullmatch(text):
        entry = await kept.entry(TurnId(text))
        if entry is None:
            message = f"There is no entry {text} in the history any more. Name {_TIMES}."
            raise CommandError(message, FAILED)
        return entry
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError) as error:
        message = f"--before {safe_line(typed(given), 40)} is no time. Name {_TIMES}."
        raise CommandError(message, USAGE) from error


# ---- exporting --------------------------------------------------------------------------------------------------


async def _export(kept: History, options: Options, asked: Asked) -> int:
    target = asked.export or "-"
    if target == "-":
        await _write(kept, asked, print_json_line)
        return ANSWERED
    try:
        with _file(target) as write:
            count = await _write(kept, asked, write)
    except OSError as error:
        message = (
            f"The file {safe_line(typed(target))} could not be written. Check the folder and the room on the disk, or "
            "name another file, or - for standard output."
        )
        raise CommandError(message, FAILED) from error
    if options.json:
        print_json({"exported": count, "file": typed(target)})
    else:
        tell(f"{_count(count)} exported to {safe_line(typed(target))}.")
    return ANSWERED


@contextmanager
def _file(target: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """What writes a line. All of them or nothing: written beside the file, which they take the place of at the end."""
    path = Path(target).resolve()
    if path.exists() and not path.is_file():  # a pipe or a device
        with path.open("w", encoding="utf-8") as out:
            yield partial(_write_line, out)
        return
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # readable by its owner alone
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            yield partial(_write_line, out)
        Path(beside).replace(path)
    except BaseException:  # also Ctrl-C: half a file must not stay
        Path(beside).unlink(missing_ok=True)
        raise


def _write_line(out: TextIO, line: dict[str, Any]) -> None:
    out.write(json.dumps(line, ensure_ascii=False) + "\n")


async def _write(kept: History, asked: Asked, write: Callable[[dict[str, Any]], None]) -> int:
    count = 0
    async for entry in kept.export(**asked.filters):
        write(entry_dict(entry))
        count += 1
    return count


# ---- erasing ----------------------------------------------------------------------------------------------------


def _erase(settings: Settings, options: Options, user: str, *, sure: bool) -> int:
    """Erase after a question that cannot be overlooked. Not in a loop, where Ctrl-C would not end the question."""
    if not sure:
        if options.json or not sys.stdin.isatty():
            message = "Erasing cannot be undone. Add --yes to erase without being asked."
            raise CommandError(message, USAGE)
        count = _count(asyncio.run(_entries_of(settings, user)))
        tell(f"Erase {count} of {safe_line(user)}, and their opinions of others' answers? This cannot be undone. [y/N]")
        if sys.stdin.readline().strip().casefold() not in {"y", "yes"}:
            tell("Nothing was erased.")
            return FAILED
    erased = asyncio.run(_erase_all(settings, user))
    if options.json:
        print_json({"erased": erased})
    elif erased:
        say(f"{_count(erased)} of {safe_line(user)} erased.")
    else:
        say(
            f"The history held nothing that {safe_line(user)} asked. `footnote history` shows the ids of those who did."
        )
    return ANSWERED


async def _entries_of(settings: Settings, user: str) -> int:
    async with open_history(settings, reading=True) as kept:
        return len([None async for _ in kept.export(author=user)])


async def _erase_all(settings: Settings, user: str) -> int:
    if settings.redis_url is None and not state_folder(settings).is_dir():
        return 0  # looking at nothing makes nothing
    async with open_history(settings) as kept:
        return await kept.erase(user)


def _count(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"
