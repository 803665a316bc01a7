"""The layout's steps on blocks made by hand: what the parser is known to get wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.readers.pdf_figures import is_caption
from retrieval.readers.pdf_layout import lay_out
from retrieval.readers.pdf_markup import plain
from retrieval.readers.pdf_types import Box, Line, Page, RawBlock, Word
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.readers.assembly import Piece

BODY, BOLD = "Times-Roman", "Times-Bold"
LEFT, RIGHT, COLUMN = 72.0, 307.0, 218.0
FULL = "every column holds about nine words of plain text"
"""As long as a column is wide."""


class Sheet:
    """A page under construction: blocks go below one another, column by column."""

    def __init__(self, number: int = 1) -> None:
        self.number = number
        self.blocks: list[RawBlock] = []
        self.lines: list[Line] = []
        self.x, self.y = LEFT, 72.0

    def move(self, *, x: float, y: float = 72.0) -> Sheet:
        self.x, self.y = x, y
        return self

    def add(  # what a block consists of
        self,
        kind: str,
        *lines: str,
        text: str | None = None,
        size: float = 10.0,
        bold: bool = False,
        words: Sequence[Word] = (),
        gap: float = 6.0,
        full: bool = False,
        indent: float = 0.0,
        level: int = 0,
        marker: str = "",
        rows: Sequence[Sequence[str]] = (),
    ) -> Sheet:
        """`full` lines reach the column's right edge; the last one of a paragraph does so only if asked."""
        self.y += gap
        top = self.y
        for n, line in enumerate(lines):
            stretched = n < len(lines) - 1 or full
            width = COLUMN if stretched else min(COLUMN, 0.5 * size * len(line))
            hang = indent if n else 0.0
            box = Box(x=self.x + hang, y=self.y, width=width - hang, height=size)
            placed = words if not n and words else _spread(line, box)
            self.lines.append(
                Line(text=line, box=box, size=size, font=BOLD if bold and not n else BODY, words=tuple(placed))
            )
            self.y += size + 2
        self.blocks.append(
            RawBlock(
                kind=kind,
                text=" ".join(lines) if text is None else text,
                level=level,
                marker=marker,
                ordered=marker[:1].isdigit(),
                rows=tuple(tuple(row) for row in rows),
                raw_lines=lines,
                box=Box(x=self.x, y=top, width=COLUMN, height=max(self.y - top - 2, 1)),
            )
        )
        return self

    def page(self) -> Page:
        return Page(number=self.number, width=595, height=842, blocks=tuple(self.blocks), lines=tuple(self.lines))


def _spread(line: str, box: Box) -> list[Word]:
    """The line's words, evenly over its box."""
    words, x, step = [], box.x, box.width / max(len(line), 1)
    for word in line.split(" "):
        words.append(Word(text=word, x=x, right=x + step * len(word)))
        x += step * (len(word) + 1)
    return words


def laid_out(*sheets: Sheet) -> tuple[Piece, ...]:
    return lay_out([sheet.page() for sheet in sheets])


def texts(*sheets: Sheet) -> list[str]:
    return [piece.text for piece in laid_out(*sheets)]


def headings(*sheets: Sheet) -> list[tuple[int, str]]:
    return [(piece.level, piece.text) for piece in laid_out(*sheets) if piece.kind is BlockKind.HEADING]


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("**bold** and *slanted*", "bold and slanted"),
        (
            "**Task #1: Masked LM Intuitively, it is reason-** able to",
            "Task #1: Masked LM Intuitively, it is reasonable to",
        ),
        ("the rela*tionship which is not di-* rectly", "the relationship which is not directly"),
        (r"512 \* 256 and a\_b", "512 * 256 and a_b"),
        (r"as $C\in \mathbb{R}^{H}$, and $T_{i}$", "as C ∈ R^H, and T_i"),
        (r"$\frac{1}{n}\sum x_{i,j}$", "(1)/(n)Σx_(i,j)"),
        ("costs $5 and $6", "costs $5 and $6"),
        ("`inline` code", "inline code"),
        ("Tackstr¨ om, Lo¨ıc", "Tackström, Loïc"),
        ("Contents ........ 3", "Contents 3"),
        ("eﬀect", "effect"),
    ],
)
def test_markup_becomes_plain_text(marked: str, text: str) -> None:
    assert plain(marked) == text


