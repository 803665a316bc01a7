"""What `--help` says, asked in this process."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from adapters.cli.commands import app

COMMANDS = ("ingest", "ask", "search", "chat", "run", "documents", "history", "forget", "reindex", "eval", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_takes_home_and_json(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert {"--home", "--json"} <= set(shown.output.replace(",", " ").split())


@pytest.mark.parametrize(
    "command", ["ingest", "ask", "search", "chat", "run", "documents", "history", "forget", "eval"]
)
def test_help_gives_examples_on_lines_of_their_own(command: str) -> None:
    lines = CliRunner().invoke(app, [command, "--help"]).output.splitlines()
    examples = lines[next(i for i, line in enumerate(lines) if line.strip() == "Examples:") + 1 :]
    assert examples
    assert all(line.strip().startswith(f"footnote {command}") for line in examples)
