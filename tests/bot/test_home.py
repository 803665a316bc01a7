from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bot.errors import SettingsError
from bot.home import require_home
from bot.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path


def test_a_home_that_is_there_or_can_be_made_is_taken_and_not_made(tmp_path: Path) -> None:
    require_home(load_settings(home=tmp_path))
    require_home(load_settings(home=tmp_path / "not" / "there"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/home", "file/deep/home", "loop", "dangling", "x" * 300])
def test_what_is_no_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere/at/all")
    with pytest.raises(SettingsError, match="FOOTNOTE_HOME or --home") as caught:
        require_home(load_settings(home=tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize(("mode", "inside"), [(0o500, ""), (0, ""), (0o300, ""), (0o500, "sub"), (0, "sub")])
def test_a_home_of_others_is_refused(mode: int, inside: str, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=mode)
    if os.access(closed, os.R_OK | os.W_OK):
        pytest.skip("this user may do everything")
    with pytest.raises(SettingsError, match="FOOTNOTE_HOME or --home"):
        require_home(load_settings(home=closed / inside))
    # A server holds the library instead.
    require_home(load_settings(home=closed / inside, qdrant_url="http://localhost:6333"))
    closed.chmod(0o700)
