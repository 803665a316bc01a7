from __future__ import annotations

import pytest
from fakes.passages import remark, turn
from hypothesis import given
from hypothesis import strategies as st

from bot.followups import joined, leans_on_context

LEANING = [
    "And how often?",
    "Why?",
    "what about Germany?",
    "How long does it take?",
    "Does it apply to contractors?",
    "Who wrote that?",
    "Is the second one cheaper?",
    "Is that right?",
    "Wie lange dauert das?",
    "Und warum?",
    "Et pourquoi ?",
    "¿Y cuándo?",
    "それはなぜですか",
    "なぜですか？",
    "どれくらいですか",
    "その上限は？",
    "那么为什么？",
    "它有多大？",
    "왜?",
]
ALONE = [
    "What is BERT?",
    "What is the IT policy?",
    "How long does it take to ship an order?",
    "Is it possible to cancel an order?",
    "E-mail address of support?",
    "O-ring size?",
    "O que é BERT?",
    "En qué consiste BERT?",
    "Which documents say that the limit is 20?",
    "Which rules that still apply were written in 2020?",
    "Which policy that allowed remote work was replaced?",
    "Was kostet das Parken?",
    "Wie hoch ist das Limit?",
    "これまでの実績は何ですか",
    "それぞれの部署の予算はいくらですか",
    "その他の費用には何が含まれますか",
    "其他城市有哪些？",
    "吉他多少钱？",
]


@pytest.mark.parametrize("question", LEANING)
def test_a_follow_up_leans_on_what_was_said(question: str) -> None:
    assert leans_on_context(question)
    assert joined([turn("What is the refund period?", "…")], question) == f"What is the refund period? {question}"


@pytest.mark.parametrize("question", ALONE)
def test_a_question_that_stands_alone_is_not_polluted(question: str) -> None:
    assert not leans_on_context(question)
    assert joined([turn("What is the refund period?", "…")], question) == question


def test_a_chain_goes_back_to_the_question_that_began_it() -> None:
    turns = [turn("Who leads sales?", "…"), turn("What is the refund period?", "…"), turn("And how often?", "…")]
    assert joined(turns, "Why?") == "What is the refund period? And how often? Why?"


def test_a_follow_up_without_turns_stays_as_it_is() -> None:
    assert joined([], "Why?") == "Why?"


@pytest.mark.parametrize(
    ("remarks", "question", "leaned_on"),
    [
        (
            ["Can annual plans be refunded at all?", "thanks!"],
            "what about that?",
            "Can annual plans be refunded at all?",
        ),
        (
            ["She wants a refund for her annual plan", "I think it's 30 days?", "hm"],
            "Is that right?",
            "She wants a refund for her annual plan I think it's 30 days?",
        ),
        (["Lunch?", "Kann ich Bahnfahrten erster Klasse abrechnen?"], "Was ist damit?", None),
        (["Bonjour", "On peut travailler de la maison combien de jours ?", "Ah bon"], "Et cela ?", None),
        (["Ayer pagué 20 euros por la comida en el viaje"], "¿y eso?", None),
        (["先週の出張の経費、まだ精算していません", "了解です"], "それはいつまでですか", None),
        (["我的门禁卡昨天在地铁上丢了", "好的"], "这应该怎么办？", "我的门禁卡昨天在地铁上丢了"),
    ],
)
def test_the_first_question_in_a_thread_of_others_leans_on_what_they_said(
    remarks: list[str], question: str, leaned_on: str | None
) -> None:
    said = [remark(text) for text in remarks]
    expected = leaned_on or max(remarks, key=len)
    assert joined([], question, said) == f"{expected} {question}"


@pytest.mark.parametrize("question", ALONE)
def test_remarks_do_not_pollute_a_question_that_stands_alone(question: str) -> None:
    assert joined([], question, [remark("Can annual plans be refunded at all?")]) == question


def test_turns_go_before_remarks() -> None:
    assert joined([turn("Who leads sales?", "…")], "Why?", [remark("Can annual plans be refunded?")]) == (
        "Who leads sales? Why?"
    )


def test_remarks_that_tell_nothing_are_not_leaned_on() -> None:
    assert joined([], "Why?", [remark("ok"), remark("👍👍👍👍👍👍👍👍👍👍👍👍👍"), remark("了解です")]) == "Why?"


def test_endless_remarks_stay_short() -> None:
    text = joined([], "And why?", [remark("it is so " * 10_000) for _ in range(30)])
    assert len(text) < 2_000
    assert text.endswith("And why?")


def test_an_endless_chain_of_endless_questions_stays_short() -> None:
    turns = [turn("why " * 10_000, "…") for _ in range(100)]
    text = joined(turns, "And how often?")
    assert len(text) < 2_000
    assert text.endswith("And how often?")


@given(st.text(alphabet="のかですがaitse そと ?", max_size=3_000))
def test_no_text_takes_long(text: str) -> None:
    leans_on_context(text)


def test_a_repetitive_text_does_not_explode() -> None:
    assert not leans_on_context("のか" * 5_000 + "x")
