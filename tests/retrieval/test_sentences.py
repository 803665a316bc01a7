from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.sentences import MAX_SENTENCE, split_sentences


def split(text: str, language: str | None = None) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text, language)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["「そうだ。」と言った。", "次の文です。"],
        ["彼は「行く！」と叫んだ。", "本当ですか？", "はい。"],
        ["彼は言った。", "「行こう。」", "そして去った。"],
        ["これは「りんご。バナナ。」という文です。", "とても良い。"],
        ["『本。』と「本。」だ。", '彼は"はい。"と言う。'],
        ["（注：これは例です。）", "次の文。"],
        ["株価は3.5%上昇した。", "１．５倍です。"],
        ["「うん。」", "でも彼は行かなかった。"],
        ["“你好！”他说。", "今天天气很好！", "你呢？"],
        ["他说：「好。」就走了。", "《书。》是好书。"],
    ],
)
def test_cjk_sentences_without_spaces(sentences: list[str]) -> None:
    assert split("".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["We follow e.g. Smith et al. (2018) and Fig. 3 shows it.", "See Sec. 4.2 for more."],
        ["Dr. Brown agrees!", '"Really?" he said.', "Then he left."],
        ["As in Eq. (1) and Eqs. 2 it holds.", "No. 5 is approx. 3 cf. App. B for pp. 3–4."],
        ["The U.S. Army came.", "J. Smith et al., 2018 saw it.", "Others did not."],
        ["It was one of the dogs' bowls.", "The cats' bowl is red.", "The end."],
        ["(It was so.)", "Then it was not."],
        ["One is known.[1]", "Another is not. [4]", "The last is."],
        ["Visit www.example.com or v2.0.", "Yes!", "No?"],
        ["1. First do this.", "2. Then do that."],
        ["We looked at the app.", "I liked it."],
        ["He said it twice...", "Then he went."],
    ],
)
def test_english_sentences(sentences: list[str]) -> None:
    assert split(" ".join(sentences), "en") == sentences


def test_other_languages_use_their_own_rules() -> None:
    assert split("Das ist z. B. gut. Der 3. Oktober ist ein Feiertag.", "de") == [
        "Das ist z. B. gut.",
        "Der 3. Oktober ist ein Feiertag.",
    ]
    assert split("Il dit : « Oui. » M. Dupont est là.", "fr") == ["Il dit : « Oui. »", "M. Dupont est là."]
    assert split("यह एक है। यह दो है।", "hi") == ["यह एक है।", "यह दो है।"]


def test_a_line_break_is_no_end_but_a_blank_line_and_a_list_item_are() -> None:
    text = (
        "A sentence that\nwraps in Section\n3. It has two of them:\n\nNew paragraph\n- item one\n- item two\n1. a\n2. b"
    )
    assert split(text) == [
        "A sentence that\nwraps in Section\n3.",
        "It has two of them:",
        "New paragraph",
        "- item one",
        "- item two",
        "1. a",
        "2. b",
    ]


def test_table_rows_stand_alone() -> None:
    assert split("| a. | b |\n| --- | --- |\n| 1. One | 2 |") == ["| a. | b |", "| --- | --- |", "| 1. One | 2 |"]


def test_offsets_count_characters_beyond_the_basic_plane() -> None:
    assert split("😀 first. Then 𠮷野家 more 😀. End.") == ["😀 first.", "Then 𠮷野家 more 😀.", "End."]


@pytest.mark.parametrize("text", ["", " \n\n\t "])
def test_nothing_gives_nothing(text: str) -> None:
    assert split(text) == []


@pytest.mark.parametrize("unit", ["QUJD", "“", "「", "a.b.", "(", "word ", "これは文です。", "- \n", "1. ", "?"])
def test_long_text_without_ends_is_cut_at_the_limit(unit: str) -> None:
    text = unit * (60_000 // len(unit))
    spans = split_sentences(text, None)
    assert all(0 < end - start <= MAX_SENTENCE for start, end in spans)
    assert "".join(split(text)).replace(" ", "") == text.replace(" ", "").replace("\n", "")


_ALPHABET = st.sampled_from(
    [*"aB1 .!?\n-|()[]'\"", "。", "「", "」", "と", "é", "e\u0301", "😀", "\u3000", "Fig.", "\n\n", "他"]
)


@given(st.lists(_ALPHABET, max_size=80).map("".join), st.sampled_from(["en", "ja", "de", "xx", None]))
def test_spans_are_ordered_trimmed_and_lose_nothing(text: str, language: str | None) -> None:
    last = 0
    for start, end in split_sentences(text, language):
        assert last <= start < end
        assert not text[last:start].strip()
        assert text[start:end] == text[start:end].strip()
        last = end
    assert not text[last:].strip()
