"""The terminal as a chat platform: questions and commands line by line, from a keyboard or a pipe."""

from adapters.terminal.chat import chat
from adapters.terminal.platform import TerminalPlatform

__all__ = ["TerminalPlatform", "chat"]
