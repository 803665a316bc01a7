from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from adapters.local_files import LocalFile, NotAFile, UnreadableFileError, find_files, path_of, read_file

posix = pytest.mark.skipif(os.name != "posix", reason="makes pipes and links")


def names(*paths: str | Path) -> list[str]:
    return [found.path.name for found in find_files(map(str, paths)) if isinstance(found, LocalFile)]


def write(folder: Path, *files: str) -> None:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")


def test_a_folder_is_searched_in_a_stable_order_without_hidden_and_foreign_files(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a.md", "sub/c.md", ".hidden.md", ".git/x", "node_modules/x.md", ".venv/x.md", "z.md")
    assert names(tmp_path) == ["a.md", "b.md", "c.md", "z.md"]
    assert all(not found.named for found in find_files([str(tmp_path)]))


def test_a_hidden_file_that_is_named_counts(tmp_path: Path) -> None:
    write(tmp_path, ".notes.md")
    assert names(tmp_path / ".notes.md") == [".notes.md"]


def test_a_pattern_means_its_files_and_a_file_with_brackets_itself(tmp_path: Path) -> None:
    write(tmp_path, "1.md", "2.md", "3.txt", "[12].md", "deep/er/4.md")
    assert names(tmp_path / "*.md") == ["1.md", "2.md", "[12].md"]
    assert names(tmp_path / "[12].md") == ["[12].md"]
    assert names(tmp_path / "**/*.md") == ["1.md", "2.md", "[12].md", "4.md"]


def test_the_same_file_is_meant_once(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    assert names(tmp_path / "a.md", tmp_path, tmp_path / "*.md", (tmp_path / "a.md").as_uri()) == ["a.md"]


@posix
def test_rings_of_links_end_and_files_are_known_by_their_real_path(tmp_path: Path) -> None:
    write(tmp_path, "real/a.md")
    (tmp_path / "real" / "up").symlink_to(tmp_path)
    (tmp_path / "real" / "self").symlink_to("self")
    (tmp_path / "link.md").symlink_to(tmp_path / "real" / "a.md")
    found = list(find_files([str(tmp_path)]))
    assert [item.path for item in found if isinstance(item, LocalFile)] == [(tmp_path / "real" / "a.md").resolve()]
    assert [item.name for item in found if isinstance(item, NotAFile)] == ["self"]


@posix
def test_many_links_to_folders_do_not_multiply(tmp_path: Path) -> None:
    for depth in range(12):
        folder = tmp_path / f"level{depth}"
        write(folder, "a.md")
        for number in range(3):
            (folder / f"down{number}").symlink_to(tmp_path / f"level{depth + 1}")
    assert len(names(tmp_path)) == 12


@pytest.mark.parametrize(
    "given",
    ["no/such/file.md", "*.nothing", "", "  ", "a\0b", "x" * 5000, "https://example.org/a.pdf", "file://host/a"],
)
def test_what_is_not_there_is_refused_with_a_sentence(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (found,) = find_files([given])
    assert isinstance(found, NotAFile)
    assert found.named
    assert found.reason.endswith(".")
    assert "\0" not in found.reason


@pytest.mark.parametrize("name", ["a b.md", "[red]x[bold].md", "日本.md", "100%.md", "a#b?.md", "new\nline.md"])
def test_an_address_leads_back_to_its_file(name: str, tmp_path: Path) -> None:
    write(tmp_path, name)
    (found,) = find_files([str(tmp_path / name)])
    assert isinstance(found, LocalFile)
    assert path_of(found.uri) == tmp_path.resolve() / name
    assert read_file(found, 1000).data.decode() == name
    assert "\n" not in found.name


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode")
def test_a_name_that_is_no_unicode_can_be_read_and_shown(tmp_path: Path) -> None:
    path = Path(os.fsdecode(bytes(tmp_path) + b"/\xff\x1b[31m.txt"))
    path.write_text("text", encoding="utf-8")
    (found,) = find_files([str(tmp_path)])
    assert isinstance(found, LocalFile)
    source = read_file(found, 1000)
    assert source.data == b"text"
    assert source.name == "\ufffd␛[31m.txt"
    assert path_of(source.uri) == path.resolve()


def test_more_than_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "big.pdf"
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(UnreadableFileError, match="limit is 1 MB") as raised:
        read_file(LocalFile(path=path, named=True), 1024 * 1024)
    assert not raised.value.skippable


@pytest.mark.parametrize("name", ["film.mp4", "photo.JPG", "song.mp3"])
def test_a_large_film_in_a_folder_is_nobodys_failure(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(bytes(2000))
    with pytest.raises(UnreadableFileError) as raised:
        read_file(LocalFile(path=path, named=False), 1000)
    assert raised.value.skippable


@posix
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(UnreadableFileError, match="not a regular file"):
            read_file(LocalFile(path=path, named=True), 1000)


@posix
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    write(tmp_path, "closed.md")
    (tmp_path / "closed.md").chmod(0)
    if os.access(tmp_path / "closed.md", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(UnreadableFileError, match="permissions"):
        read_file(LocalFile(path=tmp_path / "closed.md", named=True), 1000)


def test_a_file_that_went_away_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="gone"):
        read_file(LocalFile(path=tmp_path / "gone.md", named=True), 1000)
