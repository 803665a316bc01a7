"""What a language model is told, and how its text is read."""

from bot.prompting.citations import NO_ANSWER, CitationReader, CitationResult, Passage, Style, harmless, unclosed_fence
from bot.prompting.composing import SYSTEM, ComposedPrompt, PromptLimits, compose, compose_condensing

__all__ = [
    "NO_ANSWER",
    "SYSTEM",
    "CitationReader",
    "CitationResult",
    "ComposedPrompt",
    "Passage",
    "PromptLimits",
    "Style",
    "compose",
    "compose_condensing",
    "harmless",
    "unclosed_fence",
]
