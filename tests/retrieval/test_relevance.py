from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.relevance import hit, ndcg, recall, reciprocal_rank

FIGURES = [ndcg, reciprocal_rank, recall, hit]

ids = st.text("abcdefgh", min_size=1, max_size=2)
some_grades = st.dictionaries(ids, st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0]), min_size=1).filter(
    lambda grades: any(grade > 0 for grade in grades.values())
)
rankings = st.lists(ids, unique=True, max_size=30)
depths = st.integers(min_value=1, max_value=12)


def test_ndcg_of_a_worked_example() -> None:
    # Ranks 1 to 4 have grades 1, 0, 3, absent; the entry graded 2 was not found.
    grades = {"a": 1.0, "b": 0.0, "c": 3.0, "e": 2.0}
    found = 1 / math.log2(2) + 7 / math.log2(4)
    ideal = 7 / math.log2(2) + 3 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(["a", "b", "c", "d"], grades, 10) == pytest.approx(found / ideal)
    assert found / ideal == pytest.approx(0.479, abs=0.0005)


def test_ndcg_looks_no_deeper_than_told_in_the_ideal_either() -> None:
    assert ndcg(["a", "b"], {"b": 1.0, "c": 1.0}, 1) == 0
    assert ndcg(["b", "a"], {"b": 1.0, "c": 1.0}, 1) == 1


def test_reciprocal_rank_is_of_the_first_relevant_one() -> None:
    assert reciprocal_rank(["x", "a", "b"], {"a": 1.0, "b": 4.0, "x": 0.0}, 10) == 1 / 2
    assert reciprocal_rank(["x", "y", "a"], {"a": 1.0}, 2) == 0


def test_recall_is_over_all_relevant_ones() -> None:
    grades = {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0}
    assert recall(["a", "d", "b"], grades, 1) == pytest.approx(1 / 3)
    assert recall(["a", "d", "b"], grades, 3) == pytest.approx(2 / 3)


def test_hit_is_whether_any_is_there() -> None:
    assert hit(["x", "a"], {"a": 1.0}, 1) == 0
    assert hit(["x", "a"], {"a": 1.0}, 2) == 1
    assert hit(["x"], {"a": 1.0, "x": 0.0}, 5) == 0


@given(rankings, some_grades, depths)
def test_figures_lie_between_nothing_and_all(ranking: list[str], grades: dict[str, float], depth: int) -> None:
    for figure in FIGURES:
        assert 0 <= figure(ranking, grades, depth) <= 1 + 1e-12


@given(some_grades, depths)
def test_the_ideal_ranking_is_worth_one(grades: dict[str, float], depth: int) -> None:
    ideal = sorted(grades, key=lambda item: -grades[item])
    assert ndcg(ideal, grades, depth) == pytest.approx(1)
    assert reciprocal_rank(ideal, grades, depth) == 1
    assert hit(ideal, grades, depth) == 1
    assert recall(ideal, grades, len(ideal)) == 1


@given(rankings.filter(lambda ranking: len(ranking) > 1), some_grades, depths, st.data())
def test_moving_a_better_one_up_never_lowers_ndcg(
    ranking: list[str], grades: dict[str, float], depth: int, data: st.DataObject
) -> None:
    place = data.draw(st.integers(min_value=1, max_value=len(ranking) - 1))
    above, below = ranking[place - 1], ranking[place]
    if grades.get(below, 0) < grades.get(above, 0):
        above, below = below, above
    better = [*ranking[: place - 1], below, above, *ranking[place + 1 :]]
    assert ndcg(better, grades, depth) >= ndcg(ranking, grades, depth) - 1e-12
