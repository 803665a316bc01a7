"""What does not need the search model: help, usage, settings, lists."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from running_footnote import COMMAND, Office, environment, footnote

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(400)  # several processes, each of which may load the model
COMMANDS = (
    "ingest",
    "ask",
    "search",
    "chat",
    "run",
    "worker",
    "documents",
    "history",
    "forget",
    "reindex",
    "eval",
    "doctor",
)


def test_help_names_every_command_and_loads_nothing_heavy(tmp_path: Path) -> None:
    shown = footnote("--help", home=tmp_path)
    assert shown.code == 0
    assert all(command in shown.out for command in COMMANDS)
    loaded = subprocess.run(  # noqa: S603 - our own code
        [COMMAND.with_name("python"), "-c", "import sys, adapters.cli; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"pydantic", "numpy", "rich", "asyncio", "onnxruntime", "fastembed", "qdrant_edge"} & set(loaded)


def test_version(tmp_path: Path) -> None:
    shown = footnote("--version", home=tmp_path)
    assert (shown.code, shown.out.split()[0]) == (0, "footnote")


@pytest.mark.parametrize(
    "arguments",
    [
        ("ingest",),
        ("ask",),
        ("nonsense",),
        ("ask", "x", "--nonsense"),
        ("ask", " "),
        ("forget", " "),
        ("ingest", "x.md", "--audience", ""),
        ("ask", "x", "--audience", "hr", "--audience", " , "),
        ("search", "x", "--audience", ""),
        ("documents", "--audience", ""),
        ("chat", "--audience", ""),
    ],
)
def test_a_wrong_call_exits_with_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    plain = footnote(*arguments, home=tmp_path)
    assert (plain.code, plain.out) == (2, "")
    assert plain.err.strip()
    machine = footnote(*arguments, "--json", home=tmp_path)
    assert machine.code == 2
    assert machine.json["error"]


def test_a_broken_setting_is_named_and_exits_with_2(tmp_path: Path) -> None:
    plain = footnote("documents", home=tmp_path, FOOTNOTE_LOG_LEVEL="loud")
    assert plain.code == 2
    assert "FOOTNOTE_LOG_LEVEL" in plain.err
    assert "Traceback" not in plain.err
    assert (
        "FOOTNOTE_LOG_LEVEL" in footnote("documents", "--json", home=tmp_path, FOOTNOTE_LOG_LEVEL="loud").json["error"]
    )


def test_data_lies_in_the_applications_folder_and_not_in_the_persons_home(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        [COMMAND, "doctor", "--json"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env=environment(HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data"), FOOTNOTE_EMBEDDING_MODEL="no/such"),
    )
    checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert str(tmp_path / "data" / "footnote") in checks["home"]["text"]
    assert checks["search model"]["grade"] == "fail"
    assert "FOOTNOTE_EMBEDDING_MODEL" in checks["search model"]["text"]


def test_an_empty_library_is_no_error_and_makes_no_folder(tmp_path: Path) -> None:
    nowhere = tmp_path / "not" / "there"
    listed = footnote("documents", home=nowhere, cwd=tmp_path)
    assert listed.code == 0
    assert "empty" in listed.out
    assert footnote("documents", "--json", home=nowhere, cwd=tmp_path).json == []
    assert footnote("forget", "anything", home=nowhere, cwd=tmp_path).code == 1
    assert not nowhere.exists()


def test_home_counts_before_and_after_the_command(office: Office, tmp_path: Path) -> None:
    before = footnote("documents", "--json", home=office.home)
    after = footnote("documents", "--json", "--home", office.home, home=tmp_path)
    assert len(before.json) == 2
    assert after.json == before.json


def test_documents_tell_what_the_library_remembers(office: Office) -> None:
    listed = footnote("documents", "--json", home=office.home).json
    handbook = next(item for item in listed if item["title"] == "handbook")
    assert handbook["pages"] == 2
    assert handbook["audience"] == ["everyone"]
    assert handbook["uri"] == (office.files / "handbook.pdf").as_uri()
    lines = footnote("documents", home=office.home).out.splitlines()
    assert len(lines) == 2
    assert all(item["document"] in "\n".join(lines) for item in listed)


def test_a_reader_that_has_enough_ends_the_command_quietly(office: Office) -> None:
    process = subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, "--home", office.home, "documents", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 1


def test_forgetting_takes_a_whole_name_and_never_a_part_of_one(own_office: Path) -> None:
    part = footnote("forget", "hand", home=own_office)
    assert part.code == 2
    assert "handbook" in part.err
    assert len(footnote("documents", "--json", home=own_office).json) == 2
    assert "footnote documents" in footnote("forget", "no such thing", home=own_office).err
    unknown = footnote("forget", "no such thing", "--json", home=own_office)
    assert unknown.code == 1
    assert "no such thing" in unknown.json["error"]
    gone = footnote("forget", "HANDBOOK.pdf", "--json", home=own_office)
    assert gone.code == 0
    assert [item["title"] for item in gone.json["forgotten"]] == ["handbook"]
    rest = footnote("documents", "--json", home=own_office).json
    assert [item["title"] for item in rest] == ["Travel policy"]
    assert footnote("forget", rest[0]["document"][:8], home=own_office).code == 0


def test_a_second_process_is_told_in_a_sentence(own_office: Path) -> None:
    with FileLock(own_office / "library" / "lock"):
        second = footnote("documents", "--json", home=own_office)
    assert second.code == 1
    assert "Another Footnote process" in second.json["error"]
    assert "QDRANT_URL" in second.json["error"]


def test_a_damaged_library_can_be_started_over(own_office: Path) -> None:
    for shard in (own_office / "library").glob("shard-*"):
        shard.rename(own_office / "elsewhere")
    broken = footnote("documents", home=own_office)
    assert broken.code == 1
    assert "footnote reindex" in broken.err
    told = footnote("reindex", home=own_office)
    assert told.code == 1
    assert "--start-over" in told.err
    assert footnote("reindex", "--start-over", home=own_office).code == 0
    assert footnote("documents", "--json", home=own_office).json == []


@pytest.mark.parametrize("command", [("documents",), ("forget", "x"), ("ask", "x"), ("ingest", "x"), ("reindex",)])
def test_a_home_that_cannot_be_used_is_named_at_once(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = footnote(*command, home=tmp_path / "file", cwd=tmp_path)
    assert (told.code, told.out) == (2, "")
    assert told.err.count("\n") == 1
    assert "FOOTNOTE_HOME" in told.err


def test_a_model_setting_that_means_nothing_exits_with_2(tmp_path: Path) -> None:
    named = footnote("ask", "x", "--json", home=tmp_path, FOOTNOTE_EMBEDDING_MODEL="nosuch")
    assert named.code == 2
    assert "FOOTNOTE_EMBEDDING_MODEL" in named.json["error"]
    placed = footnote("ask", "x", "--json", home=tmp_path, FOOTNOTE_EMBEDDING_MODEL_PATH=str(tmp_path / "nowhere"))
    assert placed.code == 2
    assert "FOOTNOTE_EMBEDDING_MODEL_PATH" in placed.json["error"]


def test_a_doctor_names_the_address_that_does_not_answer_and_no_password(office: Office) -> None:
    nowhere = "http://someone:made-up-password@127.0.0.1:9"
    told = footnote("doctor", "--json", home=office.home, ANTHROPIC_BASE_URL=nowhere, QDRANT_URL=nowhere)
    checks = {check["check"]: check for check in told.json["checks"]}
    for check, variable in (("library", "QDRANT_URL"), ("language model", "ANTHROPIC_BASE_URL")):
        assert checks[check]["grade"] == "fail"
        assert "http://127.0.0.1:9" in checks[check]["text"]
        assert variable in checks[check]["text"]
    assert "made-up-password" not in told.out + told.err
    assert "retry" not in told.err
