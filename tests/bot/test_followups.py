from __future__ import annotations

import pytest
from fakes.passages import turn
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