@given(st.text(max_size=60))
def test_plain_never_fails_and_stays_on_one_line(text: str) -> None:
    assert "\n" not in plain(text)


def test_running_heads_page_numbers_and_stamps_go() -> None:
    sheets = []
    for number in range(1, 6):
        sheet = Sheet(number).move(x=LEFT, y=20).add("paragraph", f"Annual Report 2024, part {number}")
        sheet.move(x=LEFT, y=100).add("paragraph", f"What page number {number} has to say is said here.")
        if number == 1:
            sheet.add("paragraph", "arXiv:1810.04805v2 [cs.CL] 24 May 2019")
        sheets.append(sheet.move(x=LEFT, y=800).add("paragraph", f"- {number} -"))
    assert texts(*sheets) == [f"What page number {n} has to say is said here." for n in range(1, 6)]


def test_what_stands_in_a_band_only_once_or_twice_stays() -> None:
    sheets = [
        Sheet(n).move(x=LEFT, y=20).add("heading", name, level=1) for n, name in enumerate(["Aim", "Aim", "Means"], 1)
    ]
    assert [text for _, text in headings(*sheets)] == ["Aim", "Aim", "Means"]


def test_lettering_of_a_figure_goes_and_its_caption_stays() -> None:
    sheet = Sheet().add("paragraph", FULL, "The model is shown in the figure below, and it is simple.")
    sheet.add("paragraph", "Masked Sentence A", size=6).add("paragraph", "T1 T[SEP] ... TN", size=6)
    sheet.add("paragraph", "Tok 1 Tok 2 ... Tok N", size=6)
    sheet.add("table", rows=[["E[CLS]", "E1", "E1"], ["E1", "E1", "EN"]])
    sheet.add("paragraph", "Figure 3: How the model reads its input.")
    sheet.add("paragraph", "The next paragraph begins here and goes on.")
    assert texts(sheet) == [
        f"{FULL} The model is shown in the figure below, and it is simple.",
        "Figure 3: How the model reads its input.",
        "The next paragraph begins here and goes on.",
    ]


def test_soup_goes_without_a_caption_too_but_short_content_stays() -> None:
    sheet = Sheet().add("paragraph", "Lstm Lstm ... Lstm Lstm Trm Trm").add("paragraph", "200 400 600 800 1,000")
    sheet.add("list_item", "Batch size: 16, 32", marker="•").add("paragraph", "Label = IsNext")
    sheet.add("paragraph", "84.2 91.1 85.1 91.8").add("paragraph", "短い行")
    assert texts(sheet) == ["Batch size: 16, 32", "Label = IsNext", "84.2 91.1 85.1 91.8", "短い行"]


def test_numbers_along_an_axis_go() -> None:
    sheet = Sheet().add("paragraph", "A sentence about the curve that follows.")
    for tick in ("0.25", "0.2", "0.15", "0.1"):
        sheet.add("paragraph", tick, size=6)
    assert texts(sheet) == ["A sentence about the curve that follows."]


@pytest.mark.parametrize(
    "text", ["Figure 3: How.", "Table 2. Results", "図 3 構成", "Fig. 4 — Flow", "Abbildung 1: Ablauf"]
)
def test_captions_are_told(text: str) -> None:
    assert is_caption(text)


@pytest.mark.parametrize(
    "text", ["Figure 3 shows how.", "Table 2 and Table 3 give", "Tables turn", "Figures are given"]
)
def test_sentences_about_figures_are_no_captions(text: str) -> None:
    assert not is_caption(text)


def test_a_heading_that_begins_a_paragraph_is_a_part_of_it() -> None:
    sheet = Sheet().add("heading", "The Stanford Sentiment Treebank is a", level=3, bold=True, full=True)
    sheet.add("paragraph", "binary single-sentence classification task.", gap=2)
    sheet.add("heading", "Winograd is a small natural lan-", level=3, bold=True, full=True)
    sheet.add("paragraph", "guage inference dataset.", gap=2)
    assert texts(sheet) == [
        "The Stanford Sentiment Treebank is a binary single-sentence classification task.",
        "Winograd is a small natural language inference dataset.",
    ]
    assert not headings(sheet)


