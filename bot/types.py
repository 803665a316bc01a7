"""The nouns of answering: Message → Question → Answer | Abstention, told as a stream of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - `bot.codec` reads the annotations of what is stored
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NewType

from retrieval.types import DocumentId  # noqa: TC001 - as above

if TYPE_CHECKING:
    from retrieval.types import Audience, Hit

ErrorId = NewType("ErrorId", str)
"""Eight characters that a user can quote and an operator can find in the log."""


class AbstentionReason(StrEnum):
    """Why there is no answer."""

    EMPTY_LIBRARY = "empty_library"
    """Nothing has been ingested that this asker may see."""
    NO_EVIDENCE = "no_evidence"
    """The gate found that the passages cannot answer the question."""
    MODEL_ABSTAINED = "model_abstained"
    """The language model read the passages and said that they do not tell."""
    NOT_A_QUESTION = "not_a_question"
    """Nothing to search for (only punctuation, for example)."""


EXTRACTIVE: Final = "extractive"
"""The name of the language model that is none: it quotes the documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One numbered source under an answer. `marker` counts from 1 without holes."""

    marker: int
    document_id: DocumentId
    title: str
    uri: str
    page: int | None
    last_page: int | None
    heading: str
    """The heading path, ` > ` between its parts; empty when there is none."""
    excerpt: str
    """The passage that was cited, as it stands in the document."""
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that the language model read and wrote; 0 for models that count none."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Seconds spent on each step."""

    search: float = 0.0
    generate: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer in Markdown with markers `[n]`, and the sources that they name. Small talk has no sources."""

    text: str
    sources: tuple[Source, ...]
    model: str
    usage: Usage
    timings: Timings
    notice: str = ""
    """One sentence about how the answer came about (no language model configured, answer cut off …), or empty."""
    dropped_markers: int = 0
    """Markers in the model's text that named no source and were taken out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstention:
    """No answer, and why. `text` is the sentence for the user, in the question's language; there are no sources."""

    reason: AbstentionReason
    text: str
    timings: Timings


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question and what came of it."""

    question: str
    reply: str
    author: str
    asked_at: datetime
    sources: tuple[Source, ...] = ()
    id: str = ""
    """The turn's id (`bot.messages.TurnId`); empty where nobody asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What somebody said in the thread that was not addressed to Footnote. Material, never an order."""

    author: str
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The turns of one thread and what others said there, both oldest first."""

    id: str
    turns: tuple[Turn, ...] = ()
    remarks: tuple[Remark, ...] = ()
    since: datetime | None = None
    """When it was begun anew: what was said before is to be forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the engine is asked. `audience` has no default: who asks decides what can be found."""

    text: str
    audience: Audience
    conversation: Conversation = field(default_factory=lambda: Conversation(id=""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a language model gets: the question (standalone), the hits numbered from 1 in this order, the thread."""

    question: str
    hits: tuple[Hit, ...]
    turns: tuple[Turn, ...]
    language: str
    """ISO 639-1 code of the language to answer in."""
    remarks: tuple[Remark, ...] = ()


# ---- what a language model yields -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelText:
    """A piece of the model's text. Citations are markers `[n]`, n being the hit's number in the prompt."""

    text: str


class StopReason(StrEnum):
    """Why a model stopped."""

    DONE = "done"
    MAX_TOKENS = "max_tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStop:
    """The last thing a model yields."""

    reason: StopReason
    usage: Usage


# ---- what the engine yields -------------------------------------------------------------------------------------


class Stage(StrEnum):
    """What the engine is doing."""

    READING_THREAD = "reading_thread"
    SEARCHING = "searching"
    WRITING = "writing"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChanged:
    """The engine has begun a stage."""

    stage: Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """The next piece of the answer, markers already renumbered from 1. A marker is never split over two deltas."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReset:
    """What was streamed so far is void: the answer is written anew (a model failed and another took over)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The end: an answer."""

    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstained:
    """The end: no answer, for a reason."""

    abstention: Abstention


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The end: something broke. `text` is a sentence for the user that contains the error id."""

    text: str
    error_id: ErrorId


AnswerEvent = StatusChanged | TextDelta | TextReset | Answered | Abstained | Failed
"""In this order: status and text events, then exactly one of Answered, Abstained, Failed."""
