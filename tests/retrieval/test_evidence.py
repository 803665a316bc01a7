from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.evidence import E5_SMALL, THRESHOLD, UNKNOWN_MODEL, Evidence, Features, Weights, deciding, weigh
from retrieval.fusion import Ranked
from retrieval.ports import Candidate
from retrieval.types import ChunkId, DocumentId, VersionId

if TYPE_CHECKING:
    from collections.abc import Iterable

IDF = {1: 4.0, 2: 3.0, 3: 1.0}
WEIGHTS = pytest.mark.parametrize(
    "weights",
    [E5_SMALL.same_language, E5_SMALL.other_language, UNKNOWN_MODEL.same_language],
    ids=["e5", "e5-across-languages", "unknown"],
)


def ranked(*found: Candidate) -> list[Ranked]:
    return [Ranked(candidate=item, score=-float(place)) for place, item in enumerate(found)]


TERMS: dict[ChunkId, frozenset[int]] = {}
"""Of every candidate below, which no two tests share."""


def candidate(
    cosine: float | None = 0.8, bm25: float = 4.0, matched: Iterable[int] = (1,), **ranks: int | None
) -> Candidate:
    name = ChunkId(str(uuid.uuid4()))
    TERMS[name] = frozenset(matched)
    return Candidate(
        id=name,
        document_id=DocumentId("document"),
        version=VersionId("version"),
        ordinal=0,
        cosine=cosine,
        bm25=bm25,
        dense_rank=ranks.get("dense"),
        bm25_rank=ranks.get("bm25_rank"),
    )


def features(*found: Candidate, idf: dict[int, float] | None = None) -> Features:
    return weigh(ranked(*found), IDF if idf is None else idf, TERMS, [E5_SMALL.same_language]).features


def test_features_are_the_best_of_the_hits() -> None:
    found = features(candidate(0.7, 2.0, (3,), dense=2, bm25_rank=2), candidate(0.9, 8.0, (1, 2), dense=1, bm25_rank=1))
    assert found == Features(cosine=0.9, bm25=1.0, coverage=7 / 8, agreement=1.0)


def test_coverage_looks_at_the_first_hits_only() -> None:
    others = [candidate(matched=(3,)) for _ in range(5)]
    assert features(*others, candidate(matched=(1, 2, 3))).coverage == 1 / 8


@pytest.mark.parametrize(("dense", "agreement"), [(1, 1.0), (3, 1.0), (4, 0.0), (None, 0.0)])
def test_agreement_is_that_the_best_by_words_is_near_by_meaning(dense: int | None, agreement: float) -> None:
    assert features(candidate(dense=dense, bm25_rank=1)).agreement == agreement


def test_the_deciding_candidates_are_the_first_and_the_best_by_words() -> None:
    first = [candidate(bm25=float(number)) for number in range(8)]
    best = candidate(bm25=9.0)
    assert deciding(ranked(*first, best)) == [*first[:5], best]
    assert deciding([]) == []


def test_a_candidate_whose_terms_are_unknown_has_none() -> None:
    assert weigh(ranked(candidate()), IDF, {}, [E5_SMALL.same_language]).features.coverage == 0.0


def test_terms_that_occur_nowhere_count_against_coverage() -> None:
    assert features(candidate(matched=(1,)), idf={1: 1.0, 9: 3.0}).coverage == 0.25


@WEIGHTS
def test_nothing_found_is_no_evidence(weights: Weights) -> None:
    evidence = weigh([], IDF, {}, [weights])
    assert evidence.probability == 0.0
    assert not evidence.sufficient


@WEIGHTS
def test_a_question_without_terms_is_judged_by_meaning_alone(weights: Weights) -> None:
    evidence = weigh(ranked(candidate(0.5, 0.0, ())), {}, TERMS, [weights])
    assert (evidence.features.bm25, evidence.features.coverage) == (0.0, 0.0)
    assert not evidence.sufficient


def test_hits_without_vectors_are_judged_by_words_alone() -> None:
    assert features(candidate(None, 8.0, (1, 2, 3))).cosine == 0.0


def test_across_languages_words_do_not_count() -> None:
    without, with_words = candidate(0.83, 0.0, ()), candidate(0.83, 9.0, (1, 2, 3), dense=1, bm25_rank=1)
    weights = E5_SMALL.other_language
    one, two = (weigh(ranked(item), IDF, TERMS, [weights]) for item in (without, with_words))
    assert one.probability == two.probability


def test_across_languages_an_unknown_model_leaves_it_to_the_language_model() -> None:
    assert weigh(ranked(candidate(0.1, 0.0, ())), IDF, TERMS, [UNKNOWN_MODEL.other_language]).sufficient


def test_the_threshold_belongs_to_the_answer() -> None:
    some = Features(cosine=0.8, bm25=1.0, coverage=0.5, agreement=0.0)
    assert Evidence(features=some, probability=THRESHOLD).sufficient
    assert not Evidence(features=some, probability=THRESHOLD - 1e-9).sufficient


UNIT = st.floats(0, 1)


@WEIGHTS
@given(
    cosine=UNIT, bm25=st.floats(0, 20), matched=st.sets(st.sampled_from([1, 2, 3])), dense=st.integers(1, 9), more=UNIT
)
def test_more_of_anything_is_no_less_evidence(
    weights: Weights, cosine: float, bm25: float, matched: set[int], dense: int, more: float
) -> None:
    base = candidate(cosine, bm25, matched, dense=dense, bm25_rank=1)
    before = weigh(ranked(base), IDF, TERMS, [weights]).probability
    assert 0 <= before <= 1
    for better in (
        replace(base, cosine=cosine + more),
        replace(base, bm25=bm25 + more),
        candidate(cosine, bm25, matched | {1}, dense=dense, bm25_rank=1),
        replace(base, dense_rank=1),
    ):
        assert weigh(ranked(better), IDF, TERMS, [weights]).probability >= before
