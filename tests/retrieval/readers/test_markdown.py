from __future__ import annotations

from retrieval.readers.markdown import read_markdown, table_text
from retrieval.types import BlockKind

SOURCE = """---
title: "The handbook"
tags: [a]
---
# Leave

Two **weeks** in [advance](https://example.org "title"), see `form.pdf`
and ![the form](form.png).

## How

1. Fill in
   the form.
   - really
2. Send it

- [ ] open

| Who | Days |
|-----|-----:|
| All | 30   |
| a\\|b | 1 |

```python
if x:
    y = "½"
```

<div>Shown <b>too</b></div>

<!-- not shown -->

> quoted
"""


def test_the_structure_comes_through_without_markup() -> None:
    reading = read_markdown(SOURCE.encode())
    assert reading.title == "The handbook"
    assert [(piece.kind, piece.level, piece.text) for piece in reading.pieces if piece.text] == [
        (BlockKind.HEADING, 1, "Leave"),
        (BlockKind.PARAGRAPH, 0, "Two weeks in advance, see form.pdf and the form."),
        (BlockKind.HEADING, 2, "How"),
        (BlockKind.LIST_ITEM, 0, "1. Fill in the form."),
        (BlockKind.LIST_ITEM, 1, "really"),
        (BlockKind.LIST_ITEM, 0, "2. Send it"),
        (BlockKind.LIST_ITEM, 0, "[ ] open"),
        (BlockKind.TABLE, 0, "| Who | Days |\n| --- | --- |\n| All | 30 |\n| a\\|b | 1 |"),
        (BlockKind.CODE, 0, 'if x:\n    y = "½"'),
        (BlockKind.PARAGRAPH, 0, "Shown too"),
        (BlockKind.PARAGRAPH, 0, "quoted"),
    ]


def test_markdown_in_another_encoding_is_read() -> None:
    data = "# Größe\n\nFür Rückfragen ist Frau Müller zuständig, auch für die Prüfung.\n".encode("latin-1")
    assert read_markdown(data).pieces[0].text == "Größe"


def test_deep_nesting_is_no_danger() -> None:
    text = "".join(f"{'  ' * depth}- item {depth}\n" for depth in range(200)) + ">" * 3_000 + " end\n"
    assert read_markdown(text.encode()).pieces


def test_a_table_without_a_header_takes_its_first_row_and_short_rows_are_filled() -> None:
    assert table_text(["", ""], [["a", "b"], ["c"]]) == "| a | b |\n| --- | --- |\n| c |  |"
