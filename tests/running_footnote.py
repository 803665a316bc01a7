"""Runs the real command in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("footnote")
OURS = ("FOOTNOTE_", "ANTHROPIC_", "QDRANT_", "REDIS_", "SLACK_", "DISCORD_")


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without those that Footnote reads."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return kept | variables


def footnote(
    *arguments: str | Path, home: Path, given: str | bytes = b"", cwd: Path | None = None, **variables: str
) -> Result:
    """Run the command to its end."""
    done = subprocess.run(  # noqa: S603 - our own command
        [COMMAND, "--home", home, *arguments],
        input=given.encode() if isinstance(given, str) else given,
        capture_output=True,
        env=environment(**variables),
        cwd=cwd or home,
        timeout=200,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Office:
    """A library with a Markdown file, a PDF of two pages and a text for one circle, and how it was ingested."""

    home: Path
    files: Path
    ingested: Result
