"""The readers over the shared material: a verdict for every file, and the seed paper word by word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from making_documents import source

from retrieval.errors import CorruptDocumentError, EmptyDocumentError, EncryptedDocumentError, ReadError
from retrieval.readers import Readers
from retrieval.types import BlockKind, Document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.shared


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    made = Readers()
    yield made
    await made.close()


@pytest.fixture
async def paper(shared: Path, readers: Readers) -> Document:
    (path,) = (shared / "data" / "papers").glob("BERT*.pdf")
    return await readers.read(source(path.read_bytes(), path.name))


def section(document: Document, heading: str) -> str:
    """The text from a heading to the next."""
    start = next(
        n for n, block in enumerate(document.blocks) if block.kind is BlockKind.HEADING and block.text == heading
    )
    texts = []
    for block in document.blocks[start + 1 :]:
        if block.kind is BlockKind.HEADING:
            break
        texts.append(block.text)
    return "\n".join(texts)


async def test_every_file_gets_a_verdict(shared: Path, readers: Readers) -> None:
    verdicts: dict[str, type[ReadError] | Document] = {}
    messages: dict[str, str] = {}
    for folder in ("pdf-nasty", "pdf-ja", "office"):
        for path in sorted((shared / "data" / folder).rglob("*.*")):
            try:
                verdicts[path.name] = await readers.read(source(path.read_bytes(), path.name))
            except ReadError as error:
                verdicts[path.name] = type(error)
                messages[path.name] = str(error)
    assert all(name in message for name, message in messages.items())
    assert verdicts["pdfplumber_empty_0bytes.pdf"] is EmptyDocumentError
    assert verdicts["pdfminer_aes256r6.pdf"] is EncryptedDocumentError
    assert verdicts["pdfjs_pr6531_user_password.pdf"] is EncryptedDocumentError
    assert verdicts["pdfjs_bug1020226_truncated.pdf"] is CorruptDocumentError
    assert verdicts["pdfjs_issue5481_scan.pdf"] is EmptyDocumentError
    kangxi = verdicts["pdfjs_issue15340_ja_kangxi.pdf"]
    assert isinstance(kangxi, Document)
    assert "特性を持たせたもの)と検知機構を一つの箱内に" in kangxi.text
    hyphen = verdicts["tika_soft_hyphen.pdf"]
    assert isinstance(hyphen, Document)
    assert hyphen.text == "optionalhyphen"
    for document in verdicts.values():
        if isinstance(document, Document):
            assert all(document.text[block.start : block.end] == block.text for block in document.blocks)


async def test_the_papers_sections_are_in_order(paper: Document) -> None:
    headings = [block.text for block in paper.blocks if block.kind is BlockKind.HEADING]
    wanted = [
        "Abstract", "1 Introduction", "2 Related Work", "2.1 Unsupervised Feature-based Approaches", "3 BERT",
        "3.1 Pre-training BERT", "Task #1: Masked LM", "Task #2: Next Sentence Prediction (NSP)",
        "3.2 Fine-tuning BERT", "4 Experiments", "4.1 GLUE", "4.2 SQuAD v1.1", "4.3 SQuAD v2.0", "4.4 SWAG",
        "5 Ablation Studies", "5.1 Effect of Pre-training Tasks", "5.2 Effect of Model Size",
        "5.3 Feature-based Approach with BERT", "6 Conclusion", "References",
        "A Additional Details for BERT", "A.2 Pre-training Procedure",
        "B.1 Detailed Descriptions for the GLUE Benchmark Experiments",
        "SST-2", "C Additional Ablation Studies",
    ]  # fmt: skip
    assert [heading for heading in headings if heading in wanted] == wanted


async def test_the_papers_sections_have_their_ranks(paper: Document) -> None:
    levels = {block.text: block.level for block in paper.blocks if block.kind is BlockKind.HEADING}
    assert levels["Abstract"] == levels["3 BERT"] == levels["References"] == levels["B Detailed Experimental Setup"]
    assert levels["3.1 Pre-training BERT"] == levels["3 BERT"] + 1
    assert levels["Task #1: Masked LM"] == levels["Task #2: Next Sentence Prediction (NSP)"] == levels["3 BERT"] + 2


async def test_the_papers_words_are_whole_and_its_paragraphs_too(paper: Document) -> None:
    for broken in (
        "leftto",
        "finetun",
        "pretrain ",
        "representa-",
        "taskspecific",
        "selfattention",
        "reason-",
        "tokenlevel",
    ):
        assert broken not in paper.text
    assert "Unlike left-to-right language model pre-training" in paper.text
    assert "Intuitively, it is reasonable to believe that a deep bidirectional model" in section(
        paper, "Task #1: Masked LM"
    )
    assert "50% of the time B is the actual next sentence" in section(paper, "Task #2: Next Sentence Prediction (NSP)")
    assert "Bidirectional Encoder Representations from Transformers. Unlike recent" in section(paper, "Abstract")
    assert section(paper, "SST-2").startswith(
        "The Stanford Sentiment Treebank is a binary single-sentence classification task"
    )
    assert "*" not in section(paper, "3.1 Pre-training BERT")


async def test_the_papers_pages_are_the_physical_ones(paper: Document) -> None:
    assert paper.page_count == 16
    pages = {block.text: block.page for block in paper.blocks if block.kind is BlockKind.HEADING}
    assert (pages["Abstract"], pages["3.1 Pre-training BERT"], pages["References"]) == (1, 4, 10)
    assert pages["C Additional Ablation Studies"] == 16


async def test_the_papers_tables_can_be_used_and_its_figures_leave_no_lettering(paper: Document) -> None:
    tables = [block.text for block in paper.blocks if block.kind is BlockKind.TABLE]
    assert any("| BERTLARGE | 86.7/85.9 | 72.1 |" in table for table in tables)
    assert any("| System | Dev EM | Dev F1 | Test EM | Test F1 |" in table for table in tables)
    assert any("| BERTLARGE (Ens.+TriviaQA) | 86.2 | 92.2 | 87.4 | 93.2 |" in table for table in tables)
    for lettering in ("T[SEP]", "Trm Trm", "Lstm", "E[CLS]", "Tok 1"):
        assert lettering not in paper.text
    for caption in range(1, 6):
        assert f"Figure {caption}: " in paper.text
    assert "Batch size: 16, 32" in paper.text
    assert "arXiv:1810.04805" not in paper.text


async def test_the_papers_references_are_marked_one_by_one(paper: Document) -> None:
    entries = [block.text for block in paper.blocks if block.kind is BlockKind.REFERENCE]
    assert 50 <= len(entries) <= 65
    assert entries[0].startswith("Alan Akbik, Duncan Blythe, and Roland Vollgraf. 2018. Contextual string embeddings")
    assert all(entry.rstrip()[-1] in ".)" for entry in entries)
