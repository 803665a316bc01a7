"""Hits and prompts for tests that need no store."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from bot.types import Conversation, Prompt, Remark, Turn
from retrieval.types import PUBLIC, Chunk, ChunkId, ChunkKind, DocumentId, Hit, VersionId


def chunk(text: str, *, title: str = "Handbook", page: int | None = 1, ordinal: int = 0, **fields: object) -> Chunk:
    values: dict[str, object] = {
        "id": ChunkId(str(uuid.uuid4())),
        "document_id": DocumentId(str(uuid.uuid5(uuid.NAMESPACE_URL, title))),
        "version": VersionId(str(uuid.uuid4())),
        "ordinal": ordinal,
        "kind": ChunkKind.PROSE,
        "text": text,
        "title": title,
        "uri": "file:///handbook.md",
        "heading_path": (),
        "page": page,
        "last_page": page,
        "start": 0,
        "end": len(text),
        "tokens": len(text.split()),
        "audience": PUBLIC,
    }
    return Chunk(**(values | fields))  # type: ignore[arg-type]  # a test may break a field


def hit(text: str, *, neighbours: tuple[Chunk, ...] = (), **fields: object) -> Hit:
    return Hit(
        chunk=chunk(text, **fields),  # type: ignore[arg-type]  # the same
        score=1.0,
        cosine=0.9,
        bm25=5.0,
        dense_rank=1,
        bm25_rank=1,
        neighbours=neighbours,
    )


def prompt(
    question: str,
    *hits: Hit,
    turns: tuple[Turn, ...] = (),
    remarks: tuple[Remark, ...] = (),
    language: str = "en",
) -> Prompt:
    return Prompt(question=question, hits=hits, turns=turns, remarks=remarks, language=language)


def turn(question: str, reply: str, *, minute: int = 0) -> Turn:
    return Turn(question=question, reply=reply, author="Ada", asked_at=datetime(2026, 1, 1, 0, minute, tzinfo=UTC))


def remark(text: str, *, author: str = "Bob", minute: int = 0) -> Remark:
    return Remark(author=author, text=text, said_at=datetime(2026, 1, 1, 0, minute, tzinfo=UTC))


def conversation(*turns: Turn, remarks: tuple[Remark, ...] = ()) -> Conversation:
    return Conversation(id="thread", turns=turns, remarks=remarks)
