"""The chat as people and scripts have it: remembered, stopped, killed, restarted, with the real command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from fakes.messages_api import Block, MessagesApi, Reply
from running_footnote import COMMAND, Office, Result, environment, footnote

from adapters.background import BackgroundLoop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.timeout(400),  # several processes, each of which may load the model
    pytest.mark.skipif(os.name != "posix", reason="sends signals and needs pseudo-terminals"),
]
WHO = "Who approves a business trip?"
DAYS = "Within how many days are receipts handed in?"
SAVED = 2.5
"""Seconds after which the state is surely in its file."""


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    """A language model's server that the test scripts."""
    server = MessagesApi()
    with BackgroundLoop() as loop:
        loop.run(server.__aenter__())
        yield server
        loop.run(server.__aexit__())


def model(api: MessagesApi, **variables: str) -> dict[str, str]:
    """The settings that lead to it."""
    return {"ANTHROPIC_BASE_URL": api.url, "FOOTNOTE_MODEL": "claude-test", "FOOTNOTE_CITATIONS": "native", **variables}


def slow(text: str = "The head of the department, after some thought.") -> Reply:
    """An answer that takes more than a minute."""
    return Reply(blocks=(Block(text=text * 20, cites=(0,)),), pause=0.5)


def wait_until_asked(api: MessagesApi) -> None:
    until = time.monotonic() + 90
    while not api.asked.is_set():
        assert time.monotonic() < until
        time.sleep(0.1)


def begin(home: Path, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    """A chat with pipes."""
    return subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, "--home", home, "chat", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
    )


