from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from fakes.asking import asking, person
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.admission import Admission, Refusal, Rules
from bot.messages import Attachment, MessageKind, Outcome
from bot.phrases import phrase
from bot.redis_embedded import EmbeddedState
from bot.settings import load_settings

if TYPE_CHECKING:
    from bot.messages import Message


def rules(**more: Any) -> Rules:
    given: dict[str, Any] = {"characters": 100, "user_questions": 3, "channel_questions": 5, "bot_turns": 2}
    return Rules(**(given | {name: frozenset(v) if isinstance(v, set) else v for name, v in more.items()}))


@pytest.fixture
def judge(embedded_state: EmbeddedState) -> Any:
    def of(**more: Any) -> Any:
        return Admission(embedded_state, rules(**more), embedded_state, ingest_command="/ingest").refusal

    return of


# ---- rules ------------------------------------------------------------------------------------------------------


def test_rules_come_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Rules.of(
        load_settings(
            user_questions=3, max_question_characters=50, allowed_channels="C1, C2", allowed_bots="B1", bot_turns=7
        ),
        unlimited=False,
    )
    assert (made.user_questions, made.channel_questions, made.characters, made.bot_turns) == (3, 60, 50, 7)
    assert (made.channels, made.bots, made.users) == ({"C1", "C2"}, {"B1"}, frozenset())


def test_the_terminal_has_no_windows_unless_they_are_set() -> None:
    assert Rules.of(load_settings(), unlimited=True).user_questions is None
    assert Rules.of(load_settings(), unlimited=True).channel_questions is None
    assert Rules.of(load_settings(user_questions=5), unlimited=True).user_questions == 5
    assert Rules.of(load_settings(), unlimited=False).user_questions == 12


# ---- refusals ---------------------------------------------------------------------------------------------------


def test_a_question_is_admitted(judge: Any) -> None:
    assert judge()(asking()) is None
    assert judge(workspaces={"T1"}, channels={"C1"}, users={"U1"})(asking()) is None


SELF = person("B0", is_bot=True, is_self=True)
BOT = person("B1", is_bot=True)


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (asking(author=SELF, kind=MessageKind.EDITED, text=""), Outcome.IGNORED_SELF),
        (asking(author=BOT, kind=MessageKind.EDITED, text=""), Outcome.IGNORED_EDIT),
        (asking(kind=MessageKind.DELETED), Outcome.IGNORED_EDIT),
        (asking(author=BOT, text="", channel="C9"), Outcome.IGNORED_BOT),
        (asking(text=" \n\t", channel="C9"), Outcome.IGNORED_EMPTY),
    ],
)
def test_what_is_ignored_is_ignored_in_silence_and_in_this_order(
    judge: Any, message: Message, outcome: Outcome
) -> None:
    assert judge(channels={"C1"})(message) == Refusal(outcome=outcome, text="")


@pytest.mark.parametrize(
    "message",
    [
        asking(text="", command="help"),
        asking(text="", attachments=(Attachment(uri="file:///a", name="a"),)),
    ],
)
def test_commands_and_files_need_no_words(judge: Any, message: Message) -> None:
    assert judge()(message) is None


@pytest.mark.parametrize(
    ("allowed", "name"),
    [
        ({"workspaces": {"T2", "t1", ""}}, "refused_workspace"),
        ({"channels": {"C2", "C", "c1", "C11"}}, "refused_channel"),
        ({"users": {"U2", "T1", "u1", "U", "T1:U1", "slack:T1"}}, "refused_user"),
    ],
)
def test_lists_are_compared_exactly_and_the_refusal_is_friendly(
    judge: Any, allowed: dict[str, set[str]], name: str
) -> None:
    for message in (asking(), asking(text="", command="ingest"), asking(text="x" * 200)):
        assert judge(**allowed)(message) == Refusal(outcome=Outcome.REFUSED_AUDIENCE, text=phrase(name, "en"))


def test_a_place_without_an_id_is_on_no_list(judge: Any) -> None:
    assert judge(workspaces={"T1"})(asking(workspace="")).outcome is Outcome.REFUSED_AUDIENCE
    assert judge(channels={"C1"})(asking(channel="")).outcome is Outcome.REFUSED_AUDIENCE


@pytest.mark.parametrize("listed", ["U1", "slack:T1:U1"])
def test_people_are_known_by_their_own_and_by_their_whole_id(judge: Any, listed: str) -> None:
    assert judge(users={listed, "U7"})(asking()) is None


@pytest.mark.parametrize("listed", ["B1", "slack:T1:B1"])
def test_bots_are_answered_when_they_are_allowed(judge: Any, listed: str) -> None:
    assert judge(bots={listed}, users={"U7"})(asking(author=BOT)) is None
    assert judge(bots={listed})(asking(author=person("B2", is_bot=True))).outcome is Outcome.IGNORED_BOT


def test_bots_are_not_told_why_they_are_refused(judge: Any) -> None:
    assert judge(bots={"B1"}, channels={"C2"})(asking(author=BOT)) == Refusal(outcome=Outcome.REFUSED_AUDIENCE)
    assert judge(bots={"B1"})(asking(author=BOT, text="x" * 101)) == Refusal(outcome=Outcome.REFUSED_SIZE)


