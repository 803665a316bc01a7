from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

import pytest
from fakes.chat_platform import FakePlatform, asked
from fakes.dispatching import SOURCE, ScriptedEngine, dispatching, eventually

from bot.errors import PlatformBusyError, PlatformError, PlatformRefusedError
from bot.messages import Author, MessageKind, Outcome
from bot.types import Stage

if TYPE_CHECKING:
    from fakes.dispatching import Desk

    from bot.messages import Message
    from bot.ports import State
    from bot.redis_embedded import EmbeddedState


async def outcome_of(desk: Desk, message: Message) -> Outcome:
    return await desk.dispatcher.outcome(await desk.dispatcher.receive(message))


# ---- one turn -----------------------------------------------------------------------------------------------------


async def test_a_question_is_answered_with_its_sources_and_remembered(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    message = asked("How much leave?")
    async with dispatching(state, platform, engine) as desk:
        assert await outcome_of(desk, message) is Outcome.ANSWERED
        assert platform.kinds(message) == ["answer", "sources"]
        assert platform.bodies(message)[1] == (SOURCE,)
        (turn,) = (await desk.conversations.load(message.conversation)).turns
        assert (turn.question, turn.reply) == ("How much leave?", "How much leave? [1]")
        entry = await desk.history.entry(message.turn_id)
        assert entry is not None
        assert (entry.outcome, entry.author.name, entry.model) == (Outcome.ANSWERED, "Ada", "extractive")
    assert platform.decorations[0] == ("progress", Stage.SEARCHING)
    assert platform.decorations[-1][0] == "close"


async def test_a_follow_up_has_the_turns_before_it(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    async with dispatching(embedded_state, platform, engine) as desk:
        await outcome_of(desk, asked("first", id="1"))
        await outcome_of(desk, asked("second", id="2"))
        await outcome_of(desk, asked("elsewhere", id="3", conversation="fake:T1:C1:9"))
    assert [[turn.question for turn in question.conversation.turns] for question in engine.asked] == [
        [],
        ["first"],
        [],
    ]


async def test_a_refusal_has_no_sources_and_its_reason_is_in_the_history(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    message = asked("unknown thing")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, message) is Outcome.ABSTAINED
        entry = await desk.history.entry(message.turn_id)
        assert entry is not None
        assert entry.reason == "no_evidence"
    assert platform.kinds(message) == ["abstention"]


async def test_failing_decorations_never_stop_an_answer(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    for method in ("progress", "write", "rewrite", "waiting", "close"):
        platform.failing[method] = RuntimeError("no such permission")
    message = asked("How much leave?")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, message) is Outcome.ANSWERED
    assert platform.kinds(message) == ["answer", "sources"]


async def test_after_a_failed_piece_nothing_more_is_streamed(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    platform.failing["write"] = [PlatformError("the stream is over")]
    message = asked("How much leave?")
    async with dispatching(embedded_state, platform, engine) as desk:
        await outcome_of(desk, message)
    assert not [value for name, value in platform.decorations if name == "write"]
    assert platform.bodies(message)[0].text == "How much leave? [1]"


@pytest.mark.parametrize("error", [PlatformError("cut off"), PlatformBusyError("slow down", retry_after=0.05)])
async def test_a_post_is_tried_again(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine, error: PlatformError
) -> None:
    platform.failing["answer"] = [error, error]
    message = asked("How much leave?")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, message) is Outcome.ANSWERED
    assert platform.kinds(message) == ["answer", "sources"]


async def test_what_was_posted_unseen_is_not_posted_again(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    platform.failing["after_answer"] = [PlatformError("the connection was cut after the request")]
    message = asked("How much leave?")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, message) is Outcome.ANSWERED
    assert platform.kinds(message) == ["answer", "sources"]


async def test_an_answer_that_cannot_be_posted_becomes_a_sentence_with_an_error_id(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    platform.failing["answer"] = PlatformRefusedError("no permission")
    message = asked("How much leave?")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, message) is Outcome.FAILED
    assert platform.kinds(message) == ["said"]
    assert "error id" in platform.bodies(message)[0]
    assert "permission" not in platform.bodies(message)[0]


async def test_a_fault_of_ours_becomes_a_sentence_and_the_thread_goes_on(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    def break_down() -> None:
        message = "secret detail"
        raise ValueError(message)

    engine.before["bad"] = break_down
    bad, good = asked("bad", id="1"), asked("good", id="2")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, bad) is Outcome.FAILED
        assert await outcome_of(desk, good) is Outcome.ANSWERED
    assert "secret" not in platform.bodies(bad)[0]


async def test_missing_sources_leave_the_answer_standing(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    platform.failing["sources"] = PlatformRefusedError("the thread is locked")
    message = asked("How much leave?")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, message) is Outcome.ANSWERED
    assert platform.kinds(message) == ["answer"]


async def test_after_the_deadline_the_best_passages_are_quoted(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    engine.before["slow"] = lambda: asyncio.sleep(60)
    message = asked("slow")
    async with dispatching(embedded_state, platform, engine, turn_seconds=0.2) as desk:
        assert await outcome_of(desk, message) is Outcome.ANSWERED
    assert platform.bodies(message)[0].text == "quoted [1]"
    assert platform.bodies(message)[0].notice


async def test_a_thread_that_the_platform_does_not_show_is_done_without(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    platform.failing["thread"] = PlatformBusyError("one a minute")
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, asked("How much leave?")) is Outcome.ANSWERED


# ---- once and only once -------------------------------------------------------------------------------------------


async def test_an_event_that_comes_many_times_is_answered_once(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    first = asked("How much leave?", keys=("event-1", "client-1"))
    again = [dataclasses.replace(first, keys=(f"event-{number}", "client-1")) for number in range(20)]
    async with dispatching(state, platform, engine) as desk:
        receipts = await asyncio.gather(*map(desk.dispatcher.receive, [first, *again]))
        outcomes = [await desk.dispatcher.outcome(receipt) for receipt in receipts]
    assert sorted(outcomes).count(Outcome.ANSWERED) == 1
    assert outcomes.count(Outcome.DUPLICATE) == 20
    assert platform.kinds(first) == ["answer", "sources"]


async def test_an_event_that_comes_to_two_processes_is_answered_once(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    message = asked("How much leave?")
    async with (
        dispatching(state, platform, engine, owner="a") as one,
        dispatching(state, platform, engine, owner="b") as two,
    ):
        receipts = await asyncio.gather(one.dispatcher.receive(message), two.dispatcher.receive(message))
        outcomes = {await one.dispatcher.outcome(receipts[0]), await two.dispatcher.outcome(receipts[1])}
    assert outcomes == {Outcome.ANSWERED, Outcome.DUPLICATE}
    assert platform.kinds(message) == ["answer", "sources"]


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (asked("hi", kind=MessageKind.EDITED), Outcome.IGNORED_EDIT),
        (asked("hi", author=Author(id="fake:T1:B1", is_bot=True)), Outcome.IGNORED_BOT),
        (asked("hi", author=Author(id="fake:T1:B0", is_bot=True, is_self=True)), Outcome.IGNORED_SELF),
        (asked("   "), Outcome.IGNORED_EMPTY),
    ],
)
async def test_what_asks_nothing_is_not_answered(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine, message: Message, outcome: Outcome
) -> None:
    async with dispatching(embedded_state, platform, engine) as desk:
        assert await outcome_of(desk, message) is outcome
    assert not platform.posts
    assert not engine.asked


async def test_who_may_not_ask_is_told_so_once(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    message = asked("How much leave?", channel="C2")
    async with dispatching(embedded_state, platform, engine, allowed_channels="C1") as desk:
        assert await outcome_of(desk, message) is Outcome.REFUSED_AUDIENCE
        assert (await desk.dispatcher.receive(message)).outcome is Outcome.DUPLICATE
    assert platform.kinds(message) == ["said"]
    assert not engine.asked


async def test_too_many_questions_get_a_sentence_with_the_waiting_time(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    messages = [asked("q", id=str(number), conversation=f"fake:T1:C1:{number}") for number in range(3)]
    async with dispatching(embedded_state, platform, engine, user_questions=2) as desk:
        outcomes = [await outcome_of(desk, message) for message in messages]
    assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.LIMITED]
    assert platform.kinds(messages[2]) == ["said"]


# ---- order --------------------------------------------------------------------------------------------------------


async def test_two_quick_messages_are_answered_in_order_and_another_thread_is_not_held_up(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go = asyncio.Event()
    engine.before["first"] = go.wait
    first, second = asked("first", id="1"), asked("second", id="2")
    other = asked("other", id="3", conversation="fake:T1:C1:other")
    async with dispatching(state, platform, engine) as desk:
        receipts = [await desk.dispatcher.receive(message) for message in (first, second, other)]
        assert await desk.dispatcher.outcome(receipts[2]) is Outcome.ANSWERED
        await eventually(lambda: ("waiting", 2) in platform.decorations)
        assert not platform.kinds(second)
        go.set()
        assert await desk.dispatcher.outcome(receipts[1]) is Outcome.ANSWERED
    assert [post.message for post in platform.posts if post.kind == "answer"] == ["3", "1", "2"]


async def test_the_order_holds_across_processes(state: State, platform: FakePlatform, engine: ScriptedEngine) -> None:
    messages = [asked(f"q{number}", id=str(number)) for number in range(12)]
    async with (
        dispatching(state, platform, engine, owner="a", max_line=50) as one,
        dispatching(state, platform, engine, owner="b", max_line=50) as two,
    ):
        receipts = [await (one, two)[number % 2].dispatcher.receive(item) for number, item in enumerate(messages)]
        await asyncio.gather(*(one.dispatcher.outcome(receipt) for receipt in receipts))
    assert [post.message for post in platform.posts if post.kind == "answer"] == [item.id for item in messages]


async def test_a_line_that_is_too_long_is_told_of(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go = asyncio.Event()
    engine.before["q0"] = go.wait
    messages = [asked(f"q{number}", id=str(number)) for number in range(4)]
    async with dispatching(embedded_state, platform, engine, max_line=2) as desk:
        receipts = [await desk.dispatcher.receive(message) for message in messages]
        assert await desk.dispatcher.outcome(receipts[3]) is Outcome.LIMITED
        assert "2 questions" in platform.bodies(messages[3])[0]
        go.set()
        rest = [await desk.dispatcher.outcome(receipt) for receipt in receipts[:3]]
    assert rest == [Outcome.ANSWERED] * 3


async def test_two_hundred_conversations_do_not_wait_for_each_other(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    inside = 0
    everyone = asyncio.Event()

    async def enter() -> None:
        nonlocal inside
        inside += 1
        if inside == 200:
            everyone.set()
        await asyncio.wait_for(everyone.wait(), 60)

    engine.before["q"] = enter
    messages = [asked("q", id=str(number), conversation=f"fake:T1:C1:{number}") for number in range(200)]
    async with dispatching(embedded_state, platform, engine) as desk:
        receipts = [await desk.dispatcher.receive(message) for message in messages]
        outcomes = await asyncio.gather(*map(desk.dispatcher.outcome, receipts))
    assert set(outcomes) == {Outcome.ANSWERED}


async def test_more_than_a_process_can_hold_is_told_to_wait(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go = asyncio.Event()
    engine.before["held"] = go.wait
    held, more = asked("held", id="1"), asked("more", id="2", conversation="fake:T1:C1:2")
    async with dispatching(embedded_state, platform, engine, max_turns=1) as desk:
        await desk.dispatcher.receive(held)
        await eventually(lambda: engine.asked)
        assert await outcome_of(desk, more) is Outcome.LIMITED
        go.set()


# ---- deleted, stopped ---------------------------------------------------------------------------------------------


async def test_a_deleted_question_that_waits_is_not_answered(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go = asyncio.Event()
    engine.before["first"] = go.wait
    first, second = asked("first", id="1"), asked("second", id="2")
    async with dispatching(state, platform, engine) as desk:
        receipts = [await desk.dispatcher.receive(message) for message in (first, second)]
        await desk.dispatcher.receive(dataclasses.replace(second, kind=MessageKind.DELETED))
        go.set()
        assert await desk.dispatcher.outcome(receipts[1]) is Outcome.WITHDRAWN
    assert platform.kinds(second) == []


async def test_a_question_deleted_in_mid_answer_gets_no_post(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    go = asyncio.Event()
    engine.before["first"] = go.wait
    message = asked("first")
    async with dispatching(embedded_state, platform, engine) as desk:
        receipt = await desk.dispatcher.receive(message)
        await eventually(lambda: engine.asked)
        await desk.dispatcher.receive(dataclasses.replace(message, kind=MessageKind.DELETED))
        go.set()
        assert await desk.dispatcher.outcome(receipt) is Outcome.WITHDRAWN
    assert platform.kinds(message) == []


async def test_a_stopped_turn_ends_and_the_next_one_comes(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    engine.before["slow"] = lambda: asyncio.sleep(60)
    slow, after = asked("slow", id="1"), asked("after", id="2")
    async with dispatching(embedded_state, platform, engine) as desk:
        receipts = [await desk.dispatcher.receive(message) for message in (slow, after)]
        await eventually(lambda: engine.asked)
        assert desk.dispatcher.stop(slow.turn_id)
        assert await desk.dispatcher.outcome(receipts[0]) is Outcome.STOPPED
        assert await desk.dispatcher.outcome(receipts[1]) is Outcome.ANSWERED
        assert not desk.dispatcher.stop(slow.turn_id)


# ---- processes end ------------------------------------------------------------------------------------------------


async def test_a_process_that_ends_lets_its_turns_come_to_their_end(
    embedded_state: EmbeddedState, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    engine.before["slow"] = lambda: asyncio.sleep(0.5)
    message = asked("slow")
    async with dispatching(embedded_state, platform, engine) as desk:
        await desk.dispatcher.receive(message)
        await eventually(lambda: engine.asked)
        desk.dispatcher.close_soon()
        assert (await desk.dispatcher.receive(asked("late", id="2"))).outcome is Outcome.CLOSING
    assert platform.kinds(message) == ["answer", "sources"]


async def test_what_a_process_cannot_end_in_time_another_one_answers(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    engine.before["slow"] = lambda: asyncio.sleep(60)
    slow, waiting = asked("slow", id="1"), asked("waiting", id="2")
    async with dispatching(state, platform, engine, owner="a", drain_seconds=0.1) as desk:
        receipts = [await desk.dispatcher.receive(message) for message in (slow, waiting)]
        await eventually(lambda: engine.asked)
    assert not platform.posts
    async with dispatching(state, platform, ScriptedEngine(), owner="b") as desk:
        outcomes = [await desk.dispatcher.outcome(receipt) for receipt in receipts]
    assert outcomes == [Outcome.ANSWERED, Outcome.ANSWERED]
    assert [post.message for post in platform.posts if post.kind == "answer"] == ["1", "2"]


async def test_a_process_that_died_after_posting_is_not_answered_again_and_the_sources_come(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    message = asked("How much leave?")
    hang = asyncio.Event()
    dying = FakePlatform(posts=platform.posts)
    dying.before["sources"] = hang.wait
    async with dispatching(state, dying, engine, owner="a", lease_seconds=600) as dead:
        await dead.dispatcher.receive(message)
        await eventually(lambda: platform.kinds(message) == ["answer"])
        # As if the lease had run out: its holder is silent for good.
        for lane in tuple(dead.dispatcher._lanes._running):
            await dead.turns.release(lane.lease)
        async with dispatching(state, platform, ScriptedEngine(), owner="b") as desk:
            await eventually(lambda: platform.kinds(message) == ["answer", "sources"])
            await eventually(desk.dispatcher._lanes._empty.is_set)
            again = await desk.dispatcher.receive(message)
            assert again.outcome is Outcome.DUPLICATE
            assert await desk.turns.outcome(message) is Outcome.ANSWERED
            entry = await desk.history.entry(message.turn_id)
            assert entry is not None
        hang.set()
    assert len(engine.asked) == 1


async def test_a_question_that_kills_its_process_is_given_up(
    state: State, platform: FakePlatform, engine: ScriptedEngine
) -> None:
    message = asked("deadly")
    for number in range(3):
        deadly = ScriptedEngine()
        deadly.before["deadly"] = lambda: asyncio.sleep(60)
        async with dispatching(state, platform, deadly, owner=str(number), drain_seconds=0.05) as desk:
            if number == 0:
                await desk.dispatcher.receive(message)
            await eventually(lambda: deadly.asked)  # noqa: B023 - awaited at once
    async with dispatching(state, platform, engine, owner="last") as desk:
        await eventually(lambda: platform.kinds(message) == ["said"])
    assert not engine.asked
