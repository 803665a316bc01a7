"""The history on every state."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from fakes.entries import ALICE, BOB, NOW, entry, opinion, source
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.history import History
from bot.history.history import _AT_ONCE, _MAKE_ROOM, _MOST_OPINIONS
from bot.messages import Author, Outcome, TurnId
from retrieval.types import Audience

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from bot.ports import State
    from bot.results import HistoryEntry, HistoryListed

    Opener = Callable[[], AbstractAsyncContextManager[State]]


def kept_in(state: State, *, days: float = 30, entries: int = 1_000) -> History:
    return History(state, days=days, entries=entries)


def ids(listed: HistoryListed) -> list[str]:
    return [item.id for item in listed.entries]


async def exported(history: History, **filters: Any) -> list[HistoryEntry]:
    return [item async for item in history.export(**filters)]


async def keys(state: State) -> list[str]:
    """All keys of the history that hold something."""
    client: Any = state._client  # type: ignore[attr-defined] # both have one
    prefix = state.key("history")
    found = [key.decode() for key in await client.keys("*")]
    return [key for key in found if key.startswith(prefix)]


# ---- keeping ----------------------------------------------------------------------------------------------------


async def test_an_entry_comes_back_as_it_was(state: State) -> None:
    history, kept = kept_in(state), entry(scopes=("hr",), minutes=3)
    await history.record(kept)
    assert await history.entry(kept.id) == kept
    assert (await history.page(limit=5)).entries == (kept,)
    assert await history.entry(TurnId("0" * 16)) is None


async def test_pages_are_newest_first_and_exports_oldest_first(state: State) -> None:
    history = kept_in(state)
    for minutes in (5, 1, 9, 3):
        await history.record(entry(f"{minutes}", minutes=minutes))
    listed = await history.page(limit=3)
    assert [item.question for item in listed.entries] == ["Question 1?", "Question 3?", "Question 5?"]
    assert listed.more
    rest = await history.page(limit=3, before=listed.entries[-1])
    assert [item.question for item in rest.entries] == ["Question 9?"]
    assert not rest.more
    assert [item.question for item in await exported(history)] == [f"Question {n}?" for n in (9, 5, 3, 1)]
    earlier = await history.page(limit=9, before=NOW - timedelta(minutes=3))
    assert [item.question for item in earlier.entries] == ["Question 5?", "Question 9?"]


async def test_recording_twice_keeps_one_entry_and_the_opinions(state: State) -> None:
    history, kept = kept_in(state), entry()
    await history.record(kept)
    assert await history.feedback(kept.id, opinion())
    await history.record(replace(kept, reply="Another."))
    (listed,) = (await history.page(limit=5)).entries
    assert (listed.reply, listed.feedback) == ("Another.", (opinion(),))
    await history.record(replace(kept, author=BOB))
    assert ids(await history.page(limit=5, author=ALICE.id)) == []
    assert ids(await history.page(limit=5, author=BOB.id)) == [kept.id]


async def test_the_oldest_make_room(state: State) -> None:
    history = kept_in(state, entries=3)
    for minutes in range(9, 0, -1):
        await history.record(entry(f"{minutes}", minutes=minutes))
    assert [item.question for item in await exported(history)] == [f"Question {n}?" for n in (3, 2, 1)]
    await history.record(entry("late", minutes=60))
    assert len(await exported(history)) == 3
    # Nothing of the others is left: three entries, the times, and one author's.
    assert len(await keys(state)) == 5


async def test_a_lower_limit_is_reached_step_by_step(state: State) -> None:
    count = 3 * _MAKE_ROOM
    for minutes in range(count):
        await kept_in(state).record(entry(f"{minutes}", minutes=minutes))
    small = kept_in(state, entries=2)
    await small.record(entry("0"))
    assert len(await exported(small)) == count - _MAKE_ROOM
    await small.record(entry("0"))
    await small.record(entry("0"))
    assert [item.question for item in await exported(small)] == ["Question 1?", "Question 0?"]


async def test_entries_expire(state: State) -> None:
    history = kept_in(state, days=0.8 / 86_400)
    old = entry("old", asked_at=NOW.now(NOW.tzinfo))
    await history.record(old)
    await history.feedback(old.id, opinion())
    assert ids(await history.page(limit=5)) == [old.id]
    await asyncio.sleep(1.0)
    assert await history.entry(old.id) is None
    assert not await history.feedback(old.id, opinion())
    assert await history.page(limit=5) == await history.page(limit=5, author=ALICE.id)
    assert ids(await history.page(limit=5)) == []
    assert await exported(history) == []
    assert await history.erase(ALICE.id) == 0


async def test_fewer_days_count_at_once(state: State) -> None:
    month, hour = kept_in(state), kept_in(state, days=1 / 24)
    old, new = entry("old", minutes=90), entry("new", minutes=10)
    await month.record(old)
    await month.record(new)
    assert ids(await hour.page(limit=5)) == [new.id]
    assert await hour.entry(old.id) is None
    assert not await hour.feedback(old.id, opinion())
    assert ids(await month.page(limit=5)) == [new.id]  # it is gone for good


async def test_no_days_keep_nothing_and_remove_what_is_there(state: State) -> None:
    await kept_in(state).record(entry("old", minutes=1))
    none = kept_in(state, days=0)
    assert (await none.page(limit=5)).entries == ()
    await none.record(entry("new"))
    assert await keys(state) == []


async def test_everything_that_is_kept_has_an_expiry(state: State) -> None:
    history = kept_in(state)
    await history.record(entry())
    await history.feedback(entry().id, opinion())
    client: Any = state._client  # type: ignore[attr-defined] # both have one
    found = await keys(state)
    assert len(found) == 4
    for key in found:
        assert 0 < await client.ttl(key) <= 30 * 86_400


async def test_what_is_kept_is_bounded(state: State) -> None:
    history = kept_in(state)
    sources = tuple(source(marker=n, excerpt="e" * 5_000, title="t" * 5_000) for n in range(1, 100))
    await history.record(entry(question="q" * 9_000, reply="r" * 9_000, sources=sources, notice="n" * 9_000))
    await history.feedback(entry().id, opinion(comment="c" * 9_000))
    (kept,) = (await history.page(limit=1)).entries
    assert (len(kept.question), len(kept.reply), len(kept.notice)) == (8_000, 8_000, 1_000)
    assert len(kept.sources) == 50
    assert (len(kept.sources[0].excerpt), len(kept.sources[0].title)) == (1_000, 500)
    assert len(kept.feedback[0].comment) == 1_000
    assert kept.reply.endswith("r…")


async def test_half_a_surrogate_pair_and_no_number_can_be_kept(state: State) -> None:
    history = kept_in(state)
    await history.record(entry(question="a\ud83d?", sources=(source(score=float("nan"), excerpt="\udc00"),)))
    (kept,) = (await history.page(limit=1)).entries
    assert kept.question == "a??"
    assert kept.sources[0].score == 0.0


# ---- choosing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", True),
        ("leave THIRTY", True),
        ("handbook question", True),
        ("ＨＡＮＤＢＯＯＫ", True),  # full width
        ("旅費", True),
        ("旅費 領収書", True),
        ("ｶﾞｲﾄﾞ", True),  # half width of ガイド
        ("strasse", True),  # straße
        ("leave forty", False),
        ("file", False),  # the address is not looked at
    ],
)
async def test_search_finds_every_word_in_question_reply_or_sources(search: str, *, found: bool, state: State) -> None:
    history = kept_in(state)
    await history.record(entry(reply="旅費の領収書は三十日以内に。Straße [1]", notice="", question="ガイド question"))
    listed = await history.page(limit=5, search=search)
    assert (len(listed.entries), listed.search) == (int(found), search)
    assert len(await exported(history, search=search)) == int(found)


async def test_unanswered_are_those_that_abstained_or_failed(state: State) -> None:
    history = kept_in(state)
    for number, outcome in enumerate(Outcome):
        await history.record(entry(outcome, minutes=number, outcome=outcome))
    listed = await history.page(limit=50, unanswered=True)
    assert {item.outcome for item in listed.entries} == {Outcome.ABSTAINED, Outcome.FAILED}
    assert len(listed.entries) == 2


async def test_an_author_is_one_person_whatever_the_id(state: State) -> None:
    history = kept_in(state)
    odd = Author(id="x:{y}%3A\n人")
    await history.record(entry("odd", author=odd))
    await history.record(entry("alice"))
    assert ids(await history.page(limit=5, author=odd.id)) == [entry("odd").id]
    assert ids(await history.page(limit=5, author="x:{y}")) == []
    assert await history.erase(odd.id) == 1


SCOPES = st.frozensets(st.sampled_from(["everyone", "hr", "board", "channel"]), max_size=4)


@pytest.fixture(params=["embedded", "redis"], scope="module")
def opened(request: pytest.FixtureRequest) -> Opener:
    """Opens a fresh state of each kind, as often as needed."""
    url = request.getfixturevalue("redis_url") if request.param == "redis" else None

    @asynccontextmanager
    async def opening() -> AsyncIterator[State]:
        from bot.redis_embedded import EmbeddedState  # noqa: PLC0415 - as in the fixture `state`
        from bot.redis_server import ServerState  # noqa: PLC0415 - as above

        if url is None:
            state: State = await EmbeddedState.open(None)
        else:
            state = await ServerState.open(url, f"test-{uuid.uuid4().hex[:12]}")
        try:
            yield state
        finally:
            await state.close()

    return opening


@settings(max_examples=30, deadline=None)
@given(
    asked=st.lists(st.tuples(SCOPES, st.integers(0, 3), st.booleans()), max_size=12),
    looking=SCOPES,
    limit=st.integers(1, 5),
    search=st.sampled_from(["", "answer", "question 1", "nowhere"]),
    unanswered=st.booleans(),
)
def test_what_lacks_a_circle_is_neither_seen_nor_counted(
    opened: Opener,
    asked: list[tuple[frozenset[Any], int, bool]],
    looking: frozenset[Any],
    limit: int,
    search: str,
    *,
    unanswered: bool,
) -> None:
    async def check() -> None:
        async with opened() as state, opened() as other:
            history, visible = kept_in(state), kept_in(other)
            for number, (scopes, minutes, answered) in enumerate(asked):
                outcome = Outcome.ANSWERED if answered else Outcome.ABSTAINED
                made = entry(f"{number}", minutes=minutes, outcome=outcome, audience=Audience(scopes=scopes))
                await history.record(made)
                if scopes <= looking:
                    await visible.record(made)
            filters: dict[str, Any] = {"search": search, "unanswered": unanswered}
            audience = Audience(scopes=looking)
            # As if the others were not there: not one is listed, found, counted or told of by `more`.
            assert await exported(history, audience=audience, **filters) == await exported(visible, **filters)
            before = None
            while True:
                listed = await history.page(limit=limit, before=before, audience=audience, **filters)
                assert listed == await visible.page(limit=limit, before=before, **filters)
                assert all(item.audience.scopes <= looking for item in listed.entries)
                if not listed.more:
                    break
                before = listed.entries[-1]

    asyncio.run(check())


@settings(max_examples=25, deadline=None)
@given(
    minutes=st.lists(st.integers(0, 6), max_size=15),
    limit=st.integers(1, 6),
    by_bob=st.sets(st.integers(0, 14)),
    author=st.sampled_from([None, ALICE.id, BOB.id]),
)
def test_pages_bring_every_entry_once(
    opened: Opener, minutes: list[int], limit: int, by_bob: set[int], author: str | None
) -> None:
    async def check() -> None:
        async with opened() as state:
            history = kept_in(state)
            made = [
                entry(f"{number}", minutes=ago, author=BOB if number in by_bob else ALICE)
                for number, ago in enumerate(minutes)
            ]
            for item in made:
                await history.record(item)
            wanted = sorted(
                (item for item in made if author in {None, item.author.id}),
                key=lambda item: (item.asked_at, item.id),
                reverse=True,
            )
            pages: list[HistoryEntry] = []
            before = None
            while True:
                listed = await history.page(limit=limit, before=before, author=author)
                pages += listed.entries
                assert listed.more == (len(pages) < len(wanted))
                if not listed.more:
                    break
                # What is asked meanwhile belongs to an earlier page.
                await history.record(entry(uuid.uuid4().hex, minutes=-1, author=ALICE))
                before = listed.entries[-1]
            assert pages == wanted
            assert [item for item in await exported(history, author=author) if item in wanted] == wanted[::-1]

    asyncio.run(check())


async def test_more_entries_than_one_step_reads_with_gaps_and_equal_times(state: State) -> None:
    history = kept_in(state)
    made = [entry(f"{number}", minutes=number // 70) for number in range(3 * _AT_ONCE)]
    for item in made:
        await history.record(item)
    gone = made[: _AT_ONCE + 10]
    await state.delete(*(state.key("history", "entry", item.id) for item in gone))
    left = sorted(made[len(gone) :], key=lambda item: (item.asked_at, item.id))
    assert await exported(history) == left
    assert list((await history.page(limit=1_000)).entries) == left[::-1]


# ---- faults -----------------------------------------------------------------------------------------------------


async def test_what_cannot_be_read_is_skipped_and_taken_out(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    history = kept_in(state)
    made = [entry(f"{number}", minutes=number) for number in range(5)]
    for item in made:
        await history.record(item)
    await state.hset(state.key("history", "entry", made[0].id), {"entry": '{"id": "someone\'s words"}'})
    await state.delete(state.key("history", "entry", made[1].id))
    await state.delete(state.key("history", "entry", made[2].id))
    await state.set(state.key("history", "entry", made[2].id), "no hash")
    await state.zadd(state.key("history", "times"), {"{no}:id\n": 1.9e15})
    await history.feedback(made[3].id, opinion())
    await state.hset(state.key("history", "entry", made[3].id), {"by:someone": "nonsense"})
    assert await history.entry(made[0].id) is None
    listed = await history.page(limit=9)
    assert listed.entries == (replace(made[3], feedback=(opinion(),)), made[4])
    told = capsys.readouterr()
    assert "malformed_state" in told.out + told.err
    assert "someone's words" not in told.out + told.err
    assert await state.zcard(state.key("history", "times")) == 2
    assert [item.id for item in await exported(history, author=ALICE.id)] == [made[4].id, made[3].id]
    await history.record(made[2])
    assert ids(await history.page(limit=1)) == [made[2].id]


async def test_an_entry_that_was_recorded_anew_is_not_taken_out(state: State) -> None:
    history, kept = kept_in(state), entry()
    await history.record(kept)
    key = state.key("history", "entry", kept.id)
    await state.hset(key, {"entry": "broken"})
    rows = await history._rows(state.key("history", "times"), "down", None)
    await history.record(kept)
    await history._prune(state.key("history", "times"), [row for row, _ in rows])
    assert ids(await history.page(limit=1)) == [kept.id]


# ---- opinions and erasing ---------------------------------------------------------------------------------------


async def test_an_opinion_takes_the_place_of_the_same_persons_earlier_one(state: State) -> None:
    history, kept = kept_in(state), entry()
    assert not await history.feedback(kept.id, opinion())
    await history.record(kept)
    assert await history.feedback(kept.id, opinion(comment="good"))
    assert await history.feedback(kept.id, opinion(ALICE))
    later = opinion(good=False, comment="after all not")
    assert await history.feedback(kept.id, later)
    found = await history.entry(kept.id)
    assert found is not None
    assert set(found.feedback) == {opinion(ALICE), later}


async def test_opinions_are_bounded(state: State) -> None:
    history, kept = kept_in(state), entry()
    await history.record(kept)
    for number in range(_MOST_OPINIONS + 3):
        await asyncio.sleep(0.002)  # those of one millisecond are in no order
        await history.feedback(kept.id, opinion(Author(id=f"slack:T1:X{number}")))
    found = await history.entry(kept.id)
    assert found is not None
    assert len(found.feedback) == _MOST_OPINIONS
    assert found.feedback[-1].author.id == f"slack:T1:X{_MOST_OPINIONS + 2}"


async def test_erasing_takes_a_persons_entries_and_opinions_and_leaves_the_rest(state: State) -> None:
    history = kept_in(state)
    count = _AT_ONCE + 5
    for number in range(count):
        await history.record(entry(f"alice {number}", minutes=number))
        await history.feedback(entry(f"alice {number}").id, opinion(BOB))
    await history.record(entry("bob", author=BOB))
    await history.feedback(entry("bob").id, opinion(ALICE))
    await history.feedback(entry("bob").id, opinion(BOB, good=False))
    assert await history.erase(ALICE.id) == count
    (left,) = await exported(history)
    assert left == entry("bob", author=BOB, feedback=(opinion(BOB, good=False),))
    assert await history.erase(ALICE.id) == 0
    assert await history.erase("nobody") == 0
    assert (await history.page(limit=5, author=ALICE.id)).entries == ()
    assert await history.erase(BOB.id) == 1
    assert await keys(state) == []


async def test_an_export_goes_on_while_entries_come_and_go(state: State) -> None:
    history = kept_in(state)
    made = [entry(f"{number}", minutes=1_000 - number) for number in range(2 * _AT_ONCE + 10)]
    for item in made:
        await history.record(item)
    seen: list[str] = []
    async for item in history.export():
        seen.append(item.id)
        if len(seen) == _AT_ONCE:
            await history.record(entry("older", minutes=2_000))
            await history.record(entry("newer", author=BOB))
            await state.delete(state.key("history", "entry", made[0].id))
    assert seen[:-1] == [item.id for item in made]
    assert seen[-1] == entry("newer").id
