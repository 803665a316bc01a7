from __future__ import annotations

from itertools import combinations

from fakes.passages import chunk
from hypothesis import given
from hypothesis import strategies as st

from retrieval.fusion import Ranked, fold_duplicates, fuse
from retrieval.ports import Candidate
from retrieval.types import ChunkId, DocumentId, VersionId


def candidate(cosine: float | None, bm25: float, number: int = 0) -> Candidate:
    return Candidate(
        id=ChunkId(str(number)),
        document_id=DocumentId("document"),
        version=VersionId("version"),
        ordinal=number,
        cosine=cosine,
        bm25=bm25,
        dense_rank=None,
        bm25_rank=None,
    )


SCORES = st.tuples(
    st.one_of(st.none(), st.floats(-1, 1, allow_subnormal=False)), st.floats(0, 60, allow_subnormal=False)
)
CANDIDATES = st.lists(SCORES, max_size=30).map(
    lambda scores: [candidate(cosine, bm25, number) for number, (cosine, bm25) in enumerate(scores)]
)


def order(ranked: list[Ranked]) -> list[int]:
    return [item.candidate.ordinal for item in ranked]


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(candidates: list[Candidate], random: object) -> None:
    shuffled = candidates.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert fuse(shuffled) == fuse(candidates)


@given(CANDIDATES)
def test_all_candidates_come_out_by_falling_score(candidates: list[Candidate]) -> None:
    ranked = fuse(candidates)
    assert sorted(order(ranked)) == list(range(len(candidates)))
    scores = [item.score for item in ranked]
    assert scores == sorted(scores, reverse=True)


@given(CANDIDATES)
def test_what_is_better_in_one_and_no_worse_in_the_other_ranks_no_lower(candidates: list[Candidate]) -> None:
    score = {item.candidate.ordinal: item.score for item in fuse(candidates)}
    for one, other in combinations((item for item in candidates if item.cosine is not None), 2):
        better, worse = (one, other) if (one.cosine, one.bm25) >= (other.cosine, other.bm25) else (other, one)
        if better.bm25 >= worse.bm25:
            assert score[better.ordinal] >= score[worse.ordinal]


def test_both_searches_count() -> None:
    both, dense, lexical, neither = (
        candidate(0.9, 9.0, 0),
        candidate(0.9, 0.0, 1),
        candidate(0.1, 9.0, 2),
        candidate(0.1, 0.0, 3),
    )
    ranked = fuse([neither, lexical, dense, both], dense_weight=0.5)
    assert order(ranked) == [0, 1, 2, 3]
    assert ranked[1].score == ranked[2].score


def test_weights_move_between_the_searches() -> None:
    candidates = [candidate(0.9, 0.0, 0), candidate(0.1, 9.0, 1)]
    assert order(fuse(candidates, dense_weight=1.0)) == [0, 1]
    assert order(fuse(candidates, dense_weight=0.0)) == [1, 0]


def test_a_candidate_without_a_vector_counts_as_the_least_similar() -> None:
    without, least, most = candidate(None, 0.0, 0), candidate(0.2, 0.0, 1), candidate(0.9, 0.0, 2)
    ranked = {item.candidate.ordinal: item.score for item in fuse([without, least, most])}
    assert ranked[0] == ranked[1] < ranked[2]


def test_candidates_that_are_all_alike_score_nothing() -> None:
    assert [item.score for item in fuse([candidate(0.5, 1.0, number) for number in range(3)])] == [0.0] * 3
    assert [item.score for item in fuse([candidate(None, 3.0)])] == [0.0]


LONG = "Herons stand in shallow water and wait for fish, frogs and the occasional careless dragonfly. " * 3


def kept(*texts: str, limit: int = 8) -> list[int]:
    ranked = [Ranked(candidate=candidate(0.5, 1.0, number), score=1.0 - number) for number in range(len(texts))]
    chunks = {ChunkId(str(number)): chunk(text) for number, text in enumerate(texts)}
    return order(fold_duplicates(ranked, chunks, limit))


def test_a_copy_is_folded_into_the_better_one() -> None:
    assert kept(LONG, "Owls hunt at night.", LONG.upper().replace("  ", "\n")) == [0, 1]


def test_a_version_with_another_word_is_folded() -> None:
    assert kept(LONG, LONG.replace("careless", "clumsy", 1)) == [0]


def test_a_version_with_another_number_says_something_else() -> None:
    rule = LONG + "The limit is {} fish."
    assert kept(rule.format(10), rule.format(20), rule.format(10)) == [0, 1]


def test_a_short_text_inside_a_long_one_stays() -> None:
    assert kept(LONG, "Herons stand in shallow water.") == [0, 1]


def test_short_and_empty_texts() -> None:
    assert kept("Yes", "yes", "No", "", " ") == [0, 2, 3]


def test_japanese_copies_are_folded() -> None:
    text = "返金は三十日以内に行われます。駐車場は有料です。受付は九時に開きます。"
    assert kept(text, text.replace("。", "。\n"), "猫は一日に十六時間眠ります。") == [0, 2]


def test_what_could_not_be_loaded_is_left_out() -> None:
    ranked = [Ranked(candidate=candidate(0.5, 1.0, number), score=1.0 - number) for number in range(3)]
    assert order(fold_duplicates(ranked, {ChunkId("1"): chunk("Owls hunt.")}, 3)) == [1]


def test_no_more_than_the_limit() -> None:
    assert kept("One heron.", "Two owls.", "Three storks.", limit=2) == [0, 1]
    assert kept("One heron.", limit=0) == []