def ask(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n".encode())
    process.stdin.flush()


def end(process: subprocess.Popen[bytes]) -> Result:
    out, err = process.communicate(timeout=120)
    assert b"Traceback" not in err
    return Result(process.returncode, out.decode(), err.decode())


def test_a_conversation_is_gone_on_with_after_a_restart(own_office: Path, api: MessagesApi) -> None:
    first = footnote("chat", home=own_office, given=f"{WHO}\n/good\n", **model(api))
    assert "head of the department" in first.out
    assert "noted beside the answer" in first.err
    later = footnote("chat", "--continue", home=own_office, given="/bad it was page 2\nand who else?\n", **model(api))
    assert f"You asked last: {WHO}" in later.err
    assert "noted beside the answer" in later.err
    # The follow-up is rewritten with what was said before.
    assert any(WHO in request.text for request in api.whole)
    fresh = footnote("chat", home=own_office, given="/bad\n/history trip\n", **model(api))
    assert "no answer yet" in fresh.err
    assert WHO in fresh.err
    other = footnote("chat", "--continue", "--audience", "hr", home=own_office, given="")
    assert "no earlier conversation" in other.err


def test_fifty_lines_are_answered_in_order(own_office: Path) -> None:
    lines = [f"{WHO} ({number})" for number in range(50)]
    talk = footnote("chat", "--json", home=own_office, given="\n".join(lines))
    assert talk.code == 0
    answers = [json.loads(line) for line in talk.out.splitlines()]
    assert [answer["question"] for answer in answers] == lines
    assert all("head of the department" in answer["answer"] for answer in answers)


def test_a_script_gets_a_line_for_every_question_whatever_becomes_of_it(own_office: Path) -> None:
    given = [WHO, "help", "documents", "?", WHO, "x" * 9_000, "hello"]
    talk = footnote("chat", "--json", home=own_office, given="\n".join(given))
    answers = [json.loads(line) for line in talk.out.splitlines()]
    assert [answer["question"] for answer in answers] == given
    assert "/ingest PATH" in answers[1]["answer"]
    assert "Travel policy" in answers[2]["answer"]
    assert answers[4]["answer"] == answers[0]["answer"]  # asked twice is two questions
    assert "8000" in answers[5]["error"]


def test_documents_are_ingested_with_a_verdict_for_each_file(home: Path, office: Office, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "my notes.txt").write_text("The archive moves to building seven in autumn.", encoding="utf-8")
    lines = [
        f"/ingest {office.files}",
        f"/ingest {files}/my notes.txt",
        f"/ingest '{files}/my notes.txt' {office.files}/travel.md",
        "/ingest nowhere.md",
        "/ingest",
    ]
    talk = footnote("chat", home=home, given="\n".join(lines))
    assert talk.code == 0
    told = talk.err.splitlines()
    assert [line.split()[0] for line in told if line.startswith(("ingested", "refused", "unchanged"))] == [
        "refused",
        "ingested",
        "ingested",
        "ingested",
        "unchanged",
        "unchanged",
        "refused",
    ]
    assert "3 files: 2 ingested, 1 refused." in told
    assert "There is no such file" in talk.err
    assert "/ingest needs a path" in talk.err
    (files / "my notes.txt").unlink()
    assert "no longer there; /forget removes it" in footnote("chat", home=home, given=f"/ingest {files}").err


def test_ctrl_c_in_a_pipe_ends_the_chat(own_office: Path, api: MessagesApi) -> None:
    api.replies.append(slow())
    chat = begin(own_office, **model(api))
    ask(chat, WHO)
    wait_until_asked(api)
    chat.send_signal(signal.SIGINT)
    ended = end(chat)
    assert ended.code == 130
    assert "(Stopped.)" in ended.err
    # It was stopped, not interrupted: nothing comes of it later.
    time.sleep(1)
    again = footnote("chat", home=own_office, given="hello", **model(api, FOOTNOTE_LEASE_SECONDS="1"))
    assert "You asked before" not in again.err


def test_a_killed_chat_s_question_is_answered_at_the_next_start_and_once(own_office: Path, api: MessagesApi) -> None:
    settings = model(api, FOOTNOTE_LEASE_SECONDS="1")
    api.replies.append(slow())
    chat = begin(own_office, **settings)
    ask(chat, WHO)
    wait_until_asked(api)
    time.sleep(SAVED)
    chat.kill()
    assert "head of" not in end(chat).out
    time.sleep(1)
    again = begin(own_office, "--json", **settings)
    time.sleep(0.1)
    ask(again, DAYS)
    assert again.stdout is not None
    assert json.loads(again.stdout.readline())["question"] == DAYS
    time.sleep(4)
    ended = end(again)
    assert ended.code == 0
    assert ended.out == ""
    assert ended.err.count(f"You asked before: {WHO}") == 1
    assert ended.err.count("Business trips are approved by the head of the department.") >= 1
    assert "You asked before" not in footnote("chat", home=own_office, given="hello", **settings).err


def test_sigterm_lets_the_answer_come_to_its_end(own_office: Path, api: MessagesApi) -> None:
    api.replies.append(Reply(blocks=(Block(text="The head of the department decides.", cites=(0,)),), pause=0.3))
    chat = begin(own_office, **model(api))
    ask(chat, f"{WHO}\n{DAYS}")
    wait_until_asked(api)
    chat.send_signal(signal.SIGTERM)
    ended = end(chat)
    assert ended.code == 143
    assert "The head of the department decides. [1]" in ended.out
    assert DAYS not in ended.out
    history = footnote("chat", home=own_office, given="/history\n").err
    assert WHO in history
    assert DAYS not in history


def test_sigterm_does_not_wait_longer_than_it_may_and_the_answer_comes_later(
    own_office: Path, api: MessagesApi
) -> None:
    settings = model(api, FOOTNOTE_DRAIN_SECONDS="1", FOOTNOTE_LEASE_SECONDS="1")
    api.replies.append(slow())
    chat = begin(own_office, **settings)
    ask(chat, WHO)
    wait_until_asked(api)
    chat.send_signal(signal.SIGTERM)
    ended = end(chat)
    assert ended.code == 143
    assert "Interrupted" in ended.err
    assert f"You asked before: {WHO}" in footnote("chat", home=own_office, given=f"{DAYS}\n", **settings).err


def test_a_second_sigterm_ends_it_at_once_and_one_at_rest_in_order(own_office: Path, api: MessagesApi) -> None:
    api.replies.append(slow())
    chat = begin(own_office, **model(api))
    ask(chat, WHO)
    wait_until_asked(api)
    chat.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert chat.poll() is None
    chat.send_signal(signal.SIGTERM)
    assert end(chat).code == -signal.SIGTERM
    resting = begin(own_office)
    assert resting.stderr is not None
    while b"documents" not in resting.stderr.readline():
        pass
    time.sleep(0.3)
    resting.send_signal(signal.SIGTERM)
    assert end(resting).code == 143


def test_a_second_chat_on_the_same_home_is_told_in_a_sentence(own_office: Path) -> None:
    first = begin(own_office)
    ask(first, WHO)
    assert first.stdout is not None
    assert first.stdout.readline()
    second = footnote("chat", home=own_office, given=WHO)
    assert second.code == 1
    assert "Another Footnote process" in second.err
    assert second.err.count("\n") == 1
    assert end(first).code == 0


def test_a_person_stops_an_answer_and_goes_on(own_office: Path, api: MessagesApi) -> None:
    from fakes.terminal import terminal  # noqa: PLC0415 - pseudo-terminals are not everywhere

    api.replies.append(slow())
    with terminal("chat", home=own_office, **model(api)) as screen:
        screen.wait_for_prompt()
        screen.type(f"{WHO}\n")
        screen.wait_for("The head of the department, after")
        screen.process.send_signal(signal.SIGINT)
        screen.wait_for("(Stopped.)")
        screen.wait_for_prompt()
        screen.type(f"{DAYS}\n")
        screen.wait_for("30 days")
        screen.wait_for_prompt()
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait_for_end() == 143
        assert "Traceback" not in screen.seen


def test_a_killed_chat_s_answer_is_shown_at_the_prompt_beside_what_is_being_typed(
    own_office: Path, api: MessagesApi
) -> None:
    from fakes.terminal import terminal  # noqa: PLC0415 - pseudo-terminals are not everywhere

    settings = model(api, FOOTNOTE_LEASE_SECONDS="1")
    api.replies.append(slow())
    with terminal("chat", home=own_office, **settings) as screen:
        screen.wait_for_prompt()
        screen.type(f"{WHO}\n")
        screen.wait_for("The head of the department, after")
        time.sleep(SAVED)
    # It takes a moment, so that the person has begun to type.
    api.replies.append(Reply(blocks=(Block(text="The head decides, says the policy.", cites=(0,)),), pause=0.4))
    with terminal("chat", "--continue", home=own_office, **settings) as screen:
        screen.wait_for_prompt()
        screen.type("hel")
        screen.wait_for(f"You asked before: {WHO}")
        screen.wait_for("The head decides, says the policy. [1]")
        screen.wait_for("› hel")
        screen.type("lo\n")
        screen.wait_for("Hello! Ask me anything")
        screen.wait_for_prompt()
        screen.type("\x04")
        assert screen.wait_for_end() == 0
        assert screen.seen.count("You asked before") == 1


def test_ctrl_c_cancels_an_ingestion_and_says_what_stays(own_office: Path, tmp_path: Path) -> None:
    from fakes.terminal import terminal  # noqa: PLC0415 - pseudo-terminals are not everywhere

    files = tmp_path / "files"
    files.mkdir()
    (files / "long.md").write_text(
        "\n\n".join(f"# Part {n}\n\nParagraph {n} tells of thing {n * 7} and its neighbours." * 3 for n in range(4000)),
        encoding="utf-8",
    )
    with terminal("chat", home=own_office) as screen:
        screen.wait_for_prompt()
        screen.type(f"/ingest {files}\n")
        screen.wait_for("long.md: embedding")
        screen.process.send_signal(signal.SIGINT)
        screen.wait_for("(Stopped. Nothing is left half done.)")
        screen.wait_for_prompt()
        screen.type("/documents\n")
        listed = screen.wait_for("› ")
        assert "Travel policy" in listed
        assert "Part" not in listed
        screen.type("\x04")
        assert screen.wait_for_end() == 0


def test_without_redis_in_the_middle_of_a_chat_questions_are_answered_and_it_is_said(
    own_office: Path, tmp_path: Path
) -> None:
    from fakes.redis_server import BINARY, RedisServer, running  # noqa: PLC0415 - where it is installed

    if BINARY is None:
        pytest.skip("no redis-server is installed here")
    (tmp_path / "redis").mkdir()
    with running(RedisServer(tmp_path / "redis")) as server:
        chat = begin(own_office, REDIS_URL=server.url)
        assert chat.stdout is not None
        ask(chat, WHO)
        while b"travel.md" not in (shown := chat.stdout.readline()):
            assert b"memory of this" not in shown
    ask(chat, DAYS)
    ended = end(chat)
    assert ended.code == 0
    assert "within 30 days" in ended.out
    assert "memory of this thread cannot be reached" in ended.out


def test_a_reader_that_has_enough_ends_the_chat_quietly(own_office: Path) -> None:
    chat = begin(own_office)
    assert chat.stdout is not None
    chat.stdout.close()
    ask(chat, f"{WHO}\n{DAYS}")
    assert chat.stdin is not None
    chat.stdin.close()
    assert chat.stderr is not None
    told = chat.stderr.read().decode()
    chat.stderr.close()
    assert chat.wait(60) == 1
    assert told.splitlines()[1:] == []
