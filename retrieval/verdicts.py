"""How an ingestion goes and what came of each document: progress, then one verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from retrieval.types import DocumentId  # noqa: TC001 - verdicts are stored; whoever does reads the annotations


class Outcome(StrEnum):
    """What became of a document."""

    INDEXED = "indexed"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    PARTLY = "partly"
    """Indexed, with pages left out; the reason names them."""
    REFUSED = "refused"
    """It cannot be read as it is; the reason says what to do."""
    FAILED = "failed"
    """Something broke on our side; the reason says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The end of one document's ingestion."""

    outcome: Outcome
    uri: str
    title: str
    reason: str = ""
    """A sentence: why, and what to do; empty when there is nothing to say."""
    document_id: DocumentId | None = None
    pages: int | None = None
    chunks: int = 0
    language: str | None = None
    seconds: float = 0.0
    unsupported: bool = False
    """Refused because there is no reader for such bytes."""

    @property
    def in_library(self) -> bool:
        """Whether the document can be found now."""
        return self.outcome not in {Outcome.REFUSED, Outcome.FAILED}


class Step(StrEnum):
    """What an ingestion is doing."""

    READING = "reading"
    CHUNKING = "chunking"
    EMBEDDING = "embedding"
    STORING = "storing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a document is: `done` of `total` chunks while embedding, else 0 of 0."""

    step: Step
    done: int = 0
    total: int = 0
    pages: int | None = None
