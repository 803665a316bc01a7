"""What every state has to do for the limits."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from fakes.asking import asking, person

from bot.admission import Admission, Refusal, Rules
from bot.errors import StateMisconfiguredError, StateUnavailableError
from bot.messages import Attachment, Outcome
from bot.redis_embedded import EmbeddedState

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.messages import Message
    from bot.ports import State

BOT = person("B1", is_bot=True)


@pytest.fixture
def admission(state: State, embedded_state: EmbeddedState) -> Callable[..., Admission]:
    def make(**more: Any) -> Admission:
        given: dict[str, Any] = {
            "characters": 100,
            "user_questions": 3,
            "channel_questions": 5,
            "bot_turns": 2,
            "bots": frozenset({"B1"}),
        }
        return Admission(state, Rules(**(given | more)), embedded_state)

    return make


async def outcomes(admission: Admission, *messages: Message) -> list[Outcome | None]:
    refusals = [await admission.limit(message) for message in messages]
    return [refusal.outcome if refusal else None for refusal in refusals]


async def test_a_person_is_limited_with_a_friendly_sentence(admission: Callable[..., Admission]) -> None:
    limits = admission()
    assert await outcomes(limits, *(asking() for _ in range(3))) == [None, None, None]
    refusal = await limits.limit(asking())
    assert refusal is not None
    assert refusal.outcome is Outcome.LIMITED
    assert refusal.text in {
        f"You have asked 3 questions in the last minute; I can take the next one in {seconds} seconds."
        for seconds in range(50, 61)
    }
    assert await outcomes(limits, asking(author=person("U2"))) == [None]


async def test_the_sentence_is_in_the_language_of_the_question(admission: Callable[..., Admission]) -> None:
    limits = admission(user_questions=1)
    await limits.limit(asking())
    refusal = await limits.limit(asking(text="Wie viele Tage Urlaub habe ich im Jahr?"))
    assert refusal is not None
    assert refusal.text.startswith("Ich nehme hier eine Frage pro Minute an; die nächste kann ich in ")


async def test_a_channel_is_limited(admission: Callable[..., Admission]) -> None:
    limits = admission()
    people = [asking(author=person(f"U{number}")) for number in range(6)]
    assert await outcomes(limits, *people) == [None] * 5 + [Outcome.LIMITED]
    assert await outcomes(limits, asking(author=person("U7"), channel="C2")) == [None]
    assert await outcomes(limits, asking(author=person("U8"), channel="")) == [None]


async def test_the_same_channels_name_elsewhere_is_another_one(admission: Callable[..., Admission]) -> None:
    limits = admission(channel_questions=1)
    assert await outcomes(limits, asking(), asking(workspace="T2"), asking(platform="discord")) == [None] * 3


async def test_a_message_that_is_delivered_again_counts_once(admission: Callable[..., Admission]) -> None:
    limits = admission()
    first, second, third = asking(), asking(), asking()
    assert await outcomes(limits, first, first, second, first, second, third, first, third) == [None] * 8
    assert await outcomes(limits, asking()) == [Outcome.LIMITED]


async def test_limited_messages_do_not_count(admission: Callable[..., Admission]) -> None:
    limits = admission(window_seconds=0.8)
    assert await outcomes(limits, *(asking() for _ in range(3))) == [None] * 3
    assert await outcomes(limits, *(asking() for _ in range(9))) == [Outcome.LIMITED] * 9
    await asyncio.sleep(1.0)
    assert await outcomes(limits, *(asking() for _ in range(3))) == [None] * 3


async def test_who_is_limited_by_one_window_counts_in_none(admission: Callable[..., Admission]) -> None:
    limits = admission()
    assert await outcomes(limits, *(asking() for _ in range(9))) == [None] * 3 + [Outcome.LIMITED] * 6
    others = [asking(author=person("U2")) for _ in range(3)]
    assert await outcomes(limits, *others) == [None, None, Outcome.LIMITED]


async def test_no_limits_ask_the_state_nothing(embedded_state: EmbeddedState) -> None:
    await embedded_state.close()
    free = Rules(characters=100, user_questions=None, channel_questions=None, bot_turns=2)
    limits = Admission(embedded_state, free, embedded_state)
    assert await outcomes(limits, *(asking() for _ in range(99))) == [None] * 99


@pytest.mark.parametrize("command", ["help", "HELP", "new", "good", "bad"])
async def test_small_commands_are_free(admission: Callable[..., Admission], command: str) -> None:
    limits = admission(user_questions=1)
    assert await outcomes(limits, asking(), asking(text="", command=command), asking(text="help")) == [None] * 3


@pytest.mark.parametrize(
    "message",
    [
        asking(text="", command="ingest"),
        asking(text="", command="documents"),
        asking(text="documents"),
        asking(text="x", command="forget"),
        asking(text="history"),
        asking(text="", attachments=(Attachment(uri="file:///a", name="a"),)),
        asking(text="", command="unknown"),
    ],
)
async def test_commands_that_make_work_count_with_the_questions(
    admission: Callable[..., Admission], message: Message
) -> None:
    limits = admission(user_questions=1)
    assert await outcomes(limits, message, asking()) == [None, Outcome.LIMITED]


async def test_bots_are_capped_in_a_thread_and_not_told(admission: Callable[..., Admission]) -> None:
    limits = admission()
    assert await outcomes(limits, asking(author=BOT), asking(author=BOT, text="help")) == [None, None]
    assert await limits.limit(asking(author=BOT)) == Refusal(outcome=Outcome.IGNORED_BOT)
    assert await limits.limit(asking(author=BOT, text="help")) == Refusal(outcome=Outcome.IGNORED_BOT)
    assert await outcomes(limits, asking(author=BOT, conversation="slack:T1:C1:2")) == [None]
    assert await limits.limit(asking(author=BOT, conversation="slack:T1:C1:3")) == Refusal(outcome=Outcome.LIMITED)


async def test_bots_are_capped_where_nobody_is_limited(admission: Callable[..., Admission]) -> None:
    limits = admission(user_questions=None, channel_questions=None, bot_window_seconds=0.8)
    three = [asking(author=BOT) for _ in range(3)]
    assert await outcomes(limits, *three) == [None, None, Outcome.IGNORED_BOT]
    await asyncio.sleep(1.0)
    assert await outcomes(limits, asking(author=BOT)) == [None]


async def test_a_smaller_limit_holds_for_what_was_counted_already(admission: Callable[..., Admission]) -> None:
    assert await outcomes(admission(), *(asking() for _ in range(3))) == [None] * 3
    refusal = await admission(user_questions=2, window_seconds=30).limit(asking())
    assert refusal is not None
    assert refusal.text.startswith("You have asked 3 questions")


async def test_nobody_slips_through_at_once(admission: Callable[..., Admission]) -> None:
    limits = admission()
    refusals = await asyncio.gather(*(limits.limit(asking()) for _ in range(30)))
    assert sum(refusal is None for refusal in refusals) == 3


async def test_every_key_expires(state: State, admission: Callable[..., Admission]) -> None:
    await admission().limit(asking(author=BOT))
    keys = [
        state.key("limits/slack", "user", "slack:T1:B1"),
        state.key("limits/slack", "channel", "T1", "C1"),
        state.key("limits/slack", "bots", "slack:T1:C1:1"),
    ]
    times = [await state._client.ttl(key) for key in keys]  # type: ignore[attr-defined]  # a client of either kind
    assert all(0 < seconds <= most for seconds, most in zip(times, (60, 60, 3_600), strict=True))


# ---- without a state --------------------------------------------------------------------------------------------


class Away(EmbeddedState):
    """A server that cannot be reached, or cannot be used."""

    error: Exception = StateUnavailableError("away")

    async def run(self, *args: Any, **more: Any) -> Any:
        raise self.error


async def test_while_the_state_is_away_this_process_counts(embedded_state: EmbeddedState) -> None:
    away = await Away.open(None)
    rules = Rules(characters=100, user_questions=3, channel_questions=None, bot_turns=2)
    limits = Admission(away, rules, embedded_state)
    assert await outcomes(limits, *(asking() for _ in range(4))) == [None] * 3 + [Outcome.LIMITED]
    away.error = StateMisconfiguredError("bad password")
    with pytest.raises(StateMisconfiguredError):
        await limits.limit(asking())
    await away.close()


async def test_two_processes_share_their_windows(redis_url: str, embedded_state: EmbeddedState) -> None:
    from bot.redis_server import ServerState  # noqa: PLC0415 - only where a server is

    name = f"test-{uuid.uuid4().hex[:12]}"
    states = [await ServerState.open(redis_url, name) for _ in range(2)]
    rules = Rules(characters=100, user_questions=5, channel_questions=None, bot_turns=2)
    processes = [Admission(state, rules, embedded_state) for state in states]
    refusals = await asyncio.gather(*(process.limit(asking()) for process in processes for _ in range(10)))
    assert sum(refusal is None for refusal in refusals) == 5
    for state in states:
        await state.close()
