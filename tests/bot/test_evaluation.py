from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from fakes.embedder import WordEmbedder

from bot.errors import QuestionSetError
from bot.evaluation import evaluate, index, measure
from bot.question_sets import CorpusEntry, EvaluationQuestion, QuestionSet
from bot.settings import load_settings
from retrieval.types import PUBLIC, Query

if TYPE_CHECKING:
    from pathlib import Path

    from bot.settings import Settings

ANIMALS = {
    "heron": "The heron stands in shallow water and waits for fish.",
    "owl": "The owl hunts mice at night without a sound.",
    "stork": "The stork travels to Africa in autumn and returns in spring.",
    "bat": "The bat finds moths by listening to echoes.",
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(home=tmp_path / "home")


def questions(*asked: EvaluationQuestion, corpus: dict[str, str] | None = None) -> QuestionSet:
    entries = [CorpusEntry(id=name, title="", text=text) for name, text in (corpus or ANIMALS).items()]
    return QuestionSet(name="animals", corpus=tuple(entries), questions=asked)


def question(text: str, *, answerable: bool = True, **relevance: float) -> EvaluationQuestion:
    return EvaluationQuestion(id=text, text=text, answerable=answerable, relevance=relevance)


async def test_finds_what_is_there(settings: Settings) -> None:
    report = await measure(
        questions(
            question("Which bird travels to Africa in autumn?", stork=1.0),
            question("Who hunts mice at night?", owl=2.0, bat=1.0),
        ),
        settings,
        WordEmbedder(),
    )
    assert (report.set, report.queries, report.passages) == ("animals", 2, 4)
    assert (report.mrr_10, report.hit_3, report.hit_5, report.recall_10) == (1, 1, 1, 1)
    assert report.recall_1 == pytest.approx((1 + 1 / 2) / 2)
    assert report.ndcg_10 is not None
    assert 0.9 < report.ndcg_10 <= 1


async def test_wrong_grades_are_told(settings: Settings) -> None:
    asked = question("Which bird travels to Africa in autumn?", nowhere=1.0)
    report = await measure(questions(asked), settings, WordEmbedder())
    assert (report.ndcg_10, report.mrr_10, report.recall_10, report.hit_5) == (0, 0, 0, 0)


async def test_what_nobody_asked_has_no_figure(settings: Settings) -> None:
    asked = question("Who repairs bicycles?", answerable=False, heron=1.0)
    report = await measure(questions(asked), settings, WordEmbedder())
    assert report.abstained_answerable is None
    assert report.ndcg_10 is None
    assert report.abstained_unanswerable == 1


async def test_abstentions_are_shares_of_their_kind(settings: Settings) -> None:
    report = await measure(
        questions(
            question("The heron stands in shallow water and waits for fish?", heron=1.0),
            question("Photosynthesis chlorophyll xylem?", owl=1.0),
            question("Quarterly dividend taxation?", answerable=False),
        ),
        settings,
        WordEmbedder(),
    )
    assert report.abstained_answerable == 1 / 2
    assert report.abstained_unanswerable == 1


async def test_a_long_entry_takes_one_place(settings: Settings) -> None:
    parts = [f"Part {n}: the heron of lake {n} fishes, rests and nests, year {n}. " * 20 for n in range(30)]
    corpus = {"long": "\n\n".join(parts), "short": "A heron may rest elsewhere."}
    asked = question("the heron of lake 7 fishes, rests and nests", short=1.0)
    report = await measure(questions(asked, corpus=corpus), settings, WordEmbedder())
    assert report.passages > 10
    assert report.mrr_10 == 1 / 2


async def test_an_entry_without_text_is_left_out(settings: Settings) -> None:
    report = await measure(
        questions(question("Who hunts mice?", owl=1.0), corpus={**ANIMALS, "void": ""}), settings, WordEmbedder()
    )
    assert report.passages == 4


async def test_nothing_is_left_behind_and_the_library_at_home_is_not_touched(settings: Settings) -> None:
    asked = questions(question("Who hunts mice?", owl=1.0))
    async with index(asked, settings, WordEmbedder()) as library:
        found = await library.searcher.search(Query(text="Who hunts mice?", audience=PUBLIC))
        assert found.hits[0].chunk.uri == "corpus:animals/owl"
    assert not settings.home.exists()


async def test_progress_counts_entries_and_questions(settings: Settings) -> None:
    told: list[tuple[str, int, int]] = []
    await measure(
        questions(question("Who hunts mice?", owl=1.0)), settings, WordEmbedder(), lambda *step: told.append(step)
    )
    assert told[0] == ("indexing", 0, 4)
    assert ("indexing", 4, 4) in told
    assert told[-2:] == [("asking", 0, 1), ("asking", 1, 1)]


async def test_a_model_that_breaks_ends_the_evaluation(settings: Settings) -> None:
    with pytest.raises(QuestionSetError, match="animals/"):
        await measure(questions(question("Who?", owl=1.0)), settings, WordEmbedder(fail="echoes"))


async def test_a_broken_set_is_told_before_anything_is_loaded(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(QuestionSetError, match=r"corpus\.jsonl is missing"):
        await evaluate(tmp_path, settings)
    assert not settings.home.exists()


async def test_the_report_has_the_usual_names(settings: Settings) -> None:
    report = await measure(questions(question("Who hunts mice?", owl=1.0)), settings, WordEmbedder())
    figures = json.loads(json.dumps(report.as_dict()))
    assert list(figures) == [
        "set",
        "queries",
        "passages",
        "ndcg@10",
        "mrr@10",
        "recall@1",
        "recall@5",
        "recall@10",
        "hit@3",
        "hit@5",
        "abstained_unanswerable",
        "abstained_answerable",
        "seconds",
        "passages_per_second",
        "query_ms_median",
        "query_ms_p95",
    ]
    assert figures["ndcg@10"] == 1
    assert figures["query_ms_p95"] >= figures["query_ms_median"] > 0
