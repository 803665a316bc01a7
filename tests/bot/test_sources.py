from __future__ import annotations

import pytest
from fakes.passages import chunk, hit
from hypothesis import given
from hypothesis import strategies as st

from bot.sources import build_sources

FIRST = "The office in Rome opens at nine. Refunds are paid within thirty days. Parking costs two euros."
LONG = "Refunds " + "are paid within thirty days and " * 40 + "then they end."


def test_the_excerpt_is_the_sentence_that_the_claim_stands_on() -> None:
    (source,) = build_sources("You are refunded within thirty days [1].", (0,), [hit(FIRST)])
    assert source.excerpt.startswith("Refunds are paid within thirty days.")
    assert (source.marker, source.title, source.page, source.last_page) == (1, "Handbook", 1, 1)


def test_the_page_is_that_of_the_cited_sentence() -> None:
    turn = FIRST.index("Refunds")
    spanning = hit(FIRST, page=3, last_page=4, page_starts=((0, 3), (turn, 4)))
    (refunds,) = build_sources("Refunds are paid within thirty days [1].", (0,), [spanning])
    (rome,) = build_sources("The office in Rome opens at nine [1].", (0,), [spanning])
    assert (refunds.page, refunds.last_page) == (4, 4)
    assert (rome.page, rome.last_page) == (3, 4)


def test_without_pages_there_is_no_page() -> None:
    (source,) = build_sources("Refunds are paid [1].", (0,), [hit(FIRST, page=None)])
    assert (source.page, source.last_page) == (None, None)


def test_a_claim_that_stands_on_a_neighbour_shows_the_neighbour() -> None:
    neighbour = chunk("Cats sleep for sixteen hours a day.", page=9, ordinal=1)
    (source,) = build_sources("Cats sleep sixteen hours [1].", (0,), [hit(FIRST, neighbours=(neighbour,))])
    assert (source.excerpt, source.page) == ("Cats sleep for sixteen hours a day.", 9)


def test_sources_come_in_the_order_of_their_markers() -> None:
    hits = [hit("Alpha is first.", title="A"), hit("Beta is second.", title="B"), hit("Gamma is third.", title="C")]
    sources = build_sources("Gamma is third [1]. Alpha is first [2].", (2, 0), hits)
    assert [(source.marker, source.title) for source in sources] == [(1, "C"), (2, "A")]


def test_markers_side_by_side_share_their_claim() -> None:
    both = [hit(FIRST, title="A"), hit("Parking is free. Refunds take thirty days.", title="B")]
    sources = build_sources("Parking costs two euros [1]. Refunds take thirty days [1], [2].", (0, 1), both)
    assert sources[1].excerpt == "Refunds take thirty days."


def test_japanese_claims_find_their_sentence() -> None:
    passage = hit("受付は九時に開きます。返金は三十日以内に行われます。駐車場は有料です。")
    (source,) = build_sources("返金は三十日以内です [1]。", (0,), [passage])
    assert source.excerpt.startswith("返金は三十日以内に行われます。")


def test_a_claim_in_another_language_shows_the_beginning() -> None:
    (source,) = build_sources("返金は三十日以内です [1]。", (0,), [hit(FIRST)])
    assert source.excerpt.startswith("The office in Rome")


def test_an_empty_passage_has_an_empty_excerpt() -> None:
    (source,) = build_sources("Something [1].", (0,), [hit("")])
    assert source.excerpt == ""


def test_a_sentence_without_end_is_cut_between_words() -> None:
    (source,) = build_sources("Refunds [1].", (0,), [hit(LONG)])
    assert len(source.excerpt) <= 500
    assert LONG[len(source.excerpt)] == " "


WORDS = st.sampled_from([*FIRST.split(), "返金は", "三十日。", "\n\n", "|", "…", "word" * 200])


@given(st.lists(WORDS, max_size=60).map(" ".join), st.lists(WORDS, max_size=10).map(" ".join))
def test_an_excerpt_stands_word_for_word_in_the_document(passage: str, claim: str) -> None:
    (source,) = build_sources(f"{claim} [1]", (0,), [hit(passage)])
    assert source.excerpt in passage
    assert len(source.excerpt) <= 500
    assert bool(source.excerpt) == bool(passage.strip())


@pytest.mark.parametrize("text", ["[1]", "[1][2]", "[2] and [1].", "\n\n[1]\n\n[2]"])
def test_markers_without_claims_are_no_trouble(text: str) -> None:
    sources = build_sources(text, (0, 1), [hit(FIRST), hit(FIRST)])
    assert [source.excerpt[:10] for source in sources] == [FIRST[:10]] * 2


def test_a_source_that_is_cited_twice_shows_what_the_first_claim_stands_on() -> None:
    text = "Refunds take thirty days [1]. Rome opens at nine, the office there, the one in Rome [1]."
    (source,) = build_sources(text, (0,), [hit(FIRST)])
    assert source.excerpt.startswith("Refunds are paid")
