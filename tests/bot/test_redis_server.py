"""What can happen to a server and on the way to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from typing import TYPE_CHECKING

import pytest
from fakes.redis_server import BINARY, OPENSSL, RedisServer, free_port, running
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.errors import StateMisconfiguredError, StateUnavailableError
from bot.ports import Script
from bot.redis_faults import BrokenError
from bot.redis_server import CONNECTIONS, ServerState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(BINARY is None, reason="no redis-server is installed here")

SECRET = "sesame-open"
GO_ON = Script(name="go_on", text="return redis.call('HINCRBY', KEYS[1], 'n', 1)")


async def refused(url: str, *, seconds: float = 2.0) -> str:
    """The sentence of the start that fails; nowhere does it show the password."""
    with pytest.raises((StateMisconfiguredError, StateUnavailableError)) as raised, capture_logs() as logs:
        await ServerState.open(SecretStr(url), timeout=seconds)
    assert SECRET not in f"{raised.value!r} {raised.value.__cause__!r} {logs}"
    return f"{'misconfigured' if isinstance(raised.value, StateMisconfiguredError) else 'unavailable'}: {raised.value}"


async def kept_on(state: ServerState, within: float = 15.0) -> None:
    """Until the state works again."""
    end = time.monotonic() + within
    while True:
        try:
            await state.set(state.key("probe"), "x")
        except StateUnavailableError:
            assert time.monotonic() < end
            await asyncio.sleep(0.05)
        else:
            return


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
async def test_a_server_that_is_down_is_named_without_its_password(scheme: str) -> None:
    port = free_port()
    sentence = await refused(f"{scheme}://user:{SECRET}@127.0.0.1:{port}/0")
    assert sentence.startswith(f"unavailable: The Redis at {scheme}://127.0.0.1:{port}/0 cannot be reached. Start it.")
    assert "Correct REDIS_URL, or unset it" in sentence


async def test_passwords_in_the_query_are_not_shown_either() -> None:
    sentence = await refused(f"redis://127.0.0.1:{free_port()}?password={SECRET}")
    assert "cannot be reached" in sentence


async def test_a_name_that_nobody_has() -> None:
    assert "redis://nobody.invalid" in await refused(f"redis://:{SECRET}@nobody.invalid")


@pytest.mark.parametrize(
    "url",
    [
        f"http://:{SECRET}@localhost:6379",
        f"redis://:{SECRET}/open@localhost:6379",
        f"redis://:{SECRET}@localhost:99999",
        f"redis://:{SECRET}@localhost:6379/main",
        f"redis://:{SECRET}@localhost:6379/0?colour=red",
        f"redis://:{SECRET}@localhost:6379/0?db=many",
        f"redis+cluster://:{SECRET}@localhost:6379/0?colour=red",
        f"rediss://:{SECRET}@localhost:6379/0?ssl_min_version=x",
        SECRET,
        "",
    ],
)
async def test_what_is_no_address(url: str) -> None:
    sentence = await refused(url)
    assert sentence.startswith("misconfigured: REDIS_URL is not the address of a Redis, such as redis://localhost")


async def test_passwords(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path, password=SECRET)) as server:
        state = await ServerState.open(server.url)
        assert SECRET not in f"{state!r} {state.address}"
        await state.close()
        assert "wants a password" in await refused(server.url.replace(f":{SECRET}@", ""))
        for wrong in (f":x{SECRET}@", f"somebody:{SECRET}@"):
            sentence = await refused(server.url.replace(f":{SECRET}@", wrong))
            assert sentence.startswith("misconfigured: ")
            assert "does not take the user or the password" in sentence


async def test_a_password_that_no_longer_holds_is_waited_for(tmp_path: Path) -> None:
    server = RedisServer(tmp_path, password=SECRET)
    with running(server):
        state = await ServerState.open(server.url)
        server.stop()
        server.password = "another"
        server.start()
        failures = await asyncio.gather(*(state.get(state.key("a")) for _ in range(5)), return_exceptions=True)
        assert {type(failure) for failure in failures} <= {StateUnavailableError, BrokenError}
        server.stop()
        server.password = SECRET
        server.start()
        await kept_on(state)
        await state.close()


@pytest.mark.skipif(OPENSSL is None, reason="no openssl is installed here")
async def test_tls(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path / "tls", tls=True)) as server:
        state = await ServerState.open(server.url)
        await state.set(state.key("a"), "x")
        assert await state.get(state.key("a")) == b"x"
        await state.close()
        bare = server.url.partition("?")[0]
        sentence = await refused(bare)
        assert sentence.startswith("misconfigured: ")
        assert "?ssl_ca_certs=FILE" in sentence
        assert "write rediss://" in await refused(bare.replace("rediss://", "redis://"))
    with running(RedisServer(tmp_path / "plain")) as server:
        assert "does not answer" in await refused(server.url.replace("redis://", "rediss://"), seconds=0.3)


async def test_a_socket_of_the_system(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path)) as server:
        state = await ServerState.open(server.socket_url)
        await state.set(state.key("a"), "x")
        assert await state.get(state.key("a")) == b"x"
        await state.close()
    assert f"unix://{tmp_path}/redis.sock cannot be reached" in await refused(server.socket_url)


async def test_the_url_cannot_change_how_answers_are_read(redis_url: str) -> None:
    state = await ServerState.open(f"{redis_url}?decode_responses=true&protocol=3&socket_timeout=0.000001")
    await state.hset(state.key("a"), {"x": 1})
    assert await state.hgetall(state.key("a")) == {b"x": b"1"}
    await state.close()


async def test_a_cluster_and_a_server_are_not_taken_for_each_other(tmp_path: Path, redis_url: str) -> None:
    assert "write redis://" in await refused(redis_url.replace("redis://", "redis+cluster://"))
    with running(RedisServer(tmp_path, options="--cluster-enabled yes")) as server:
        for url in (server.url, server.url.replace("redis://", "redis+cluster://")):
            sentence = await refused(url)
            assert sentence.startswith("unavailable: ")
            assert "a cluster of which a part is down" in sentence


async def test_a_database_that_is_not_there(redis_url: str) -> None:
    assert "misconfigured: " in (sentence := await refused(redis_url.replace("/0", "/99")))
    assert "no database of this number" in sentence


async def test_a_replica_is_told_at_the_start(tmp_path: Path) -> None:
    with (
        running(RedisServer(tmp_path / "primary")) as primary,
        running(RedisServer(tmp_path / "replica", options=f"--replicaof 127.0.0.1 {primary.port}")) as replica,
    ):
        assert "a replica that takes no writes" in await refused(replica.url)


async def test_a_user_who_may_too_little_is_told_at_the_start(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path)) as server:
        state = await ServerState.open(server.url)
        await state._do("ACL", "SETUSER", "reader", "on", f">{SECRET}", "~*", "+@read", "+@connection")
        await state.close()
        sentence = await refused(server.url.replace("//", f"//reader:{SECRET}@"))
        assert "does not let this user" in sentence


async def test_a_full_server_still_reads_and_is_told(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path)) as server:
        state = await ServerState.open(server.url)
        await state.set(state.key("a"), "x")
        await state._do("CONFIG", "SET", "maxmemory", "1")
        for write in (state.set(state.key("b"), "x"), state.run(GO_ON, [state.key("n")])):
            with pytest.raises(StateUnavailableError, match="has no memory left"):
                await write
        assert await state.get(state.key("a")) == b"x"
        await state.close()
        assert "has no memory left" in await refused(server.url)


@contextlib.asynccontextmanager
async def listening(answer: bytes | None) -> AsyncIterator[str]:
    """Something else at a port: it answers so, or never."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(100)
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"redis://:{SECRET}@127.0.0.1:{server.sockets[0].getsockname()[1]}/0"


