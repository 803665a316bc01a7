"""What every state has to do for the memory of threads."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from bot.codec import encode
from bot.conversations import EXCERPT, QUESTION, REPLY, Conversations
from bot.metrics import MALFORMED
from bot.ports import Script
from bot.types import Source, Turn
from retrieval.types import DocumentId

if TYPE_CHECKING:
    from pathlib import Path

    from bot.ports import State

NOW = datetime.now(UTC)
DAY = 86_400.0
PUSH = Script(name="push", text="return redis.call('RPUSH', KEYS[1], ARGV[1])")


def source(excerpt: str = "Thirty days.", **fields: Any) -> Source:
    given: dict[str, Any] = {
        "marker": 1,
        "document_id": DocumentId("d"),
        "title": "Handbook",
        "uri": "file:///handbook.pdf",
        "page": 3,
        "last_page": None,
        "heading": "Leave",
        "excerpt": excerpt,
        "score": 0.5,
    }
    return Source(**(given | fields))


def turn(number: int, *, days: float = 0.0, **fields: Any) -> Turn:
    given: dict[str, Any] = {
        "id": f"{number:016x}",
        "question": f"question {number}",
        "reply": f"reply {number} [1]",
        "author": "Ada",
        "asked_at": NOW - timedelta(days=days) + timedelta(seconds=number),
        "sources": (source(),),
    }
    return Turn(**(given | fields))


@pytest.fixture
def thread() -> str:
    """No test sees another one's thread."""
    return f"slack:T1:C1:{uuid.uuid4()}"


@pytest.fixture
def memory(state: State) -> Conversations:
    return Conversations(state, turns=5, seconds=30 * DAY)


def questions(turns: tuple[Turn, ...]) -> list[str]:
    return [turn.question for turn in turns]


async def test_nothing_is_remembered_of_a_new_thread(memory: Conversations, thread: str) -> None:
    found = await memory.load(thread)
    assert (found.id, found.turns, found.remarks, found.since) == (thread, (), (), None)


async def test_turns_come_back_as_they_were_oldest_first(memory: Conversations, thread: str) -> None:
    await memory.append(thread, turn(1))
    await memory.append(thread, turn(2, question="{braces} \n 日本語 \u2028 'x'", id=""))
    assert (await memory.load(thread)).turns == (
        turn(1),
        turn(2, question="{braces} \n 日本語 \u2028 'x'", id=""),
    )


async def test_threads_do_not_mix(memory: Conversations, thread: str) -> None:
    await memory.append(thread, turn(1))
    assert (await memory.load(f"{thread}:other")).turns == ()


async def test_a_turn_that_is_taken_over_is_remembered_once(memory: Conversations, thread: str) -> None:
    for _ in range(3):
        await memory.append(thread, turn(1))
        await memory.append(thread, turn(2))
    assert (await memory.load(thread)).turns == (turn(1), turn(2))


async def test_turns_without_an_id_are_all_remembered(memory: Conversations, thread: str) -> None:
    for number in range(3):
        await memory.append(thread, turn(number, id=""))
    assert len((await memory.load(thread)).turns) == 3


async def test_only_the_latest_turns_are_remembered(state: State, memory: Conversations, thread: str) -> None:
    for number in range(9):
        await memory.append(thread, turn(number))
    assert questions((await memory.load(thread)).turns) == [f"question {number}" for number in range(4, 9)]
    assert len(await state.lrange(state.key(thread, "conversation"), 0, -1)) == 5


async def test_a_smaller_limit_holds_for_what_is_there_already(state: State, thread: str) -> None:
    for number in range(4):
        await Conversations(state, turns=5, seconds=DAY).append(thread, turn(number))
    smaller = Conversations(state, turns=2, seconds=DAY)
    assert questions((await smaller.load(thread)).turns) == ["question 2", "question 3"]
    await smaller.append(thread, turn(4))
    assert questions((await Conversations(state, turns=5, seconds=DAY).load(thread)).turns) == [
        "question 3",
        "question 4",
    ]


