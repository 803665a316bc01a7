from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bot.errors import QuestionSetError
from bot.question_sets import load_question_set

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {
    "corpus.jsonl": '{"_id": "a", "title": "Cats", "text": "Cats sleep."}\n\n{"_id": 7, "text": "Dogs bark."}\n',
    "queries.jsonl": '{"_id": "1", "text": "Who sleeps?"}\n{"_id": "2", "text": "Who flies?", "answerable": false}\n',
    "qrels.tsv": "query-id\tcorpus-id\tscore\torig\n1\ta\t2\tx\n1\t7\t0\n2\t7\t-1\n",
}


def write(folder: Path, **changed: str | bytes | None) -> Path:
    files: dict[str, str | bytes | None] = {**GOOD, **{name.replace("_", "."): text for name, text in changed.items()}}
    for name, text in files.items():
        if text is not None:
            (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def test_reads_a_set(tmp_path: Path) -> None:
    folder = tmp_path / "animals"
    folder.mkdir()
    found = load_question_set(write(folder))
    assert found.name == "animals"
    assert [(entry.id, entry.title, entry.text) for entry in found.corpus] == [
        ("a", "Cats", "Cats sleep."),
        ("7", "", "Dogs bark."),
    ]
    assert [(item.id, item.answerable, dict(item.relevance)) for item in found.questions] == [
        ("1", True, {"a": 2.0, "7": 0.0}),
        ("2", False, {"7": 0.0}),
    ]


def test_only_line_feeds_part_lines(tmp_path: Path) -> None:
    text = "one\u2028two\u0085three"
    line = json.dumps({"_id": "a", "text": text}, ensure_ascii=False)
    found = load_question_set(write(tmp_path, corpus_jsonl=f"\ufeff{line}\r\n", qrels_tsv=""))
    assert found.corpus[0].text == text


@pytest.mark.parametrize(
    ("name", "text", "place", "problem"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{"_id": ', "line 2", "not JSON"),
        ("corpus.jsonl", '\n["a"]', "line 2", "one JSON object"),
        ("corpus.jsonl", '{"text": "x"}', "line 1", '"_id"'),
        ("corpus.jsonl", '{"_id": true, "text": "x"}', "line 1", '"_id"'),
        ("corpus.jsonl", '{"_id": "a"}', "line 1", '"text"'),
        ("corpus.jsonl", '{"_id": "a", "text": "x", "title": null}', "line 1", '"title"'),
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}', "", "twice"),
        ("corpus.jsonl", "[" * 100_000, "line 1", "not JSON"),
        ("queries.jsonl", '{"_id": "1", "text": "x", "answerable": "no"}', "line 1", '"answerable"'),
        ("queries.jsonl", '{"_id": "1", "text": "x"}\n{"_id": "1", "text": "y"}', "", "twice"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1 a 1", "line 2", "parted by tabs"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\ta\thigh", "line 2", "a number"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\ta\tnan", "line 2", "at most 100"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\ta\t1e9", "line 2", "at most 100"),
        ("corpus.jsonl", "", "line 1", "nothing in it"),
        ("queries.jsonl", "\n \n", "line 1", "nothing in it"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n9\ta\t1", "line 2", "no question 9"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\tb\t1", "line 2", "no entry b"),
        ("qrels.tsv", "1\ta\thigh\n", "line 1", "a number"),
        ("qrels.tsv", "9\ta\t1\n", "line 1", "no question 9"),
        ("qrels.tsv", b"query-id\tcorpus-id\tscore\n\xff\ta\t1", "", "UTF-8"),
    ],
)
def test_a_broken_file_is_named_with_its_line(
    tmp_path: Path, name: str, text: str | bytes, place: str, problem: str
) -> None:
    write(tmp_path, **{name.replace(".", "_"): text})
    with pytest.raises(QuestionSetError) as caught:
        load_question_set(tmp_path)
    for part in (name, place, problem):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path, **{name.replace(".", "_"): None})
    with pytest.raises(QuestionSetError, match=rf"{name} is missing"):
        load_question_set(tmp_path)


def test_a_folder_in_a_files_place(tmp_path: Path) -> None:
    write(tmp_path, queries_jsonl=None)
    (tmp_path / "queries.jsonl").mkdir()
    with pytest.raises(QuestionSetError, match=r"queries\.jsonl cannot be read"):
        load_question_set(tmp_path)


def test_grades_without_a_header_all_count(tmp_path: Path) -> None:
    found = load_question_set(write(tmp_path, qrels_tsv="1\ta\t2\n2\t7\t1\n"))
    assert [dict(item.relevance) for item in found.questions] == [{"a": 2.0}, {"7": 1.0}]
