"""Entries of a corpus, a title and a text in JSON → `Document`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from retrieval.readers.assembly import assemble
from retrieval.readers.limits import ReadLimits
from retrieval.readers.text import read_text
from retrieval.types import SourceFile

if TYPE_CHECKING:
    from retrieval.types import Document


def entry_source(corpus: str, entry: str, title: str, text: str) -> SourceFile:
    """An entry as a source for `EntryReader`. Corpus and entry name it."""
    data = json.dumps({"title": title, "text": text}, ensure_ascii=False).encode("utf-8", errors="replace")
    return SourceFile(uri=entry_uri(corpus, entry), name=title or entry, data=data)


def entry_uri(corpus: str, entry: str) -> str:
    """The URI of an entry's document."""
    return f"corpus:{corpus}/{entry}"


class EntryReader:
    """A `Reader` of what `entry_source` makes. An entry's text is read as a plain text file with that title is."""

    async def read(self, source: SourceFile) -> Document:
        """Read an entry; its title is its text when it has no other. Raises ReadError."""
        return await asyncio.to_thread(_read, source)


def _read(source: SourceFile) -> Document:
    entry = json.loads(source.data)
    reading = read_text((entry["text"] or entry["title"]).encode("utf-8", errors="replace"))
    return assemble(source, replace(reading, title=entry["title"]), characters=ReadLimits().characters)