async def test_texts_are_clipped_on_whole_graphemes(memory: Conversations, thread: str) -> None:
    family = "👨‍👩‍👧‍👦"
    await memory.append(
        thread,
        turn(1, question=family * 2_000, reply="wort " * 9_000, author="n" * 999, sources=(source(family * 500),) * 50),
    )
    [found] = (await memory.load(thread)).turns
    assert QUESTION - len(family) - 1 <= len(found.question) <= QUESTION
    assert set(found.question.replace(family, "")) == {"…"}
    assert len(found.reply) <= REPLY
    assert found.reply.endswith("wort…")
    assert len(found.author) == 300
    assert len(found.sources) == 20
    assert all(len(kept.excerpt) <= EXCERPT for kept in found.sources)


async def test_an_endless_address_is_left_out(memory: Conversations, thread: str) -> None:
    await memory.append(thread, turn(1, sources=(source(uri="https://example.org/" + "x" * 5_000),)))
    [found] = (await memory.load(thread)).turns
    assert found.sources[0].uri == ""


async def test_a_thread_of_long_turns_stays_within_a_size(state: State, thread: str) -> None:
    memory = Conversations(state, turns=200, seconds=DAY)
    for number in range(60):
        await memory.append(thread, turn(number, question="問" * 4_000, reply="答" * 8_000))
    stored = await state.lrange(state.key(thread, "conversation"), 0, -1)
    assert 400_000 < sum(map(len, stored)) <= 500_000
    assert (await memory.load(thread)).turns[-1].id == turn(59).id


async def test_turns_that_are_too_old_are_left_out(memory: Conversations, thread: str) -> None:
    await memory.append(thread, turn(1, days=31))
    await memory.append(thread, turn(2, days=29))
    assert questions((await memory.load(thread)).turns) == ["question 2"]


async def test_a_thread_is_forgotten_some_time_after_its_last_turn(state: State, thread: str) -> None:
    memory = Conversations(state, turns=5, seconds=1.0)
    now = datetime.now(UTC) + timedelta(days=1)
    await memory.append(thread, turn(1, asked_at=now))
    await asyncio.sleep(0.6)
    await memory.append(thread, turn(1, asked_at=now))
    await asyncio.sleep(0.6)
    assert len((await memory.load(thread)).turns) == 1
    await asyncio.sleep(0.6)
    assert (await memory.load(thread)).turns == ()


async def test_every_key_expires(state: State, memory: Conversations, thread: str) -> None:
    await memory.append(thread, turn(1))
    await memory.forget(f"{thread}:b")
    for name in (thread, f"{thread}:b"):
        assert 29 * DAY < await state._client.ttl(state.key(name, "conversation")) <= 30 * DAY  # type: ignore[attr-defined]  # a client of either kind


async def test_remembering_no_turns_is_remembering_nothing(state: State, thread: str) -> None:
    await Conversations(state, turns=5, seconds=DAY).append(thread, turn(1))
    none = Conversations(state, turns=0, seconds=DAY)
    await none.append(thread, turn(2))
    assert (await none.load(thread)).turns == ()
    assert len(await state.lrange(state.key(thread, "conversation"), 0, -1)) == 1


async def test_a_thread_that_is_begun_anew_says_since_when(memory: Conversations, thread: str) -> None:
    await memory.append(thread, turn(1))
    await memory.forget(thread, NOW)
    assert (await memory.load(thread)).turns == ()
    for number in range(2, 12):
        await memory.append(thread, turn(number))
    found = await memory.load(thread)
    assert found.since == NOW
    assert questions(found.turns) == [f"question {number}" for number in range(7, 12)]
    await memory.append(thread, turn(11))
    assert await memory.load(thread) == found
    await memory.forget(thread)
    since = (await memory.load(thread)).since
    assert since is not None
    assert since > NOW


