"""The commands that every platform offers, each ending in a result that the platform shows in its own manner."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from bot.command_words import INGEST
from bot.jobs import JobRequest
from bot.messages import JobId, TurnId
from bot.results import (
    DocumentsForgotten,
    DocumentsListed,
    Feedback,
    HelpShown,
    JobReport,
    JobState,
    Opinion,
    Told,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from bot.conversations import Conversations
    from bot.history import History
    from bot.jobs import Jobs
    from bot.library import Library
    from bot.messages import Message
    from bot.results import CommandResult

_HISTORY: Final = 10
"""Entries that a platform lists at once."""


class Commands:
    """Runs commands for whoever may give them: everything is limited to what the author may see at that place."""

    def __init__(self, library: Library, jobs: Jobs, history: History, conversations: Conversations) -> None:
        """Use these."""
        self._library = library
        self._jobs = jobs
        self._history = history
        self._conversations = conversations
        self._plain: Final[dict[str, Callable[[Message], AsyncGenerator[CommandResult]]]] = {
            "help": self._help,
            "documents": self._documents,
            "forget": self._forget,
            "history": self._history_of,
            "new": self._new,
            "good": self._good,
            "bad": self._bad,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """All commands there are."""
        return (INGEST, *self._plain)

    async def run(self, name: str, message: Message, turn_id: TurnId) -> AsyncGenerator[CommandResult]:
        """What the command comes to; for long work how far it is, again and again. The last one is the result.

        Giving the same command of the same turn again, after a crash, goes on with it.
        """
        if name == INGEST:
            results = self._ingest(message, turn_id)
        elif name in self._plain:
            results = self._plain[name](message)
        else:
            yield Told(text=f"There is no command {name[:40]}; help lists them.", failed=True)
            return
        async for result in results:
            yield result

    async def stop(self, turn_id: TurnId) -> None:
        """End what a command of this turn began."""
        await self._jobs.cancel(JobId(turn_id))

    async def _help(self, _: Message) -> AsyncGenerator[CommandResult]:
        yield HelpShown()

    async def _documents(self, message: Message) -> AsyncGenerator[CommandResult]:
        yield DocumentsListed(documents=tuple(await self._library.documents(message.audience)))

    async def _forget(self, message: Message) -> AsyncGenerator[CommandResult]:
        key = message.text.strip()
        if not key:
            yield Told(text="Forget needs a title or an id, for example: forget Travel policy", failed=True)
            return
        forgotten = await self._library.forget(key, message.audience)
        yield DocumentsForgotten(key=key, removed=forgotten.removed, ambiguous=forgotten.ambiguous)

    async def _history_of(self, message: Message) -> AsyncGenerator[CommandResult]:
        yield await self._history.page(
            limit=_HISTORY, author=message.author.id, audience=message.audience, search=message.text.strip()
        )

    async def _new(self, message: Message) -> AsyncGenerator[CommandResult]:
        # By the platform's clock, as the other messages' times are.
        await self._conversations.forget(message.conversation, message.sent_at)
        yield Told(text="A new conversation: what was said before is forgotten.")

    async def _good(self, message: Message) -> AsyncGenerator[CommandResult]:
        yield await self._feedback(message, Opinion.GOOD)

    async def _bad(self, message: Message) -> AsyncGenerator[CommandResult]:
        yield await self._feedback(message, Opinion.BAD)

    async def _feedback(self, message: Message, opinion: Opinion) -> CommandResult:
        conversation = await self._conversations.load(message.conversation)
        if not conversation.turns:
            return Told(text="There is no answer yet that this could be about.", failed=True)
        feedback = Feedback(
            author=message.author, opinion=opinion, given_at=datetime.now(UTC), comment=message.text.strip()
        )
        if not await self._history.feedback(TurnId(conversation.turns[-1].id), feedback):
            return Told(text="That answer is no longer in the history.", failed=True)
        return Told(text="Thank you; that is noted beside the answer.")

    async def _ingest(self, message: Message, turn_id: TurnId) -> AsyncGenerator[CommandResult]:
        if not message.attachments:
            yield Told(text="Ingest needs a document: name a file, or attach one.", failed=True)
            return
        request = JobRequest(
            id=JobId(turn_id),
            platform=message.platform,
            attachments=message.attachments,
            audience=message.shown_to,
            asker=message.audience,
            by=message.author.id,
            by_name=message.author.name or message.author.id,
            asked_at=message.sent_at,
        )
        begun = await self._jobs.start(request)
        yield begun
        if begun.state.is_over:
            return  # taken up again after its end, or refused: said once
        async for report in self._jobs.watch(request.id):
            yield report


def did_its_work(result: CommandResult) -> bool:
    """Whether the last result of a command is a success."""
    match result:
        case Told(failed=failed):
            return not failed
        case DocumentsForgotten(removed=removed):
            return bool(removed)
        case JobReport(state=state):
            return state in {JobState.DONE, JobState.CANCELLED}
        case _:
            return True
