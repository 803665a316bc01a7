"""`footnote run`: what there is to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.printing import safe_line, tell
from adapters.terminal import chat

if TYPE_CHECKING:
    from pathlib import Path

    from bot.settings import Settings


def start(settings: Settings, first_library: Path | None, *, as_json: bool) -> int:
    """Say which platforms could be started, and open the terminal chat."""
    tokens = [
        variable
        for variable, token in (
            ("SLACK_BOT_TOKEN", settings.slack_bot_token),
            ("DISCORD_TOKEN", settings.discord_token),
        )
        if token is not None
    ]
    if tokens:
        tell(
            f"{' and '.join(tokens)} {'is' if len(tokens) == 1 else 'are'} set, but this version has no Slack or "
            "Discord adapter yet; opening the terminal chat."
        )
    else:
        tell(
            "No chat tokens are set (SLACK_BOT_TOKEN and SLACK_APP_TOKEN, or DISCORD_TOKEN); opening the terminal chat."
        )
    if first_library is not None and not first_library.is_dir():
        tell(f"The folder for the first library, {safe_line(str(first_library))}, is not there; going on without it.")
        first_library = None
    return chat(settings, [], as_json=as_json, first_library=first_library)