def test_a_bold_line_amid_a_paragraph_is_a_part_of_it() -> None:
    sheet = Sheet().add("paragraph", FULL, "We introduce a model called BERT, which stands for", full=True)
    sheet.add("heading", "Bidirectional Encoder Representations from", level=3, bold=True, full=True, gap=0)
    sheet.add("paragraph", "Transformers. Unlike others it reads both ways.", gap=0)
    (text,) = texts(sheet)
    assert text.endswith(
        "stands for Bidirectional Encoder Representations from Transformers. Unlike others it reads both ways."
    )


def test_a_real_heading_stays_one() -> None:
    sheet = Sheet().add("paragraph", "The paragraph before is at its end.")
    sheet.add("heading", "3.1 Pre-training", level=3, bold=True).add("paragraph", "iPhones begin in lower case.")
    assert headings(sheet) == [(3, "3.1 Pre-training")]


def run_in(*words: str, gap_after: int) -> list[Word]:
    """Words at 3 points from each other, with one em after one of them."""
    placed, x = [], LEFT
    for n, word in enumerate(words):
        placed.append(Word(text=word, x=x, right=x + 5 * len(word)))
        x += 5 * len(word) + (11 if n == gap_after else 3)
    return placed


def test_a_label_before_a_wide_gap_becomes_a_heading() -> None:
    line = "Task #1: Masked LM Intuitively, it is reason-"
    sheet = (
        Sheet()
        .add("heading", "3 Method", level=2, bold=True, size=12)
        .add("heading", "4 Data", level=2, bold=True, size=12)
    )
    sheet.add(
        "paragraph",
        line,
        "able to believe that.",
        text=f"**{line}** able to believe that.",
        bold=True,
        words=run_in(*line.split(), gap_after=3),
    )
    pieces = laid_out(sheet)
    assert [(piece.kind, piece.text) for piece in pieces[2:]] == [
        (BlockKind.HEADING, "Task #1: Masked LM"),
        (BlockKind.PARAGRAPH, "Intuitively, it is reasonable to believe that."),
    ]
    assert pieces[2].level == pieces[1].level + 1


def test_bold_words_at_even_gaps_are_no_label() -> None:
    line = "Never give the password to others and"
    sheet = Sheet().add(
        "paragraph", line, "do not write it down.", bold=True, words=run_in(*line.split(), gap_after=99)
    )
    assert not headings(sheet)


def test_a_paragraph_goes_on_in_the_next_column_and_on_the_next_page() -> None:
    first = Sheet(1).add("paragraph", FULL, "The first half ends in the mid-", full=True)
    first.move(x=RIGHT).add("paragraph", "dle of a word and of the", FULL, full=True)
    first.move(x=RIGHT, y=700).add("paragraph", "1 A footnote in small type.", size=8)
    second = Sheet(2).add("paragraph", "third page's sentence.")
    pieces = laid_out(first, second)
    assert (
        pieces[0].text == f"{FULL} The first half ends in the middle of a word and of the {FULL} third page's sentence."
    )
    assert (pieces[0].page, pieces[0].last_page) == (1, 2)
    assert [piece.text for piece in pieces[1:]] == ["1 A footnote in small type."]


def test_a_new_sentence_or_a_heading_ends_a_paragraph() -> None:
    first = Sheet(1).add("paragraph", FULL, "This one is at its end.")
    second = (
        Sheet(2)
        .add("paragraph", "Another one begins here.")
        .add("heading", "New", level=2)
        .add("paragraph", "and so on.")
    )
    assert len(laid_out(first, second)) == 4


def test_short_lines_of_slides_are_not_joined() -> None:
    first = Sheet(1).add("paragraph", "開発の背景").add("paragraph", "需要の増加")
    second = Sheet(2).add("paragraph", "今後の課題")
    assert texts(first, second) == ["開発の背景", "需要の増加", "今後の課題"]


def test_columns_are_read_one_after_the_other() -> None:
    sheet = Sheet()
    sheet.add("paragraph", *[FULL] * 6, "Left, first.")
    sheet.move(x=RIGHT).add("paragraph", *[FULL] * 6, "Right, second.")
    sheet.move(x=LEFT, y=300).add("paragraph", *[FULL] * 6, "Left, third.")
    assert [text.rsplit("plain text ", 1)[1] for text in texts(sheet)] == [
        "Left, first.",
        "Left, third.",
        "Right, second.",
    ]


