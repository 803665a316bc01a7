"""Whether the folder that keeps everything can be used, before anything slow begins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bot.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from bot.settings import Settings

LOG_FILE = "footnote.log"
_ADVICE = "Check who owns it, or name another folder with FOOTNOTE_HOME or --home."


def require_home(settings: Settings) -> None:
    """Raise SettingsError when the home can be neither used nor made. Makes nothing.

    With a Qdrant server the home may hold nothing at all; whatever needs it then tells by itself.
    """
    if settings.qdrant_url is None and (problem := home_problem(settings.home)) is not None:
        raise SettingsError(problem)


def home_problem(home: Path) -> str | None:
    """Why the folder cannot be used, in a sentence that says what to do; None when it can."""
    place = home
    # A folder that is not there yet is made inside the first one that is.
    while not _is_there(place) and place != place.parent:
        place = place.parent
    if not os.path.isdir(place):  # noqa: PTH112 - pathlib's raises where a folder above may not be looked into
        if os.path.lexists(place):
            return f"The home folder {home} cannot be used: {place} is not a folder. {_ADVICE}"
        return f"The home folder {home} cannot be reached. {_ADVICE}"
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK if place == home else os.W_OK | os.X_OK):
        what = "cannot be read and written" if place == home else f"cannot be made in {place}"
        return f"The home folder {home} {what}. {_ADVICE}"
    return None


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it may not be looked at, or its name is too long
        return True
    return True
