from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable


def squares(asked: list[list[int]]) -> Callable[[list[int]], dict[int, int]]:
    def load(missing: list[int]) -> dict[int, int]:
        asked.append(missing)
        return {number: number * number for number in missing if number > 0}

    return load


def test_what_is_known_is_not_loaded_again() -> None:
    kept: Memo[int, int] = Memo()
    asked: list[list[int]] = []
    load = squares(asked)
    assert kept.get([1, 2], load) == {1: 1, 2: 4}
    assert kept.get([2, 3, -1], load) == {2: 4, 3: 9}
    assert asked == [[1, 2], [3, -1]]
    assert kept.known([1, 3, -1, 7]) == {1: 1, 3: 9}


def test_a_write_makes_all_of_it_unknown() -> None:
    kept: Memo[int, str] = Memo()
    kept.get([1], lambda _: {1: "old"})
    kept.clear()
    assert kept.known([1]) == {}
    assert kept.get([1], lambda _: {1: "new"}) == {1: "new"}


def test_what_was_loaded_during_a_write_is_not_kept() -> None:
    kept: Memo[int, str] = Memo()

    def load(_: list[int]) -> dict[int, str]:
        kept.clear()
        return {1: "from before"}

    assert kept.get([1], load) == {1: "from before"}
    assert kept.known([1]) == {}


def test_it_does_not_grow_without_bound() -> None:
    kept: Memo[int, int] = Memo(most=9)
    kept.get([-1], lambda _: {-1: 0})
    kept.get(range(9), lambda missing: dict.fromkeys(missing, 0))
    assert kept.known([-1]) == {}
    assert len(kept.known(range(9))) == 9
