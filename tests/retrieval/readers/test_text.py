from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.readers.text import decode, read_text
from retrieval.types import BlockKind

RUSSIAN = "Заявление на отпуск подаётся за две недели до его начала. Отвечает за это отдел кадров."
JAPANESE = "これは日本語の文章です。休暇の申請は二週間前までに行ってください。担当者は山田です。"
CHINESE = "请在休假开始前两周提交申请。负责人是王先生。"
GERMAN = "Der Urlaub muß zwei Wochen vorher beantragt werden. Für Rückfragen ist Frau Müller zuständig."
FRENCH = "Les congés doivent être demandés deux semaines à l'avance. Déjà vu, café, naïve, où?"
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Dovolená musí být schválena předem."
KOREAN = "휴가 신청은 2주 전까지 제출해 주세요. 담당자는 김 선생님입니다."
ENGLISH = "Requests for leave are to be made two weeks in advance."


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((RUSSIAN, encoding) for encoding in ("utf-8", "cp866", "cp1251", "koi8-r")),
        *((JAPANESE, encoding) for encoding in ("utf-8", "cp932", "euc_jp", "iso2022_jp", "utf-16-le", "utf-16-be")),
        ("休暇申請書のご案内", "euc_jp"),
        *((CHINESE, encoding) for encoding in ("gbk", "gb18030", "utf-16-le")),
        (KOREAN, "cp949"),
        *((GERMAN, encoding) for encoding in ("latin-1", "cp1252", "cp850", "utf-16-le")),
        *((FRENCH, encoding) for encoding in ("latin-1", "cp1252")),
        *((CZECH, encoding) for encoding in ("cp1250", "iso8859-2")),
        *((ENGLISH, encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")),
    ],
)
def test_a_text_is_decoded_without_a_mark(text: str, encoding: str) -> None:
    assert decode(f"{text}\n".encode(encoding)) == f"{text}\n"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_mark_decides_and_goes(mark: bytes, encoding: str) -> None:
    assert decode(mark + JAPANESE.encode(encoding)) == JAPANESE


def test_a_file_cut_off_in_a_character_is_still_utf8() -> None:
    assert decode("Größe und Maß ü".encode()[:-1]) == "Größe und Maß "


@given(st.binary(max_size=200))
def test_any_bytes_become_some_text(data: bytes) -> None:
    decode(data)


@given(st.text(max_size=80))
def test_utf8_is_read_as_such(text: str) -> None:
    data = text.encode()
    if b"\x1b" not in data and b"\0" not in data and not text.startswith(("\ufeff", "\ufffe")):
        assert decode(data) == text


def test_blank_lines_part_paragraphs_and_wrapped_lines_are_joined() -> None:
    text = (
        "Requests for leave are to be made two weeks in ad-\n"
        "vance, at the latest on the Monday before, to the\n"
        "head of the department.\n"
        "\n"
        "Anna Meier\nHauptstr. 5\n12345 Berlin\n"
    )
    first, second = read_text(text.encode()).pieces
    assert first.text == (
        "Requests for leave are to be made two weeks in advance, at the latest on the Monday before, to the "
        "head of the department."
    )
    assert second.text == "Anna Meier\nHauptstr. 5\n12345 Berlin"


def test_list_items_stand_alone_and_keep_their_numbers() -> None:
    pieces = read_text(b"To do:\n- first\n  goes on\n- second\n\n1. one\n2. two\n").pieces
    assert [(piece.kind, piece.text) for piece in pieces] == [
        (BlockKind.PARAGRAPH, "To do:"),
        (BlockKind.LIST_ITEM, "first goes on"),
        (BlockKind.LIST_ITEM, "second"),
        (BlockKind.LIST_ITEM, "1. one"),
        (BlockKind.LIST_ITEM, "2. two"),
    ]
