"""Files of this machine as attachments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapters.fetching import fetchers
from adapters.local_fetching import LocalFetcher, local_attachment
from bot.jobs import platform_kind
from bot.ports import Fetched, Unread

if TYPE_CHECKING:
    from pathlib import Path

    from bot.messages import Attachment


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.md", "a.md", ".hidden.md"):
        (tmp_path / name).write_text(f"# {name}", encoding="utf-8")
    (tmp_path / "large.md").write_bytes(b"x" * 2_000_000)
    (tmp_path / "video.mp4").write_bytes(b"x" * 2_000_000)
    (tmp_path / "link").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def fetched(*attachments: Attachment) -> list[Fetched | Unread]:
    return [item async for item in LocalFetcher().fetch(attachments, 1_000_000)]


async def test_a_folder_stands_for_its_files_in_order(folder: Path) -> None:
    items = await fetched(local_attachment("."), local_attachment("a.md"), local_attachment("none.md"))
    told = [
        (item.source.name, item.named) if isinstance(item, Fetched) else (item.name, item.skipped) for item in items
    ]
    assert told == [
        ("a.md", False),
        ("b.md", False),
        ("large.md", False),
        ("link", True),
        ("video.mp4", True),
        (str(folder / "none.md"), False),
    ]
    first, large = items[0], items[2]
    assert isinstance(first, Fetched)
    assert (first.source.uri, first.source.data) == ((folder / "a.md").as_uri(), b"# a.md")
    assert isinstance(large, Unread)
    assert "FOOTNOTE_MAX_FILE_MB" in large.reason


def test_a_path_means_the_same_in_another_folder(folder: Path) -> None:
    assert local_attachment("a.md").uri == str(folder / "a.md")
    assert local_attachment("*.md").uri == str(folder / "*.md")
    assert local_attachment("/x/a.md").uri == "/x/a.md"
    for elsewhere in ("~/a.md", "file:///x/a.md", "https://example.org/a", " "):
        assert local_attachment(elsewhere).uri == elsewhere


def test_the_terminal_has_a_fetcher() -> None:
    assert platform_kind("terminal:ann@host") in fetchers()
