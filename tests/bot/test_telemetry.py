from __future__ import annotations

import io
import logging
import stat
import sys
from typing import TYPE_CHECKING

import pytest
import structlog

from bot.telemetry import configure_logging, log_crash, log_failure, new_error_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    for ours in set(root.handlers) - set(handlers):
        ours.close()
    root.handlers[:] = handlers
    root.setLevel(level)


class Terminal(io.StringIO):
    """A screen, as far as the log looks."""

    def isatty(self) -> bool:
        return True


def look_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a screen in standard error's place; inside the test, since pytest puts its own there before."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def crash() -> BaseException:
    try:
        try:
            raise OSError("a question of somebody")  # noqa: EM101, TRY003, TRY301 - what must not be logged
        except OSError as error:
            raise LookupError("a passage") from error  # noqa: EM101, TRY003 - the same
    except LookupError as error:
        return error


def test_a_crash_is_one_line_with_its_id_and_place_and_nobodys_words(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning")
    error_id = new_error_id()
    log_crash(crash(), error_id)
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert f"error_id={error_id}" in line
    assert "LookupError from OSError" in line
    assert "test_telemetry.py:" in line
    assert "somebody" not in line
    assert "passage" not in line


def test_with_texts_the_whole_traceback_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", texts=True)
    log_crash(crash(), new_error_id())
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "a passage" in err


def test_expected_failures_are_below_the_default_level(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning")
    log_failure(crash())
    assert capsys.readouterr().err == ""
    configure_logging("info")
    log_failure(crash())
    assert "LookupError" in capsys.readouterr().err


def test_libraries_say_where_and_not_what(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("debug")
    logging.getLogger("some.library").warning("the words of %s", "somebody")
    logging.getLogger("some.library").info("chatter")
    err = capsys.readouterr().err
    assert "some.library" in err
    assert "somebody" not in err
    assert "chatter" not in err


def test_error_ids_have_eight_characters_and_differ() -> None:
    ids = {new_error_id() for _ in range(100)}
    assert len(ids) == 100
    assert {len(error_id) for error_id in ids} == {8}


def test_off_the_screen_the_log_is_a_file_of_its_owner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = look_at(monkeypatch)
    file = tmp_path / "home" / "footnote.log"
    configure_logging("info", file=file)
    assert not file.parent.exists()
    error_id = new_error_id()
    log_crash(crash(), error_id)
    log_failure(crash())
    logging.getLogger("some.library").warning("the words of %s", "somebody")
    assert screen.getvalue() == ""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    assert f"error_id={error_id}" in lines[0]
    assert "some.library" in lines[2]
    assert "somebody" not in lines[2]
    assert sys.platform == "win32" or stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_log_file_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = look_at(monkeypatch)
    file = tmp_path / "footnote.log"
    configure_logging("warning", texts=True, file=file)
    for _ in range(30):
        logging.getLogger("some.library").warning("x" * 100_000)
    assert {path.name for path in tmp_path.iterdir()} == {"footnote.log", "footnote.log.1"}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2_000_000
    assert screen.getvalue() == ""


def test_a_line_that_no_file_takes_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = look_at(monkeypatch)
    (tmp_path / "home").touch()
    configure_logging("warning", file=tmp_path / "home" / "footnote.log")
    error_id = new_error_id()
    log_crash(crash(), error_id)
    (line,) = screen.getvalue().splitlines()
    assert error_id in line


def test_into_a_pipe_the_log_goes_to_standard_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    configure_logging("warning", file=tmp_path / "footnote.log")
    log_crash(crash(), new_error_id())
    assert "LookupError" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
