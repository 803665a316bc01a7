"""The history: what was asked, what came of it, and what people thought of it."""

from bot.history.history import History

__all__ = ["History"]
