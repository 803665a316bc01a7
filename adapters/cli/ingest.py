"""`footnote ingest`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.circles import shown_to
from adapters.cli.progress import IngestionDisplay
from adapters.cli.running import ANSWERED, FAILED, Options
from adapters.ingesting import count_gone, first_file, ingest_paths, told_gone, verdict_dict
from adapters.printing import print_json, say, tell
from bot.app import open_app
from bot.wording import verdict_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.settings import Settings


async def ingest(settings: Settings, options: Options, paths: Sequence[str], circles: Sequence[str] | None) -> int:
    """Ingest, telling a verdict for each file. FAILED when one could not be ingested."""
    audience = shown_to(circles)
    with IngestionDisplay(results=not options.json) as display:
        async with open_app(settings, display.announce, to_ingest=lambda: first_file(paths, settings)) as app:
            verdicts = await ingest_paths(app, paths, audience, display)
            gone = await count_gone(app, paths)
    if options.json:
        print_json([verdict_dict(verdict) for verdict in verdicts])
    else:
        say(verdict_summary(verdicts))
    if gone:
        (tell if options.json else say)(told_gone(gone, "`footnote forget`"))
    return FAILED if any(verdict.failed for verdict in verdicts) else ANSWERED
