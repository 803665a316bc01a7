from __future__ import annotations

import re
from uuid import UUID, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.chunking import CHUNKER, ChunkLimits, chunk
from retrieval.types import (
    PUBLIC,
    Block,
    BlockKind,
    Chunk,
    ChunkKind,
    Document,
    DocumentId,
    VersionId,
    embedded_text,
)

VERSION = VersionId("12345678-1234-5678-1234-567812345678")
LIMITS = ChunkLimits(target_tokens=40, max_tokens=90, small_tokens=15)


def count_tokens(texts: list[str] | tuple[str, ...]) -> list[int]:
    """Words of at most four letters, every other character for itself: like a real vocabulary, only simpler."""
    return [len(re.findall(r"[a-zA-Z0-9]{1,4}|[^\sa-zA-Z0-9]", text)) for text in texts]


def document(*blocks: tuple[object, ...], title: str = "Handbook", language: str | None = "en") -> Document:
    """Blocks as (kind, text), (kind, text, level) or (kind, text, level, page, last_page)."""
    made: list[Block] = []
    position = 0
    for kind, text, *rest in blocks:
        level, page, last_page = (*rest, *(0, None, None)[len(rest) :])
        made.append(
            Block(
                kind=BlockKind(kind),
                text=str(text),
                start=position,
                end=position + len(str(text)),
                level=level,
                page=page,
                last_page=last_page if last_page is not None else page,
            )
        )
        position += len(str(text)) + 2
    return Document(
        id=DocumentId("d"),
        uri="file:///handbook.md",
        title=title,
        media_type="text/markdown",
        digest="0",
        text="\n\n".join(block.text for block in made),
        blocks=tuple(made),
        page_count=None,
        language=language,
    )


def cut(made: Document, limits: ChunkLimits = LIMITS) -> tuple[Chunk, ...]:
    return chunk(made, version=VERSION, audience=PUBLIC, count_tokens=count_tokens, limits=limits)


