"""A pseudo-terminal with the real command in it: keys go in, the screen is read as it comes."""

from __future__ import annotations

import codecs
import contextlib
import os
import pty
import select
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from running_footnote import COMMAND, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Screen:
    """What a terminal shows, read as it comes."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.seen = ""
        """All of it so far."""
        self._descriptor = descriptor
        self._unread = ""
        # A sign may come in two reads.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def wait_for_prompt(self) -> None:
        """Until the chat reads keys: it shows the prompt just before it takes the terminal over."""
        self.wait_for("› ")
        time.sleep(0.5)

    def wait_for(self, text: str, seconds: float = 90) -> str:
        """Read on until the text has been shown; what came before it."""
        until = time.monotonic() + seconds
        while text not in self._unread:
            assert time.monotonic() < until, self._unread
            if select.select([self._descriptor], [], [], 0.5)[0]:
                self._read()
        before, _, self._unread = self._unread.partition(text)
        return before

    def wait_for_end(self) -> int:
        """Read until the process has ended; its exit code."""
        until = time.monotonic() + 90
        while self.process.poll() is None:
            assert time.monotonic() < until, self._unread
            if select.select([self._descriptor], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):  # the other end is closed
                    self._read()
        return self.process.returncode

    def _read(self) -> None:
        text = self._decoder.decode(os.read(self._descriptor, 65536))
        self.seen += text
        self._unread += text


@contextmanager
def terminal(*arguments: str | Path, home: Path, **variables: str) -> Iterator[Screen]:
    """The command in a terminal of its own."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, "--home", home, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment(TERM="xterm", COLUMNS="100", **variables),
        start_new_session=True,
    )
    os.close(follower)
    try:
        yield Screen(leader, process)
    finally:
        process.kill()
        process.wait()
        os.close(leader)
