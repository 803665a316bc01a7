"""Which command a message gives: by name, or by saying nothing but a word that is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bot.messages import Message

INGEST: Final = "ingest"
_WORDS: Final = {"help": "help", "documents": "documents", "history": "history"}
"""What counts as a command when it is all that is said to the bot."""


def command_of(message: Message) -> str:
    """The command that a message gives, without a slash; empty for a question."""
    if message.command:
        return message.command.casefold()
    said = message.text.strip().casefold()
    if said in _WORDS:
        return _WORDS[said]
    # “@footnote ingest this”, with files: the files are meant, whatever the rest says.
    return INGEST if message.attachments and said.partition(" ")[0] in {INGEST, ""} else ""
