"""What the chat prints for each event, for people, for pipes and for programs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from fakes.posts import ABSTENTION, ANSWER, SOURCE, line, posts

from adapters.terminal.display import Mode, Screen
from adapters.terminal.platform import ResultShown, Said, SourcesPosted, TurnClosed, Waits
from bot.messages import Author, JobId, Message, Outcome
from bot.results import (
    DocumentsForgotten,
    DocumentsListed,
    Feedback,
    FileVerdict,
    HelpShown,
    HistoryEntry,
    HistoryListed,
    JobProgress,
    JobReport,
    JobState,
    Opinion,
    Told,
)
from bot.types import Abstained, Answered, Stage, StatusChanged, TextDelta, TextReset
from retrieval.types import PUBLIC, Audience, DocumentId, DocumentRecord, VersionId
from retrieval.verdicts import Outcome as FileOutcome
from retrieval.verdicts import Step, Verdict

if TYPE_CHECKING:
    from adapters.terminal.display import TurnDisplay
    from adapters.terminal.platform import Event

ANSWERED = (Answered(answer=ANSWER), SourcesPosted(sources=(SOURCE,)), TurnClosed())
RECORD = DocumentRecord(
    id=DocumentId("3f2a"),
    version=VersionId("v"),
    digest="0",
    uri="file:///rules.pdf",
    title="Rules\x1b[2J",
    media_type="application/pdf",
    page_count=3,
    chunk_count=7,
    language="en",
    audience=PUBLIC,
    ingested_at=datetime.now(UTC),
    ingested_by="ada",
)


def show(screen: Screen, message: Message, *events: Event) -> TurnDisplay:
    """One whole turn."""
    with screen.begin(message) as turn:
        for post in posts(message, *events):
            screen.take(post)
        turn.end()
    return turn


def verdict(name: str, outcome: FileOutcome = FileOutcome.INDEXED, *, skipped: bool = False) -> FileVerdict:
    return FileVerdict(
        name=name, verdict=Verdict(outcome=outcome, uri=f"file:///{name}", title=name, chunks=2), skipped=skipped
    )


def test_into_a_pipe_goes_the_question_the_answer_and_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    show(Screen(Mode.PIPE), line("How many?"), StatusChanged(stage=Stage.SEARCHING), TextDelta(text="Thi"), *ANSWERED)
    out, err = capsys.readouterr()
    assert out.startswith("> How many?\nThirty days. [1]\n\n[1] Rules, p. 3 — Leave\n")
    assert out.endswith("    file:///rules.pdf\n\n")
    assert err == ""


def test_a_person_sees_the_answer_grow_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    events = (TextDelta(text="Wrong "), TextReset(), TextDelta(text="Thirty "), TextDelta(text="days. [1]"), *ANSWERED)
    show(Screen(Mode.PERSON), line("How many?"), Waits(position=2), *events)
    shown = capsys.readouterr().out
    assert shown.startswith("Wrong \n\n(Written anew:)\n\nThirty days. [1]\n\n[1] Rules")
    assert shown.count("Thirty days. [1]") == 1


def test_a_turn_that_is_taken_up_again_begins_anew(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    screen, message = Screen(Mode.PERSON), line("How many?")
    with screen.begin(message):
        for post in (
            *posts(message, TextDelta(text="Thirty ")),
            *posts(message, TextDelta(text="Thirty d"), *ANSWERED),
        ):
            screen.take(post)
    assert capsys.readouterr().out.startswith("Thirty \n\n(Written anew:)\n\nThirty days. [1]\n")


@pytest.mark.parametrize("mode", [Mode.PERSON, Mode.PIPE])
def test_a_refusal_takes_the_answer_s_place_and_a_failure_stands_beside_it(
    capsys: pytest.CaptureFixture[str], mode: Mode
) -> None:
    show(Screen(mode), line("How many?"), Abstained(abstention=ABSTENTION), TurnClosed())
    assert "The documents don't tell.\n\n" in capsys.readouterr().out
    show(Screen(mode), line("How many?"), Said(text="It broke\x1b (error 0123abcd)."), TurnClosed())
    out, err = capsys.readouterr()
    assert "broke" not in out
    assert err == "It broke␛ (error 0123abcd).\n"


def test_json_is_one_line_for_a_question_whatever_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Mode.JSON)
    show(screen, line("1"), TextDelta(text="Thirty"), *ANSWERED)
    show(screen, line("2", name="2"), Abstained(abstention=ABSTENTION), TurnClosed())
    show(screen, line("3", name="3"), Said(text="It broke (error 0123abcd)."), TurnClosed())
    show(screen, line("help", name="4"), ResultShown(result=HelpShown()), TurnClosed())
    show(screen, line("", name="5", command="help"), ResultShown(result=HelpShown()), TurnClosed())
    out, err = capsys.readouterr()
    answers = [json.loads(text) for text in out.splitlines()]
    assert [answer["question"] for answer in answers] == ["1", "2", "3", "help"]
    keys = ["question", "answer", "abstained", "reason", "sources", "model", "timings"]
    assert [list(answer) for answer in answers] == [keys, keys, ["question", "error", "error_id"], keys]
    assert answers[0]["sources"][0]["page"] == 3
    assert answers[2]["error_id"] == "0123abcd"
    assert "/ingest PATH" in answers[3]["answer"]
    assert "/ingest PATH" in err


def test_commands_reply_beside_the_answers_and_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Mode.PIPE)
    results = {
        "documents": DocumentsListed(documents=(replace(RECORD, ingested_at=datetime.now(UTC)),)),
        "none": DocumentsListed(documents=()),
        "forgot": DocumentsForgotten(key="rules", removed=(RECORD,)),
        "which": DocumentsForgotten(key="rules", ambiguous=(RECORD, RECORD)),
        "unknown": DocumentsForgotten(key="ru\x1bles"),
        "told": Told(text="Thank\x07 you."),
    }
    told = {}
    for number, (name, result) in enumerate(results.items()):
        show(screen, line("", name=str(number), command="x"), ResultShown(result=result), TurnClosed())
        out, told[name] = capsys.readouterr()
        assert out == ""
        assert not {"\x1b", "\x07"} & set(told[name])
    assert told["documents"] == "Rules␛[2J (3 p., 7 chunks, just now) 3f2a\n"
    assert told["none"] == "The library is empty. /ingest PATH adds a document.\n"
    assert told["forgot"].startswith("Forgotten: Rules")
    assert told["which"].startswith("Nothing was done.")
    assert told["which"].count("3f2a") == 2
    assert told["unknown"] == "There is no document called ru␛les; /documents lists them.\n"


def entry(question: str, reply: str, outcome: Outcome, **more: object) -> HistoryEntry:
    message = line(question)
    return HistoryEntry(
        id=message.turn_id,
        asked_at=datetime.now(UTC) - timedelta(hours=2),
        platform=message.platform,
        author=message.author,
        audience=Audience.asker(),
        question=question,
        reply=reply,
        outcome=outcome,
        **more,  # type: ignore[arg-type] # fields of the entry
    )


def test_the_history_tells_what_was_asked_and_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    praise = Feedback(author=Author(id="terminal:ada"), opinion=Opinion.GOOD, given_at=datetime.now(UTC))
    entries = (
        entry("How many?", "Thirty days. [1]", Outcome.ANSWERED, sources=(SOURCE,), feedback=(praise,)),
        entry("Why?", "The documents don't tell.", Outcome.ABSTAINED),
    )
    command = line("", command="history")
    show(Screen(Mode.PIPE), command, ResultShown(result=HistoryListed(entries=entries, more=True)), TurnClosed())
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["2 hours ago, good: How many?", "    Thirty days. [1]", "    [1] Rules, p. 3"]
    assert lines[3:5] == ["2 hours ago: Why?", "    The documents don't tell. (no answer)"]
    assert "footnote history" in lines[5]
    show(Screen(Mode.PIPE), command, ResultShown(result=HistoryListed(entries=(), search="trip")), TurnClosed())
    assert capsys.readouterr().err == "Nothing that you asked holds trip.\n"


def reports(*ends: JobReport) -> list[Event]:
    return [*(ResultShown(result=report) for report in ends), TurnClosed()]


def report(state: JobState, *verdicts: FileVerdict, **more: object) -> JobReport:
    return JobReport(id=JobId("j"), state=state, verdicts=verdicts, **more)  # type: ignore[arg-type] # its fields


def test_an_ingestion_shows_each_verdict_once_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = verdict("a.md"), verdict("b.md", FileOutcome.REFUSED)
    turn = show(
        Screen(Mode.PIPE),
        line("", command="ingest"),
        *reports(
            report(JobState.WAITING),
            report(JobState.RUNNING, progress=JobProgress(name="a.md", step=Step.EMBEDDING, done=1, total=2)),
            report(JobState.RUNNING, first),
            report(JobState.DONE, first, second),
        ),
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert [text.split()[0] for text in err.splitlines()] == ["ingested", "refused", "2"]
    assert err.endswith("2 files: 1 ingested, 1 refused.\n")
    assert turn.report is not None
    assert turn.report.state is JobState.DONE


def test_an_ingestion_that_broke_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    events = reports(report(JobState.FAILED, reason="It took too long (error 0123abcd)."))
    show(Screen(Mode.PIPE), line("", command="ingest"), *events)
    assert capsys.readouterr().err == "It took too long (error 0123abcd).\n"


@pytest.mark.parametrize(("mode", "aside"), [(Mode.PERSON, False), (Mode.PIPE, True), (Mode.JSON, True)])
def test_an_earlier_question_comes_with_its_answer_where_it_breaks_no_script(
    capsys: pytest.CaptureFixture[str], mode: Mode, *, aside: bool
) -> None:
    screen, earlier = Screen(mode), line("What was it?\n", name="before")
    *first, closed = posts(earlier, TextDelta(text="Thi"), *ANSWERED)
    for post in first:
        screen.take(post)
    assert capsys.readouterr() == ("", "")  # not in pieces
    screen.take(closed)
    out, err = capsys.readouterr()
    shown, other = (err, out) if aside else (out, err)
    assert other == ""
    assert shown.startswith("You asked before: What was it?\n\nThirty days. [1]\n\n[1] Rules")
    assert shown.endswith("rules.pdf\n\n")


def test_an_earlier_answer_does_not_come_in_the_middle_of_another(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    screen, now, earlier = Screen(Mode.PERSON), line("How many?"), line("Before?", name="before")
    with screen.begin(now) as turn:
        screen.take(posts(now, TextDelta(text="Thirty "))[0])
        for post in posts(earlier, *ANSWERED):
            screen.take(post)
        for post in posts(now, *ANSWERED):
            screen.take(post)
        turn.end()
    shown = capsys.readouterr().out
    assert shown.index("You asked before: Before?") > shown.index("rules.pdf")
    assert shown.count("Thirty days. [1]") == 2


def test_an_earlier_ingestion_and_command_are_told_in_one_piece(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Mode.PIPE)
    first = verdict("a.md")
    for post in posts(
        line("docs", command="ingest"), *reports(report(JobState.RUNNING, first), report(JobState.DONE, first))
    ):
        screen.take(post)
    shown = capsys.readouterr().err
    assert shown == "You asked before: /ingest docs\n\ningested   a.md (2 chunks)\n1 file: 1 ingested.\n\n"


def test_what_comes_of_a_stopped_turn_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    screen, message = Screen(Mode.PIPE), line("How many?")
    with pytest.raises(KeyboardInterrupt), screen.begin(message):
        raise KeyboardInterrupt
    capsys.readouterr()
    for post in posts(message, *ANSWERED):
        screen.take(post)
    assert capsys.readouterr() == ("", "")


def test_a_screen_that_is_gone_prints_nothing_and_holds_nobody_up(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(Mode.PIPE)
    screen.gone = True
    for post in posts(line("How many?"), *ANSWERED):
        screen.take(post)
    screen.print_earlier()
    assert capsys.readouterr() == ("", "")
