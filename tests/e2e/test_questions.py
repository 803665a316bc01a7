"""From files to answers, with the real command, the real model and the real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from running_footnote import COMMAND, Office, environment, footnote

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(400)  # several processes, each of which may load the model
SOURCE_KEYS = {"marker", "document", "title", "uri", "page", "heading", "excerpt", "score"}
WHO = "Who approves a business trip?"
NEVER = "What is the chemical composition of Jupiter's atmosphere?"


def test_a_folder_is_ingested_with_a_verdict_for_each_file(office: Office) -> None:
    ingested = office.ingested
    assert ingested.code == 1  # one file is empty
    verdicts = {item["uri"].rpartition("/")[2]: item for item in ingested.json}
    assert {name: item["verdict"] for name, item in verdicts.items()} == {
        "empty.md": "refused",
        "handbook.pdf": "indexed",
        "travel.md": "indexed",
    }
    assert "empty" in verdicts["empty.md"]["reason"]
    assert verdicts["handbook.pdf"]["pages"] == 2
    assert verdicts["travel.md"]["chunks"] >= 1
    assert verdicts["travel.md"]["language"] == "en"
    # One line for each file on the side, beside that of preparing the model.
    assert sum(line.startswith(("ingested", "refused")) for line in ingested.err.splitlines()) == 3


def test_a_question_is_answered_with_its_source_and_page(office: Office) -> None:
    asked = footnote("ask", "--json", "How long is the backup of the mail server kept?", home=office.home)
    assert asked.code == 0
    answer = asked.json
    assert set(answer) == {"answer", "abstained", "reason", "sources", "model", "timings"}
    assert "ninety days" in answer["answer"]
    assert "[1]" in answer["answer"]
    assert answer["abstained"] is False
    source = answer["sources"][0]
    assert set(source) == SOURCE_KEYS
    assert source["marker"] == 1
    assert source["uri"] == (office.files / "handbook.pdf").as_uri()
    assert source["page"] == 2
    assert "ninety days" in source["excerpt"]


def test_what_the_documents_do_not_tell_exits_with_3_and_shows_no_source(office: Office) -> None:
    asked = footnote("ask", "-", home=office.home, given=NEVER)
    assert asked.code == 3
    assert "[1]" not in asked.out
    assert asked.out.strip()


def test_search_shows_the_passages_and_why_they_were_found(office: Office) -> None:
    hits = footnote("search", "approval of trips", "--limit", "2", "--json", home=office.home).json
    assert 1 <= len(hits) <= 2
    assert set(hits[0]) == {"document", "title", "page", "heading", "text", "score", "dense_rank", "bm25_rank"}
    assert "approved" in hits[0]["text"]


def test_questions_from_a_pipe_are_answered_one_by_one(own_office: Path, tmp_path: Path) -> None:
    (tmp_path / "late.txt").write_text("The archive moves to building seven in autumn.", encoding="utf-8")
    lines = [
        WHO,
        "",
        NEVER,
        f"/ingest {tmp_path / 'late.txt'}",
        "Where does the archive move in autumn?",
        "/nonsense",
        "/documents",
        "/forget late",
        "Where does the archive move in autumn?",
        "hello",
    ]
    talk = footnote("chat", home=own_office, given="\n".join(lines))
    assert talk.code == 0
    first, never, archive, gone, hello = talk.out.split("\n> ")
    assert "head of the department" in first
    assert "[1]" in first
    assert "[1]" not in never
    assert "building seven" in archive
    assert "building seven" not in gone
    assert "[1]" not in hello
    assert "no command /nonsense" in talk.err
    assert "Travel policy" in talk.err
    assert "Forgotten: late" in talk.err


def test_run_fills_an_empty_library_once_and_says_what_would_start_slack(home: Path, office: Office) -> None:
    first = footnote("run", "--first-library", office.files, "--json", home=home, given=f"{WHO}\n{NEVER}\n")
    assert first.code == 0
    answers = [json.loads(line) for line in first.out.splitlines()]
    assert [answer["abstained"] for answer in answers] == [False, True]
    assert "SLACK_BOT_TOKEN" in first.err
    assert "The library is empty" in first.err
    again = footnote("run", "--first-library", office.files, home=home, given="", DISCORD_TOKEN="made-up-token")
    assert again.code == 0
    assert "no Slack or Discord adapter yet" in again.err
    assert "The library is empty" not in again.err
    assert "made-up-token" not in again.err + again.out


@pytest.mark.skipif(os.name != "posix", reason="makes pipes")
def test_hostile_files_are_told_of_and_stop_nothing(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "esc\x1b[31m\nx [red]y.md").write_text("# Launch\n\nThe launch code is \x1b[2J4711.\n", encoding="utf-8")
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(500))
    os.mkfifo(folder / "pipe")
    (folder / "ring").symlink_to(folder)
    ingested = footnote("ingest", folder, "nowhere.md", "--audience", "ops,board", home=home, PYTHONIOENCODING="ascii")
    assert ingested.code == 1  # for the file that was named and is not there
    assert "\x1b" not in ingested.out + ingested.err
    lines = ingested.out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["ingested", "skipped", "skipped", "refused"]
    assert "[red]y" in lines[0]
    listed = footnote("documents", "--json", home=home).json
    assert [item["audience"] for item in listed] == [["board", "ops"]]
    assert footnote("documents", "--audience", "sales", "--json", home=home).json == []
    asked = footnote("ask", "What is the launch code?", "--audience", "ops", home=home)
    assert asked.code == 0
    assert "4711" in asked.out
    assert "\x1b" not in asked.out
    assert footnote("ask", "What is the launch code?", home=home).code == 3


def test_ingesting_again_opens_a_document_to_nobody(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "pay.md"
    file.write_text("# Pay bands\n\nBand seven earns most.\n", encoding="utf-8")
    assert footnote("ingest", file, "--audience", "hr", home=home).code == 0
    assert footnote("ingest", file, home=home).code == 0
    talked = footnote("chat", given=f"/ingest {file}\n", home=home)
    assert "for others" in talked.err
    assert "Pay bands" not in talked.out + talked.err
    footnote("chat", "--audience", "hr", given=f"/ingest {file}\n", home=home)
    assert footnote("documents", "--audience", "sales", "--json", home=home).json == []
    assert footnote("ingest", file, "--audience", "everyone", home=home).code == 0
    assert len(footnote("documents", "--audience", "sales", "--json", home=home).json) == 1


def test_reindexing_reads_files_again_and_carries_over_what_is_gone(
    office: Office, own_office: Path, tmp_path: Path
) -> None:
    file = tmp_path / "gone.txt"
    file.write_text("The spare key lies under the blue flower pot.", encoding="utf-8")
    assert footnote("ingest", file, "--audience", "ops", home=own_office).code == 0
    file.unlink()
    before = footnote("documents", "--json", home=own_office).json
    done = footnote("reindex", "--json", home=own_office)
    assert done.code == 0
    assert {item["title"]: item["verdict"] for item in done.json} == {
        "Travel policy": "reread",
        "handbook": "reread",
        "gone": "carried",
    }
    after = footnote("documents", "--json", home=own_office).json
    kept = ("document", "title", "uri", "audience", "ingested_by", "pages")
    assert _by_title(after, kept) == _by_title(before, kept)
    asked = footnote("ask", "Where does the spare key lie?", "--audience", "ops", "--json", home=own_office)
    assert "flower pot" in asked.json["answer"]
    assert not list(own_office.glob("reindex-*"))


def _by_title(documents: list[dict[str, object]], keys: tuple[str, ...]) -> dict[object, list[object]]:
    return {item["title"]: [item[key] for key in keys] for item in documents}


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_an_ingestion_and_leaves_nothing_half_done(own_office: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.md"
    long.write_text(
        "\n\n".join(f"# Part {n}\n\nParagraph {n} tells of thing {n * 7} and its neighbours." * 3 for n in range(4000)),
        encoding="utf-8",
    )
    process = subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, "--home", own_office, "ingest", long],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    time.sleep(6)
    assert process.poll() is None, "the document has to be long enough to be interrupted"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Stopped" in err
    assert b"Traceback" not in err
    assert len(footnote("documents", "--json", home=own_office).json) == 2


def test_a_doctor_finds_all_well(office: Office) -> None:
    checked = footnote("doctor", "--json", home=office.home)
    assert checked.code == 0
    assert checked.json["ok"] is True
    grades = {item["check"]: item["grade"] for item in checked.json["checks"]}
    assert set(grades) >= {"python", "settings", "home", "state", "search model", "library", "language model", "chat"}


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_a_person_at_a_terminal(office: Office) -> None:
    from fakes.terminal import terminal  # noqa: PLC0415 - pseudo-terminals are not everywhere

    with terminal("chat", home=office.home) as screen:
        screen.wait_for("Ask a question")
        screen.wait_for_prompt()
        screen.type(f"{WHO}\n")
        screen.wait_for("head of the department")
        screen.wait_for("travel.md")
        screen.wait_for_prompt()  # before that, Ctrl-C would stop the answer
        screen.process.send_signal(signal.SIGINT)
        screen.wait_for("Ctrl-C again leaves")
        screen.wait_for_prompt()
        screen.type("/help\n")
        screen.wait_for("Ctrl-C stops an answer")
        screen.wait_for_prompt()
        screen.type("\x04")
        assert screen.wait_for_end() == 0