def prose(words: int, word: str = "word") -> str:
    """Sentences of five words."""
    return " ".join(f"{word.capitalize()} {word} {word} {word} {word}." for _ in range(words // 5))


def squeezed(text: str) -> str:
    return "".join(text.split())


def assert_sound(made: Document, chunks: tuple[Chunk, ...], limits: ChunkLimits) -> None:
    """What holds for the chunks of any document."""
    assert [item.ordinal for item in chunks] == list(range(len(chunks)))
    assert [item.id for item in chunks] == [str(uuid5(UUID(VERSION), str(item.ordinal))) for item in chunks]
    last = 0
    covered = [False] * len(made.text)
    said = {squeezed(part) for item in chunks for part in (item.title, *item.heading_path)}
    for item in chunks:
        assert item.tokens == count_tokens([item.embedded_text])[0] <= limits.max_tokens
        assert last <= item.start < item.end
        last = item.end
        covered[item.start : item.end] = [True] * (item.end - item.start)
        assert made.text[item.start : item.end] in item.text
        assert item.text.strip()
        if not any(block.kind in {BlockKind.TABLE, BlockKind.LIST_ITEM, BlockKind.HEADING} for block in made.blocks):
            assert item.text == made.text[item.start : item.end]
    for block in made.blocks:
        if block.kind is BlockKind.HEADING and squeezed(block.text) in said:
            continue
        missing = [at for at in range(block.start, block.end) if not covered[at] and not made.text[at].isspace()]
        assert not missing, block


def test_a_chunk_carries_its_document_and_place() -> None:
    made = document(
        ("heading", "Leave", 1, 3),
        ("paragraph", "Everybody has 25 days.", 0, 3),
        ("paragraph", "They expire in March.", 0, 4, 5),
    )
    (only,) = cut(made)
    assert (only.document_id, only.version, only.uri, only.title) == (made.id, VERSION, made.uri, "Handbook")
    assert only.heading_path == ("Leave",)
    assert only.text == "Everybody has 25 days.\n\nThey expire in March." == made.text[only.start : only.end]
    assert (only.page, only.last_page) == (3, 5)
    assert only.kind is ChunkKind.PROSE
    assert only.audience == PUBLIC
    assert only.embedded_text == "Handbook > Leave\nEverybody has 25 days.\n\nThey expire in March."


def test_no_text_gives_no_chunks() -> None:
    assert cut(document()) == ()
    assert cut(document(("paragraph", " \n "), ("table", ""))) == ()


def test_headings_are_boundaries_and_travel_as_path() -> None:
    made = document(
        ("heading", "Travel", 1),
        ("paragraph", prose(30)),
        ("heading", "Hotels", 2),
        ("paragraph", prose(30)),
        ("heading", "Health", 1),
        ("paragraph", prose(30)),
    )
    chunks = cut(made)
    assert [item.heading_path for item in chunks] == [("Travel",), ("Travel", "Hotels"), ("Health",)]
    assert all("Hotels" not in item.text and "Travel" not in item.text for item in chunks)


def test_a_heading_that_repeats_the_title_is_said_once() -> None:
    (only,) = cut(document(("heading", "Handbook", 1), ("heading", "Leave", 2), ("paragraph", "Ask Ann.")))
    assert only.embedded_text == "Handbook > Leave\nAsk Ann."


def test_small_sections_under_one_parent_share_a_chunk() -> None:
    made = document(
        ("heading", "Tasks", 1),
        ("paragraph", "There are two."),
        ("heading", "Task #1", 2),
        ("paragraph", "Mask words."),
        ("heading", "Task #2", 2),
        ("paragraph", "Order sentences."),
    )
    (only,) = cut(made)
    assert only.heading_path == ("Tasks",)
    assert only.text == "There are two.\n\nTask #1\n\nMask words.\n\nTask #2\n\nOrder sentences."


def test_a_text_that_introduces_subsections_names_them() -> None:
    made = document(
        ("heading", "Results", 1),
        ("paragraph", prose(35)),
        ("heading", "Training", 1),
        ("paragraph", "We train on two tasks."),
        ("heading", "Task #1", 2),
        ("paragraph", prose(60)),
        ("heading", "Task #2", 2),
        ("paragraph", prose(30)),
    )
    chunks = cut(made)
    assert chunks[1].heading_path == ("Training",)
    assert chunks[1].text == "We train on two tasks.\n\nTask #1\nTask #2"
    assert made.text[chunks[1].start : chunks[1].end] == "We train on two tasks."
    assert chunks[2].heading_path == ("Training", "Task #1")
    assert chunks[-1].heading_path == ("Training", "Task #2")


def test_a_small_text_above_its_only_subsection_goes_with_it() -> None:
    made = document(
        ("heading", "Rules", 1),
        ("paragraph", prose(35)),
        ("heading", "Travel", 1),
        ("paragraph", "Book early."),
        ("heading", "Trains", 2),
        ("paragraph", prose(60)),
    )
    chunks = cut(made)
    assert chunks[1].heading_path == ("Travel",)
    assert chunks[1].text.startswith("Book early.\n\nTrains\n\nWord word")
    assert chunks[2].heading_path == ("Travel", "Trains")


def test_what_is_repeated_gives_way_where_it_does_not_fit() -> None:
    """A vocabulary in which the whole is longer than its parts: the estimate says that all fits, the count does not."""

    def quadratic(texts: list[str]) -> list[int]:
        return [count + count * count // 30 for count in count_tokens(texts)]

    subsections = [block for at in range(7) for block in (("heading", f"{prose(5)} {at}", 2), ("paragraph", prose(30)))]
    made = document(("heading", "Training", 1), ("paragraph", prose(10)), *subsections)
    chunks = chunk(made, version=VERSION, audience=PUBLIC, count_tokens=quadratic, limits=LIMITS)
    assert all(item.tokens <= LIMITS.max_tokens for item in chunks)
    assert chunks[0].text == prose(10)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([("paragraph", prose(40)), ("heading", "Appendix", 1)], "Appendix"),
        ([("heading", "Alone", 1)], "Alone"),
        ([("heading", "To do", 1), ("heading", "Done", 1), ("paragraph", prose(40))], "To do"),
    ],
)
def test_a_heading_without_text_under_it_is_text(blocks: list[tuple[object, ...]], expected: str) -> None:
    (found,) = [item for item in cut(document(*blocks)) if expected in item.text]
    assert expected not in found.heading_path


def test_long_prose_is_cut_between_sentences_into_even_parts() -> None:
    made = document(("heading", "Long", 1), ("paragraph", prose(500)))
    chunks = cut(made)
    assert all(item.text.startswith("Word") and item.text.endswith("word.") for item in chunks)
    assert min(item.tokens for item in chunks) > LIMITS.target_tokens * 0.6
    assert max(item.tokens for item in chunks) < LIMITS.target_tokens * 1.5


def test_japanese_sentences_stay_whole() -> None:
    made = document(("paragraph", "彼は「そうだ。」と言った。" * 30), title="規則", language="ja")
    chunks = cut(made)
    assert len(chunks) > 5
    assert all(re.fullmatch("(?:彼は「そうだ。」と言った。)+", item.text) for item in chunks)


def test_paragraphs_are_preferred_to_sentences_as_places_to_break() -> None:
    made = document(*[("paragraph", prose(25)) for _ in range(8)])
    assert all(item.text.count(".") % 5 == 0 for item in cut(made))


def test_a_table_that_fits_stays_whole_with_its_caption() -> None:
    table = "| a | b |\n| --- | --- |\n| one | two |\n| three | four |"
    made = document(
        ("paragraph", prose(40)), ("table", table), ("paragraph", "Table 3: Numbers."), ("paragraph", prose(40))
    )
    (found,) = [item for item in cut(made) if item.kind is ChunkKind.TABLE]
    assert found.text == f"{table}\n\nTable 3: Numbers."


def test_a_table_that_does_not_fit_repeats_its_header() -> None:
    header = "| name | price |\n| --- | --- |"
    rows = [f"| item {number} | {number} euro |" for number in range(60)]
    made = document(("heading", "Prices", 1), ("table", "\n".join([header, *rows])))
    chunks = cut(made)
    assert len(chunks) > 3
    assert all(item.text.startswith(header + "\n| item") for item in chunks)
    assert [row for item in chunks for row in item.text.removeprefix(header + "\n").split("\n")] == rows
    assert {item.kind for item in chunks} == {ChunkKind.TABLE}
    assert_sound(made, chunks, LIMITS)


def test_a_row_longer_than_a_chunk_is_cut_between_cells() -> None:
    row = "| " + " | ".join(f"cell number {number}" for number in range(80)) + " |"
    made = document(("table", f"| a |\n| --- |\n{row}"))
    chunks = cut(made)
    assert all(item.text.removeprefix("| a |\n| --- |").strip("\n |").startswith("cell") for item in chunks[1:])
    assert_sound(made, chunks, LIMITS)


def test_a_list_stays_with_the_sentence_that_introduces_it() -> None:
    made = document(
        ("paragraph", prose(35)),
        ("paragraph", "You need:"),
        *[("list_item", f"thing number {number} of many") for number in range(3)],
    )
    chunks = cut(made)
    assert chunks[-1].text.startswith("You need:\n\nthing number 0")


def test_a_long_list_is_cut_between_items_and_repeats_its_introduction() -> None:
    made = document(
        ("paragraph", "You need:"), *[("list_item", f"thing number {number} of many") for number in range(40)]
    )
    chunks = cut(made)
    assert len(chunks) > 3
    assert all(item.text.startswith("You need:\n\nthing") and item.text.endswith("many") for item in chunks)
    assert chunks[1].text.endswith(made.text[chunks[1].start : chunks[1].end])
    assert made.text[chunks[1].start :].startswith("thing")


@pytest.mark.parametrize("words", range(20, 80, 5))
def test_an_introduction_is_never_parted_from_its_list(words: int) -> None:
    lead = "You need all of these things before any of the work can begin:"
    items = [("list_item", f"thing number {number} of many") for number in range(12)]
    chunks = cut(document(("paragraph", f"{prose(words)} {lead}"), *items))
    assert not any(item.text.endswith(lead) for item in chunks)


@pytest.mark.parametrize("words", range(5, 80, 5))
def test_a_heading_in_the_text_is_never_parted_from_what_follows(words: int) -> None:
    long_heading = prose(15, "head").removesuffix(".")
    made = document(("paragraph", prose(words)), ("heading", long_heading, 1), ("paragraph", prose(words)))
    assert not any(item.text.endswith("head") for item in cut(made))


def test_code_is_verbatim_and_cut_at_line_ends() -> None:
    code = "\n".join(f"    if value == {number}:\n\n        return  {number}" for number in range(30))
    made = document(("code", code))
    chunks = cut(made)
    assert len(chunks) > 3
    assert {item.kind for item in chunks} == {ChunkKind.CODE}
    assert all(line in code.split("\n") for item in chunks for line in item.text.split("\n"))


def test_references_are_packed_together_under_their_heading() -> None:
    entries = [f"Author {number}. 2018. Title." for number in range(12)]
    made = document(
        ("paragraph", prose(20)), ("heading", "References", 1), *[("reference", entry) for entry in entries]
    )
    chunks = cut(made)
    assert [item.kind for item in chunks] == [ChunkKind.PROSE, *[ChunkKind.REFERENCES] * (len(chunks) - 1)]
    assert {item.heading_path for item in chunks[1:]} == {("References",)}
    assert "\n\n".join(item.text for item in chunks[1:]) == "\n\n".join(entries)
    assert len(chunks) - 1 < len(entries) / 2


def test_a_sentence_without_end_is_cut_at_clauses_then_words_then_graphemes() -> None:
    for text, whole in (
        (", ".join(["some words here"] * 100), r"(?:some words here,? ?)+"),
        ("word " * 300, r"(?:word ?)+"),
        ("e\u0301" * 2000, r"(?:e\u0301)+"),
        ("👩‍👩‍👧" * 300, r"(?:👩‍👩‍👧)+"),
    ):
        made = document(("paragraph", text.strip()))
        chunks = cut(made)
        assert len(chunks) > 1
        assert all(re.fullmatch(whole, item.text) for item in chunks)
        assert_sound(made, chunks, LIMITS)


def test_titles_and_headings_of_any_length_leave_room_for_the_text() -> None:
    deep = [("heading", f"{prose(40, f'level{level}')}", level) for level in range(1, 7)]
    made = document(*deep, ("paragraph", prose(60)), title=prose(400, "title"))
    chunks = cut(made)
    assert all(item.title.endswith("…") for item in chunks)
    assert all(part.endswith("…") for item in chunks for part in item.heading_path)
    assert_sound(made, chunks, LIMITS)


def test_chunking_is_deterministic() -> None:
    made = document(("heading", "A", 1), ("paragraph", prose(200)), ("heading", "B", 1), ("paragraph", prose(9)))
    assert cut(made) == cut(made)


def test_tokens_are_counted_in_few_calls() -> None:
    calls: list[int] = []

    def counting(texts: list[str]) -> list[int]:
        calls.append(len(texts))
        return count_tokens(texts)

    made = document(*[("paragraph", prose(100)) for _ in range(300)])
    chunk(made, version=VERSION, audience=PUBLIC, count_tokens=counting, limits=LIMITS)
    assert len(calls) < 6
    assert max(calls) > 5_000


def test_limits_are_checked_and_follow_the_window() -> None:
    with pytest.raises(ValueError, match="small <= target <= max"):
        ChunkLimits(target_tokens=100, max_tokens=50)
    with pytest.raises(ValueError, match="max >= 32"):
        ChunkLimits(target_tokens=10, max_tokens=10, small_tokens=1)
    assert ChunkLimits.within(100_000) == ChunkLimits()
    assert ChunkLimits.within(128).max_tokens == 128


def test_the_chunker_is_named() -> None:
    assert CHUNKER == "structure-2"


_TEXT = st.lists(
    st.sampled_from(
        [
            "word",
            "Fig. 3",
            "end.",
            "Then",
            "\n",
            "e\u0301\u0301",
            "👩‍👩‍👧",
            "です。",
            "「はい。」と",
            ":",
            ",",
            "x" * 60,
            "|",
            "-",
            "1.",
        ]
    ),
    max_size=40,
).map(" ".join)
_TABLE = st.lists(st.lists(_TEXT.map(lambda text: text[:40]), min_size=1, max_size=4), max_size=12).map(
    lambda rows: "\n".join(f"| {' | '.join(row)} |" + ("\n| --- |" if not at else "") for at, row in enumerate(rows))
)
_BLOCKS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["paragraph", "list_item", "code", "reference"]), _TEXT),
        st.tuples(st.just("heading"), _TEXT, st.integers(1, 4)),
        st.tuples(st.just("table"), _TABLE),
    ),
    max_size=20,
)


