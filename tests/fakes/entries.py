"""Entries of the history."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.messages import Author, Outcome, TurnId
from bot.results import Feedback, HistoryEntry, Opinion
from bot.types import Source, Timings, Usage
from retrieval.types import Audience, DocumentId

ALICE = Author(id="slack:T1:U1", name="Alice")
BOB = Author(id="slack:T1:U2", name="Bob")
NOW = datetime.now(UTC)


def entry(name: str = "1", *, minutes: float = 0, scopes: tuple[str, ...] = (), **more: Any) -> HistoryEntry:
    """An answered question that was asked so many minutes ago."""
    made = HistoryEntry(
        id=TurnId(hashlib.sha256(name.encode()).hexdigest()[:16]),
        asked_at=NOW - timedelta(minutes=minutes),
        platform="slack",
        workspace="T1",
        channel="C1",
        conversation="slack:T1:C1:1",
        author=ALICE,
        audience=Audience.asker(*scopes),
        question=f"Question {name}?",
        reply=f"Answer {name} [1].",
        outcome=Outcome.ANSWERED,
        sources=(source(),),
        model="extractive",
        usage=Usage(input_tokens=10, output_tokens=3),
        timings=Timings(search=0.25, generate=0.5, total=0.75),
        notice="No language model.",
    )
    return replace(made, **more)


def source(**more: Any) -> Source:
    made = Source(
        marker=1,
        document_id=DocumentId("d"),
        title="Handbook",
        uri="file:///handbook.pdf",
        page=3,
        last_page=3,
        heading="Leave",
        excerpt="Everybody has thirty days of leave.",
        score=1.0,
    )
    return replace(made, **more)


def opinion(author: Author = BOB, *, good: bool = True, comment: str = "") -> Feedback:
    return Feedback(author=author, opinion=Opinion.GOOD if good else Opinion.BAD, given_at=NOW, comment=comment)
