"""`footnote worker`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Final

from adapters.cli.running import ANSWERED, USAGE, CommandError, Options
from adapters.fetching import fetchers
from adapters.printing import print_json, tell
from bot import metrics
from bot.app import open_app, open_state
from bot.jobs import JobLimits, Jobs
from bot.wording import count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from bot.settings import Settings

_WHAT_FOR: Final = (
    "A worker shares the library and the state with other processes. With the embedded ones, `footnote run` runs the "
    "ingestions itself."
)


async def worker(settings: Settings, options: Options) -> int:
    """Run jobs until the process is asked to stop; those that take too long to end then go back to other workers."""
    missing = [
        name for name, url in (("REDIS_URL", settings.redis_url), ("QDRANT_URL", settings.qdrant_url)) if not url
    ]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        message = f"{' and '.join(missing)} {are} not set. {_WHAT_FOR}"
        raise CommandError(message, USAGE)
    with _Stopping().listening() as stopping:
        async with open_state(settings) as state, open_app(settings, tell) as app, _shown(settings):
            jobs = Jobs(
                state,
                app.ingestion,
                app.store,
                fetchers(),
                JobLimits.of(settings),
                redis_url=settings.redis_url,
                namespace=settings.state_namespace,
            )
            stopping.jobs = jobs
            try:
                async with jobs.worker():
                    tell(f"Waiting for jobs, {settings.jobs_at_once} at once. Ctrl-C stops.")
                    await stopping.asked.wait()
                    tell("Stopping: running jobs come to their end or go back. Ctrl-C again gives them back at once.")
            finally:
                await jobs.close()
    if options.json:
        print_json({"jobs": jobs.finished})
    else:
        tell(f"Stopped after {count(jobs.finished, 'job')}.")
    return ANSWERED


@contextlib.asynccontextmanager
async def _shown(settings: Settings) -> AsyncIterator[None]:
    with metrics.shown(settings.metrics_host, settings.metrics_port):
        yield


class _Stopping:
    """SIGTERM and Ctrl-C ask to stop; a second one hurries."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.jobs: Jobs | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[_Stopping]:
        """Hear the signals."""
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            with contextlib.suppress(NotImplementedError):  # not on Windows, where Ctrl-C cancels
                loop.add_signal_handler(number, self._hear)
        try:
            yield self
        finally:
            for number in signals:
                with contextlib.suppress(NotImplementedError):
                    loop.remove_signal_handler(number)

    def _hear(self) -> None:
        if self.asked.is_set() and self.jobs is not None:
            self.jobs.put_back()
        self.asked.set()
