from __future__ import annotations

import pytest

from bot.language import question_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the refund period?", "en"),
        ("Who is Piyush?", "en"),
        ("Wie lange habe ich Zeit für eine Rückgabe?", "de"),
        ("Quel est le délai de remboursement ?", "fr"),
        ("¿Cuál es el plazo de devolución?", "es"),
        ("Qual è il periodo di rimborso?", "it"),
        ("Qual é o prazo de devolução?", "pt"),
        ("返品の期限はいつですか", "ja"),
        ("BERTとは何ですか？", "ja"),
        ("退货期限是多久？", "zh"),
        ("반품 기한은 언제입니까?", "ko"),
    ],
)
def test_the_language_of_a_question(text: str, language: str) -> None:
    assert question_language(text) == language


@pytest.mark.parametrize("text", ["", "?", "BERT", "MLM?", "🙂🙂", "12 + 30", "x" * 100_000])
def test_what_tells_no_language_is_taken_for_english(text: str) -> None:
    assert question_language(text) == "en"


def test_another_language_may_stand_in() -> None:
    assert question_language("MLM?", otherwise="de") == "de"
