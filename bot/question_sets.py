"""Question sets in the layout of BEIR (Thakur et al. 2021): a corpus, questions, and which entries answer which.

A set is a folder with `corpus.jsonl` ({_id, title, text}), `queries.jsonl` ({_id, text, answerable}) and `qrels.tsv`
(a header line, then query-id, corpus-id and score, parted by tabs). Further fields and columns are allowed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from bot.errors import QuestionSetError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CORPUS: Final = "corpus.jsonl"
QUERIES: Final = "queries.jsonl"
QRELS: Final = "qrels.tsv"
_HIGHEST_GRADE: Final = 100
"""Gains double with each grade; nobody grades finer than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusEntry:
    """One document of the corpus."""

    id: str
    title: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationQuestion:
    """One question. `relevance` grades corpus entries by id; what it does not name is irrelevant.

    A question that is not answerable may have graded entries nevertheless: the nearest miss.
    """

    id: str
    text: str
    answerable: bool
    relevance: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """A corpus and the questions put to it."""

    name: str
    corpus: tuple[CorpusEntry, ...] = field(repr=False)
    questions: tuple[EvaluationQuestion, ...] = field(repr=False)


def load_question_set(folder: Path) -> QuestionSet:
    """Read a set.

    Raises:
        QuestionSetError: A file is missing or a line is malformed; the message names both.
    """
    corpus = tuple(
        CorpusEntry(id=_id(item, where), title=_text(item, "title", where, default=""), text=_text(item, "text", where))
        for where, item in _objects(folder / CORPUS)
    )
    asked = tuple(
        (_id(item, where), _text(item, "text", where), _flag(item, "answerable", where))
        for where, item in _objects(folder / QUERIES)
    )
    entries, queries = [entry.id for entry in corpus], [identity for identity, _, _ in asked]
    _require_unique(entries, folder / CORPUS)
    _require_unique(queries, folder / QUERIES)
    relevance = _relevance(folder / QRELS, frozenset(queries), frozenset(entries))
    questions = tuple(
        EvaluationQuestion(id=identity, text=text, answerable=answerable, relevance=relevance.get(identity, {}))
        for identity, text, answerable in asked
    )
    return QuestionSet(name=folder.absolute().name, corpus=corpus, questions=questions)


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    line: int

    def refuse(self, problem: str, cause: Exception | None = None) -> NoReturn:
        message = f"{self.path}, line {self.line}: {problem}"
        raise QuestionSetError(message) from cause


def _lines(path: Path) -> Iterator[tuple[_Place, str]]:
    """The lines that are not blank. Only line feeds part them: JSON strings may hold Unicode's other separators."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        message = f"{path} is missing. A question set is a folder with {CORPUS}, {QUERIES} and {QRELS}."
        raise QuestionSetError(message) from error
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8. Save it as UTF-8."
        raise QuestionSetError(message) from error
    except OSError as error:
        message = f"{path} cannot be read. Check that it is a file and who may read it."
        raise QuestionSetError(message) from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _Place(path, number), line


def _objects(path: Path) -> Iterator[tuple[_Place, dict[str, Any]]]:
    for where, line in _lines(path):
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            where.refuse("this is not JSON; each line has to be one JSON object.", error)
        if not isinstance(item, dict):
            where.refuse("each line has to be one JSON object.")
        yield where, item


def _id(item: dict[str, Any], where: _Place) -> str:
    value = item.get("_id")
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        where.refuse('the field "_id" has to be a text that is not empty.')
    return str(value)


def _text(item: dict[str, Any], name: str, where: _Place, *, default: str | None = None) -> str:
    value = item.get(name, default)
    if not isinstance(value, str):
        where.refuse(f'the field "{name}" has to be a text.')
    return value


def _flag(item: dict[str, Any], name: str, where: _Place) -> bool:
    value = item.get(name, True)
    if not isinstance(value, bool):
        where.refuse(f'the field "{name}" has to be true or false.')
    return value


def _relevance(path: Path, queries: frozenset[str], entries: frozenset[str]) -> dict[str, dict[str, float]]:
    """Grades by question and entry. The first line is a header unless it grades a question that there is."""
    grades: dict[str, dict[str, float]] = {}
    for number, (where, line) in enumerate(_lines(path)):
        columns = [column.strip() for column in line.split("\t")]
        if number == 0 and columns[0] not in queries:
            if len(columns) >= 3 and _number(columns[2]) is not None:
                where.refuse(f"{QUERIES} has no question {columns[0]}.")
            continue
        if len(columns) < 3 or not columns[0] or not columns[1]:
            where.refuse("this needs query-id, corpus-id and score, parted by tabs.")
        if columns[0] not in queries:
            where.refuse(f"{QUERIES} has no question {columns[0]}.")
        if columns[1] not in entries:
            where.refuse(f"{CORPUS} has no entry {columns[1]}.")
        grade = _number(columns[2])
        if grade is None:
            where.refuse("the score has to be a number.")
        if not -_HIGHEST_GRADE <= grade <= _HIGHEST_GRADE:
            where.refuse(f"the score has to be at most {_HIGHEST_GRADE}.")
        # TREC marks spam with scores below 0.
        grades.setdefault(columns[0], {})[columns[1]] = max(grade, 0.0)
    return grades


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _require_unique(ids: list[str], path: Path) -> None:
    if not ids:
        message = f"{path}, line 1: there is nothing in it; it needs one JSON object a line."
        raise QuestionSetError(message)
    seen: set[str] = set()
    for identity in ids:
        if identity in seen:
            message = f'{path}: the "_id" {identity} is there twice; each has to be its own.'
            raise QuestionSetError(message)
        seen.add(identity)
