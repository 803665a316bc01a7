"""What the embedded state keeps, and what can happen to its file."""

# ruff: noqa: ASYNC240 - a test may look at a file

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import stat
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from burner_redis import BurnerRedis
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot import redis_keeping
from bot.errors import StateError, StateMisconfiguredError
from bot.ports import Script
from bot.redis_embedded import EmbeddedState
from bot.state_file import FILE, Kept, StateFile, _packed, _unpacked, is_used, read_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.ports import State
    from bot.redis_keeping import Keeper

PUSH = Script(name="push", text="return redis.call('RPUSH', KEYS[1], ARGV[1])")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state"


async def until(true: Callable[[], bool], within: float = 20.0) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def value_of(folder: Path, key: str) -> bytes | None:
    kept = read_only(folder).get(key.encode())
    return kept.content if kept is not None and isinstance(kept.content, bytes) else None


def keeper(state: EmbeddedState) -> Keeper:
    assert state._keeper is not None
    return state._keeper


async def fill(state: State) -> None:
    await state.set(state.key("ä", "text"), b"\xff\x00", seconds=1000)
    await state.set(state.key("ä", "empty"), "")
    await state.hset(state.key("a", "table"), {"ä": "ö", "b": b"\xfe"})
    await state.zadd(state.key("a", "ranks"), {"x": 1_764_566_461_123, "ä": -0.1})
    for word in ("one", "two", b"\xfd"):
        await state.run(PUSH, [state.key("a", "line")], [word])
    await state.run(Script(name="s", text="redis.call('SADD', KEYS[1], 'p', 'q')"), [state.key("a", "circle")])
    await state.expire(state.key("a", "line"), 1000)


async def contents(state: State) -> list[object]:
    ttl = Script(name="members", text="local m = redis.call('SMEMBERS', KEYS[1]) table.sort(m) return m")
    return [
        await state.get(state.key("ä", "text")),
        await state.get(state.key("ä", "empty")),
        await state.hgetall(state.key("a", "table")),
        await state.zrange(state.key("a", "ranks"), 0, -1),
        await state.lrange(state.key("a", "line"), 0, -1),
        await state.run(ttl, [state.key("a", "circle")]),
    ]


FULL = [b"\xff\x00", b"", {"ä".encode(): "ö".encode(), b"b": b"\xfe"}, ["ä".encode(), b"x"]]
FULL += [[b"one", b"two", b"\xfd"], [b"p", b"q"]]


