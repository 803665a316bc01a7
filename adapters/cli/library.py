"""`footnote documents` and `footnote forget`. No model is loaded for these."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from adapters.circles import asked_by
from adapters.cli.running import ANSWERED, FAILED, USAGE, CommandError, Options
from adapters.listing import document_dict, document_line, document_row
from adapters.printing import console, print_json, safe_line, say, tell, typed
from bot.app import open_library
from bot.library import Forgotten
from retrieval.errors import StoreAbsentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.settings import Settings
    from retrieval.types import DocumentRecord

_COLUMNS = ("Title", "Pages", "Chunks", "Language", "Audience", "Ingested", "Id")
_WHICH = "Several documents could be meant; nothing was done. Name one by its id:"
_THIS = "Only a part of this title matches; nothing was done. Name it in full, or by its id:"


async def documents(settings: Settings, options: Options, circles: Sequence[str]) -> int:
    """List what the library holds: everything, or what these circles may see."""
    records: list[DocumentRecord] = []
    with suppress(StoreAbsentError):
        async with open_library(settings) as library:
            records = await library.documents(asked_by(circles) if circles else None)
    if options.json:
        print_json([document_dict(record) for record in records])
    elif records:
        _print_table(records)
    elif circles:
        say("The library holds nothing that this circle may see.")
    else:
        say("The library is empty. Take something in with: footnote ingest PATH")
    return ANSWERED


async def forget(settings: Settings, options: Options, key: str) -> int:
    """Take one document out; USAGE when several could be meant, FAILED when there is none."""
    if not typed(key).strip():
        message = "The name is empty. Name a document, for example: footnote forget 'Travel policy'"
        raise CommandError(message, USAGE)
    forgotten = Forgotten()
    with suppress(StoreAbsentError):
        async with open_library(settings) as library:
            forgotten = await library.forget(typed(key), None)
    error = _why_not(key, forgotten)
    if options.json:
        result = {
            "forgotten": [document_dict(record) for record in forgotten.removed],
            "candidates": [document_dict(record) for record in forgotten.ambiguous],
        }
        print_json(result | ({"error": error, "error_id": None} if error else {}))
        return _code(forgotten.removed, forgotten.ambiguous)
    for record in forgotten.removed:
        say(f"Forgotten: {document_line(record)}")
    if error:
        tell(error)
    for record in forgotten.ambiguous:
        tell(f"  {document_line(record)}")
    return _code(forgotten.removed, forgotten.ambiguous)


def _why_not(key: str, forgotten: Forgotten) -> str:
    """Why nothing was done; empty when something was."""
    if forgotten.ambiguous:
        return _WHICH if len(forgotten.ambiguous) > 1 else _THIS
    if forgotten.removed:
        return ""
    return f"There is no document called {safe_line(key, 100)}. `footnote documents` lists what is there."


def _code(removed: Sequence[DocumentRecord], ambiguous: Sequence[DocumentRecord]) -> int:
    if ambiguous:
        return USAGE
    return ANSWERED if removed else FAILED


def _print_table(records: Sequence[DocumentRecord]) -> None:
    out = console()
    if not out.is_terminal:
        # For other programs: a line a document, tabs between the columns.
        for record in records:
            say("\t".join(document_row(record)))
        return
    from rich.table import Table  # noqa: PLC0415 - only for a terminal
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        table.add_column(column, overflow="fold", justify="right" if column in {"Pages", "Chunks"} else "left")
    for record in records:
        table.add_row(*map(Text, document_row(record)))
    out.print(table)