async def test_something_else_is_told_from_a_redis() -> None:
    async with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        assert "misconfigured: " in (sentence := await refused(url))
        assert "does not answer like a Redis" in sentence
    async with listening(b"") as url:
        assert "closed the connection" in await refused(url)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
async def test_a_server_that_never_answers_is_not_waited_for_long(scheme: str) -> None:
    async with listening(None) as url, asyncio.timeout(10):
        assert "does not answer" in await refused(url.replace("redis://", f"{scheme}://"), seconds=0.2)


async def test_a_host_that_swallows_everything_is_not_waited_for_long() -> None:
    # A port whose line of waiting connections is full: the system answers no more.
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        async with asyncio.timeout(10):
            assert "does not answer" in await refused(f"redis://127.0.0.1:{full.getsockname()[1]}", seconds=0.2)


async def test_down_later_calls_fail_at_once_and_it_comes_back_by_itself(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path)) as server:
        state = await ServerState.open(server.url)
        for _ in range(3):
            await state.run(GO_ON, [state.key("n")])
        with capture_logs() as logs:
            server.kill()
            with pytest.raises(StateUnavailableError, match=f"127.0.0.1:{server.port}"):
                await state.get(state.key("a"))
            for _ in range(100):
                with pytest.raises(StateUnavailableError):
                    await state.get(state.key("a"))
            server.start()
            await kept_on(state)
            # The server has forgotten the script, and all its connections are new.
            assert await asyncio.gather(*(state.run(GO_ON, [state.key("m")]) for _ in range(50)))
        assert [line["event"] for line in logs] == ["state_unavailable", "state_available"]
        await state.close()


