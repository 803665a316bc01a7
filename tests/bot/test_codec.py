from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.codec import decode, encode
from bot.errors import MalformedStateError
from bot.messages import Attachment, Author, JobId, Message, MessageKind, Outcome, TurnId
from bot.results import Feedback, FileVerdict, HistoryEntry, JobProgress, JobReport, JobState, Opinion
from bot.types import Source, Timings, Turn, Usage
from retrieval.types import Audience, DocumentId, Scope
from retrieval.verdicts import Outcome as DocumentOutcome
from retrieval.verdicts import Step, Verdict

TEXTS = st.text()
NUMBERS = st.floats(0, 1e9)
TIMES = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone
AUDIENCES = st.builds(Audience, scopes=st.frozensets(st.builds(Scope, TEXTS), max_size=3))
AUTHORS = st.builds(Author, id=TEXTS, name=TEXTS, is_bot=st.booleans(), is_self=st.booleans())
DETAILS = st.dictionaries(TEXTS, TEXTS, max_size=3)
ATTACHMENTS = st.builds(Attachment, uri=TEXTS, name=TEXTS, size=st.none() | st.integers(0, 2**62), details=DETAILS)
SOURCES = st.builds(
    Source,
    marker=st.integers(1, 99),
    document_id=st.builds(DocumentId, TEXTS),
    title=TEXTS,
    uri=TEXTS,
    page=st.none() | st.integers(1, 9999),
    last_page=st.none() | st.integers(1, 9999),
    heading=TEXTS,
    excerpt=TEXTS,
    score=st.floats(allow_nan=False, allow_infinity=False),
)


def some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


KINDS: dict[type[Any], st.SearchStrategy[Any]] = {
    Message: st.builds(
        Message,
        platform=TEXTS,
        id=TEXTS,
        keys=some(TEXTS),
        conversation=TEXTS,
        workspace=TEXTS,
        channel=TEXTS,
        author=AUTHORS,
        text=TEXTS,
        sent_at=TIMES,
        audience=AUDIENCES,
        shown_to=st.none() | AUDIENCES,
        kind=st.sampled_from(MessageKind),
        command=TEXTS,
        attachments=some(ATTACHMENTS),
        reply_to=DETAILS,
    ),
    Turn: st.builds(Turn, question=TEXTS, reply=TEXTS, author=TEXTS, asked_at=TIMES, sources=some(SOURCES), id=TEXTS),
    HistoryEntry: st.builds(
        HistoryEntry,
        id=st.builds(TurnId, TEXTS),
        asked_at=TIMES,
        platform=TEXTS,
        author=AUTHORS,
        audience=AUDIENCES,
        question=TEXTS,
        reply=TEXTS,
        outcome=st.sampled_from(Outcome),
        sources=some(SOURCES),
        usage=st.builds(Usage, input_tokens=st.integers(0, 2**40), output_tokens=st.integers(0, 2**40)),
        timings=st.builds(Timings, search=NUMBERS, generate=NUMBERS, total=NUMBERS),
        feedback=some(
            st.builds(Feedback, author=AUTHORS, opinion=st.sampled_from(Opinion), given_at=TIMES, comment=TEXTS)
        ),
    ),
    JobReport: st.builds(
        JobReport,
        id=st.builds(JobId, TEXTS),
        state=st.sampled_from(JobState),
        progress=st.none()
        | st.builds(JobProgress, name=TEXTS, step=st.sampled_from(Step), done=st.integers(0), total=st.integers(0)),
        verdicts=some(
            st.builds(
                FileVerdict,
                name=TEXTS,
                verdict=st.builds(
                    Verdict,
                    outcome=st.sampled_from(DocumentOutcome),
                    uri=TEXTS,
                    title=TEXTS,
                    document_id=st.none() | st.builds(DocumentId, TEXTS),
                    seconds=NUMBERS,
                ),
                skipped=st.booleans(),
            )
        ),
        reason=TEXTS,
        attempts=st.integers(0, 99),
    ),
}
# Texts with halves of surrogate pairs.
HALVES = st.text(st.characters(categories=["Cs", "L"]), min_size=1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def turn(question: str) -> Turn:
    return Turn(question=question, reply="", author="Ada", asked_at=datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC))


@given(st.text())
def test_what_is_stored_comes_back_in_one_line(text: str) -> None:
    assert "\n" not in encode(turn(text))
    assert decode(Turn, encode(turn(text)).encode()) == turn(text)


def test_half_a_surrogate_pair_stops_nothing() -> None:
    assert decode(Turn, encode(turn("a\ud800b"))) == turn("a?b")


def test_unknown_fields_are_left_out() -> None:
    assert decode(Turn, encode(turn("q")).replace("{", '{"new": [1], ', 1)) == turn("q")


@pytest.mark.parametrize("data", [b"", b"\xff", b"null", b"[]", b'{"question": 1}', b"x" * 100_000, b"[" * 100_000])
def test_what_cannot_be_read_is_an_error_of_its_own(data: bytes) -> None:
    with pytest.raises(MalformedStateError):
        decode(Turn, data)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_every_kind_comes_back_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    value = data.draw(KINDS[kind])
    text = encode(value)
    assert "\n" not in text
    assert decode(kind, text) == decode(kind, text.encode()) == value


@given(HALVES)
def test_halves_of_pairs_become_question_marks(text: str) -> None:
    value = encode(turn(text))
    assert decode(Turn, value).question == text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_field_of_a_wrong_kind_is_malformed_or_read_as_one_of_the_right_kind(
    kind: type[Any], data: st.DataObject
) -> None:
    stored = json.loads(encode(data.draw(KINDS[kind])))
    name = data.draw(st.sampled_from(sorted(stored)))
    stored[name] = data.draw(JSON)
    try:
        value = decode(kind, json.dumps(stored))
    except MalformedStateError:
        return
    assert isinstance(value, kind)
    assert decode(kind, encode(value)) == value


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_required_field_that_is_missing_is_malformed(kind: type[Any], data: st.DataObject) -> None:
    stored = json.loads(encode(data.draw(KINDS[kind])))
    required = [
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    del stored[data.draw(st.sampled_from(required))]
    with pytest.raises(MalformedStateError):
        decode(kind, json.dumps(stored))


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_noise_is_malformed(noise: bytes) -> None:
    for kind in KINDS:
        with pytest.raises(MalformedStateError):
            decode(kind, noise)