async def test_a_turn_that_was_under_way_when_the_thread_was_begun_anew_is_forgotten(
    memory: Conversations, thread: str
) -> None:
    await memory.forget(thread, NOW + timedelta(seconds=5))
    for number in (4, 5, 6):
        await memory.append(thread, turn(number))
    assert questions((await memory.load(thread)).turns) == ["question 6"]


@pytest.mark.parametrize(
    "element",
    [
        b"",
        b"\n",
        b"0\nnonsense",
        b"0\n{}",
        b"0\n[1, 2]",
        b"\xff\xfe\n\xff",
        b'0\n{"question": 1, "reply": "SECRET", "author": "", "asked_at": "2026-01-01T00:00:00Z"}',
        b'0\n{"question": "", "reply": "", "author": "", "asked_at": "2026-01-01T00:00:00"}',
    ],
)
async def test_malformed_turns_are_skipped_and_counted(
    state: State, memory: Conversations, thread: str, element: bytes
) -> None:
    await memory.append(thread, turn(1))
    await state.run(PUSH, [state.key(thread, "conversation")], [element])
    await memory.append(thread, turn(2))
    counter = MALFORMED.labels("conversation")
    before = counter._value.get()
    with capture_logs() as logs:
        assert (await memory.load(thread)).turns == (turn(1), turn(2))
    assert counter._value.get() == before + 1
    assert logs == [{"event": "malformed_state", "log_level": "warning", "kind": "conversation", "key": thread}]


async def test_a_malformed_beginning_is_skipped(state: State, memory: Conversations, thread: str) -> None:
    await state.run(PUSH, [state.key(thread, "conversation")], [b"forgotten\nyesterday"])
    await memory.append(thread, turn(1))
    found = await memory.load(thread)
    assert (found.turns, found.since) == ((turn(1),), None)


async def test_fields_of_a_later_version_do_no_harm(state: State, memory: Conversations, thread: str) -> None:
    element = f"{turn(1).id}\n" + encode(turn(1)).replace("{", '{"mood": "fine", ', 1)
    await state.run(PUSH, [state.key(thread, "conversation")], [element])
    assert (await memory.load(thread)).turns == (turn(1),)


async def test_turns_of_two_processes_at_once_are_both_kept(state: State, thread: str) -> None:
    one, other = Conversations(state, turns=50, seconds=DAY), Conversations(state, turns=50, seconds=DAY)
    await asyncio.gather(*(memory.append(thread, turn(n)) for n in range(20) for memory in (one, other)))
    assert (await one.load(thread)).turns == tuple(map(turn, range(20)))


async def test_two_connections_to_one_server_keep_both(redis_url: str, thread: str) -> None:
    from bot.redis_server import ServerState  # noqa: PLC0415 - only where a server is

    first, second = [await ServerState.open(redis_url, f"test-{thread[-8:]}") for _ in range(2)]
    one, other = Conversations(first, turns=50, seconds=DAY), Conversations(second, turns=50, seconds=DAY)
    await asyncio.gather(*(memory.append(thread, turn(n)) for n in range(20) for memory in (one, other)))
    assert (await other.load(thread)).turns == tuple(map(turn, range(20)))
    await first.close()
    await second.close()


async def test_a_restart_forgets_nothing(tmp_path: Path, thread: str) -> None:
    from bot.redis_embedded import EmbeddedState  # noqa: PLC0415 - most tests need none

    state = await EmbeddedState.open(tmp_path)
    await Conversations(state, turns=5, seconds=DAY).append(thread, turn(1))
    await Conversations(state, turns=5, seconds=DAY).forget(f"{thread}:b", NOW)
    await state.close()
    state = await EmbeddedState.open(tmp_path)
    memory = Conversations(state, turns=5, seconds=DAY)
    assert (await memory.load(thread)).turns == (turn(1),)
    assert (await memory.load(f"{thread}:b")).since == NOW
    await state.close()
