from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import structlog

from bot.telemetry import configure_logging, log_crash, log_failure, new_error_id

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


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
