"""Who may ask, where, how much and how often.

`refusal` judges a message by itself; `limit` counts it against sliding windows of a minute:

* Questions count, and so do the commands that make work or read the library: ingest, documents, forget, history. Help,
  a new conversation and opinions about answers do not, and are never limited.
* Each person has a window, and each channel. A message that is limited counts against none of them, so that who waits
  as long as was told gets an answer. A message that is delivered again counts once.
* Bots are answered when they are allowed, and then only so often in one thread and hour; whatever they say counts. They
  are never told why they get no answer: two bots that answer each other's refusals would never end.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import structlog

from bot.command_words import command_of
from bot.errors import StateUnavailableError
from bot.language import question_language
from bot.messages import MessageKind, Outcome
from bot.phrases import phrase
from bot.ports import Script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.messages import Author, Message
    from bot.ports import State
    from bot.settings import Settings

USER_QUESTIONS: Final = 12
CHANNEL_QUESTIONS: Final = 60
"""In a minute, where the settings say nothing."""
_FREE: Final = frozenset({"help", "new", "good", "bad"})
"""Commands that are not counted."""
_SAMPLE: Final = 1_000
"""Characters that tell the language of a message."""
_log = structlog.get_logger(__name__)

_COUNT: Final = Script(
    name="admission_count",
    text="""
local worst, count, wait = 0, 0, 0
for i, key in ipairs(KEYS) do
  local window, most = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', NOW - window)
  -- The server's clock was set back: what lies ahead would count for as long as that.
  redis.call('ZREMRANGEBYSCORE', key, NOW + window, '+inf')
  local there = redis.call('ZCARD', key)
  if there >= most and not redis.call('ZSCORE', key, ARGV[1]) then
    local place = there - most
    local leaves = redis.call('ZRANGE', key, place, place)[1]
    local left = tonumber(redis.call('ZSCORE', key, leaves)) + window - NOW
    if left > wait then worst, count, wait = i, there, left end
  end
end
if worst > 0 then return {worst, count, math.ceil(wait)} end
for i, key in ipairs(KEYS) do
  if not redis.call('ZSCORE', key, ARGV[1]) then redis.call('ZADD', key, NOW, ARGV[1]) end
  redis.call('PEXPIRE', key, ARGV[2 * i])
end
return {0, 0, 0}
""",
)
"""ARGV: member; of each key the window in ms and how many fit into it. Counts the member in all windows or in none.