def test_authors_are_no_sections() -> None:
    sheet = (
        Sheet().add("heading", "A Paper", level=1, size=14, bold=True).add("heading", "Ann Author", level=2, size=12)
    )
    sheet.add("heading", "Some University", level=2).add("heading", "Abstract", level=2, bold=True, size=12)
    sheet.add("paragraph", "We show that it works.")
    assert headings(sheet) == [(1, "A Paper"), (2, "Abstract")]
    assert "Ann Author" in texts(sheet)


def test_numbered_headings_take_the_rank_of_their_number() -> None:
    sheet = Sheet().add("heading", "The Title", level=1, size=16, bold=True)
    for text, level, size in [
        ("1 Introduction", 2, 12),
        ("1.1 Aim", 3, 10),
        ("Motivation", 3, 10),
        ("2 Method", 3, 12),
        ("2.1.1 Detail", 2, 10),
        ("Acknowledgments", 3, 12),
        ("A Proofs", 2, 12),
        ("A.1 First", 3, 10),
    ]:
        sheet.add("heading", text, level=level, size=size, bold=True).add("paragraph", "One sentence that is complete.")
    assert headings(sheet) == [
        (1, "The Title"),
        (2, "1 Introduction"),
        (3, "1.1 Aim"),
        (4, "Motivation"),
        (2, "2 Method"),
        (4, "2.1.1 Detail"),
        (2, "Acknowledgments"),
        (2, "A Proofs"),
        (3, "A.1 First"),
    ]


def test_lines_of_a_slide_are_content_and_only_its_title_is_a_heading() -> None:
    sheet = Sheet().add("heading", "研究の背景", level=1, size=40)
    for line in ("固有表現抽出", "辞書を人手で構築する", "規則を学習する"):
        sheet.add("heading", line, level=3, size=28)
    pieces = laid_out(sheet)
    assert [piece.kind for piece in pieces] == [BlockKind.HEADING, *[BlockKind.LIST_ITEM] * 3]


@pytest.mark.parametrize("name", ["References", "7 Bibliography", "参考文献", "Literaturverzeichnis"])
def test_a_reference_list_has_one_piece_an_entry(name: str) -> None:
    sheet = Sheet().add("heading", name, level=2, size=12, bold=True)
    for n in range(1, 5):
        sheet.add(
            "paragraph",
            f"Ann Author {n}. 2018. A long title that has to",
            "run over the line. In Proceedings.",
            indent=10,
        )
    sheet.add("heading", "Appendix", level=2, size=12, bold=True).add("paragraph", "What comes after is no reference.")
    pieces = laid_out(sheet)
    entries = [piece.text for piece in pieces if piece.kind is BlockKind.REFERENCE]
    assert entries == [
        f"Ann Author {n}. 2018. A long title that has to run over the line. In Proceedings." for n in range(1, 5)
    ]
    assert pieces[-1].kind is BlockKind.PARAGRAPH


def test_entries_with_marks_are_told_apart_within_a_block() -> None:
    sheet = Sheet().add("heading", "References", level=1, bold=True)
    sheet.add(
        "paragraph", "[1] A. First. Title one.", "[2] B. Second. Title", "two, longer.", "[3] C. Third. Title three."
    )
    entries = [piece.text for piece in laid_out(sheet) if piece.kind is BlockKind.REFERENCE]
    assert entries == ["[1] A. First. Title one.", "[2] B. Second. Title two, longer.", "[3] C. Third. Title three."]


