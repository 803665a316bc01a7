"""What was asked is listed, exported and erased; `ask` puts its question there."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import pty
import shlex
import stat
import subprocess
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from fakes.entries import ALICE, BOB, NOW, entry, opinion, source
from running_footnote import COMMAND, OURS, Office, Result, environment, footnote
from typer.testing import CliRunner

from adapters.cli.commands import app
from bot.history import History
from bot.messages import Outcome
from bot.redis_embedded import EmbeddedState
from bot.redis_server import ServerState
from bot.types import AbstentionReason

if TYPE_CHECKING:
    from pathlib import Path

    from bot.results import Feedback, HistoryEntry

pytestmark = pytest.mark.timeout(400)  # several processes, some of which load the model


@dataclass(frozen=True)
class Past:
    """A history that the command looks at."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    def keep(self, *entries: HistoryEntry, opinions: tuple[Feedback, ...] = ()) -> None:
        async def keep() -> None:
            if "REDIS_URL" in self.variables:
                namespace = self.variables["FOOTNOTE_STATE_NAMESPACE"]
                state: Any = await ServerState.open(self.variables["REDIS_URL"], namespace)
            else:
                state = await EmbeddedState.open(self.home / "state")
            history = History(state, days=30, entries=1_000)
            for item in entries:
                await history.record(item)
                for said in opinions:
                    await history.feedback(item.id, said)
            await state.close()

        asyncio.run(keep())

    def run(self, *arguments: str | Path) -> Result:
        """The command, in this process: it starts in a second, and there are many."""
        ours: dict[str, str | None] = {name: None for name in os.environ if name.startswith(OURS)}
        words = ["--home", self.home, "history", *arguments]
        done = CliRunner().invoke(app, list(map(str, words)), env={**ours, **self.variables})
        return Result(done.exit_code, done.stdout, done.stderr)

    def listed(self, *arguments: str) -> list[str]:
        """The questions, newest first."""
        shown = self.run(*arguments, "--json")
        assert shown.code == 0
        return [item["question"] for item in shown.json["entries"]]


