"""Events as text and JSON, in front of a pipe and of a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from adapters.answering import as_json, collect, exit_code, show
from bot.types import (
    Abstained,
    Abstention,
    AbstentionReason,
    Answer,
    Answered,
    ErrorId,
    Failed,
    Source,
    Stage,
    StatusChanged,
    TextDelta,
    TextReset,
    Timings,
    Usage,
)
from retrieval.types import DocumentId

if TYPE_CHECKING:
    from bot.types import AnswerEvent

SOURCE = Source(
    marker=1,
    document_id=DocumentId("d"),
    title="Rules [red]\x1b[31m",
    uri="file:///rules.pdf",
    page=3,
    last_page=4,
    heading="Leave > Days",
    excerpt="Thirty\x07 days\nare granted.",
    score=0.5,
)
ANSWERED = Answered(
    answer=Answer(
        text="Thirty days. [1]", sources=(SOURCE,), model="m", usage=Usage(), timings=Timings(), notice="Quoted."
    )
)
ABSTAINED = Abstained(
    abstention=Abstention(reason=AbstentionReason.NO_EVIDENCE, text="The documents don't tell.", timings=Timings())
)
FAILED = Failed(text="It broke (error 12345678).", error_id=ErrorId("12345678"))
STREAM: list[AnswerEvent] = [
    StatusChanged(stage=Stage.WRITING),
    TextDelta(text="Wrong "),
    TextReset(),
    TextDelta(text="Thirty "),
    TextDelta(text="days. [1]"),
]


def test_into_a_pipe_goes_the_final_answer_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert show([*STREAM, ANSWERED]) is ANSWERED
    out, err = capsys.readouterr()
    assert out.startswith("Thirty days. [1]\n")
    assert "Wrong" not in out
    assert err == ""


def test_a_source_shows_number_title_pages_heading_passage_and_address(capsys: pytest.CaptureFixture[str]) -> None:
    show([ANSWERED])
    shown = capsys.readouterr().out
    assert "[1] Rules [red]␛[31m, pp. 3–4 — Leave > Days\n" in shown
    assert "“Thirty␇ days are granted.”" in shown
    assert "file:///rules.pdf" in shown
    assert "(Quoted.)" in shown


def test_a_terminal_sees_the_answer_grow_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show([*STREAM, ANSWERED])
    shown = capsys.readouterr().out
    assert shown.startswith("Wrong \n\n(Written anew:)\n")
    assert shown.count("Thirty days. [1]") == 1


@pytest.mark.parametrize(("end", "code"), [(ANSWERED, 0), (ABSTAINED, 3), (FAILED, 1)])
def test_every_end_has_its_exit_code(end: Answered | Abstained | Failed, code: int) -> None:
    assert collect([*STREAM, end]) is end
    assert exit_code(end) == code


def test_an_abstention_shows_no_source(capsys: pytest.CaptureFixture[str]) -> None:
    show([ABSTAINED])
    assert capsys.readouterr().out == "The documents don't tell.\n"
    value = as_json(ABSTAINED)
    assert (value["abstained"], value["reason"], value["sources"]) == (True, "no_evidence", [])


def test_a_failure_is_told_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    show([FAILED])
    out, err = capsys.readouterr()
    assert out == ""
    assert "12345678" in err
    assert as_json(FAILED) == {"error": FAILED.text, "error_id": "12345678"}


def test_json_has_exactly_the_promised_keys() -> None:
    value = as_json(ANSWERED)
    assert list(value) == ["answer", "abstained", "reason", "sources", "model", "timings"]
    assert list(value["sources"][0]) == ["marker", "document", "title", "uri", "page", "heading", "excerpt", "score"]
    assert list(as_json(ABSTAINED)) == list(value)


@pytest.mark.parametrize("streamed", ["", "Thirty ", " Thirty days. [1]\n", "Something else"])
def test_a_terminal_sees_all_of_the_answer_whatever_was_streamed(
    streamed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show([TextDelta(text=streamed), ANSWERED])
    shown = capsys.readouterr().out
    assert shown.count("Thirty days. [1]\n") == 1
