from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.conversations import ALL_REMARKS, REMARK, REMARKS, merged
from bot.messages import Author, Message, ThreadMessage, TurnId, turn_id
from bot.types import Conversation, Turn
from retrieval.types import PUBLIC

START = datetime(2026, 1, 1, tzinfo=UTC)
THREAD = "slack:T1:C1:1.0"
ADA = Author(id="slack:T1:U1", name="Ada")
BOB = Author(id="slack:T1:U2", name="Bob")
SELF = Author(id="slack:T1:B1", name="Footnote", is_bot=True, is_self=True)
OTHER_BOT = Author(id="slack:T1:B2", name="Deploy bot", is_bot=True)


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def asked(message_id: str = "99", text: str = "what about that?") -> Message:
    return Message(
        platform="slack", id=message_id, conversation=THREAD, author=ADA, text=text, sent_at=at(99), audience=PUBLIC
    )


def post(message_id: str, text: str, author: Author = BOB, minute: float | None = None, **more: Any) -> ThreadMessage:
    sent_at = at(float(message_id) if minute is None else minute)
    return ThreadMessage(id=message_id, author=author, text=text, sent_at=sent_at, **more)


def name_of(message_id: str) -> TurnId:
    return turn_id("slack", THREAD, message_id)


def remembered(*message_ids: str, since: datetime | None = None) -> Conversation:
    turns = tuple(
        Turn(id=name_of(m), question=f"question {m}", reply=f"reply {m}", author="Ada", asked_at=at(float(m)))
        for m in message_ids
    )
    return Conversation(id=THREAD, turns=turns, since=since)


def said(conversation: Conversation) -> list[str]:
    return [f"{remark.author}: {remark.text}" for remark in conversation.remarks]


def test_what_others_said_is_merged_in() -> None:
    thread = [
        post("1", "Refunds are a mess."),
        post("2", "question 2", ADA),
        post("3", "reply 2 as it looks here", SELF, turn_id=name_of("2")),
        post("4", "sources of 2", SELF, turn_id=name_of("2")),
        post("5", "Deployed.", OTHER_BOT),
        post("6", "Really?", ADA),
        post("99", "what about that?", ADA),
    ]
    found = merged(remembered("2"), asked(), thread)
    assert said(found) == ["Bob: Refunds are a mess.", "Deploy bot: Deployed.", "Ada: Really?"]
    assert found.turns == remembered("2").turns
    assert [remark.said_at for remark in found.remarks] == [at(1), at(5), at(6)]


def test_turns_that_are_no_longer_remembered_are_told_by_the_platform() -> None:
    thread = [post("1", "How long?", ADA), post("2", "Thirty days.", SELF, turn_id=name_of("1"))]
    assert said(merged(remembered(), asked(), thread)) == ["Ada: How long?", "Footnote: Thirty days."]
    assert said(merged(remembered("1"), asked(), thread)) == []


def test_posts_of_the_turn_itself_are_left_out() -> None:
    thread = [post("98", "Searching…", SELF, turn_id=name_of("99")), post("99", "what about that?", ADA)]
    assert merged(remembered(), asked(), thread).remarks == ()


def test_an_answer_that_lost_its_turns_id_is_known_by_its_text() -> None:
    assert merged(remembered("1"), asked(), [post("2", " reply 1 ", SELF)]).remarks == ()
    assert said(merged(remembered("1"), asked(), [post("2", "reply 1", BOB)])) == ["Bob: reply 1"]


def test_another_platforms_or_threads_message_of_that_id_is_not_taken_for_it() -> None:
    other = Conversation(
        id=THREAD,
        turns=(Turn(id=turn_id("discord", THREAD, "1"), question="q", reply="r", author="Ada", asked_at=at(1)),),
    )
    assert said(merged(other, asked(), [post("1", "Hm.")])) == ["Bob: Hm."]


def test_what_was_said_before_a_new_beginning_stays_forgotten() -> None:
    thread = [post("1", "old"), post("2", "at that moment"), post("3", "new")]
    assert said(merged(remembered(since=at(2)), asked(), thread)) == ["Bob: new"]


def test_nameless_authors_are_told_by_their_ids_and_texts_without_words_are_left_out() -> None:
    thread = [post("1", "Hm.", Author(id="slack:T1:U9")), post("2", " \n\t "), post("3", "")]
    assert said(merged(remembered(), asked(), thread)) == ["slack:T1:U9: Hm."]


def test_long_remarks_and_long_threads_are_bounded() -> None:
    thread = [post(str(n), f"{n} {'word ' * 400}", Author(id="x", name="n" * 500)) for n in range(1, 90)]
    found = merged(remembered(), asked(), thread).remarks
    assert len(found) == 7  # 1,000 characters and a name of 100 each
    assert found[-1].text.startswith("89 ")
    assert all(remark.text.endswith("word…") and len(remark.text) <= REMARK for remark in found)
    short = [post(str(n), f"{n}") for n in range(1, 90)]
    assert [remark.text for remark in merged(remembered(), asked(), short).remarks] == [str(n) for n in range(60, 90)]


POSTS = st.lists(
    st.builds(
        lambda number, text, author, minute, turn: ThreadMessage(
            id=str(number),
            author=author,
            text=text,
            sent_at=at(minute),
            turn_id=None if turn is None or not author.is_self else name_of(str(turn)),
        ),
        st.integers(1, 60),
        st.text(max_size=5) | st.sampled_from(["reply 3", "x" * 1_500, "👨‍👩‍👧‍👦" * 300, "question 3"]),
        st.sampled_from([ADA, BOB, SELF, OTHER_BOT]),
        st.integers(0, 120),
        st.none() | st.integers(1, 60),
    ),
    max_size=80,
    unique_by=lambda post: post.id,
)


@given(thread=POSTS, turns=st.sets(st.integers(1, 60), max_size=20), since=st.none() | st.integers(0, 60))
def test_nothing_that_the_bot_saw_appears_twice(
    thread: list[ThreadMessage], turns: set[int], since: int | None
) -> None:
    before = remembered(*map(str, sorted(turns)), since=None if since is None else at(since))
    found = merged(before, asked("60"), thread)
    moments = [remark.said_at for remark in found.remarks]
    assert moments == sorted(moments)
    assert len(found.remarks) <= REMARKS
    assert sum(len(remark.author) + len(remark.text) for remark in found.remarks) <= ALL_REMARKS
    assert all(remark.text and len(remark.text) <= REMARK for remark in found.remarks)
    assert all("👨‍👩‍👧‍👦" in remark.text for remark in found.remarks if "👨" in remark.text)
    seen = {*map(str, turns), "60"}
    allowed = {
        (one.author.name, one.sent_at)
        for one in thread
        if one.id not in seen
        and (one.turn_id is None or one.turn_id not in set(map(name_of, seen)))
        and (since is None or one.sent_at > at(since))
    }
    assert {(remark.author, remark.said_at) for remark in found.remarks} <= allowed
    assert merged(found, asked("60"), thread) == found
    assert found.turns == before.turns
    kept = {(remark.author, remark.said_at) for remark in found.remarks}
    for one in thread:
        own = one.author.is_self and one.text == "reply 3"
        if (one.author.name, one.sent_at) in allowed - kept and one.text.strip() and not own:
            assert one.sent_at <= moments[0]  # the latest ones are kept