@pytest.fixture(params=["embedded", "redis"])
def past(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    monkeypatch.chdir(tmp_path)
    # It would take the log away from the tests.
    monkeypatch.setattr("bot.telemetry.configure_logging", lambda *_, **__: None)
    if request.param == "embedded":
        return Past(tmp_path)
    url = request.getfixturevalue("redis_url")
    return Past(tmp_path, {"REDIS_URL": url, "FOOTNOTE_STATE_NAMESPACE": f"test-{uuid.uuid4().hex[:12]}"})


def test_a_listing_tells_all_of_an_entry(past: Past) -> None:
    refused = entry(
        "refused",
        minutes=5,
        author=BOB,
        outcome=Outcome.ABSTAINED,
        reason=AbstentionReason.NO_EVIDENCE,
        reply="The documents don't tell.",
        sources=(),
        model="",
        notice="",
    )
    long = source(page=3, last_page=4, excerpt="Thirty days \x1b[31mof\nleave\u202e.")
    past.keep(refused, entry("new\x07", scopes=("hr",), sources=(long, source(marker=2, page=None, heading=""))))
    past.keep(refused, opinions=(opinion(ALICE, good=False, comment="they \x1b]0;do"), opinion(BOB)))
    shown = past.run()
    assert shown.code == 0
    first, second = shown.out.split("\n\n")
    assert first.splitlines()[0] == "Q: Question new␇?"
    assert "Answer new␇ [1]." in first
    assert "(No language model.)" in first
    assert "2 sources\n[1] Handbook, pp. 3–4 — Leave\n" in first
    assert "“Thirty days ␛[31mof leave.”" in first
    assert "\n[2] Handbook\n" in first
    assert f"{NOW.astimezone():%Y-%m-%d %H:%M:%S}" in first
    assert "Alice (slack:T1:U1)" in first
    assert "slack T1/C1" in first
    assert "everyone, hr" in first
    assert "answered, extractive, 0.8 s, 10 + 3 tokens" in first
    assert "The documents don't tell." in second
    assert "no passage could answer it" in second
    assert "Alice (slack:T1:U1): they ␛]0;do" in second
    assert "source" not in second
    assert not {"\x1b", "\x07", "\u202e"} & set(shown.out)
    assert shown.err == ""


@pytest.mark.parametrize("past", ["embedded"], indirect=True)
def test_an_empty_history_is_a_sentence_and_makes_no_folder(past: Past) -> None:
    nowhere = Past(past.home / "not" / "there")
    shown = nowhere.run()
    assert (shown.code, shown.err) == (0, "")
    assert "empty" in shown.out
    assert nowhere.run("--json").json == {"entries": [], "more": False}
    assert nowhere.run("--export", "-").out == ""
    assert nowhere.run("--erase", "x", "--yes", "--json").json == {"erased": 0}
    assert "FOOTNOTE_HISTORY_DAYS" in Past(nowhere.home, {"FOOTNOTE_HISTORY_DAYS": "0"}).run().out
    assert not nowhere.home.exists()


def test_the_command_lists_exports_and_erases_in_a_process_of_its_own(tmp_path: Path) -> None:
    Past(tmp_path).keep(entry("old", minutes=1), entry("new"))
    shown = footnote("history", "--limit", "1", home=tmp_path)
    assert shown.code == 0
    assert shown.out.startswith("Q: Question new?\n")
    assert f"--limit 1 --before {entry('new').id}" in shown.err
    assert footnote("history", "--export", "-", home=tmp_path).out.count("\n") == 2
    assert footnote("history", "--erase", ALICE.id, "--yes", "--json", home=tmp_path).json == {"erased": 2}
    assert footnote("history", "--json", home=tmp_path).json["entries"] == []


def test_the_hint_leads_from_page_to_page_to_the_end(past: Past) -> None:
    past.keep(*(entry(f"it's {number}", minutes=number // 3) for number in range(7)), entry("other"))
    seen: list[str] = []
    shown = past.run("--limit", "3", "--search", "it's")
    while True:
        seen += [line for line in shown.out.splitlines() if line.startswith("Q: ")]
        if "There is more: " not in shown.err:
            break
        shown = past.run(*shlex.split(shown.err.partition("footnote history ")[2]))
    assert len(seen) == 7
    assert set(seen) == {f"Q: Question it's {number}?" for number in range(7)}


def test_ten_are_listed_when_nothing_else_is_said(past: Past) -> None:
    past.keep(*(entry(f"{number}", minutes=number) for number in range(12)))
    assert past.listed() == [f"Question {number}?" for number in range(10)]
    assert past.run("--json").json["more"] is True
    assert len(past.listed("--limit", "12")) == 12


def test_entries_are_chosen_by_words_person_outcome_and_time(past: Past) -> None:
    past.keep(
        entry("travel", minutes=50, scopes=("hr",)),
        entry("leave", minutes=30, author=BOB, outcome=Outcome.FAILED),
        entry("parking", minutes=10, outcome=Outcome.ABSTAINED),
    )
    assert past.listed("--search", "TRAVEL handbook") == ["Question travel?"]
    assert past.listed("--user", BOB.id) == ["Question leave?"]
    assert past.listed("--unanswered") == ["Question parking?", "Question leave?"]
    assert past.listed("--unanswered", "--user", ALICE.id) == ["Question parking?"]
    local = f"{(NOW - timedelta(minutes=20)).astimezone():%Y-%m-%d %H:%M:%S}"
    assert past.listed("--before", local) == ["Question leave?", "Question travel?"]
    assert past.listed("--before", (NOW - timedelta(minutes=40)).isoformat()) == ["Question travel?"]
    nothing = past.run("--user", "Bob")
    assert nothing.code == 0
    assert "ids" in nothing.out


def test_json_holds_all_that_is_kept(past: Past) -> None:
    past.keep(entry(scopes=("hr",)), opinions=(opinion(comment="wrong page", good=False),))
    (shown,) = past.run("--json").json["entries"]
    assert shown == {
        "id": entry().id,
        "asked_at": NOW.isoformat(),
        "question": "Question 1?",
        "outcome": "answered",
        "reason": None,
        "reply": "Answer 1 [1].",
        "notice": "No language model.",
        "sources": [
            {
                "marker": 1,
                "document": "d",
                "title": "Handbook",
                "uri": "file:///handbook.pdf",
                "page": 3,
                "last_page": 3,
                "heading": "Leave",
                "excerpt": "Everybody has thirty days of leave.",
                "score": 1.0,
            }
        ],
        "author": {"id": "slack:T1:U1", "name": "Alice"},
        "platform": "slack",
        "workspace": "T1",
        "channel": "C1",
        "conversation": "slack:T1:C1:1",
        "audience": ["everyone", "hr"],
        "model": "extractive",
        "tokens": {"input": 10, "output": 3},
        "timings": {"search": 0.25, "generate": 0.5, "total": 0.75},
        "feedback": [
            {
                "author": {"id": "slack:T1:U2", "name": "Bob"},
                "opinion": "bad",
                "comment": "wrong page",
                "given_at": NOW.isoformat(),
            }
        ],
    }


def test_an_export_has_a_line_an_entry_oldest_first(past: Past, tmp_path: Path) -> None:
    past.keep(*(entry(f"{number}\nü", minutes=number) for number in range(60)), entry("bob", author=BOB))
    out = past.run("--export", "-", "--user", ALICE.id)
    lines = [json.loads(line) for line in out.out.splitlines()]
    assert [line["question"] for line in lines] == [f"Question {number}\nü?" for number in range(59, -1, -1)]
    file = tmp_path / "past.jsonl"
    file.write_text("former", encoding="utf-8")
    told = past.run("--export", file)
    assert (told.code, told.out) == (0, "")
    assert "61 entries" in told.err
    assert len(file.read_text(encoding="utf-8").splitlines()) == 61
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert past.run("--export", file, "--json", "--search", "bob").json == {"exported": 1, "file": str(file)}
    nowhere = past.run("--export", tmp_path / "no" / "folder.jsonl")
    assert nowhere.code == 1
    assert "could not be written" in nowhere.err
    assert past.run("--export", "/dev/null").code == 0
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".log" and path.is_file()] == ["past.jsonl"]


def test_erasing_takes_one_person_out(past: Past) -> None:
    past.keep(entry("a"), entry("b"), opinions=(opinion(BOB),))
    past.keep(entry("c", author=BOB))
    unsure = past.run("--erase", BOB.id)
    assert unsure.code == 2
    assert "--yes" in unsure.err
    assert len(past.listed()) == 3
    told = past.run("--erase", BOB.id, "--yes")
    assert told.code == 0
    assert "1 entry of slack:T1:U2 erased" in told.out
    left = past.run("--json").json["entries"]
    assert [(item["author"]["name"], item["feedback"]) for item in left] == [("Alice", [])] * 2
    assert past.run("--erase", ALICE.id, "--yes", "--json").json == {"erased": 2}
    again = past.run("--erase", ALICE.id, "--yes")
    assert again.code == 0
    assert "nothing" in again.out


@pytest.mark.parametrize(("typed", "left"), [("YES\n", 0), ("\n", 1), ("\x04", 1)])
@pytest.mark.parametrize("past", ["embedded"], indirect=True)
def test_on_a_terminal_erasing_asks_first(typed: str, left: int, past: Past) -> None:
    past.keep(entry())
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, "--home", past.home, "history", "--erase", ALICE.id],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    os.write(ours, typed.encode())
    _, asked = process.communicate(timeout=100)
    os.close(ours)
    os.close(theirs)
    assert b"Erase 1 entry of slack:T1:U1" in asked
    assert process.returncode == (1 if left else 0)
    assert len(past.listed()) == left


async def test_another_process_may_use_the_state(tmp_path: Path) -> None:
    state = await EmbeddedState.open(tmp_path / "state")
    history = History(state, days=30, entries=10)
    await history.record(entry("shown"))
    try:
        for _ in range(20):
            listed = await asyncio.to_thread(footnote, "history", home=tmp_path)
            if "Question shown?" in listed.out:
                break
        assert (listed.code, listed.err) == (0, "")
        assert "Question shown?" in listed.out
        refused = await asyncio.to_thread(footnote, "history", "--erase", ALICE.id, "--yes", home=tmp_path)
    finally:
        await state.close()
    assert (refused.code, refused.out) == (1, "")
    assert "Another Footnote process" in refused.err
    assert "REDIS_URL" in refused.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--erase", "x", "--search", "y"),
        ("--erase", "x", "--export", "-"),
        ("--erase", "x", "--limit", "3"),
        ("--erase", " "),
        ("--user", ""),
        ("--yes",),
        ("--export", "-", "--limit", "3"),
        ("--export", "-", "--before", "2026-01-01"),
        ("--export", ""),
        ("--before", "yesterday"),
        ("--before", "9999999999999999"),
    ],
)
@pytest.mark.parametrize("past", ["embedded"], indirect=True)
def test_options_that_make_no_sense_are_a_mistake(arguments: tuple[str, ...], past: Past) -> None:
    told = past.run(*arguments)
    code = 1 if arguments[-1].startswith("9") else 2  # that could have been an entry
    assert (told.code, told.out) == (code, "")
    assert told.err.strip()
    assert "Traceback" not in told.err