async def test_all_kinds_are_there_after_a_restart(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    await fill(state)
    assert await contents(state) == FULL
    await state.close()
    for _ in range(2):
        state = await EmbeddedState.open(folder)
        assert await contents(state) == FULL
        score = await state.run(Script(name="z", text="return redis.call('ZSCORE', KEYS[1], 'ä')"), ranks(state))
        assert isinstance(score, bytes)
        assert float(score) == -0.1
        await state.close()


def ranks(state: State) -> list[str]:
    return [state.key("a", "ranks")]


async def test_expiries_are_kept_and_go_on_while_nobody_runs(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    await state.set(state.key("a", "long"), "x", seconds=100)
    await state.set(state.key("a", "short"), "x", seconds=0.1)
    await state.set(state.key("a", "good"), "x")
    await state.close()
    await asyncio.sleep(1.3)  # whole seconds, rounded up
    seconds = {key: kept.seconds for key, kept in read_only(folder).items()}
    assert set(seconds) == {state.key("a", "long").encode(), state.key("a", "good").encode()}
    assert seconds[state.key("a", "good").encode()] is None
    assert 90 < (seconds[state.key("a", "long").encode()] or 0) < 100
    state = await EmbeddedState.open(folder)
    assert 90 < await state._client.ttl(state.key("a", "long")) <= 100
    assert await state.get(state.key("a", "short")) is None
    await state.close()


async def test_what_is_removed_is_gone_after_a_restart(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    await fill(state)
    await state.close()
    state = await EmbeddedState.open(folder)
    await state.delete(state.key("ä", "text"), state.key("ä", "empty"))
    await state.hdel(state.key("a", "table"), "ä", "b")
    await state.zrem(state.key("a", "ranks"), "x")
    text = "redis.call('RPOP', KEYS[1]) return redis.call('DEL', 'nobody', KEYS[2])"
    await state.run(Script(name="x", text=text), [state.key("a", "line"), state.key("a", "circle")])
    emptied = await contents(state)
    assert emptied == [None, None, {}, ["ä".encode()], [b"one", b"two"], []]
    await state.close()
    state = await EmbeddedState.open(folder)
    assert await contents(state) == emptied
    assert len(read_only(folder)) == 2
    await state.close()


async def test_a_script_may_make_names_of_keys_itself(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    text = "for i = 1, 3 do redis.call('SET', KEYS[1] .. ':' .. i, i) end"
    await state.run(Script(name="x", text=text), [state.key("a")])
    await state.close()
    assert [value_of(folder, state.key("a", str(n))) for n in (1, 2, 3)] == [b"1", b"2", b"3"]


async def test_what_a_failing_script_wrote_is_kept_as_well(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    await state.set(state.key("a", "old"), "x")
    text = "redis.call('SET', KEYS[1] .. 'new', 'y') redis.call('DEL', KEYS[1] .. 'old') error('no')"
    with pytest.raises(StateError):
        await state.run(Script(name="x", text=text), [state.key("a", "")])
    await state.close()
    assert [value_of(folder, state.key("a", name)) for name in ("old", "new")] == [None, b"y"]


async def test_reading_changes_nothing(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    await fill(state)
    await keeper(state)._save()
    keeper(state)._changed.clear()
    await contents(state)
    assert not keeper(state)._dirty
    assert not keeper(state)._changed.is_set()
    await state.close()


async def test_it_is_saved_on_a_timer(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    for number in range(3):
        await state.set(state.key("a"), number)
        await until(lambda wanted=number: value_of(folder, state.key("a")) == str(wanted).encode())
    await state.close()


async def test_a_process_that_is_killed_loses_no_more_than_the_last_second(folder: Path) -> None:
    script = """
import asyncio, sys
from pathlib import Path
from bot.redis_embedded import EmbeddedState
from bot.redis_keeping import Keeper
async def main():
    state = await EmbeddedState.open(Path(sys.argv[1]))
    for number in range(10**9):
        await state.hset(state.key("a"), {"n": number, "m": number})
        await state.set(state.key("b"), number)
        await asyncio.sleep(0.001)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        str(folder),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await until(lambda: (folder / FILE).exists() and int(value_of(folder, "footnote:{b}") or 0) > 100)
        before = int(value_of(folder, "footnote:{b}") or 0)
    finally:
        process.send_signal(signal.SIGKILL)
        assert await process.communicate() == (b"", b"")
    state = await EmbeddedState.open(folder)
    table = await state.hgetall(state.key("a"))
    assert int(table[b"n"]) >= before
    assert table[b"n"] == table[b"m"]
    await state.close()


async def test_a_file_that_another_process_is_just_making_holds_nothing_yet(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / FILE).touch()
    assert read_only(folder) == {}
    assert (folder / FILE).stat().st_size == 0


async def test_a_second_process_is_told_what_to_do(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    assert await asyncio.to_thread(is_used, folder)
    with pytest.raises(
        StateMisconfiguredError, match=r"Another Footnote process is using the state in .* set REDIS_URL"
    ):
        await EmbeddedState.open(folder)
    await state.set(state.key("a"), "x")
    await state.close()
    assert not await asyncio.to_thread(is_used, folder)
    state = await EmbeddedState.open(folder)
    assert await state.get(state.key("a")) == b"x"
    await state.close()


async def test_it_can_be_read_beside_the_process_that_uses_it(folder: Path) -> None:
    (await EmbeddedState.read(folder)).shared  # noqa: B018 - nothing is there yet, and nothing is made
    assert not folder.exists()
    state = await EmbeddedState.open(folder)
    await fill(state)
    await keeper(state)._save()
    view = await EmbeddedState.read(folder)
    assert await contents(view) == FULL
    await view.set(view.key("a", "mine"), "x")
    assert await view.get(view.key("a", "mine")) == b"x"
    await view.close()
    await state.set(state.key("a", "later"), "x")
    await state.close()
    assert value_of(folder, state.key("a", "mine")) is None
    assert value_of(folder, state.key("a", "later")) == b"x"


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "something else": lambda _: b"this is not a database, but some text that somebody put here\n" * 20,
    "cut short": lambda data: data[: len(data) // 2],
    "zeros in the middle": lambda data: data[:4096] + bytes(4096) + data[8192:],
    "zeros at the head": lambda data: bytes(200) + data[200:],
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_put_aside_and_a_new_one_begun(
    folder: Path, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    state = await EmbeddedState.open(folder)
    for number in range(50):
        await state.set(state.key("a", str(number)), "x" * 500)
    await state.close()
    file = folder / FILE
    damaged = DAMAGES[damage](file.read_bytes())
    file.write_bytes(damaged)
    with pytest.raises(StateMisconfiguredError):
        await EmbeddedState.read(folder)
    with capture_logs() as logs:
        state = await EmbeddedState.open(folder)
    assert [line["event"] for line in logs] == ["state_damaged"]
    assert await state.get(state.key("a", "1")) is None
    await state.set(state.key("a", "new"), "x")
    await state.close()
    assert value_of(folder, state.key("a", "new")) == b"x"
    (aside,) = folder.glob(f"{FILE}.damaged-*")
    assert aside.read_bytes() == damaged
    assert capfd.readouterr() == ("", "")


async def test_a_file_of_a_later_version_is_put_aside(folder: Path) -> None:
    await (await EmbeddedState.open(folder)).close()
    with contextlib.closing(sqlite3.connect(folder / FILE)) as base:
        base.execute("PRAGMA user_version = 2")
    await (await EmbeddedState.open(folder)).close()
    assert list(folder.glob(f"{FILE}.damaged-*"))


async def test_a_malformed_row_is_skipped_and_told_without_its_content(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    await fill(state)
    await state.close()
    with contextlib.closing(sqlite3.connect(folder / FILE)) as base:
        base.execute("UPDATE entry SET content = '[\"secret\"' WHERE kind = 'hash'")
        base.execute("UPDATE entry SET kind = 'stream' WHERE kind = 'set'")
        base.execute("UPDATE entry SET content = '[\"secret\", \"high\"]' WHERE kind = 'zset'")
        base.commit()
    with capture_logs() as logs:
        state = await EmbeddedState.open(folder)
    assert await contents(state) == [FULL[0], FULL[1], {}, [], FULL[4], []]
    assert [line["event"] for line in logs] == ["malformed_state"] * 3
    assert "secret" not in str(logs)
    await state.close()


async def test_files_are_their_owner_s_alone(folder: Path) -> None:
    old = os.umask(0)
    try:
        state = await EmbeddedState.open(folder)
        await state.set(state.key("a"), "x")
        await state.close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.glob(f"{FILE}*")} == {0o600}


@pytest.mark.parametrize("what", ["a file in the folder's place", "a folder in the file's place"])
async def test_a_folder_that_cannot_be_used_is_a_sentence(folder: Path, what: str) -> None:
    if what.startswith("a file"):
        folder.parent.mkdir(parents=True)
        folder.write_text("x")
    else:
        (folder / FILE).mkdir(parents=True)
    with pytest.raises(StateMisconfiguredError, match=r"The state in .* cannot be read and written\. .*FOOTNOTE_HOME"):
        await EmbeddedState.open(folder)


async def test_when_it_cannot_be_written_it_is_told_and_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_keeping, "SAVE_EVERY", 0.05)
    state = await EmbeddedState.open(folder)
    await state.set(state.key("a"), "before")
    await keeper(state)._save()
    # As a full disk does it: the file may not grow.
    keeper(state)._file._base.execute("PRAGMA max_page_count = 1")  # type: ignore[union-attr]  # it is open
    with capture_logs() as logs:
        await state.set(state.key("b"), "x" * 100_000)
        await until(lambda: any(line["event"] == "state_not_saved" for line in logs))
        await state.set(state.key("a"), "after")
        assert await state.get(state.key("b")) == b"x" * 100_000
        assert value_of(folder, state.key("a")) == b"before"
        keeper(state)._file._base.execute("PRAGMA max_page_count = 1000000")  # type: ignore[union-attr]  # it is open
        await until(lambda: value_of(folder, state.key("a")) == b"after")
        assert value_of(folder, state.key("b")) == b"x" * 100_000
        await until(lambda: any(line["event"] == "state_saved_again" for line in logs))
    await state.close()


async def test_closing_tells_of_what_cannot_be_written_and_frees_the_folder(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    keeper(state)._file._base.execute("PRAGMA max_page_count = 1")  # type: ignore[union-attr]  # it is open
    await state.set(state.key("b"), "x" * 100_000)
    with capture_logs() as logs:
        await state.close()
    assert "state_not_saved" in {line["event"] for line in logs}
    assert not is_used(folder)


async def test_a_start_that_is_cancelled_frees_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter = StateFile.enter

    def slowly(self: StateFile) -> dict[bytes, Kept]:
        time.sleep(0.2)
        return enter(self)

    monkeypatch.setattr(StateFile, "enter", slowly)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await EmbeddedState.open(folder)
    assert not is_used(folder)


async def test_changes_during_a_saving_are_saved_next(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = StateFile.write
    begun, may_end = threading.Event(), threading.Event()
    state = await EmbeddedState.open(folder)

    def slowly(self: StateFile, changed: Any) -> None:
        begun.set()
        assert may_end.wait(20)
        write(self, changed)

    monkeypatch.setattr(StateFile, "write", slowly)
    await state.set(state.key("a"), "first")
    await until(begun.is_set)
    await state.set(state.key("a"), "second")
    may_end.set()
    await until(lambda: value_of(folder, state.key("a")) == b"first")
    await state.close()
    assert value_of(folder, state.key("a")) == b"second"


async def test_many_keys_are_saved_and_restored(folder: Path) -> None:
    state = await EmbeddedState.open(folder)
    for number in range(3000):
        await state.set(state.key(f"t{number % 7}", str(number)), number)
    await state.close()
    state = await EmbeddedState.open(folder)
    assert [await state.get(state.key(f"t{n % 7}", str(n))) for n in range(3000)] == [
        str(n).encode() for n in range(3000)
    ]
    await state.close()


async def test_in_memory_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    state = await EmbeddedState.open(None)
    await fill(state)
    assert await contents(state) == FULL
    await state.close()
    assert list(tmp_path.iterdir()) == []


async def test_what_the_adapter_takes_for_granted_of_the_engine() -> None:
    """When one of these fails after an upgrade, `bot.redis_embedded` can be made simpler, or has to be mended."""
    client = BurnerRedis()
    await client.hset("h", mapping={b"a": b"1"})
    await client.hdel("h", b"a")
    assert await client.exists("h")
    await client.set("s", b"1", px=1500)
    assert await client.ttl("s") == 1
    assert await client.ttl("none") == -2
    assert set(await client.keys("*")) == {b"h", b"s"}
    await client.aclose()


KINDS = {
    "string": st.binary(),
    "hash": st.dictionaries(st.binary(), st.binary(), min_size=1),
    "list": st.lists(st.binary(), min_size=1),
    "set": st.sets(st.binary(), min_size=1),
    "zset": st.dictionaries(st.binary(), st.floats(allow_nan=False), min_size=1),
}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_contents_come_back_as_they_were(kind: str, data: st.DataObject) -> None:
    content = data.draw(KINDS[kind])
    assert _unpacked(kind, _packed(Kept(kind=kind, content=content))) == content
