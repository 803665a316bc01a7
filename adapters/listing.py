"""Documents of the library as lines, rows and JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adapters.printing import safe_line

if TYPE_CHECKING:
    from retrieval.types import DocumentRecord


def document_line(record: DocumentRecord) -> str:
    """Title, size, age and id."""
    pages = f"{record.page_count} p., " if record.page_count is not None else ""
    chunks = "1 chunk" if record.chunk_count == 1 else f"{record.chunk_count} chunks"
    return f"{safe_line(record.title, 80)} ({pages}{chunks}, {age(record.ingested_at)}) {record.id}"


def document_row(record: DocumentRecord) -> tuple[str, ...]:
    """The columns of `footnote documents`."""
    return (
        safe_line(record.title),
        str(record.page_count) if record.page_count is not None else "–",
        str(record.chunk_count),
        record.language or "–",
        ", ".join(safe_line(scope) for scope in sorted(record.audience.scopes)),
        age(record.ingested_at),
        record.id,
    )


def document_dict(record: DocumentRecord) -> dict[str, Any]:
    """All that the library remembers, for `--json`."""
    return {
        "document": record.id,
        "title": record.title,
        "uri": record.uri,
        "media_type": record.media_type,
        "pages": record.page_count,
        "chunks": record.chunk_count,
        "language": record.language,
        "audience": sorted(record.audience.scopes),
        "ingested_at": record.ingested_at.isoformat(),
        "ingested_by": record.ingested_by,
        "notes": list(record.notes),
    }


def age(moment: datetime) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = max(0.0, (datetime.now(UTC) - moment).total_seconds())
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        number = int(seconds // size)
        if number:
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"
