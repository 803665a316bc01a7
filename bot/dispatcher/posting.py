"""A reply seen from a turn: decorations never stop it, what must come out is insisted on, and every call ends."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar

import stamina
import structlog

from bot.dispatcher.pauses import pause
from bot.errors import PlatformBusyError, PlatformError
from bot.metrics import DECORATIONS_FAILED, platform_label

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from typing import Any

    from bot.messages import Standing
    from bot.ports import Reply
    from bot.results import CommandResult
    from bot.types import Abstention, Answer, Source, Stage

T = TypeVar("T")

_DECORATION_SECONDS: Final = 5.0
"""How long a sign of progress may hold up the answer."""
_POST_SECONDS: Final = 60.0
"""How long one attempt to post may take, the platform's own retries included."""
_INSIST_SECONDS: Final = 120.0
"""How long we go on trying to post."""
_INSIST_ATTEMPTS: Final = 5
_log = structlog.get_logger(__name__)


class Posting:
    """The posts of one turn."""

    def __init__(self, reply: Reply, platform: str, standing: Callable[[], Awaitable[Standing]]) -> None:
        """Guard this reply; `platform` is named in the log and the metrics, `standing` asks it what was posted."""
        self._reply = reply
        self._platform = platform
        self._standing = standing
        self._streaming = True
        self._stream_seconds = float("inf")
        self.is_out = False
        """The reply has been posted, or is being posted: it cannot be stopped any more."""

    # ---- decorations --------------------------------------------------------------------------------------------

    async def progress(self, stage: Stage) -> None:
        """Show a stage, if the platform can."""
        await self._decorate(self._reply.progress(stage))

    async def waiting(self, position: int) -> None:
        """Show the place in line, if the platform can."""
        await self._decorate(self._reply.waiting(position))

    async def write(self, text: str) -> None:
        """Stream a piece. After a failure nothing more is streamed: the whole answer is posted at the end."""
        if self._streaming:
            begun = time.monotonic()
            worked = await self._decorate(self._reply.write(text))
            self._stream_seconds -= time.monotonic() - begun
            self._streaming = worked and self._stream_seconds > 0

    def stream_for(self, seconds: float) -> None:
        """Let streaming hold up the answer for so long in all; then nothing more is streamed."""
        self._stream_seconds = seconds

    async def rewrite(self) -> None:
        """Take back what was streamed."""
        await self._decorate(self._reply.rewrite())

    async def show_meanwhile(self, result: CommandResult) -> None:
        """Show how far a command is, if the platform can."""
        await self._decorate(self._reply.show(result))

    async def close(self) -> None:
        """Take away signs of progress."""
        await self._decorate(self._reply.close())

    # ---- what must come out -------------------------------------------------------------------------------------

    async def answer(self, answer: Answer) -> None:
        """Post the answer. Raises PlatformError."""
        self.is_out = True
        await self._insist(lambda: self._reply.answer(answer), lambda posted: posted.answer)

    async def sources(self, sources: Sequence[Source]) -> None:
        """Post the sources. Raises PlatformError."""
        await self._insist(lambda: self._reply.sources(sources), lambda posted: posted.sources)

    async def abstain(self, abstention: Abstention) -> None:
        """Post why there is no answer. Raises PlatformError."""
        self.is_out = True
        await self._insist(lambda: self._reply.abstain(abstention), lambda posted: posted.answer)

    async def say(self, text: str) -> None:
        """Post a sentence. Raises PlatformError."""
        await self._insist(lambda: self._reply.say(text), lambda posted: posted.answer)

    async def show(self, result: CommandResult) -> None:
        """Post what a command came to. Raises PlatformError."""
        await self._insist(lambda: self._reply.show(result), lambda posted: posted.answer)

    async def _decorate(self, call: Coroutine[Any, Any, None]) -> bool:
        """Whether it worked."""
        try:
            async with asyncio.timeout(_DECORATION_SECONDS):
                await call
        except Exception as error:  # noqa: BLE001 - whatever a platform does here, the answer goes on
            DECORATIONS_FAILED.labels(platform_label(self._platform)).inc()
            _log.warning("decoration_failed", platform=self._platform, exc_info=error)
            return False
        return True

    async def _insist(self, call: Callable[[], Awaitable[None]], stands: Callable[[Standing], bool]) -> None:
        """Try until it is posted. What may have been posted unseen (a timeout, a cut connection) is asked for first."""
        try:
            await _in_time(call)
        except PlatformError as error:
            if not pause(error):
                raise
            await self._again(call, stands, error)

    async def _again(
        self, call: Callable[[], Awaitable[None]], stands: Callable[[Standing], bool], error: PlatformError
    ) -> None:
        """The further tries, with pauses before them."""
        is_first = True
        unsure = not isinstance(error, PlatformBusyError)
        async for attempt in stamina.retry_context(
            on=pause, attempts=_INSIST_ATTEMPTS, timeout=_INSIST_SECONDS, wait_initial=0.5, wait_max=20.0
        ):
            with attempt:
                if is_first:
                    is_first = False
                    raise error  # it was the first try; now comes a pause
                if unsure and stands(await _in_time(self._standing)):
                    return
                try:
                    await _in_time(call)
                except PlatformError as again:
                    unsure = unsure or not isinstance(again, PlatformBusyError)
                    raise


async def _in_time(call: Callable[[], Awaitable[T]]) -> T:
    try:
        async with asyncio.timeout(_POST_SECONDS):
            return await call()
    except TimeoutError as error:
        message = "The chat platform did not answer in time."
        raise PlatformError(message) from error
