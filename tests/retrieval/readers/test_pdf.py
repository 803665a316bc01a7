"""Real PDFs through the real parser, made on the spot."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from making_documents import (
    RIGHT_COLUMN,
    TOP,
    Printed,
    column,
    cyclic_pdf,
    image_only_pdf,
    pdf_of_lines,
    simple_pdf,
    source,
)

from retrieval.errors import (
    CorruptDocumentError,
    DocumentTooLargeError,
    EmptyDocumentError,
    EncryptedDocumentError,
    ReadError,
    ReadTimeoutError,
)
from retrieval.readers import Readers, ReadLimits, pdf
from retrieval.types import BlockKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SENTENCE = "Requests for leave are to be made two weeks in advance to the head of the department. "


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    made = Readers()
    yield made
    await made.close()


async def test_text_comes_with_its_physical_pages(readers: Readers) -> None:
    document = await readers.read(source(simple_pdf(SENTENCE + "One.", SENTENCE + "Two.", SENTENCE + "Three.")))
    assert document.media_type == "application/pdf"
    assert document.page_count == 3
    assert [(block.page, block.text.split()[-1]) for block in document.blocks] == [
        (1, "One."),
        (2, "Two."),
        (3, "Three."),
    ]
    assert document.language == "en"
    assert document.notes == ()


async def test_two_columns_with_running_heads_and_cut_words_become_whole_paragraphs(readers: Readers) -> None:
    left = [
        "The committee of the society meets every",
        "second month. Its members are elec-",
        "ted by all who have paid. A left-to-right",
    ]
    left += ["order of speaking is kept, and the chair", "may end a debate when it has gone on for"] * 6
    right = ["too long. Left-to-", "right it is then. What has been said here", "is written down by the secretary."]
    pages = []
    for number in range(1, 5):
        head = [
            Printed(text=f"Rules of the society, {number}", y=815, size=9),
            Printed(text=str(number), x=290, y=30, size=9),
        ]
        pages.append([*head, *column(left), *column(right, x=RIGHT_COLUMN)])
    document = await readers.read(source(pdf_of_lines(pages)))
    assert "elected by all" in document.text
    assert "gone on for too long. Left-to-right it is then." in document.text
    assert "Rules of the society" not in document.text
    assert not any(block.text.strip().isdigit() for block in document.blocks)
    assert {block.page for block in document.blocks} == {1, 2, 3, 4}


async def test_headings_and_title_come_through(readers: Readers) -> None:
    page = [
        Printed(text="The Handbook of the Society", size=20, font="Times-Bold"),
        *column(["This text has to be long enough to be the body of it.", "It goes on for a line."], y=TOP - 40),
        Printed(text="1 Leave", y=TOP - 90, size=14, font="Times-Bold"),
        *column([SENTENCE], y=TOP - 110),
        Printed(text="2 Sickness", y=TOP - 150, size=14, font="Times-Bold"),
        *column(["Whoever is sick calls before nine in the morning."], y=TOP - 170),
    ]
    document = await readers.read(source(pdf_of_lines([page])))
    assert document.title == "The Handbook of the Society"
    assert [b.text for b in document.blocks if b.kind is BlockKind.HEADING][1:] == ["1 Leave", "2 Sickness"]


async def test_a_password_is_told(readers: Readers) -> None:
    data = pdf_of_lines([column([SENTENCE])], password="sesame")
    with pytest.raises(EncryptedDocumentError, match=r"made\.pdf is protected by a password"):
        await readers.read(source(data))


async def test_damage_is_told(readers: Readers) -> None:
    whole = simple_pdf(SENTENCE)
    for data in (b"%PDF-1.7\n", b"%PDF-1.7\nnot a PDF at all " * 50, whole[: len(whole) // 5]):
        with pytest.raises(CorruptDocumentError, match="damaged"):
            await readers.read(source(data))


async def test_a_page_tree_that_contains_itself_ends_with_a_verdict(readers: Readers) -> None:
    with pytest.raises(ReadError, match=r"made\.pdf"):
        await readers.read(source(cyclic_pdf()))
    assert (await readers.read(source(simple_pdf(SENTENCE)))).blocks


async def test_a_scan_is_told_with_what_to_do(readers: Readers) -> None:
    with pytest.raises(EmptyDocumentError, match=r"scan.*OCR"):
        await readers.read(source(image_only_pdf()))


async def test_a_pdf_without_anything_on_its_pages_is_empty(readers: Readers) -> None:
    with pytest.raises(EmptyDocumentError):
        await readers.read(source(pdf_of_lines([[], []])))


async def test_bytes_before_the_header_do_no_harm(readers: Readers) -> None:
    document = await readers.read(source(b"junk\n" * 40 + simple_pdf(SENTENCE)))
    assert "two weeks in advance" in document.text


async def test_the_same_document_comes_of_parallel_reads(readers: Readers) -> None:
    data = simple_pdf(SENTENCE)
    first, *others = await asyncio.gather(*(readers.read(source(data)) for _ in range(5)))
    assert all(other == first for other in others)


async def test_a_parser_that_was_killed_while_idle_is_replaced(readers: Readers) -> None:
    await readers.read(source(simple_pdf(SENTENCE)))
    assert readers._pdf._parser is not None
    for worker in readers._pdf._parser._pool._workers:
        worker._proc.kill()
        worker._proc.wait()
    assert (await readers.read(source(simple_pdf(SENTENCE)))).blocks


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal masks on this system")
async def test_ctrl_c_in_a_terminal_leaves_the_parser_alone(readers: Readers) -> None:
    await readers.read(source(simple_pdf(SENTENCE)))
    assert readers._pdf._parser is not None
    (worker,) = readers._pdf._parser._pool._workers
    worker._proc.send_signal(signal.SIGINT)
    document = await readers.read(source(simple_pdf(SENTENCE + "One.", SENTENCE + "Two.")))
    assert document.page_count == 2
    assert readers._pdf._parser._pool._workers == [worker]
    assert worker._proc.poll() is None
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


async def test_too_many_pages_are_refused() -> None:
    readers = Readers(ReadLimits(pages=2))
    try:
        with pytest.raises(DocumentTooLargeError, match="has 3 pages; the limit is 2"):
            await readers.read(source(simple_pdf("One.", "Two.", "Three.")))
    finally:
        await readers.close()


async def test_a_slow_parse_ends_with_an_error() -> None:
    readers = Readers(ReadLimits(seconds=0.001))
    try:
        with pytest.raises(ReadTimeoutError, match=r"made\.pdf took longer"):
            await readers.read(source(simple_pdf(*[SENTENCE * 20] * 60)))
    finally:
        await readers.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process's memory can be set on Linux only")
async def test_a_parse_that_eats_memory_is_an_error_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = Readers()
    try:
        await readers.read(source(simple_pdf(SENTENCE)))
        with monkeypatch.context() as patch:
            patch.setattr(pdf, "_WORKER_MEMORY", 1024**2)
            with pytest.raises(CorruptDocumentError):
                await readers.read(source(simple_pdf(*[SENTENCE * 40] * 200)))
        assert (await readers.read(source(simple_pdf(SENTENCE)))).blocks
    finally:
        await readers.close()


def test_a_reader_that_nobody_closed_does_not_abort_the_interpreter() -> None:
    program = (
        "import asyncio\n"
        "from making_documents import simple_pdf, source\n"
        "from retrieval.readers import Readers\n"
        "readers = Readers()\n"
        "print(asyncio.run(readers.read(source(simple_pdf('Some words.')))).text)\n"
    )
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PATH": os.defpath}
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Some words.\n", "")


async def test_no_process_starts_before_the_first_pdf_and_none_stays() -> None:
    readers = Readers()
    await readers.read(source(b"Plain text.", "a.txt"))
    assert readers._pdf._parser is None
    await readers.read(source(simple_pdf(SENTENCE)))
    assert readers._pdf._parser is not None
    workers = list(readers._pdf._parser._pool._workers)
    await readers.close()
    assert workers
    assert all(worker._proc.poll() is not None for worker in workers)


@pytest.mark.parametrize(
    ("numbers", "named"),
    [([3], "Page 3 was"), ([1, 2, 3, 7], "Pages 1–3, 7 were"), ([9, 8], "Pages 8–9 were")],
)
async def test_pages_are_named_in_ranges(numbers: list[int], named: str) -> None:
    assert pdf._name_pages(numbers) == named


async def test_a_picture_page_among_text_is_noted(readers: Readers) -> None:
    document = await readers.read(source(image_only_pdf(text_page=SENTENCE)))
    assert document.page_count == 2
    assert document.notes == ("Page 1 was left out: no text there, only a picture; OCR is not in this version.",)
    assert {block.page for block in document.blocks} == {2}
