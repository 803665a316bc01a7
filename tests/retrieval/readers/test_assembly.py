from __future__ import annotations

import hashlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making_documents import source

from retrieval.errors import DocumentTooLargeError, EmptyDocumentError
from retrieval.readers.assembly import Piece, Reading, assemble
from retrieval.types import BlockKind, Document, document_id

PIECES = st.lists(
    st.builds(
        Piece,
        kind=st.sampled_from(BlockKind),
        text=st.text(max_size=30),
        page=st.one_of(st.none(), st.integers(1, 9)),
        level=st.integers(0, 3),
    ),
    max_size=8,
)


def assembled(*pieces: Piece, title: str | None = None, name: str = "some report.pdf") -> Document:
    reading = Reading(media_type="text/plain", pieces=pieces, title=title)
    return assemble(source(b"bytes", name), reading, characters=1_000)


def paragraph(text: str, **fields: int) -> Piece:
    return Piece(kind=BlockKind.PARAGRAPH, text=text, **fields)


@given(PIECES)
def test_offsets_are_exact_and_blocks_make_up_the_text(pieces: list[Piece]) -> None:
    document = assembled(paragraph("At least this."), *pieces)
    assert document.text == "\n\n".join(block.text for block in document.blocks)
    for block in document.blocks:
        assert document.text[block.start : block.end] == block.text
        assert block.text.strip()


def test_a_document_is_its_uri_and_its_bytes() -> None:
    document = assembled(paragraph("Text."))
    assert document.id == document_id(document.uri)
    assert UUID(document.id).version == 5
    assert document_id("file:///a") != document_id("file:///b")
    assert document.digest == hashlib.sha256(b"bytes").hexdigest()


def test_a_paragraph_on_one_page_ends_on_it() -> None:
    first, second = assembled(paragraph("One.", page=3), paragraph("Two.", page=3, last_page=4)).blocks
    assert (first.page, first.last_page) == (3, 3)
    assert (second.page, second.last_page) == (3, 4)


def test_the_title_is_the_sources_own_else_the_highest_heading_else_the_file_name() -> None:
    low = Piece(kind=BlockKind.HEADING, text="Section", level=2)
    high = Piece(kind=BlockKind.HEADING, text="The Report", level=1)
    assert assembled(low, high, title=" Own  title ").title == "Own title"
    assert assembled(low, high).title == "The Report"
    assert assembled(paragraph("Text.")).title == "some report"


def test_nothing_to_read_and_too_much_are_told_with_the_name() -> None:
    with pytest.raises(EmptyDocumentError, match=r"some report\.pdf"):
        assembled(paragraph(" … "))
    with pytest.raises(DocumentTooLargeError, match=r"limit is 1,000"):
        assembled(paragraph("a" * 1_001))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The General Language Understanding Evaluation benchmark is a collection of tasks."),
        ("de", "Der Urlaub muss zwei Wochen vorher bei der Abteilungsleitung beantragt werden."),
        ("ja", "休暇の申請は二週間前までに行ってください。担当者は山田です。"),
        (None, "12 34 56 78"),
    ],
)
def test_the_language_is_named_when_sure(language: str | None, text: str) -> None:
    assert assembled(paragraph(text)).language == language


def test_code_does_not_decide_the_language() -> None:
    code = Piece(kind=BlockKind.CODE, text="for item in items:\n    print(item) # the item of the list\n" * 9)
    assert assembled(code, paragraph("Die Schleife gibt jedes Element der Liste nacheinander aus.")).language == "de"
