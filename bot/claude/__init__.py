"""The language model port on the anthropic SDK. It loads the SDK, so only the composition root imports it, late."""

from bot.claude.client import CitationMode, Claude
from bot.claude.faults import KEY_SETTING, MODEL_SETTING, URL_SETTING

__all__ = ["KEY_SETTING", "MODEL_SETTING", "URL_SETTING", "CitationMode", "Claude"]
