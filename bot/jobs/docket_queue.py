"""The queue of jobs on pydocket: `memory://` inside this process, or Redis for all processes.

pydocket delivers at least once, redelivers what a dead process held, runs one job of an author at a time and parks the
others without their taking a worker's place. It is told a job's id and nothing else of it: the record in the state is
what counts, and putting a job on the queue twice is harmless. What pydocket stores it reads back with cloudpickle, so
whoever can write to that Redis can run code here: it has to be trusted.

Import this module in a thread: pydocket takes more than a second.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self

from docket import ConcurrencyLimit, Docket, Retry, Worker

from bot.errors import StateUnavailableError
from bot.redis_faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

_CALL_SECONDS: Final = 5.0
"""How long one call may take."""
_CHECK: Final = timedelta(milliseconds=100)
"""How often a worker looks for jobs, and how fast it passes over those that wait for another of their author."""
_RECONNECT: Final = timedelta(seconds=1)
_KEPT: Final = timedelta(minutes=1)


class DocketQueue:
    """Jobs that wait, for everybody and for this host alone. Make one with `open`."""

    def __init__(self, everywhere: Docket, here: Docket, stack: AsyncExitStack) -> None:
        self._everywhere = everywhere
        self._here = here
        self._stack = stack

    @classmethod
    async def open(
        cls, url: str | None, name: str, perform: Callable[[str], Awaitable[float | None]], *, host: str
    ) -> Self:
        """The queues called `name`.

        Args:
            url: The Redis; None: inside this process, and gone with it.
            name: What their keys begin with.
            perform: Works on a job, and returns the seconds after which it is to be called again; None: never.
            host: Names this host's own queue.

        Raises:
            StateUnavailableError: Redis does not answer.
        """

        async def ingest(
            job: str,
            by: str,  # noqa: ARG001 - the next but one reads it
            again: Retry = Retry(attempts=None, delay=timedelta(seconds=5)),  # noqa: B008 - how pydocket is told
            alone: ConcurrencyLimit = ConcurrencyLimit("by", 1),  # noqa: ARG001, B008 - as above
        ) -> None:
            pause = await perform(job)
            if pause is not None:
                again.after(timedelta(seconds=pause))

        # It logs further attempts as errors, and every second that Redis is away; our own log tells of both.
        logging.getLogger("docket").setLevel(logging.CRITICAL)
        stack = AsyncExitStack()
        try:
            if url is None:
                memory = Docket(name=name, url=f"memory://{name}-{secrets.token_hex(4)}", execution_ttl=_KEPT)
                everywhere = here = await stack.enter_async_context(memory)
            else:
                with _explained():
                    everywhere = await stack.enter_async_context(Docket(name, url, execution_ttl=_KEPT))
                    here = await stack.enter_async_context(Docket(f"{name}@{host}", url, execution_ttl=_KEPT))
            for docket in {id(docket): docket for docket in (everywhere, here)}.values():
                docket.register(ingest)
        except BaseException:  # also when cancelled: what is open must not stay
            await stack.aclose()
            raise
        return cls(everywhere, here, stack)

    async def put(self, job: str, by: str, *, local: bool) -> None:
        """Put a job on the queue, unless it is there. Raises StateUnavailableError."""
        docket = self._here if local else self._everywhere
        with _explained():
            async with asyncio.timeout(_CALL_SECONDS):
                await docket.add("ingest", key=job)(job=job, by=by)

    async def is_served(self, *, local: bool) -> bool:
        """Whether some process works on it. Raises StateUnavailableError."""
        docket = self._here if local else self._everywhere
        with _explained():
            async with asyncio.timeout(_CALL_SECONDS):
                return bool(await docket.workers())

    async def work(self, stopping: asyncio.Event, *, at_once: int, silence: float) -> None:
        """Work until `stopping` is set and the jobs under way have ended.

        Args:
            stopping: Set it to take no further jobs.
            at_once: Jobs that are taken from each queue at a time.
            silence: Seconds after which a process that does not speak counts as dead.
        """
        dockets = {id(docket): docket for docket in (self._everywhere, self._here)}
        async with asyncio.TaskGroup() as group:
            for docket in dockets.values():
                # Each in a task of its own: a worker leaves its name in the task's context.
                group.create_task(_work(docket, stopping, at_once, timedelta(seconds=silence)))

    async def close(self) -> None:
        """Let go of the connections."""
        await self._stack.aclose()


async def _work(docket: Docket, stopping: asyncio.Event, at_once: int, silence: timedelta) -> None:
    worker = Worker(
        docket,
        name=f"{socket.gethostname()}#{os.getpid()}#{secrets.token_hex(2)}",
        concurrency=at_once,
        redelivery_timeout=silence,
        reconnection_delay=_RECONNECT,
        minimum_check_interval=_CHECK,
        schedule_automatic_tasks=False,
    )
    async with asyncio.TaskGroup() as group, worker:
        running = group.create_task(worker.run_forever())
        stopped = group.create_task(stopping.wait())
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        # Leaving the worker ends its taking of jobs and waits for those under way.


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except FAULTS as error:
        message = "The queue of jobs cannot be reached: Redis does not answer. What was asked for is done once it does."
        raise StateUnavailableError(message) from error
