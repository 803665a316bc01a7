"""One streamed message: how long to wait for it, and what its events say."""

from __future__ import annotations

import asyncio
import re
import time
import unicodedata
from typing import TYPE_CHECKING, TypeVar

from anthropic.types import TextBlock

from bot.claude import faults
from bot.types import ModelStop, StopReason, Usage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from anthropic.types import MessageDeltaUsage, RawMessageStreamEvent
    from anthropic.types import Usage as MessageUsage

T = TypeVar("T")


class Patience:
    """Bounds the waiting: each wait, and all of them together. Time that the reader of the stream takes is free."""

    def __init__(self, *, total: float, stall: float) -> None:
        self._left = total
        self._stall = stall

    async def wait(self, awaitable: Awaitable[T], *, first: bool = False) -> T:
        """The first wait covers reading the prompt, which is slow on small machines: only the total bounds it."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._left if first else min(self._left, self._stall)):
                return await awaitable
        finally:
            self._left -= time.monotonic() - began


class AnswerReader:
    """Reads the events of one streamed message; puts the markers of native citations behind the text they belong to."""

    def __init__(self) -> None:
        self._written = ""
        self._held = ""  # blanks and pipes at the end, which a marker goes in front of: `| cell [1] |`
        self._cited: list[int] = []
        self._input_tokens = 0
        self._output_tokens = 0
        self._reason: str | None = None

    def read(self, event: RawMessageStreamEvent) -> str:
        """Take an event; return the text that it brings."""
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start" if isinstance(event.content_block, TextBlock):
                return self._add(event.content_block.text or "")
            case "content_block_delta" if event.delta.type == "text_delta":
                return self._add(event.delta.text)
            case "content_block_delta" if event.delta.type == "citations_delta":
                citation = event.delta.citation
                if citation.type == "search_result_location" and citation.search_result_index not in self._cited:
                    self._cited.append(citation.search_result_index)
            case "content_block_stop":
                return self._end_of_block(last=False)
            case "message_delta":
                self._reason = event.delta.stop_reason or self._reason
                self._count(event.usage)
            case _:
                pass
        return ""

    def rest(self) -> str:
        """What is left at the end of the stream."""
        return self._end_of_block(last=True)

    def stop(self) -> ModelStop:
        """How it ended. Raises LanguageModelError when that was not the end of an answer."""
        match self._reason:
            case None:
                raise faults.cut_off()
            case "refusal":
                raise faults.refused()
            case "model_context_window_exceeded":
                raise faults.too_long()
            case "max_tokens":
                reason = StopReason.MAX_TOKENS
            case _:
                reason = StopReason.DONE
        return ModelStop(reason=reason, usage=Usage(input_tokens=self._input_tokens, output_tokens=self._output_tokens))

    def _count(self, usage: MessageUsage | MessageDeltaUsage | None) -> None:
        """Counts are cumulative; servers that merely speak the API leave some out."""
        if usage is None:
            return
        read = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
        self._input_tokens = max(self._input_tokens, sum(count or 0 for count in read))
        self._output_tokens = max(self._output_tokens, usage.output_tokens or 0)

    def _add(self, piece: str) -> str:
        text = self._held + piece
        kept = text.rstrip(" \t\n|")
        self._held = text[len(kept) :]
        self._written += kept
        return kept

    def _end_of_block(self, *, last: bool) -> str:
        markers = ""
        fences = re.findall(r"^[ \t>]*(?:```|~~~)", self._written, re.MULTILINE) if self._cited else []
        # Inside a code fence a marker would be code: it waits for the fence's end.
        if self._cited and (last or len(fences) % 2 == 0):
            markers = self._gap() + "".join(f"[{index + 1}]" for index in self._cited)
            self._cited.clear()
        text, self._held = f"{markers}{self._held}", ""
        self._written += text
        return text

    def _gap(self) -> str:
        """What stands between the text and a marker: nothing in scripts without blanks, a new line behind a fence."""
        end = self._written[-1:]
        if re.fullmatch(r"[ \t>]*(?:`{3,}|~{3,})", self._written.rpartition("\n")[2]):
            return "\n"
        return "" if not end or end.isspace() or unicodedata.east_asian_width(end) in "WF" else " "
