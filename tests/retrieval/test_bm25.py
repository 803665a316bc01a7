"""BM25 vectors: what finds what, in which form, and which words they stand for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.bm25 import AVERAGE_LENGTH, B, Bm25Encoder, K

ENCODER = Bm25Encoder()


def terms(text: str) -> set[int]:
    return set(ENCODER.encode_query(text).indices)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pre-training", "pretraining"),
        ("Fine-Tuning", "finetuning"),
        ("e-mail", "email"),
        ("pre\u2011training", "pre-training"),  # non-breaking hyphen
        ("pre\u2010trained", "pretrained"),
        ("GPT-4", "GPT4"),
        ("COVID-19", "covid19"),
        ("AT&T", "ATT"),
        ("running", "runs"),
        ("Models", "model"),
        ("1,000,000", "1000000"),
        ("in 1918.", "1918"),
        ("1997年7月", "1997"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("ｻｰﾊﾞｰ", "サーバー"),
        ("ﬁne", "fine"),
        ("休暇の申請について", "休暇"),
        ("国連本部の通信", "国連"),
        ("平和維持軍の司令部", "平和維持軍"),
        ("上海市浦东新区的人口", "浦东"),
        ("Москва", "москва"),
        ("The API (v2) の設定", "設定"),
    ],
)
def test_two_ways_to_write_it_find_each_other(one: str, other: str) -> None:
    assert terms(one) & terms(other)


@pytest.mark.parametrize(("one", "other"), [("version 3.14", "version 2.7"), ("1918", "1919"), ("cat", "dog")])
def test_what_differs_stays_apart(one: str, other: str) -> None:
    assert terms(one) != terms(other)


@pytest.mark.parametrize("question", ["休暇", "有給休暇", "設定", "人工智能", "機械学習", "国連本部"])
def test_a_question_of_han_alone_is_cut_as_in_a_sentence(question: str) -> None:
    assert terms(question) <= terms(f"これは{question}についての文です。")


@pytest.mark.parametrize("text", ["", " \n", "the of and", "…!?", "のは", "\ud800"])
def test_nothing_to_find_is_an_empty_vector(text: str) -> None:
    for vector in (ENCODER.encode_query(text), ENCODER.encode_document(text)):
        assert vector.indices == vector.values == ()


def test_weights_are_those_of_the_formula() -> None:
    vector = ENCODER.encode_document("zebra zebra zebra horse")
    weights = dict(zip(vector.indices, vector.values, strict=True))
    norm = K * (1 - B + B * 4 / AVERAGE_LENGTH)
    (zebra,), (horse,) = (ENCODER.encode_query(word).indices for word in ("zebra", "horse"))
    assert weights == {zebra: pytest.approx(3 * (K + 1) / (3 + norm)), horse: pytest.approx((K + 1) / (1 + norm))}


def test_high_frequencies_are_counted_exactly() -> None:
    vector = ENCODER.encode_document("zebra " * 5000)
    norm = K * (1 - B + B * 5000 / AVERAGE_LENGTH)
    assert vector.values == (pytest.approx(5000 * (K + 1) / (5000 + norm), rel=1e-9),)


def test_terms_names_the_words_of_a_question() -> None:
    question = "What two pre-training tasks took 1,000 steps in 国連本部?"
    named = ENCODER.terms(question)
    assert set(named) == terms(question)
    assert set(named.values()) >= {"two", "pre", "training", "pre-training", "tasks", "1000", "steps", "国連", "本部"}


def test_terms_of_a_stop_word_are_none() -> None:
    assert ENCODER.terms("the の") == {}


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_ascending_unique_indices_and_finite_weights(text: str) -> None:
    document, question = ENCODER.encode_document(text), ENCODER.encode_query(text)
    assert document.indices == question.indices
    assert list(document.indices) == sorted(set(document.indices))
    assert len(document.values) == len(document.indices)
    assert all(0 < value <= K + 1 for value in document.values)
    assert set(question.values) <= {1.0}
    assert all(0 <= index < 2**32 for index in document.indices)
    assert set(ENCODER.terms(text)) <= set(question.indices)


def test_one_encoder_serves_several_threads() -> None:
    texts = [f"zebra number {n} 休暇の申請 {n}" for n in range(200)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ENCODER.encode_document, texts)) == ENCODER.encode_documents(texts)