def test_a_redis_that_is_away_is_named_without_its_password(tmp_path: Path) -> None:
    told = footnote("history", home=tmp_path, REDIS_URL="redis://:made-up-password@127.0.0.1:9/0")
    assert (told.code, told.out) == (1, "")
    assert "127.0.0.1:9" in told.err
    assert "made-up-password" not in told.err


def test_no_model_and_no_library_is_loaded_for_it(tmp_path: Path) -> None:
    loaded = subprocess.run(  # noqa: S603 - our own code
        [COMMAND.with_name("python"), "-c", "import sys, adapters.cli.history, bot.history; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    heavy = {"onnxruntime", "onnx", "fastembed", "tokenizers", "qdrant_client", "anthropic", "liteparse", "docket"}
    assert not heavy & set(loaded)


# ---- ask --------------------------------------------------------------------------------------------------------

WHO = "Who approves a business trip?"
NEVER = "What is the chemical composition of Jupiter's atmosphere?"
NOT_KEPT = "This is not in the history: "


def test_ask_puts_its_question_into_the_history(own_office: Path) -> None:
    answered = footnote("ask", "--json", WHO, home=own_office)
    abstained = footnote("ask", "--audience", "hr", NEVER, home=own_office)
    assert (answered.code, abstained.code) == (0, 3)
    second, first = footnote("history", "--json", home=own_office).json["entries"]
    assert (first["question"], first["outcome"], first["reply"]) == (WHO, "answered", answered.json["answer"])
    assert [item["excerpt"] for item in first["sources"]] == [item["excerpt"] for item in answered.json["sources"]]
    assert first["author"] == {"id": f"terminal:{getpass.getuser()}", "name": getpass.getuser()}
    assert (first["platform"], first["audience"], first["model"]) == ("terminal", ["everyone"], "extractive")
    assert first["timings"]["total"] > 0
    assert (second["question"], second["outcome"], second["reason"]) == (NEVER, "abstained", "no_evidence")
    assert second["audience"] == ["everyone", "hr"]
    assert NOT_KEPT not in answered.err + abstained.err


async def test_an_answer_comes_also_when_the_history_cannot_be_written(own_office: Path) -> None:
    state = await EmbeddedState.open(own_office / "state")
    try:
        used = await asyncio.to_thread(footnote, "ask", "--json", WHO, home=own_office)
    finally:
        await state.close()
    away = await asyncio.to_thread(
        footnote, "ask", NEVER, home=own_office, REDIS_URL="redis://:made-up-password@127.0.0.1:9/0"
    )
    assert (used.code, away.code) == (0, 3)
    assert used.json["sources"]
    assert [line.startswith(NOT_KEPT) for line in used.err.splitlines()].count(True) == 1
    assert "Another Footnote process" in used.err
    assert [line.startswith(NOT_KEPT) for line in away.err.splitlines()].count(True) == 1
    assert "made-up-password" not in away.err
    assert (await asyncio.to_thread(footnote, "history", "--json", home=own_office)).json["entries"] == []


def test_ask_keeps_nothing_where_nothing_is_to_be_kept(office: Office, own_office: Path) -> None:
    asked = footnote("ask", "hello", home=own_office, FOOTNOTE_HISTORY_DAYS="0")
    assert asked.code == 0
    assert NOT_KEPT not in asked.err
    assert not (own_office / "state").exists()