@settings(max_examples=100, deadline=None)
@given(
    blocks=_BLOCKS,
    title=_TEXT,
    limits=st.sampled_from(
        [
            LIMITS,
            ChunkLimits(target_tokens=20, max_tokens=32, small_tokens=1),
            ChunkLimits(target_tokens=200, max_tokens=400, small_tokens=200),
        ]
    ),
)
def test_no_text_is_lost_and_no_chunk_is_too_long(
    blocks: list[tuple[object, ...]], title: str, limits: ChunkLimits
) -> None:
    made = document(*blocks, title=title)
    assert_sound(made, cut(made, limits), limits)


def test_a_counter_that_is_not_additive_is_obeyed_too() -> None:
    """Some vocabularies need more tokens for a whole than for its parts."""

    def quadratic(texts: list[str]) -> list[int]:
        return [count + count * count // 50 for count in count_tokens(texts)]

    made = document(("heading", "Long", 1), ("paragraph", prose(300)))
    chunks = chunk(made, version=VERSION, audience=PUBLIC, count_tokens=quadratic, limits=LIMITS)
    assert all(quadratic([item.embedded_text])[0] == item.tokens <= LIMITS.max_tokens for item in chunks)
    assert squeezed("".join(item.text for item in chunks)) == squeezed(prose(300))


def test_the_text_before_a_chunk_is_the_shared_one() -> None:
    (only,) = cut(document(("heading", "Leave", 1), ("paragraph", "Ask Ann.")))
    assert only.embedded_text == embedded_text(only.title, only.heading_path, only.text)
