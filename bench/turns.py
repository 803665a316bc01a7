"""Turns under stress: events delivered several times to processes that are killed, on a Redis that is restarted.

Real are the dispatcher, the claims, the conversations and the history on a real Redis (AOF on), and the processes; the
engine is a stub of 50 ms, and the chat platform a server on loopback. Ends with 1 when an event is lost or answered
twice, when a conversation is out of order, or when the dispatcher's own cost is over its mark.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import signal
import socket
import statistics
import sys
import sysconfig
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from measuring.chat_server import ChatServer, message
from measuring.machine import describe, verdict
from measuring.turn_process import PLATFORM, SilentReply, StubbedEngine, dispatching

from bot.messages import Message, Outcome, Standing, TurnId
from bot.redis_embedded import EmbeddedState
from bot.redis_server import ServerState
from bot.telemetry import configure_logging

if TYPE_CHECKING:
    from collections.abc import Callable


def redis_server() -> str | None:
    """The system's, or what the development environment brings."""
    packaged = Path(sysconfig.get_path("scripts")) / "redis-server"
    return shutil.which("redis-server") or (str(packaged) if packaged.is_file() else None)


PATIENCE = 60.0
"""Seconds without any post after which the rest counts as lost."""
AT_ONCE = 400
"""Events that are not answered yet at one time; the platform holds the others back."""


@dataclass(slots=True)
class Redis:
    """A redis-server of our own, with its append-only file."""

    folder: Path
    port: int
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            redis_server() or "redis-server",
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""),
            *("--appendonly", "yes", "--loglevel", "warning"),
            stdout=asyncio.subprocess.DEVNULL,
        )
        for _ in range(200):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.05)
        message = "redis-server did not start"
        raise RuntimeError(message)

    async def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            await self.process.wait()


@dataclass(slots=True)
class Bots:
    """The bot processes; a killed one is started again."""

    count: int
    arguments: list[str]
    processes: list[asyncio.subprocess.Process] = field(default_factory=list)
    killed: int = 0

    async def start(self) -> None:
        while len(self.processes) < self.count:
            self.processes.append(await self._one())

    async def _one(self) -> asyncio.subprocess.Process:
        script = Path(__file__).parent / "measuring" / "turn_process.py"
        return await asyncio.create_subprocess_exec(
            sys.executable, str(script), *self.arguments, env={**os.environ, "PYTHONPATH": _path()}
        )

    async def kill_every(self, seconds: float, choose: random.Random) -> None:
        while True:
            await asyncio.sleep(seconds)
            index = choose.randrange(len(self.processes))
            self.processes[index].send_signal(signal.SIGKILL)
            await self.processes[index].wait()
            self.killed += 1
            self.processes[index] = await self._one()

    async def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self.processes:
            await process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stress:
    """What came of a run."""

    events: int
    deliveries: int
    killed: int
    restarts: int
    seconds: float
    lost: int
    twice: int
    without_sources: int
    disordered: int
    refused: int

    def report(self, name: str) -> bool:
        print(
            f"{name}: {self.events:,} events in {self.deliveries:,} deliveries, {self.killed} processes killed, Redis "
            f"restarted {self.restarts} times, {self.seconds:.0f} s ({self.events / self.seconds:.0f} a second)"
        )
        held = [
            verdict("  lost", self.lost, 0, "events"),
            verdict("  answered twice", self.twice, 0, "events"),
            verdict("  without their sources, or with them twice", self.without_sources, 0, "events"),
            verdict("  out of order", self.disordered, 0, "conversations"),
            verdict("  refused or failed", self.refused, 0, "events"),
        ]
        return all(held)


