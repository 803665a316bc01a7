"""Runs `footnote` in a process of its own and watches it."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAMPLE_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a run ended. `seconds` on the wall clock, `peak` in bytes (0 when memory was not watched)."""

    code: int
    seconds: float
    peak: int
    output: str
    messages: str


def footnote(*arguments: str, home: Path | None = None, watch_memory: bool = False, timeout: float = 900) -> Run:
    """Run the command to its end, without keys and servers of this machine.

    Memory is the sum of the resident sets of the process and its descendants, 50 times a second: pages that two of
    them share count twice, and a peak shorter than that may be missed.
    """
    script = Path(sysconfig.get_path("scripts")) / "footnote"
    # No key and no server of this machine may take part.
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    if home is not None:
        environment["FOOTNOTE_HOME"] = str(home)
    started = time.monotonic()
    with subprocess.Popen(  # noqa: S603 - our own command, no shell
        [str(script), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            peak = _watch(process, started + timeout) if watch_memory else 0
            output, messages = process.communicate(timeout=max(1.0, started + timeout - time.monotonic()))
        except BaseException:  # Ctrl-C above all: the process must not go on
            process.kill()
            raise
    return Run(code=process.returncode, seconds=time.monotonic() - started, peak=peak, output=output, messages=messages)


def _watch(process: subprocess.Popen[str], deadline: float) -> int:
    """The peak in bytes. What the command prints is short enough to wait in the pipe."""
    peak = 0
    root = psutil.Process(process.pid)
    while process.poll() is None and time.monotonic() < deadline:
        peak = max(peak, sum(_resident(root)))
        time.sleep(_SAMPLE_SECONDS)
    return peak


def _resident(root: psutil.Process) -> Iterator[int]:
    try:
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            yield member.memory_info().rss
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue
