"""What every state keeps to: inside the process and on a real Redis, alone and as a cluster."""

from __future__ import annotations

import asyncio
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from blockbuster import blockbuster_ctx
from fakes.redis_server import BINARY, RedisServer, running
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import StateError, StateUnavailableError
from bot.ports import Script
from bot.redis_embedded import EmbeddedState
from bot.redis_server import ServerState
from bot.state_keys import state_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from bot.ports import State, Value

CLUSTER_SECONDS = 30.0
ODD = ["plain", "", "a b", "a:b", "{x}", "}{", "%7B", "日本語", "ä\n\0", "🏳️‍🌈", "*", "[a]?", "\ud800"]


@pytest.fixture(scope="module")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of one node that has all slots."""
    if BINARY is None:
        pytest.skip("no redis-server is installed here")
    server = RedisServer(tmp_path_factory.mktemp("cluster"), options="--cluster-enabled yes")
    with running(server):
        client = [BINARY.replace("redis-server", "redis-cli"), "-p", str(server.port), "cluster"]
        subprocess.run([*client, "addslots", *map(str, range(16_384))], check=True, capture_output=True)  # noqa: S603 - fixed
        end = time.monotonic() + CLUSTER_SECONDS
        while (
            "cluster_state:ok"
            not in subprocess.run(  # noqa: S603 - as above
                [*client, "info"], check=True, capture_output=True, text=True
            ).stdout
        ):
            assert time.monotonic() < end
            time.sleep(0.1)
        yield server.url.replace("redis://", "redis+cluster://")


@pytest.fixture(params=["embedded", "redis", "cluster"])
async def state(request: pytest.FixtureRequest, tmp_path: object) -> AsyncIterator[State]:
    """A fresh state of each kind; the embedded one keeps its file, as in earnest."""
    if request.param == "embedded":
        opened: State = await EmbeddedState.open(request.getfixturevalue("tmp_path") / "state")
    else:
        url = request.getfixturevalue("redis_url" if request.param == "redis" else "cluster_url")
        opened = await ServerState.open(url, f"test-{uuid.uuid4().hex[:12]}")
    yield opened
    await opened.close()


async def returned(state: State, text: str, *args: Value, keys: tuple[str, ...] = ()) -> object:
    return await state.run(Script(name="test", text=text), keys, args)


async def test_it_says_whether_others_see_it(state: State) -> None:
    assert state.shared is isinstance(state, ServerState)


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [
        ("text", b"text"),
        ("ä", "ä".encode()),
        ("", b""),
        (b"\xff\x00", b"\xff\x00"),
        (0, b"0"),
        (-(2**53), b"-9007199254740992"),
        (1.5, b"1.5"),
        (True, b"1"),
        ("a\ud800b", b"a?b"),
    ],
)
async def test_every_kind_of_value_comes_back_as_bytes(state: State, value: Value, bytes_: bytes) -> None:
    key, table = state.key("tag", "value"), state.key("tag", "table")
    await state.set(key, value)
    await state.hset(table, {"field": value})
    assert await state.get(key) == bytes_
    assert await state.hgetall(table) == {b"field": bytes_}
    assert await returned(state, "return ARGV[1]", value) == bytes_
    assert await returned(state, "return redis.call('GET', KEYS[1])", keys=(key,)) == bytes_


async def test_what_is_not_there_is_none_or_empty(state: State) -> None:
    key = state.key("tag", "nothing")
    assert await state.get(key) is None
    assert await state.hgetall(key) == {}
    assert await state.lrange(key, 0, -1) == []
    assert await state.zrange(key, 0, -1) == []
    assert (await state.zcard(key), await state.zrem(key, "a"), await state.hdel(key, "a")) == (0, 0, 0)
    assert await state.delete(key) == 0
    await state.expire(key, 10)
    assert await state.get(key) is None


async def test_nothing_to_do_does_nothing(state: State) -> None:
    key = state.key("tag", "key")
    await state.hset(key, {})
    await state.zadd(key, {})
    assert (await state.delete(), await state.hdel(key), await state.zrem(key)) == (0, 0, 0)


async def test_values_are_deleted_and_counted(state: State) -> None:
    a, b, c = (state.key("tag", name) for name in "abc")
    await state.set(a, 1)
    await state.hset(b, {"x": 1})
    assert await state.delete(a, b, c) == 2
    assert (await state.get(a), await state.hgetall(b)) == (None, {})


async def test_fields_of_a_hash(state: State) -> None:
    key = state.key("tag", "hash")
    await state.hset(key, {"a": 1, "ä": "x", "": b"\xff"})
    await state.hset(key, {"a": 2, "b": 3})
    assert await state.hgetall(key) == {b"a": b"2", "ä".encode(): b"x", b"": b"\xff", b"b": b"3"}
    assert await state.hdel(key, "a", "ä", "absent") == 2
    assert await state.hgetall(key) == {b"": b"\xff", b"b": b"3"}


async def test_a_sorted_set_is_read_by_rank(state: State) -> None:
    key = state.key("tag", "set")
    await state.zadd(key, {"c": 3, "a": 1.25, "b": -1, "ä": 1_764_566_461_123})
    await state.zadd(key, {"c": 0})
    assert await state.zcard(key) == 4
    assert await state.zrange(key, 0, -1) == [b"b", b"c", b"a", "ä".encode()]
    assert await state.zrange(key, -2, -1) == [b"a", "ä".encode()]
    assert await state.zrange(key, 1, 1) == [b"c"]
    assert await state.zrange(key, 5, 9) == []
    assert await state.zrem(key, "a", "ä", "absent") == 2
    assert await state.zrange(key, 0, -1) == [b"b", b"c"]


async def test_a_list_is_read_by_place(state: State) -> None:
    key = state.key("tag", "list")
    await returned(state, "for _, word in ipairs(ARGV) do redis.call('RPUSH', KEYS[1], word) end", *"abcd", keys=(key,))
    assert await state.lrange(key, 0, -1) == [b"a", b"b", b"c", b"d"]
    assert await state.lrange(key, 1, 2) == [b"b", b"c"]
    assert await state.lrange(key, -2, -1) == [b"c", b"d"]
    assert await state.lrange(key, 4, 9) == []


@pytest.mark.parametrize("seconds", [0.05, 1e-9])
async def test_a_value_expires(state: State, seconds: float) -> None:
    key, other = state.key("tag", "key"), state.key("tag", "other")
    await state.set(key, "x", seconds=seconds)
    await state.set(other, "x", seconds=60)
    await asyncio.sleep(0.1)
    assert (await state.get(key), await state.get(other)) == (None, b"x")


@pytest.mark.parametrize("seconds", [0.05, 1])
async def test_an_expiry_is_set_later_and_a_new_value_has_none(state: State, seconds: float) -> None:
    key, other = state.key("tag", "key"), state.key("tag", "other")
    for name in (key, other):
        await state.set(name, "x")
        await state.expire(name, seconds)
    await state.set(other, "y")
    assert await state.get(key) == b"x"
    await asyncio.sleep(seconds + 0.1)
    assert (await state.get(key), await state.get(other)) == (None, b"y")


@pytest.mark.parametrize("odd", ODD)
async def test_any_characters_may_stand_in_a_key(state: State, odd: str) -> None:
    key = state.key(odd, odd, "x")
    await state.set(key, "here")
    assert await state.get(key) == b"here"
    assert await state.get(state.key(odd, "x")) is None
    # One tag is one node of a cluster: both may be used at once.
    assert await state.delete(key, state.key(odd, "y")) == 1
    assert await returned(state, "return #KEYS", keys=(key, state.key(odd, "y"))) == 2


@given(st.lists(st.text(), min_size=1, max_size=4), st.lists(st.text(), min_size=1, max_size=4))
def test_two_names_never_make_one_key(one: list[str], other: list[str]) -> None:
    keys = state_key("ns", *one), state_key("ns", *other)
    assert (keys[0] == keys[1]) == (one == other)
    for key, name in zip(keys, (one, other), strict=True):
        assert key.isascii()
        assert (key.count("{"), key.count("}"), key.count(":")) == (1, 1, len(name))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("return 7", 7),
        ("return -7", -7),
        ("return 'ä'", "ä".encode()),
        ("return nil", None),
        ("return false", None),
        ("return true", 1),
        ("", None),
        ("local x = 1", None),
        ("return {1, 'x', {2, false}}", [1, b"x", [2, None]]),
        ("return {}", []),
        ("return ARGV", [b"a", b"1", b"1.5", b"\xff"]),
        ("return KEYS", []),
        ("return #ARGV", 4),
        ("return ARGV[1] -- a remark at the end", b"a"),
    ],
)
async def test_what_scripts_return(state: State, text: str, answer: object) -> None:
    assert await returned(state, text, "a", 1, 1.5, b"\xff") == answer


async def test_commands_in_scripts_answer_alike(state: State) -> None:
    key, table, ranks = (state.key("tag", name) for name in ("key", "table", "ranks"))
    text = """
        local first = redis.call('SET', KEYS[1], 'x', 'NX', 'PX', 60000)
        local second = redis.call('SET', KEYS[1], 'y', 'NX', 'PX', 60000)
        local missing = redis.call('GET', KEYS[2])
        redis.call('ZADD', KEYS[3], NOW, 'm')
        local set, score = redis.call('hset', KEYS[2], 'a', 1), redis.call('ZSCORE', KEYS[3], 'm')
        return {first and 1 or 0, second and 1 or 0, missing == false and 1 or 0, set,
            tonumber(score) == tonumber(NOW) and 1 or 0, redis.call('EXISTS', KEYS[1])}
    """
    assert await returned(state, text, keys=(key, table, ranks)) == [1, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("fill", "empty"),
    [
        ("redis.call('HSET', KEYS[1], 'a', 1)", "redis.call('HDEL', KEYS[1], 'a')"),
        ("redis.call('ZADD', KEYS[1], 1, 'a')", "redis.call('ZREM', KEYS[1], 'a')"),
        ("redis.call('ZADD', KEYS[1], 1, 'a')", "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '+inf')"),
        ("redis.call('RPUSH', KEYS[1], 'a')", "redis.call('LPOP', KEYS[1])"),
        ("redis.call('RPUSH', KEYS[1], 'a')", "redis.call('RPOP', KEYS[1])"),
        ("redis.call('RPUSH', KEYS[1], 'a')", "redis.call('LREM', KEYS[1], 0, 'a')"),
        ("redis.call('RPUSH', KEYS[1], 'a')", "redis.call('LTRIM', KEYS[1], 1, -1)"),
        ("redis.call('SADD', KEYS[1], 'a')", "redis.call('SREM', KEYS[1], 'a')"),
    ],
)
async def test_what_is_emptied_is_gone(state: State, fill: str, empty: str) -> None:
    text = f"{fill} local full = redis.call('EXISTS', KEYS[1]) {empty} return {{full, redis.call('EXISTS', KEYS[1])}}"
    assert await returned(state, text, keys=(state.key("tag", "key"),)) == [1, 0]


async def test_what_was_emptied_begins_anew_without_its_expiry(state: State) -> None:
    table, ranks = state.key("tag", "table"), state.key("tag", "ranks")
    await state.hset(table, {"a": 1})
    await state.zadd(ranks, {"a": 1})
    for key in (table, ranks):
        await state.expire(key, 0.2)
    assert (await state.hdel(table, "a"), await state.zrem(ranks, "a")) == (1, 1)
    await state.hset(table, {"b": 1})
    await state.zadd(ranks, {"b": 1})
    await asyncio.sleep(0.3)
    assert (await state.hgetall(table), await state.zrange(ranks, 0, -1)) == ({b"b": b"1"}, [b"b"])


async def test_now_is_the_time_in_milliseconds_and_never_goes_back(state: State) -> None:
    times = [await returned(state, "return NOW") for _ in range(20)]
    assert all(isinstance(moment, int) for moment in times)
    assert times == sorted(times)  # type: ignore[type-var]  # see above
    assert abs(times[-1] / 1000 - time.time()) < 60  # type: ignore[operator]  # see above


async def test_a_script_with_a_fault_is_a_state_error(state: State) -> None:
    key = state.key("tag", "key")
    await state.hset(key, {"a": 1})
    for text in ("retrun 1", "error('x')", "return redis.call('NOSUCH')", "return redis.call('GET', KEYS[1])"):
        with pytest.raises(StateError) as raised:
            await returned(state, text, keys=(key,))
        assert type(raised.value) is StateError
        assert raised.value.__cause__ is not None
        assert "redis.call" not in str(raised.value)
    assert await state.hgetall(key) == {b"a": b"1"}


async def test_a_value_of_another_kind_is_a_state_error(state: State) -> None:
    text, table = state.key("tag", "text"), state.key("tag", "table")
    await state.set(text, "x")
    await state.hset(table, {"a": 1})
    calls: list[Awaitable[object]] = [
        state.get(table),
        state.hgetall(text),
        state.hset(text, {"a": 1}),
        state.hdel(text, "a"),
    ]
    calls += [state.lrange(text, 0, -1), state.zadd(text, {"a": 1}), state.zrem(text, "a"), state.zcard(table)]
    for call in calls:
        with pytest.raises(StateError) as raised:
            await call
        assert type(raised.value) is StateError
    assert await state.get(text) == b"x"


async def test_two_scripts_of_one_name_are_two_scripts(state: State) -> None:
    assert [await returned(state, f"return {n}") for n in (1, 2, 1)] == [1, 2, 1]


async def test_a_megabyte_is_a_value(state: State) -> None:
    key, big = state.key("tag", "big"), bytes(range(256)) * 4096
    await state.set(key, big)
    assert await state.get(key) == big
    assert await returned(state, "redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1]", big, keys=(key,)) == big


async def test_two_hundred_calls_at_once(state: State) -> None:
    key = state.key("tag", "count")
    text = "return redis.call('HINCRBY', KEYS[1], 'n', 1)"
    counts = await asyncio.gather(*(returned(state, text, keys=(key,)) for _ in range(200)))
    assert sorted(counts) == list(range(1, 201))  # type: ignore[type-var]  # integers, says the comparison


async def test_a_call_that_is_cancelled_leaves_no_reply_to_the_next(state: State) -> None:
    keys = [state.key("tag", str(n)) for n in range(40)]
    for number, key in enumerate(keys):
        await state.set(key, number)
    for turn in range(40):
        calls = [asyncio.ensure_future(state.get(key)) for key in keys]
        for _ in range(turn):
            await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for number, answer in enumerate(answers):
            assert answer == str(number).encode() or (number % 2 == 0 and isinstance(answer, asyncio.CancelledError))
    assert [await state.get(key) for key in keys] == [str(number).encode() for number in range(40)]


async def test_nothing_blocks_the_loop(state: State) -> None:
    key = state.key("tag", "key")
    with blockbuster_ctx():
        for _ in range(20):
            await state.set(key, "x", seconds=5)
            await returned(state, "return redis.call('GET', KEYS[1])", keys=(key,))
        await asyncio.sleep(1.2)  # the file of the embedded one is written meanwhile
        await state.close()


async def test_after_closing_it_is_unavailable_and_closing_again_does_nothing(state: State) -> None:
    await state.close()
    await state.close()
    for call in (state.get(state.key("tag", "a")), returned(state, "return 1")):
        with pytest.raises(StateUnavailableError):
            await call
