"""What the bot needs from language models, the state and chat platforms. Contract suites: `tests/contracts/`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from bot.messages import Attachment, Message, Standing, ThreadMessage, TurnId
    from bot.results import CommandResult
    from bot.types import Abstention, Answer, Conversation, ModelStop, ModelText, Prompt, Source, Stage
    from retrieval.types import SourceFile


class LanguageModel(Protocol):
    """Writes an answer from numbered passages."""

    @property
    def name(self) -> str:
        """Shown beside the answer and kept in the history, e.g. `claude-sonnet-5-5` or `extractive`."""
        ...

    def generate(self, prompt: Prompt) -> AsyncGenerator[ModelText | ModelStop]:
        """Stream the answer; the last item is a ModelStop. Raises a LanguageModelError, also in mid-stream.

        Closing the generator lets go of the connection.

        A text of nothing but `NO_ANSWER` (see `bot.prompting`) means: the passages do not tell.
        """
        ...

    async def condense(self, conversation: Conversation, question: str) -> str:
        """Rewrite a follow-up as a question that stands alone, in the same language. Raises LanguageModelError."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


Value = str | bytes | int | float
"""What the state stores: text (UTF-8), bytes or a number. It comes back as bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A Lua script that the state runs in one step. In it, `NOW` is the state's own time in milliseconds.

    It uses only what both Redis 7 and the embedded state have: Lua 5.1 without cjson, and the commands that
    `bot.redis_scripting` lists. All keys have one tag.
    """

    name: str
    text: str


class State(Protocol):
    """Redis, or what does its work inside the process. Every call may raise a StateError and ends within its timeout.

    Keys are made with `key`: those of one tag lie together on a cluster and may be used in one script.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes see it as well."""
        ...

    def key(self, tag: str, *parts: str) -> str:
        """The key of this deployment with the hash tag `tag`; any characters may stand in both."""
        ...

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[Value] = ()) -> Any:  # noqa: ANN401 - what the script returns
        """Run a script. Integers come back as int, text as bytes, nil and false as None, tables as lists."""
        ...

    async def get(self, key: str) -> bytes | None:
        """A value."""
        ...

    async def set(self, key: str, value: Value, *, seconds: float | None = None) -> None:
        """Store a value, for so long; for good when None."""
        ...

    async def delete(self, *keys: str) -> int:
        """Remove values of one tag; how many were there."""
        ...

    async def expire(self, key: str, seconds: float) -> None:
        """Keep a value for so long from now."""
        ...

    async def hset(self, key: str, fields: Mapping[str, Value]) -> None:
        """Set fields of a hash."""
        ...

    async def hgetall(self, key: str) -> dict[bytes, bytes]:
        """All fields of a hash; empty when there is none."""
        ...

    async def hdel(self, key: str, *fields: str) -> int:
        """Remove fields of a hash; how many were there."""
        ...

    async def lrange(self, key: str, start: int, stop: int) -> list[bytes]:
        """Elements of a list, both ends included, negative ones counted from the end."""
        ...

    async def zadd(self, key: str, scores: Mapping[str, float]) -> None:
        """Add members to a sorted set, or change their scores."""
        ...

    async def zrem(self, key: str, *members: str) -> int:
        """Remove members of a sorted set; how many were there."""
        ...

    async def zrange(self, key: str, start: int, stop: int) -> list[bytes]:
        """Members by ascending score, by rank, both ends included; `zrange(key, -10, -1)` are the ten highest."""
        ...

    async def zcard(self, key: str) -> int:
        """How many members a sorted set has."""
        ...

    async def close(self) -> None:
        """Write what is pending and let go of the connection."""
        ...


class Reply(Protocol):
    """What goes out for one turn. All posts carry the turn's id where the platform can hold it.

    `progress`, `waiting`, `write` and `rewrite` are decorations: the caller goes on without them when they fail. The
    others raise PlatformError when, after the platform's own retries, nothing was posted.
    """

    async def progress(self, stage: Stage) -> None:
        """Show what is being done."""
        ...

    async def waiting(self, position: int) -> None:
        """Show that earlier questions of the thread are answered first; 2 is the second in line."""
        ...

    async def write(self, text: str) -> None:
        """Append a piece to the answer that is being streamed. A platform that cannot stream shows nothing."""
        ...

    async def rewrite(self) -> None:
        """Take back what was streamed; the answer begins anew."""
        ...

    async def answer(self, answer: Answer) -> None:
        """Bring the answer to its final form, in place of what was streamed or as a post; nothing received is lost."""
        ...

    async def sources(self, sources: Sequence[Source]) -> None:
        """Attach the sources below the answer, as replies in its thread."""
        ...

    async def abstain(self, abstention: Abstention) -> None:
        """Say that there is no answer, in place of what was streamed, if anything."""
        ...

    async def say(self, text: str) -> None:
        """Say a sentence in place of an answer: a failure, a limit, a refusal."""
        ...

    async def show(self, result: CommandResult) -> None:
        """Show what a command came to, or how far it is; a later result of the same command takes its place."""
        ...

    async def close(self) -> None:
        """The turn is over, however it ended: take away signs of progress. Never raises."""
        ...


class ChatPlatform(Protocol):
    """Where messages come from and answers go to."""

    @property
    def name(self) -> str:
        """The same as `Message.platform`. Processes with platforms of one name can answer for each other."""
        ...

    def reply(self, message: Message, turn_id: TurnId) -> Reply:
        """What the turn's posts go through. Sends nothing yet. Serves also a message that another process received."""
        ...

    async def standing(self, message: Message, turn_id: TurnId) -> Standing:
        """Which posts of a turn stand already; asked when a turn was begun before. Raises PlatformError."""
        ...

    async def thread(self, message: Message, limit: int) -> Sequence[ThreadMessage]:
        """The thread's latest messages before this one, oldest first, at most so many. Raises PlatformError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Something to ingest that could not be fetched, and why. `skipped`: nobody named it, so it is no failure."""

    uri: str
    name: str
    reason: str
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A document's bytes. `named`: the user named it, so that being unable to read it is a failure."""

    source: SourceFile
    named: bool = True


class Fetcher(Protocol):
    """Brings the bytes of attachments, in whatever process a job runs."""

    def fetch(self, attachments: Sequence[Attachment], limit: int) -> AsyncIterator[Fetched | Unread]:
        """What the attachments stand for, one by one, in a stable order. Never more than `limit` bytes of each.

        Raises PlatformError when it should be tried again later; what will not get better is Unread.
        """
        ...