def test_a_table_in_fragments_is_put_together_from_where_its_words_stand() -> None:
    sheet = Sheet().add("paragraph", FULL, "The results stand in the table.")
    table = [("System", "Dev", "Test"), ("GPT", "51.9", "52.7"), ("ELMo", "59.1", "59.2"), ("BERT base", "81.6", "-")]
    sheet.y += 10
    for n, x in enumerate((LEFT, 180.0, 240.0)):
        top = sheet.y
        for m, row in enumerate(table):
            box = Box(x=x, y=top + 12 * m, width=6 * len(row[n]), height=8)
            sheet.lines.append(Line(text=row[n], box=box, size=8, words=tuple(_spread(row[n], box))))
        box = Box(x=x, y=top, width=60, height=12 * len(table) - 4)
        sheet.blocks.append(RawBlock(kind="paragraph", text=" ".join(row[n] for row in table), box=box))
    sheet.y += 12 * len(table)
    sheet.add("paragraph", "Table 4: Accuracies of four systems.")
    pieces = laid_out(sheet)
    assert [piece.kind for piece in pieces] == [BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.PARAGRAPH]
    assert pieces[1].text == (
        "| System | Dev | Test |\n| --- | --- | --- |\n"
        "| GPT | 51.9 | 52.7 |\n| ELMo | 59.1 | 59.2 |\n| BERT base | 81.6 | - |"
    )


def test_a_label_that_reaches_the_numbers_is_told_from_them() -> None:
    sheet = Sheet()
    for n, (label, *numbers) in enumerate(
        [("GPT", "51.9", "52.7"), ("ELMo", "59.1", "59.2"), ("BERT large", "86.6", "86.3")]
    ):
        y = 100 + 12 * n
        words = [Word(text="BERT", x=LEFT, right=110), Word(text="large", x=112, right=146)] if n == 2 else []
        words = words or [Word(text=label, x=LEFT, right=110)]
        words += [Word(text=number, x=150 + 30 * m, right=170 + 30 * m) for m, number in enumerate(numbers)]
        box = Box(x=LEFT, y=y, width=128, height=8)
        sheet.lines.append(Line(text=" ".join((label, *numbers)), box=box, size=8, words=tuple(words)))
        sheet.blocks.append(RawBlock(kind="paragraph", text=" ".join((label, *numbers)), box=box))
    sheet.move(x=LEFT, y=136).add("paragraph", "Table 4: Accuracies of three systems.")
    assert laid_out(sheet)[0].text.endswith("| BERT large | 86.6 | 86.3 |")


def test_the_parsers_table_is_kept_when_it_is_whole() -> None:
    sheet = Sheet().add("table", rows=[["Country", "Capital"], ["Austria", "**Vienna**"]])
    (piece,) = laid_out(sheet)
    assert (piece.kind, piece.text) == (BlockKind.TABLE, "| Country | Capital |\n| --- | --- |\n| Austria | Vienna |")


def test_prose_in_fixed_width_type_is_prose_and_code_is_code() -> None:
    sheet = Sheet().add("code", "薬事法の規定に基づき、化粧品基準を次のように", "定める。", full=False)
    sheet.add("code", "for (var i = 2; i < 100; ++i) {", "  if (!primes[i]) continue; }")
    prose, code = laid_out(sheet)
    assert (prose.kind, prose.text) == (BlockKind.PARAGRAPH, "薬事法の規定に基づき、化粧品基準を次のように定める。")
    assert (code.kind, code.text.count("\n")) == (BlockKind.CODE, 1)


def test_words_cut_at_line_ends_take_the_documents_spelling() -> None:
    sheet = Sheet().add(
        "paragraph",
        "We use left-to-",
        "right models for fine-",
        "tuning.",
        text="We use left-toright models for finetuning.",
    )
    sheet.add("paragraph", "A left-to-right model needs fine-tuning.")
    assert texts(sheet)[0] == "We use left-to-right models for fine-tuning."


def test_the_spaces_of_japanese_line_ends_go_and_other_spaces_stay() -> None:
    sheet = Sheet().add(
        "paragraph", "新山 祐介が漏電遮断特性を持", "たせたもの。", text="新山 祐介が漏電遮断特性を持 たせたもの。"
    )
    assert texts(sheet) == ["新山 祐介が漏電遮断特性を持たせたもの。"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["heading", "paragraph", "list_item", "code", "table", "rule", "figure", "unheard-of"]),
            st.lists(st.text(max_size=25), max_size=3),
            st.sampled_from([6.0, 10.0, 14.0]),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_any_blocks_can_be_laid_out(blocks: list[tuple[str, list[str], float, bool]]) -> None:
    sheet = Sheet()
    for kind, lines, size, bold in blocks:
        sheet.add(kind, *lines, size=size, bold=bold, rows=[lines] if kind == "table" else ())
    for piece in laid_out(sheet):
        assert piece.text
        assert piece.page == 1
