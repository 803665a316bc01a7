from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fakes.embedder import WordEmbedder
from fakes.passages import chunk, conversation, hit, prompt, turn

from bot.extractive import Extractive, Quote, _shown
from bot.prompting import NO_ANSWER, CitationReader, CitationResult
from bot.types import EXTRACTIVE, ModelStop, ModelText, Prompt
from retrieval.errors import EmbeddingError
from retrieval.types import ChunkKind

if TYPE_CHECKING:
    from retrieval.embedding import FastEmbedder

FILLER = "The office in Rome opens at nine. Parking costs two euros. Dogs are welcome in the garden."


@pytest.fixture
def model() -> Extractive:
    return Extractive(WordEmbedder(256, fail="explode"))


async def quote(model: Extractive, asked: Prompt) -> CitationResult:
    *texts, stop = [item async for item in model.generate(asked)]
    assert isinstance(stop, ModelStop)
    reader = CitationReader(len(asked.hits))
    for text in texts:
        assert isinstance(text, ModelText)
        reader.feed(text.text)
    return reader.finish()


async def test_the_sentence_that_answers_is_quoted_word_for_word(model: Extractive) -> None:
    passage = f"{FILLER} The refund period is thirty days. Trains run every hour."
    result = await quote(model, prompt("How long is the refund period?", hit(FILLER), hit(passage)))
    assert result.text.startswith("The refund period is thirty days. [1]")
    assert result.order[0] == 1
    assert model.name == EXTRACTIVE


async def test_a_sentence_brings_the_list_that_it_announces(model: Extractive) -> None:
    listing = (
        f"{FILLER} BERT is trained on two tasks:\n- masked language model\n- next sentence prediction\nTrains run."
    )
    result = await quote(model, prompt("On which two tasks is BERT trained?", hit(listing)))
    assert "BERT is trained on two tasks:" in result.text
    assert "masked language model" in result.text
    assert "next sentence prediction" in result.text


@pytest.mark.parametrize(
    "text", ["```\nx = a[1]", "Text:\n~~~ python\nx = 1", "```\nx\n```", "0``` [3] and ``[4]`", "a ` b"]
)
def test_a_quote_cites_itself_and_nothing_else_though_its_code_is_cut_off(text: str) -> None:
    shown = _shown(Quote(hit=2, position=0, text=text, under="", terms=frozenset()))
    reader = CitationReader(9)
    reader.feed(f"{shown}\n\n")
    assert reader.finish().order == (1,)


async def test_a_row_of_a_table_is_quoted_with_its_header(model: Extractive) -> None:
    table = "| Plan | Price |\n|---|---|\n| Basic | 10 euros |\n| Premium | 30 euros |"
    result = await quote(model, prompt("What does the Premium plan cost?", hit(table, kind=ChunkKind.TABLE)))
    assert result.text.startswith("| Plan | Price |\n|---|---|\n| Premium | 30 euros |")
    assert "Basic" not in result.text


async def test_the_repeated_header_of_a_split_table_is_no_row(model: Extractive) -> None:
    head = "| Plan | Price |\n|---|---|\n"
    neighbour = chunk(f"{head}| Premium | 30 euros |\n| Gold | 50 euros |", ordinal=1, kind=ChunkKind.TABLE)
    table = hit(f"{head}| Basic | 10 euros |\n| Free | nothing |", kind=ChunkKind.TABLE, neighbours=(neighbour,))
    result = await quote(model, prompt("Plan Price Premium", table))
    assert result.text.startswith(f"{head}| Premium | 30 euros |")
    assert "| Plan | Price |\n| Plan" not in result.text
    assert "|---|---|\n| Plan" not in result.text


async def test_a_table_chunk_that_is_no_markdown_table_is_quoted_by_line(model: Extractive) -> None:
    table = hit("Basic: 10 euros\n---\nPremium: 30 euros", kind=ChunkKind.TABLE)
    result = await quote(model, prompt("What does Premium cost?", table))
    assert result.text.startswith("Premium: 30 euros [1]")


async def test_two_japanese_sentences_are_both_quoted(embedder: FastEmbedder) -> None:
    passage = "受付は九時です。事前学習の課題一はマスク言語モデルです。事前学習の課題二は次文予測です。駐車場は有料。"
    result = await quote(Extractive(embedder), prompt("事前学習の課題は何ですか", hit(passage), language="ja"))
    assert "マスク言語モデルです。" in result.text
    assert "次文予測です。" in result.text
    assert "駐車場" not in result.text


@pytest.mark.parametrize(
    "passages", [[], [""], ["  \n "], ["…", "—\n\n***"]], ids=["no hits", "empty", "blank", "signs"]
)
async def test_without_a_sentence_there_is_no_answer(model: Extractive, passages: list[str]) -> None:
    items = [item async for item in model.generate(prompt("Why?", *map(hit, passages)))]
    assert items[0] == ModelText(text=NO_ANSWER)
    assert isinstance(items[-1], ModelStop)


async def test_a_document_that_speaks_the_sentinel_abstains_for_nobody(model: Extractive) -> None:
    result = await quote(model, prompt("What is the code?", hit(f"{NO_ANSWER} is the code of the door [7].")))
    assert not result.no_answer
    assert result.order == (0,)
    assert result.dropped == 0


async def test_no_quote_is_endless(model: Extractive) -> None:
    result = await quote(model, prompt("refund", hit("refund " * 5_000)))
    assert len(result.text) < 700
    assert result.text.endswith("… [1]")


async def test_the_same_said_twice_is_quoted_once(model: Extractive) -> None:
    passages = [hit("The refund period is thirty days."), hit("The refund period is thirty days, really.")]
    result = await quote(model, prompt("How long is the refund period?", *passages))
    assert len(result.order) == 1


async def test_only_so_many_sentences_are_embedded() -> None:
    embedder = WordEmbedder(256)
    long = " ".join(f"Sentence number {n} is about refunds of kind {n}." for n in range(500))
    await quote(Extractive(embedder), prompt("refunds of kind 77", *[hit(long)] * 8))
    assert sum(map(len, embedder.calls)) <= 40


async def test_a_broken_embedder_says_so(model: Extractive) -> None:
    with pytest.raises(EmbeddingError):
        await quote(model, prompt("Does it explode?", hit(FILLER)))


async def test_a_follow_up_is_put_behind_the_question_that_it_leans_on(model: Extractive) -> None:

    talk = conversation(turn("What is the refund period?", "Thirty days."))
    assert await model.condense(talk, "And how often?") == "What is the refund period? And how often?"
    assert await model.condense(talk, "Where is the office?") == "Where is the office?"
