"""One turn from its beginning to its outcome: answered, run as a command, refused, taken up again, or failed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import stamina
import structlog

from bot.command_words import INGEST, command_of
from bot.commands import did_its_work
from bot.dispatcher.pauses import pause
from bot.dispatcher.posting import Posting
from bot.dispatcher.turn import Turn
from bot.errors import BotError, LeaseLostError, PlatformError
from bot.language import question_language
from bot.messages import Outcome, Standing
from bot.metrics import platform_label
from bot.phrases import phrase
from bot.results import JobReport, Told
from bot.telemetry import new_error_id
from retrieval.errors import RetrievalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.admission import Admission, Refusal
    from bot.commands import Commands
    from bot.dispatcher.answering import Answering
    from bot.messages import Message, TurnId
    from bot.ports import ChatPlatform, Reply
    from bot.turns import FallbackTurns, Lease, PendingTurn

_ATTEMPTS: Final = 3
"""How often a turn may be begun: one that ends its process each time must not end all of them."""
_ASK_SECONDS: Final = 20.0
"""How long the platform may take, each time, to say what stands already."""
_STANDING_SECONDS: Final = 60.0
"""How long we go on asking for that."""
_STANDING_ATTEMPTS: Final = 5
_log = structlog.get_logger(__name__)


class TurnRunner:
    """Runs the turns of all platforms."""

    def __init__(
        self,
        platforms: Mapping[str, ChatPlatform],
        *,
        turns: FallbackTurns,
        admission: Admission,
        answering: Answering,
        commands: Commands,
    ) -> None:
        """Use these; `turns` keeps what was composed."""
        self._platforms = platforms
        self._turns = turns
        self._admission = admission
        self._answering = answering
        self._commands = commands
        self._refusals: dict[TurnId, Refusal] = {}
        self._replies: dict[TurnId, Reply] = {}
        self._postings: dict[TurnId, Posting] = {}

    def refuse(self, turn_id: TurnId, refusal: Refusal) -> None:
        """Let the turn, when it comes, say this instead of an answer."""
        self._refusals[turn_id] = refusal

    def reply_in_line(self, message: Message) -> Posting:
        """The reply of a turn that waits; the same when it comes, if it comes to this process."""
        platform = self._platforms[message.platform]
        reply = self._replies.setdefault(message.turn_id, platform.reply(message, message.turn_id))
        return self._posting(platform, message, reply)

    def is_in_line(self, turn_id: TurnId) -> bool:
        """Whether the turn still waits, or came to another process."""
        return turn_id in self._replies

    def is_out(self, turn_id: TurnId) -> bool:
        """Whether the reply to a turn in hand has been posted, or is being posted."""
        posting = self._postings.get(turn_id)
        return posting is not None and posting.is_out

    def left_line(self, turn_id: TurnId) -> bool:
        """The turn does not wait any more; whether it never came to this process."""
        return self._replies.pop(turn_id, None) is not None

    async def stopped(self, pending: PendingTurn) -> None:
        """The asker stopped the turn: so does what it began."""
        if command_of(pending.message):
            await self._commands.stop(pending.id)

    async def run(self, platform_name: str, lease: Lease, pending: PendingTurn) -> Outcome:
        """Bring the turn to its outcome. Raises LeaseLostError, and nothing else but cancellation."""
        message = pending.message
        platform = self._platforms[platform_name]
        try:
            reply = self._replies.pop(pending.id, None) or platform.reply(message, pending.id)
        except Exception as error:  # noqa: BLE001 - there is no way to answer it, and others wait behind it
            _log.error("turn_without_reply", turn=pending.id, error_id=new_error_id(), exc_info=error)
            self._refusals.pop(pending.id, None)
            return Outcome.FAILED
        posting = self._postings[pending.id] = self._posting(platform, message, reply)

        async def keep(composed: str) -> bool:
            return await self._turns.keep(lease, pending.id, composed)

        turn = Turn(pending=pending, platform=platform, posting=posting, keep=keep, standing=Standing())
        try:
            if pending.attempts > 1:
                _log.info("turn_taken_up", platform=platform_label(platform.name), turn=pending.id)
                turn = replace(turn, standing=await self._taken_up(turn))
            return await self._say(turn)
        except LeaseLostError:
            raise
        except Exception as error:  # noqa: BLE001 - an answer that fails becomes a sentence
            return await self._failed(turn, error)
        finally:
            self._refusals.pop(pending.id, None)
            try:
                await posting.close()
            finally:
                del self._postings[pending.id]

    async def _say(self, turn: Turn) -> Outcome:
        """Answer a question, run a command, or refuse."""
        pending, message = turn.pending, turn.message
        if pending.withdrawn:
            return Outcome.WITHDRAWN
        # Taken over from another process, it is judged anew: what may not be answered stays refused.
        refusal = self._refusals.get(pending.id) or self._admission.refusal(message)
        if refusal is not None:
            if refusal.text and not turn.standing.answer:
                await turn.posting.say(refusal.text)
            return refusal.outcome
        command = command_of(message)
        # Jobs have a bound of their own, and outlive more processes than questions do.
        if pending.attempts > _ATTEMPTS and not turn.standing.answer and command != INGEST:
            error_id = new_error_id()
            _log.error("turn_given_up", turn=pending.id, platform=platform_label(message.platform), error_id=error_id)
            await turn.posting.say(await _told("gave_up", message, error_id))
            return Outcome.FAILED
        if not command:
            return await self._answering.run(turn)
        return Outcome.DONE if turn.standing.answer else await self._run_command(command, turn)

    async def _run_command(self, command: str, turn: Turn) -> Outcome:
        done = False
        try:
            async with aclosing(self._commands.run(command, turn.message, turn.pending.id)) as results:
                async for result in results:
                    if isinstance(result, JobReport) and not result.state.is_over:
                        await turn.posting.show_meanwhile(result)
                    else:
                        await turn.posting.show(result)
                        done = did_its_work(result)
        except PlatformError:
            raise
        except (BotError, RetrievalError) as error:
            error_id = new_error_id()
            _log.warning("command_failed", command=command, error_id=error_id, exc_info=error)
            await turn.posting.show(Told(text=f"{error} (error {error_id})", failed=True))
        return Outcome.DONE if done else Outcome.FAILED

    async def _failed(self, turn: Turn, error: Exception) -> Outcome:
        """Say that it failed, in a sentence with an error id; when not even that comes out, the log knows."""
        error_id = new_error_id()
        label = platform_label(turn.message.platform)
        _log.error("turn_failed", turn=turn.pending.id, platform=label, error_id=error_id, exc_info=error)
        # What failed may be the platform's word that the answer was posted.
        if not (await self._standing_or_none(turn) or Standing()).answer:
            text = await _told("failed", turn.message, error_id)
            try:
                await turn.posting.say(text)
            except Exception as again:  # noqa: BLE001 - nothing is left to try
                _log.error("failure_not_said", turn=turn.pending.id, error_id=error_id, exc_info=again)
            if not command_of(turn.message):
                await self._answering.record_failure(turn, text)
        return Outcome.FAILED

    async def _taken_up(self, turn: Turn) -> Standing:
        """What stands of a turn that was begun before. Raises PlatformError when that has to be known and is not."""
        standing = await self._standing_or_none(turn)
        if standing is not None:
            return standing
        if turn.pending.answer is not None:
            message = "The chat platform does not tell whether the answer was posted."
            raise PlatformError(message)
        return Standing()  # an answer is kept before it is posted

    async def _standing_or_none(self, turn: Turn) -> Standing | None:
        """Which posts of the turn stand, asked again and again for a time; None: the platform does not tell."""
        caller = stamina.AsyncRetryingCaller(
            attempts=_STANDING_ATTEMPTS, timeout=_STANDING_SECONDS, wait_initial=0.5, wait_max=10.0
        )
        try:
            return await caller(pause, self._standing, turn)
        except Exception as error:  # noqa: BLE001 - whatever a platform does here, the turn has to end
            _log.warning("standing_unknown", turn=turn.pending.id, exc_info=error)
            return None

    async def _standing(self, turn: Turn) -> Standing:
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                return await turn.platform.standing(turn.message, turn.pending.id)
        except TimeoutError as error:
            message = "The chat platform did not answer in time."
            raise PlatformError(message) from error

    def _posting(self, platform: ChatPlatform, message: Message, reply: Reply) -> Posting:
        async def standing() -> Standing:
            return await platform.standing(message, message.turn_id)

        return Posting(reply, platform.name, standing)


async def _told(name: str, message: Message, error_id: str) -> str:
    language = await asyncio.to_thread(question_language, message.text)
    return phrase(name, language, id=error_id)