async def test_a_frozen_server_holds_up_one_call_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(RedisServer(tmp_path)) as server:
        state = await ServerState.open(server.url, timeout=0.4)
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(StateUnavailableError, match="does not answer"):
            await state.get(state.key("a"))
        tried = under_way = most = 0
        execute = state._client.execute_command

        async def counted(*command: str) -> object:
            nonlocal tried, under_way, most
            tried, under_way = tried + 1, under_way + 1
            most = max(most, under_way)
            try:
                return await execute(*command)
            finally:
                under_way -= 1

        monkeypatch.setattr(state._client, "execute_command", counted)
        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(unavailable(state))
                await asyncio.sleep(0.005)
        assert 1 <= tried < 20
        assert most == 1
        os.kill(server.pid, signal.SIGCONT)
        await kept_on(state)
        assert await state.get(state.key("probe")) == b"x"
        await state.close()


async def unavailable(state: ServerState) -> None:
    with pytest.raises(StateUnavailableError):
        await state.get(state.key("a"))


async def test_a_script_is_never_run_twice_by_a_broken_connection(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path, append_only=True)) as server:
        state = await ServerState.open(server.url)
        done = failed = 0

        async def go_on() -> None:
            nonlocal done, failed
            for _ in range(100):
                try:
                    await state.run(GO_ON, [state.key("n")])
                    done += 1
                except StateUnavailableError:
                    failed += 1
                    await asyncio.sleep(0.02)

        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(go_on())
            await asyncio.sleep(0.1)
            server.restart()
        await kept_on(state)
        count = int((await state.hgetall(state.key("n")))[b"n"])
        assert failed
        assert done <= count <= done + failed
        await state.close()


async def test_with_an_append_only_file_the_data_outlives_a_crash(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path, append_only=True)) as server:
        state = await ServerState.open(server.url)
        await state.set(state.key("a"), "x", seconds=600)
        server.kill()
        server.start()
        await kept_on(state)
        assert await state.get(state.key("a")) == b"x"
        await state.close()


async def test_it_has_no_more_connections_than_that(tmp_path: Path) -> None:
    with running(RedisServer(tmp_path)) as server:
        state = await ServerState.open(server.url)
        await asyncio.gather(*(state.get(state.key(str(n))) for n in range(300)))
        assert (await state._do("INFO"))["connected_clients"] <= CONNECTIONS
        await state.close()


async def test_cancelling_the_one_that_tries_lets_another_try(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    with running(server):
        state = await ServerState.open(server.url, timeout=0.4)
        server.kill()
        with pytest.raises(StateUnavailableError):
            await state.get(state.key("a"))
        await asyncio.sleep(0.3)
        trying = asyncio.ensure_future(state.get(state.key("a")))
        await asyncio.sleep(0)
        trying.cancel()
        with pytest.raises((asyncio.CancelledError, StateUnavailableError)):
            await trying
        server.start()
        await kept_on(state)
        await state.close()


async def test_namespaces_keep_apart(redis_url: str) -> None:
    one, other = await ServerState.open(redis_url, "one"), await ServerState.open(redis_url, "other")
    await one.set(one.key("a"), "x", seconds=60)
    assert await other.get(other.key("a")) is None
    await one.close()
    await other.close()


@pytest.mark.parametrize(
    ("options", "evicts", "keeps"),
    [
        ("", None, False),
        ("--maxmemory 100mb --maxmemory-policy noeviction", None, False),
        ("--maxmemory 100mb --maxmemory-policy volatile-lru", "volatile-lru", False),
        ("--maxmemory-policy allkeys-lru", None, False),
        ("--appendonly yes", None, True),
        ("--save 60 1", None, True),
    ],
)
async def test_facts(tmp_path: Path, options: str, evicts: str | None, keeps: bool) -> None:  # noqa: FBT001 - parametrised
    with running(RedisServer(tmp_path, options=options)) as server:
        state = await ServerState.open(server.url)
        facts = await state.facts()
        assert facts.version[0].isdigit()
        assert (facts.evicts, facts.keeps) == (evicts, keeps)
        await state.close()


async def test_nothing_of_the_library_is_logged(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        state = await ServerState.open(redis_url.replace("//", "//default:@"))
        await state.set(state.key("a"), SECRET)
        await state.close()
    assert SECRET not in caplog.text
