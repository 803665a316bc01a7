from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.normalising import (
    LineBreak,
    join_lines,
    line_break,
    normalise,
    normalise_code,
    normalise_inline,
    settle_hyphenation,
)

TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
WORDS = st.lists(st.from_regex(r"[a-z]{1,6}(-[a-z]{1,6}){0,2}", fullmatch=True), max_size=20)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("eﬃcient ﬁnding", "efficient finding"),
        ("ＡＢＣ　１２３", "ABC 123"),
        ("ﾊﾞｸﾃﾘｱ", "バクテリア"),
        ("⽇本⼈", "日本人"),
        ("⻑い⻘い⻝事", "長い青い食事"),
        ("co\u00adoperate", "cooperate"),
        ("co\u00ad\n  operate", "cooperate"),
        ("infor\ufffe\nmation", "information"),
        ("a\u200bb\ufeff\u202ec", "abc"),
        ("葛\U000e0100城", "葛城"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("bell\x07 and\x00 nul", "bell and nul"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("a \t b  \n\n\n\n c", "a b\n\nc"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_characters_take_their_stored_form(written: str, stored: str) -> None:
    assert normalise(written) == stored


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("10⁵ cells", "10^5 cells"),
        ("10⁻³", "10^-3"),
        ("25 m²", "25 m2"),
        ("H₂O", "H2O"),
        ("1½ hours", "1 1/2 hours"),
        ("½ hour", "1/2 hour"),
        ("第1①", "第1 1"),
        ("①②", "1 2"),
        ("a ´ b", "a ´ b"),
    ],
)
def test_numbers_do_not_run_into_each_other(written: str, stored: str) -> None:
    assert normalise(written) == stored


@given(TEXT)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    inline = normalise_inline(text)
    assert normalise_inline(inline) == inline


@given(TEXT)
def test_no_control_character_survives(text: str) -> None:
    for stored in (normalise(text), normalise_inline(text), normalise_code(text)):
        assert not [c for c in stored if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
        stored.encode()
    assert "\n" not in normalise_inline(text)


@given(st.text(alphabet=st.characters(codec="ascii", min_codepoint=33, max_codepoint=126)))
def test_plain_ascii_stays(text: str) -> None:
    assert normalise(text) == text


def test_lines_are_joined_with_a_space_but_not_between_cjk_characters() -> None:
    assert normalise_inline("two\nlines") == "two lines"
    assert normalise_inline("日本\n語") == "日本語"


def test_code_keeps_its_indentation_and_its_characters() -> None:
    assert normalise_code("\nif ½:\r\n    x² = 1\x00\n") == "if ½:\n    x² = 1"


def test_a_word_cut_at_a_line_end_is_joined_and_reported() -> None:
    text, breaks = join_lines(["We use deep represen-", "tation learning with BERT-", "Large."])
    assert text == "We use deep representation learning with BERT-Large."
    assert breaks == [LineBreak(head="represen", tail="tation"), LineBreak(head="BERT", tail="Large")]


def test_a_dash_at_a_line_end_is_no_cut_word() -> None:
    assert line_break("two models -", "one good") is None
    assert line_break("no hyphen", "here") is None
    assert join_lines(["two models -", "one good"])[0] == "two models - one good"


def cut(head: str, tail: str) -> LineBreak:
    return LineBreak(head=head, tail=tail)


def test_a_cut_compound_takes_the_spelling_that_stands_whole_elsewhere() -> None:
    texts = ["A left-toright model.", "Finetuning, left-to-right.", "fine-tuning"]
    settled = settle_hyphenation(texts, [cut("left-to", "right"), cut("Fine", "tuning")])
    assert settled == ["A left-to-right model.", "Fine-tuning, left-to-right.", "fine-tuning"]


def test_a_cut_word_stays_joined_when_it_stands_so_elsewhere() -> None:
    assert settle_hyphenation(["Bi-LSTM and BiLSTM"], [cut("Bi", "LSTM")]) == ["BiLSTM and BiLSTM"]


def test_a_cut_compound_that_stands_nowhere_whole_is_judged_by_its_parts() -> None:
    texts = ["a taskspecific head", "each task needs a specific head", "one task, specific loss"]
    assert settle_hyphenation(texts, [cut("task", "specific")])[0] == "a task-specific head"


def test_a_cut_compound_that_stands_nowhere_whole_is_judged_by_its_kin() -> None:
    texts = ["it jointly pretrains", "pre-training and pre-trained models", "the present"]
    assert settle_hyphenation(texts, [cut("pre", "trains")])[0] == "it jointly pre-trains"


def test_an_ordinary_cut_word_stays_a_word() -> None:
    texts = ["a representation", "re and presentation re presentation", "others"]
    assert settle_hyphenation(texts, [cut("re", "presentation")]) == texts


def test_words_that_were_not_cut_are_left_alone() -> None:
    texts = ["reform, re-form re-form re-form"]
    assert settle_hyphenation(texts, [cut("some", "thing")]) == texts


def test_without_line_ends_the_clearly_more_frequent_hyphenated_spelling_wins() -> None:
    texts = ["fine-tuning fine-tuning", "Finetuning leftto-right left-to-right left-to-right"]
    assert settle_hyphenation(texts) == [
        "fine-tuning fine-tuning",
        "Fine-tuning left-to-right left-to-right left-to-right",
    ]


def test_without_line_ends_an_even_mixture_or_a_word_without_hyphen_stays() -> None:
    for texts in (["email e-mail"], ["cooperate cooperate co-operate"], ["downstream downstream"]):
        assert settle_hyphenation(texts) == texts


@given(WORDS)
def test_settling_changes_hyphens_only_and_is_stable(words: list[str]) -> None:
    text = " ".join(words)
    (settled,) = settle_hyphenation([text])
    assert settled.replace("-", "") == text.replace("-", "")
    assert settle_hyphenation([settled]) == [settled]


@given(
    WORDS, st.lists(st.tuples(st.from_regex("[a-z]{1,4}", fullmatch=True), st.from_regex("[a-z]{1,4}", fullmatch=True)))
)
def test_settling_cut_words_changes_hyphens_only(words: list[str], cuts: list[tuple[str, str]]) -> None:
    text = " ".join(words)
    (settled,) = settle_hyphenation([text], [cut(*parts) for parts in cuts])
    assert settled.replace("-", "") == text.replace("-", "")