def test_a_long_question_is_refused_with_both_numbers_and_what_to_do(judge: Any) -> None:
    assert judge()(asking(text="x" * 100)) is None
    refusal = judge()(asking(text="word " * 300))
    assert refusal.outcome is Outcome.REFUSED_SIZE
    assert {"1500", "100", "/ingest"} <= set(refusal.text.replace(".", "").replace(",", "").split())


def test_long_arguments_of_commands_are_no_long_questions(judge: Any) -> None:
    attachment = Attachment(uri="file:///a", name="a")
    assert judge()(asking(text="x" * 200, command="history")) is None
    assert judge()(asking(text=f"ingest {'x' * 200}", attachments=(attachment,))) is None
    assert judge()(asking(text=f"what is {'x' * 200}", attachments=(attachment,))).outcome is Outcome.REFUSED_SIZE


@pytest.mark.parametrize(
    ("text", "language"),
    [("Wie viele Tage Urlaub habe ich im Jahr?", "de"), ("有給休暇は何日ありますか", "ja"), ("hm", "en")],
)
def test_refusals_are_in_the_language_of_the_message(judge: Any, text: str, language: str) -> None:
    assert judge(channels={"C2"})(asking(text=text)).text == phrase("refused_channel", language)


# ---- windows, against a model -----------------------------------------------------------------------------------

START = 1_800_000_000.0


@dataclass
class Clock:
    """The time that the embedded state sees."""

    now: float = 0.0

    def time(self) -> float:
        return START

    def monotonic(self) -> float:
        return self.now


@dataclass
class Model:
    """All that was admitted, in ms: a window is whatever of it lies less than a minute back."""

    admitted: list[tuple[int, str, str, str]] = field(default_factory=list)

    def limit(self, now: int, user: str, channel: str, name: str) -> tuple[str, int]:
        """Which limit holds, and the ms until it does not."""
        inside = [entry for entry in self.admitted if entry[0] > now - 60_000]
        if any(entry[3] == name for entry in inside):
            return "", 0
        found = [("", 0)]
        for limit, place, wanted, most in (("user", 1, user, 2), ("channel", 2, channel, 3)):
            times = sorted(entry[0] for entry in inside if entry[place] == wanted)
            if len(times) >= most:
                found.append((limit, times[-most] + 60_000 - now))
        worst = max(found, key=lambda item: item[1])
        if not worst[0]:
            self.admitted.append((now, user, channel, name))
        return worst


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 500, 7_000, 20_000, 59_999, 60_000]) | st.integers(0, 90_000),
        st.sampled_from(["U1", "U2"]),
        st.sampled_from(["C1", "C2"]),
        st.none() | st.integers(0, 5),  # the message that came so many steps before, once more
    ),
    max_size=40,
)


@given(STEPS)
@example([(0, "U1", "C1", None), (1, "U1", "C1", None), (59_998, "U1", "C1", None), (1, "U1", "C1", None)])
@settings(max_examples=150, deadline=None)
def test_windows_slide_as_the_model_says(steps: list[tuple[int, str, str, int | None]]) -> None:
    async def run() -> None:
        clock, model, sent = Clock(), Model(), []
        with mock.patch("bot.redis_embedded.time", clock):
            state = await EmbeddedState.open(None)
            admission = Admission(state, rules(user_questions=2, channel_questions=3), state)
            now = 0
            for later, user, channel, again in steps:
                now += later
                clock.now = now / 1000 + 0.000_1
                old = again is not None and again < len(sent)
                message = sent[-1 - again] if old else asking(author=person(user), channel=channel)  # type: ignore[operator]  # not None where it is old
                sent.append(message)
                limit, wait = model.limit(now, message.author.id, message.channel, message.turn_id)
                refusal = await admission.limit(message)
                assert (refusal is not None) == bool(limit)
                if refusal is not None:
                    assert refusal.outcome is Outcome.LIMITED
                    assert f"in {max(2, -(-wait // 1000))} seconds" in refusal.text
                    assert ("You have asked" in refusal.text) == (limit == "user")
            await state.close()

    asyncio.run(run())


async def test_under_a_smaller_limit_the_waiting_time_is_still_true() -> None:
    clock = Clock()
    with mock.patch("bot.redis_embedded.time", clock):
        state = await EmbeddedState.open(None)
        for _ in range(3):
            assert await Admission(state, rules(), state).limit(asking()) is None
            clock.now += 10.000_1
        smaller = Admission(state, rules(user_questions=2), state)
        refusal = await smaller.limit(asking())
        assert refusal is not None
        assert "asked 3 questions in the last minute; I can take the next one in 40 seconds" in refusal.text
        clock.now += 39.9
        assert await smaller.limit(asking()) is not None
        clock.now += 0.2
        assert await smaller.limit(asking()) is None
        await state.close()


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
async def test_a_clock_that_is_set_locks_nobody_out(jump: float) -> None:
    clock = Clock(now=1_000_000.0)
    with mock.patch("bot.redis_embedded.time", clock):
        state = await EmbeddedState.open(None)
        admission = Admission(state, rules(), state)
        assert [await admission.limit(asking()) is None for _ in range(4)] == [True, True, True, False]
        clock.now += jump
        assert await admission.limit(asking()) is None
        await state.close()
