"""What is meant by a line, and lines from pipes."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.terminal.lines import LONGEST, piped_lines, read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("line", ["", "  ", "\n", "\t\r\n"])
def test_an_empty_line_is_nothing(line: str) -> None:
    assert read(line) is None


def test_a_question_is_what_does_not_begin_with_a_slash() -> None:
    line = read("  and/or?\n")
    assert line is not None
    assert (line.text, line.command, line.refusal) == ("and/or?", "", "")


@pytest.mark.parametrize("line", ["/quit", "/exit", "/Q"])
def test_leaving(line: str) -> None:
    meant = read(line)
    assert meant is not None
    assert meant.leaves


@pytest.mark.parametrize(
    ("line", "command", "text"),
    [
        ("/help", "help", ""),
        ("/?", "help", ""),
        ("/DOCUMENTS", "documents", ""),
        ("/forget 'Travel policy'", "forget", "Travel policy"),
        ("/history travel expenses", "history", "travel expenses"),
        ("/bad it's “page 2”", "bad", "it's “page 2”"),
        ("/new", "new", ""),
    ],
)
def test_commands_and_their_arguments(line: str, command: str, text: str) -> None:
    meant = read(line)
    assert meant is not None
    assert (meant.command, meant.text, meant.refusal) == (command, text, "")


def test_what_is_no_command_is_told() -> None:
    unknown, ingest, forget = read("/nonsense\x1b x"), read("/ingest ''"), read("/forget")
    assert unknown is not None
    assert unknown.refusal == "There is no command /nonsense␛; /help lists them."
    assert ingest is not None
    assert ingest.refusal.startswith("/ingest needs a path")
    assert forget is not None
    assert forget.refusal.startswith("/forget needs a title")


def test_ingest_takes_several_paths_or_one_with_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my notes.md").touch()
    for line, paths in {
        "/ingest my notes.md": ("my notes.md",),
        "/ingest 'my notes.md' b.md": ("my notes.md", "b.md"),
        "/ingest my*s.md": ("my*s.md",),
        "/ingest my n*.md": ("my n*.md",),
        "/ingest a.md docs/": ("a.md", "docs/"),
        "/ingest it's a.md": ("it's a.md",),
    }.items():
        meant = read(line)
        assert meant is not None
        assert meant.paths == paths, line


@given(st.text(max_size=60))
def test_every_line_means_something_that_can_be_encoded(text: str) -> None:
    meant = read(text)
    if meant is not None:
        (meant.text + meant.refusal + "".join(meant.paths)).encode()


def test_a_pipe_s_lines_are_utf_8_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "\ufeffWo?\r\n".encode() + b"\xff\n" + b"x" * (9 * LONGEST) + b"\nlast"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="ascii"))
    first, broken, long, last = piped_lines()
    assert (first, broken, last) == ("Wo?\r\n", "\ufffd\n", "last")
    assert long == "x" * LONGEST