Returns the number of the fullest window (from 1; 0: counted), how many are in it, and ms until the next one fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a message gets no answer. `text` is what its author is told; empty: nothing."""

    outcome: Outcome
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is allowed. Empty sets allow everything, but `bots`, which then allows none; None is no limit."""

    characters: int
    """Of a question."""
    user_questions: int | None
    channel_questions: int | None
    bot_turns: int
    workspaces: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    bots: frozenset[str] = frozenset()
    window_seconds: float = 60.0
    bot_window_seconds: float = 3_600.0

    @classmethod
    def of(cls, settings: Settings, *, unlimited: bool) -> Self:
        """What the settings say. `unlimited`: no windows unless they are set; for the terminal."""
        return cls(
            characters=settings.max_question_characters,
            user_questions=settings.user_questions or (None if unlimited else USER_QUESTIONS),
            channel_questions=settings.channel_questions or (None if unlimited else CHANNEL_QUESTIONS),
            bot_turns=settings.bot_turns,
            workspaces=frozenset(settings.allowed_workspaces),
            channels=frozenset(settings.allowed_channels),
            users=frozenset(settings.allowed_users),
            bots=frozenset(settings.allowed_bots),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """What a message counts against, and the phrase that tells that it is full; empty: say nothing."""

    name: tuple[str, ...]
    seconds: float
    most: int
    phrase: str = ""


class Admission:
    """Applies the rules. Windows are kept in the state, or in `fallback`, this process's own, while it is away."""

    def __init__(self, state: State, rules: Rules, fallback: State, *, ingest_command: str = "/ingest") -> None:
        """Refusals name `ingest_command`."""
        self._state = state
        self._rules = rules
        self._fallback = fallback
        self._ingest_command = ingest_command

    def refusal(self, message: Message) -> Refusal | None:
        """Why this message is not answered, whatever came before it; None: nothing speaks against it. Pure."""
        ignored = self._ignored(message)
        if ignored is not None:
            return Refusal(outcome=ignored)
        place = self._closed_place(message)
        if place:
            return _refused(Outcome.REFUSED_AUDIENCE, message, place)
        length, limit = len(message.text), self._rules.characters
        if length > limit and not command_of(message):
            values = {"length": str(length), "limit": str(limit), "ingest": self._ingest_command}
            return _refused(Outcome.REFUSED_SIZE, message, "refused_size", **values)
        return None

    async def limit(self, message: Message) -> Refusal | None:
        """Count this message; why it comes too early, or None. Raises StateError, but not when the state is away."""
        windows = self._windows(message)
        if not windows:
            return None
        try:
            full, count, wait = await _counted(self._state, message, windows)
        except StateUnavailableError as error:
            _log.warning("limits_kept_in_process", kind=type(error).__name__)
            full, count, wait = await _counted(self._fallback, message, windows)
        if not full:
            return None
        name = windows[full - 1].phrase
        if not name:
            return Refusal(outcome=Outcome.IGNORED_BOT)
        # Never “in 1 seconds”: one more does no harm.
        seconds = str(max(2, math.ceil(wait / 1000)))
        name, values = ("limited_to_one", {}) if count == 1 else (name, {"count": str(count)})
        return await asyncio.to_thread(_refused, Outcome.LIMITED, message, name, seconds=seconds, **values)

    def _ignored(self, message: Message) -> Outcome | None:
        author = message.author
        if author.is_self:
            return Outcome.IGNORED_SELF
        if message.kind is not MessageKind.ASKED:
            return Outcome.IGNORED_EDIT
        if author.is_bot and not _is_among(author, self._rules.bots):
            return Outcome.IGNORED_BOT
        if not (message.text.strip() or message.command or message.attachments):
            return Outcome.IGNORED_EMPTY
        return None

    def _closed_place(self, message: Message) -> str:
        """The phrase that tells which list does not name this place or person; empty when they are open.

        A bot that is allowed by name need not be among the people.
        """
        rules, author = self._rules, message.author
        if rules.workspaces and message.workspace not in rules.workspaces:
            return "refused_workspace"
        if rules.channels and message.channel not in rules.channels:
            return "refused_channel"
        if rules.users and not author.is_bot and not _is_among(author, rules.users):
            return "refused_user"
        return ""

    def _windows(self, message: Message) -> list[_Window]:
        rules, author, windows = self._rules, message.author, []
        if author.is_bot:
            hour = rules.bot_window_seconds
            windows.append(_Window(name=("bots", message.conversation), seconds=hour, most=rules.bot_turns))
        elif command_of(message) in _FREE:
            return []
        minute = rules.window_seconds
        if rules.user_questions is not None:
            user = ("user", author.id)
            windows.append(_Window(name=user, seconds=minute, most=rules.user_questions, phrase="limited_user"))
        if rules.channel_questions is not None and message.channel:
            channel = ("channel", message.workspace, message.channel)
            windows.append(
                _Window(name=channel, seconds=minute, most=rules.channel_questions, phrase="limited_channel")
            )
        return windows


async def _counted(state: State, message: Message, windows: Sequence[_Window]) -> tuple[int, int, int]:
    # One tag for a platform, so that one step counts in all windows.
    keys = [state.key(f"limits/{message.platform}", *window.name) for window in windows]
    sizes = [size for window in windows for size in (max(1, round(window.seconds * 1000)), window.most)]
    full, count, wait = await state.run(_COUNT, keys, [message.turn_id, *sizes])
    return int(full), int(count), int(wait)


def _refused(outcome: Outcome, message: Message, name: str, **values: str) -> Refusal:
    if message.author.is_bot:
        return Refusal(outcome=outcome)
    return Refusal(outcome=outcome, text=phrase(name, question_language(message.text[:_SAMPLE]), **values))


def _is_among(author: Author, ids: frozenset[str]) -> bool:
    """By the whole id, or by the platform's own, which is its last part."""
    return author.id in ids or author.id.rpartition(":")[2] in ids