async def stress(arguments: argparse.Namespace, events: int, *, kill: bool, restart: bool) -> Stress:
    """Deliver the events and look at what was posted."""
    choose = random.Random(arguments.seed)  # noqa: S311 - no secret
    folder = Path(tempfile.mkdtemp(prefix="footnote-turns-"))
    redis = Redis(folder, _free_port())
    server = ChatServer(choose)
    await redis.start()
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0, limit=1 << 20)
    port = listener.sockets[0].getsockname()[1]
    bots = Bots(arguments.processes, [str(port), redis.url, str(arguments.model_ms / 1000)])
    started = time.monotonic()
    try:
        await bots.start()
        async with asyncio.TaskGroup() as group:
            chores = [group.create_task(bots.kill_every(arguments.kill_every, choose))] if kill else []
            if restart:
                chores.append(group.create_task(_restart(redis, server, events)))
            threads = _threads(events, arguments.conversations or max(1, events // 8), choose)
            begun = time.monotonic()
            await _deliver_all(server, threads, choose, events)
            seconds = time.monotonic() - begun
            for chore in chores:
                chore.cancel()
        # What a killed process left to do, and duplicates that would come late.
        await _settle(server, events)
        return _count(server, bots, threads, events, seconds, restarts=1 if restart else 0)
    finally:
        await bots.stop()
        listener.close()
        await redis.stop()
        shutil.rmtree(folder, ignore_errors=True)
        print(f"  (in all {time.monotonic() - started:.0f} s)")


def _threads(events: int, conversations: int, choose: random.Random) -> dict[str, list[int]]:
    """Which event belongs to which conversation, in order."""
    threads: dict[str, list[int]] = {}
    for event in range(events):
        threads.setdefault(f"C{choose.randrange(conversations):05}", []).append(event)
    return threads


async def _deliver_all(server: ChatServer, threads: dict[str, list[int]], choose: random.Random, events: int) -> None:
    """Deliver every conversation's events in order, up to three ahead of the answers; a third of them again later."""
    room = asyncio.Semaphore(AT_ONCE)
    waiting = deque(sorted(threads.items()))

    async def talk() -> None:
        while waiting:
            conversation, numbers = waiting.popleft()
            for number, event in enumerate(numbers):
                async with room:
                    await server.deliver(message(conversation, number, event, 0))
                if choose.random() < 1 / 3:
                    for delivery in range(1, choose.randint(2, 4)):
                        again.create_task(_again(server, message(conversation, number, event, delivery), choose))
                await _answered(server, conversation, number - 2)
            await _answered(server, conversation, len(numbers))

    async with asyncio.TaskGroup() as again, asyncio.TaskGroup() as talks:
        telling = again.create_task(_tell(server, events))
        for _ in range(min(AT_ONCE, len(waiting))):
            talks.create_task(talk())
        again.create_task(_stop_when(lambda: not waiting and server.answers >= events, telling))


async def _stop_when(over: Callable[[], bool], task: asyncio.Task[None]) -> None:
    while not over() and not task.done():  # noqa: ASYNC110 - a script may look now and then
        await asyncio.sleep(0.1)
    task.cancel()


async def _tell(server: ChatServer, events: int) -> None:
    """How far it is."""
    while time.monotonic() - server.last_post < PATIENCE:
        await asyncio.sleep(5)
        if sys.stderr.isatty():
            print(f"  {server.answers:,} of {events:,} answered", file=sys.stderr)


async def _answered(server: ChatServer, conversation: str, count: int) -> None:
    """Wait until so many messages of a conversation are answered, or nothing has come for too long."""
    answered = server.answered[conversation]
    while len(answered) < count and time.monotonic() - server.last_post < PATIENCE:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.02)


async def _again(server: ChatServer, event: Message, choose: random.Random) -> None:
    await asyncio.sleep(choose.choice([0.0, 0.01, 0.5, 3.0]))
    await server.deliver(event)


async def _settle(server: ChatServer, events: int) -> None:
    while time.monotonic() - server.last_post < PATIENCE:
        sources = sum("sources" in parts for parts in server.posts.values())
        if server.answers >= events and sources >= events:
            break
        await asyncio.sleep(0.2)
    await asyncio.sleep(5)


def _count(
    server: ChatServer, bots: Bots, threads: dict[str, list[int]], events: int, seconds: float, *, restarts: int
) -> Stress:
    lost = twice = sources = disordered = 0
    for conversation, numbers in threads.items():
        answers = server.answered.get(conversation, [])
        wanted = [message(conversation, number, event, 0) for number, event in enumerate(numbers)]
        for event in wanted:
            times = answers.count(event.id)
            lost += times == 0
            twice += times > 1
            sources += server.posts[event.turn_id].count("sources") != 1
        first = list(dict.fromkeys(answers))
        disordered += first != [event.id for event in wanted if event.id in first]
    return Stress(
        events=events,
        deliveries=server.deliveries,
        killed=bots.killed,
        restarts=restarts,
        seconds=seconds,
        lost=lost,
        twice=twice,
        without_sources=sources,
        disordered=disordered,
        refused=len(server.said),
    )


async def _restart(redis: Redis, server: ChatServer, events: int) -> None:
    """Restart Redis when half of the events are answered."""
    while server.answers < events / 2:  # noqa: ASYNC110 - a script may look now and then
        await asyncio.sleep(0.05)
    await redis.stop()
    await asyncio.sleep(1)
    await redis.start()


# ---- one process --------------------------------------------------------------------------------------------------


class SilentPlatform:
    """Takes every post and shows nothing."""

    name = PLATFORM

    def reply(self, message: Message, turn_id: TurnId) -> SilentReply:
        async def post(part: str) -> None: ...

        return SilentReply(post)

    async def standing(self, message: Message, turn_id: TurnId) -> Standing:
        return Standing()

    async def thread(self, message: Message, limit: int) -> tuple[()]:
        return ()


async def cost(kind: str, count: int) -> float:
    """Median milliseconds from an event to its outcome, without model and search, one after the other."""
    redis: Redis | None = None
    folder = Path(tempfile.mkdtemp(prefix="footnote-turns-"))
    try:
        if kind == "Redis":
            redis = Redis(folder, _free_port())
            await redis.start()
            state: EmbeddedState | ServerState = await ServerState.open(redis.url, "bench")
        else:
            state = await EmbeddedState.open(folder / "state" / "snapshot")
        took = []
        async with dispatching(state, SilentPlatform(), StubbedEngine(0), "bench") as dispatcher:
            for event in range(count):
                begun = time.perf_counter()
                receipt = await dispatcher.receive(message(f"C{event % 50}", event // 50, event, 0))
                outcome = await dispatcher.outcome(receipt)
                took.append((time.perf_counter() - begun) * 1000)
                if outcome is not Outcome.ANSWERED:
                    problem = f"an event ended in {outcome}"
                    raise RuntimeError(problem)
        bare = [await _bare_call(state) for _ in range(count)]
        print(f"a bare call of the state, {kind}, median: {statistics.median(bare):.2g} ms (a turn makes eight)")
        await state.close()
        return statistics.median(took[count // 10 :])
    finally:
        if redis is not None:
            await redis.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def _bare_call(state: EmbeddedState | ServerState) -> float:
    """Milliseconds of the least that can be asked: what the machine and the client take of a turn's cost."""
    begun = time.perf_counter()
    await state.get(state.key("bench", "nothing"))
    return (time.perf_counter() - begun) * 1000


async def together(count: int) -> int:
    """How many of so many conversations end when no turn ends before all have begun."""
    inside = 0
    everyone = asyncio.Event()

    async def enter() -> None:
        nonlocal inside
        inside += 1
        if inside == count:
            everyone.set()
        await asyncio.wait_for(everyone.wait(), 30)

    state = await EmbeddedState.open(None)
    async with dispatching(state, SilentPlatform(), StubbedEngine(0.05, enter), "bench") as dispatcher:
        receipts = [await dispatcher.receive(message(f"C{event}", 0, event, 0)) for event in range(count)]
        outcomes = await asyncio.gather(*map(dispatcher.outcome, receipts))
    await state.close()
    return sum(outcome is Outcome.ANSWERED for outcome in outcomes)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _path() -> str:
    here = Path(__file__).resolve().parent
    return os.pathsep.join([str(here), str(here.parent)])


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--conversations", type=int, default=0, help="an eighth of the events when not given")
    parser.add_argument("--kill-every", type=float, default=5.0, help="seconds")
    parser.add_argument("--model-ms", type=float, default=50.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.events < 1 or arguments.processes < 1:
        parser.error("--events and --processes have to be at least 1")
    if redis_server() is None:
        parser.error("redis-server is not installed; on Debian and Ubuntu: apt install redis-server")
    configure_logging("error")
    print(describe())
    held = [
        # First: minutes of full load slow the machine down for a while.
        verdict("dispatcher's own cost, embedded, median", await cost("embedded", 500), 2, "ms"),
        verdict("dispatcher's own cost, Redis, median", await cost("Redis", 500), 5, "ms"),
        (await stress(arguments, arguments.events, kill=True, restart=False)).report("processes killed"),
        (await stress(arguments, max(1, arguments.events // 4), kill=False, restart=True)).report("Redis restarted"),
        verdict("200 conversations at once, not answered", 200 - await together(200), 0, "conversations"),
    ]
    print(f"{'all figures hold' if all(held) else 'A FIGURE FALLS SHORT'} (events {arguments.events})")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
