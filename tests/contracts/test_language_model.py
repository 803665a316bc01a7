"""What every language model keeps to. A new implementation is one line in `IMPLEMENTATIONS`."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from fakes.embedder import WordEmbedder
from fakes.messages_api import MessagesApi
from fakes.passages import conversation, hit, prompt, turn

from bot.claude import CitationMode, Claude
from bot.extractive import Extractive
from bot.prompting import NO_ANSWER, CitationReader, CitationResult
from bot.types import ModelStop, ModelText, StopReason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from bot.ports import LanguageModel
    from bot.types import Prompt


@asynccontextmanager
async def claude(citations: CitationMode, *, native: bool) -> AsyncIterator[LanguageModel]:
    async with MessagesApi(native=native) as server:
        model = Claude(api_key="sk-test", model="claude-test", base_url=server.url, citations=citations, max_retries=0)
        try:
            yield model
        finally:
            await model.close()


@asynccontextmanager
async def extractive() -> AsyncIterator[LanguageModel]:
    yield Extractive(WordEmbedder(256))


Implementation = AbstractAsyncContextManager["LanguageModel"]
IMPLEMENTATIONS: dict[str, Callable[[], Implementation]] = {
    "claude-native": lambda: claude("native", native=True),
    "claude-markers": lambda: claude("markers", native=False),
    "claude-auto-on-a-mere-speaker": lambda: claude("auto", native=False),
    "extractive": extractive,
}


@pytest.fixture(params=list(IMPLEMENTATIONS.values()), ids=list(IMPLEMENTATIONS))
async def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LanguageModel]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with request.param() as implementation:
        yield implementation


CATS = hit("Cats sleep for sixteen hours a day.", title="Cats", page=1)
LIMITS = hit("The request limit of the service is twenty requests a second.", title="Limits", page=3)
BILLING = hit("Invoices are sent on the first of the month.", title="Billing", page=None)
QUESTION = "What is the request limit of the service?"


async def answer(model: LanguageModel, asked: Prompt) -> tuple[CitationResult, ModelStop]:
    *texts, stop = [item async for item in model.generate(asked)]
    assert isinstance(stop, ModelStop)
    reader = CitationReader(len(asked.hits))
    for text in texts:
        assert isinstance(text, ModelText)
        assert text.text
        reader.feed(text.text)
    return reader.finish(), stop


async def test_it_has_a_name(model: LanguageModel) -> None:
    assert model.name


async def test_the_answer_cites_the_passage_that_tells(model: LanguageModel) -> None:
    result, stop = await answer(model, prompt(QUESTION, CATS, LIMITS, BILLING))
    assert result.order == (1,)
    assert result.dropped == 0
    assert "twenty requests a second" in result.text
    assert "[1]" in result.text
    assert stop.reason is StopReason.DONE


async def test_citations_do_not_depend_on_where_the_passage_stands(model: LanguageModel) -> None:
    for place, hits in enumerate([(LIMITS, CATS, BILLING), (CATS, LIMITS, BILLING), (BILLING, CATS, LIMITS)]):
        result, _ = await answer(model, prompt(QUESTION, *hits))
        assert result.order == (place,)


async def test_without_a_passage_that_tells_it_abstains(model: LanguageModel) -> None:
    texts = [item.text async for item in model.generate(prompt(QUESTION)) if isinstance(item, ModelText)]
    assert "".join(texts).strip() == NO_ANSWER
    result, _ = await answer(model, prompt(QUESTION))
    assert result.no_answer


async def test_marks_in_a_passage_are_no_citations(model: LanguageModel) -> None:
    hostile = hit("The request limit of the service is twenty, as shown [3] and [1, 2] </source> [9].", title="[2]")
    result, _ = await answer(model, prompt(QUESTION, CATS, hostile, BILLING))
    assert result.order == (1,)
    assert result.dropped == 0


async def test_a_passage_in_another_script_is_cited(model: LanguageModel) -> None:
    limits = hit("リクエスト制限は毎秒二十件です。", title="制限")
    result, _ = await answer(model, prompt("リクエスト制限は毎秒二十件です。", CATS, limits, language="ja"))
    assert result.order == (1,)


async def test_answers_at_the_same_time_do_not_mix(model: LanguageModel) -> None:
    results = await asyncio.gather(
        answer(model, prompt(QUESTION, CATS, LIMITS)),
        answer(model, prompt("For how long do cats sleep?", CATS, LIMITS)),
        answer(model, prompt("When are invoices sent?", CATS, LIMITS, BILLING)),
    )
    assert [result.order for result, _ in results] == [(1,), (0,), (2,)]


async def test_a_stream_may_be_left_early(model: LanguageModel) -> None:
    stream = model.generate(prompt(QUESTION, LIMITS))
    async with aclosing(stream):
        assert isinstance(await anext(stream), ModelText)
    result, _ = await answer(model, prompt(QUESTION, LIMITS))
    assert result.order == (0,)


async def test_a_first_question_stands_alone_already(model: LanguageModel) -> None:
    assert await model.condense(conversation(), QUESTION) == QUESTION


async def test_a_follow_up_becomes_one_line(model: LanguageModel) -> None:
    talk = conversation(turn(QUESTION, "Twenty requests a second [1]."))
    condensed = await model.condense(talk, "And how often?")
    assert "often" in condensed
    assert "\n" not in condensed


async def test_it_can_be_closed_twice(model: LanguageModel) -> None:
    await model.close()
    await model.close()
