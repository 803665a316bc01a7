from __future__ import annotations

import pytest

from retrieval.readers.web import decode_html, read_html
from retrieval.types import BlockKind

ARTICLE = "The rain had stopped by the time we reached the ridge, and the valley lay open before us. " * 4
PAGE = f"""<!doctype html><html><head><title>Ridge walk &amp; more</title><style>p {{color:red}}</style>
<script>var secret = "not text";</script></head><body>
<nav><a href="/">Home</a> <a href="/x">Other pages</a></nav>
<main><article><h1>Ridge walk</h1><p>{ARTICLE}</p><h2>What to bring</h2>
<ul><li>Water<ul><li>two litres</li></ul></li><li>Bread</li></ul>
<p>Costs<br>in euros:</p>
<table><tr><th>Thing</th><th>Price</th></tr><tr><td>Bus</td><td>4</td></tr><tr><td>Hut</td><td>30</td></tr></table>
<pre><code>go(
    up)</code></pre><p>{ARTICLE}</p></article></main>
<footer>Imprint and cookies</footer></body></html>"""


def test_a_page_is_read_with_its_structure_and_without_what_stands_around_it() -> None:
    reading = read_html(PAGE.encode())
    found = [(piece.kind, piece.text) for piece in reading.pieces]
    assert reading.title == "Ridge walk & more"
    assert (BlockKind.HEADING, "Ridge walk") in found
    assert (BlockKind.HEADING, "What to bring") in found
    assert (BlockKind.LIST_ITEM, "Water") in found
    assert (BlockKind.LIST_ITEM, "two litres") in found
    assert (BlockKind.TABLE, "| Thing | Price |\n| --- | --- |\n| Bus | 4 |\n| Hut | 30 |") in found
    assert (BlockKind.CODE, "go(\n    up)") in found
    everything = " ".join(text for _, text in found)
    for left_out in ("secret", "color", "Other pages", "Imprint"):
        assert left_out not in everything


def test_a_page_without_an_article_loses_nothing_that_a_person_sees() -> None:
    page = (
        "<html><body><div>Opening hours</div><div>Mo-Fr 9-17</div>"
        "<table><tr><td><b>Phone</b></td><td>030 1234</td></tr>"
        "<tr><td>Mail</td><td>a@example.org</td></tr></table><p hidden>draft</p>"
        "<p style='display: none'>invisible</p>tail</body></html>"
    )
    text = "\n".join(piece.text for piece in read_html(page.encode()).pieces)
    for seen in ("Opening hours", "Mo-Fr 9-17", "Phone | 030 1234", "Mail | a@example.org", "tail"):
        assert seen in text
    assert "draft" not in text
    assert "invisible" not in text


def test_words_in_neighbouring_blocks_do_not_run_together_and_inline_tags_do_not_part_words() -> None:
    pieces = read_html(b"<p>one</p><p>t<b>w</b>o</p><div>three<div>four</div>five</div>").pieces
    assert [piece.text for piece in pieces] == ["one", "two", "three", "four", "five"]


def test_two_line_breaks_part_paragraphs_and_one_does_not() -> None:
    pieces = read_html(b"<body>one<br>line<br><br>another\n\nline</body>").pieces
    assert [piece.text for piece in pieces] == ["one line", "another line"]


def test_a_layout_made_of_tables_is_read_as_text_and_the_data_table_in_it_as_a_table() -> None:
    inner = "<table><tr><td>C</td><td>Si</td></tr><tr><td>0.4</td><td>0.2</td></tr></table>"
    page = f"<body><table><tr><td>Menu</td><td><p>{ARTICLE}</p>{inner}</td></tr></table></body>"
    kinds = [piece.kind for piece in read_html(page.encode()).pieces]
    assert kinds.count(BlockKind.TABLE) == 1
    assert BlockKind.PARAGRAPH in kinds


@pytest.mark.parametrize(
    "data",
    [
        "<meta charset=Shift_JIS><p>日本語の文章です</p>".encode("cp932"),
        '<meta http-equiv="Content-Type" content="text/html; charset=EUC-JP"><p>日本語の文章です</p>'.encode("euc_jp"),
        '<?xml version="1.0" encoding="gb2312"?><html><p>日本語の文章です</p>'.encode("gb18030"),
        "<p>日本語の文章です</p>".encode("utf-16"),
        "<meta charset=nonsense><p>日本語の文章です</p>".encode(),
        "<meta charset=ascii><p>日本語の文章です</p>".encode(),
    ],
)
def test_the_page_says_its_encoding_or_the_bytes_do(data: bytes) -> None:
    assert "日本語の文章です" in decode_html(data)


def test_broken_and_deep_markup_is_no_danger() -> None:
    assert read_html(b"<p>unclosed <b>bold <table><td>cell").pieces
    deep = b"<html><body>" + b"<div>" * 5_000 + b"bottom" + b"</div>" * 5_000
    read_html(deep)
    assert read_html(b"<html></html>").pieces == ()
