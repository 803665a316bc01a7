"""The memory of a thread: what was asked and answered in it, and what else its platform shows.

Of a thread one list is kept, an element for each turn: its id, a newline, the turn as JSON (which has no newline).
Where the thread was begun anew, the first element is `forgotten`, a newline, and the time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import structlog

from bot.clipping import clipped
from bot.codec import decode, encode
from bot.errors import MalformedStateError
from bot.messages import turn_id
from bot.metrics import MALFORMED
from bot.ports import Script
from bot.state_keys import milliseconds
from bot.types import Conversation, Remark, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bot.messages import Message, ThreadMessage
    from bot.ports import State
    from bot.types import Source

QUESTION: Final = 4_000
REPLY: Final = 8_000
EXCERPT: Final = 600
"""Characters that are kept of each text of a turn; whole graphemes."""
_LABEL: Final = 300
"""Characters of a name, a title, a heading path."""
_LONGEST_URI: Final = 2_000
"""A longer one is left out: half an address leads nowhere."""
_SOURCES: Final = 20
_THREAD_BYTES: Final = 500_000
"""All turns of a thread together; the oldest make room."""

REMARKS: Final = 30
"""The latest ones of a thread."""
REMARK: Final = 1_000
ALL_REMARKS: Final = 8_000
"""Characters of one remark, and of all of them with their authors' names."""
_NAME: Final = 100

_FORGOTTEN: Final = b"forgotten\n"
_log = structlog.get_logger(__name__)

_APPEND: Final = Script(
    name="conversation_append",
    text="""
local key, id, turn, most, most_bytes = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local begun = redis.call('LINDEX', key, 0)
if begun and string.sub(begun, 1, 10) == 'forgotten\\n' then redis.call('LPOP', key) else begun = false end
local known, bytes, kept = false, #turn, 1
local turns = redis.call('LRANGE', key, 0, -1)
for i = #turns, 1, -1 do
  known = known or (id ~= '' and string.sub(turns[i], 1, #id + 1) == id .. '\\n')
  bytes = bytes + #turns[i]
  if bytes <= most_bytes then kept = kept + 1 end
end
if not known then
  redis.call('RPUSH', key, turn)
  redis.call('LTRIM', key, -math.min(most, kept), -1)
end
if begun then redis.call('LPUSH', key, begun) end
redis.call('PEXPIRE', key, ARGV[5])
return known and 0 or 1
""",
)
"""ARGV: turn id or nothing, element, most turns, most bytes, ms until it is forgotten. Returns 0: it was there."""

_FORGET: Final = Script(
    name="conversation_forget",
    text="""
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
""",
)
"""ARGV: the element that says so, ms until that is forgotten."""


class Conversations:
    """The threads' memories in one state. Every call may raise a StateError, and is one round trip."""

    def __init__(self, state: State, *, turns: int, seconds: float) -> None:
        """Remember the latest `turns` (0: none) of a thread, for so long after its last one and none that is older."""
        self._state = state
        self._turns = turns
        self._seconds = seconds

    async def load(self, conversation: str) -> Conversation:
        """What is remembered; empty when nothing is. What cannot be read is left out."""
        stored = await self._state.lrange(self._key(conversation), 0, -1)
        since = None
        if stored and stored[0].startswith(_FORGOTTEN):
            since = _moment(stored.pop(0), conversation)
        oldest = datetime.now(UTC) - timedelta(seconds=self._seconds)
        turns = [
            turn
            for turn in _readable(stored[-self._turns :] if self._turns else (), conversation)
            # A turn that was under way when the thread was begun anew is remembered after that.
            if turn.asked_at >= oldest and (since is None or turn.asked_at > since)
        ]
        return Conversation(id=conversation, turns=tuple(sorted(turns, key=lambda turn: turn.asked_at)), since=since)

    async def append(self, conversation: str, turn: Turn) -> None:
        """Remember a turn, unless one of its id is remembered already. Long texts are clipped."""
        if not self._turns:
            return
        element = f"{turn.id}\n{encode(_bounded(turn))}"
        await self._state.run(
            _APPEND,
            [self._key(conversation)],
            [turn.id, element, self._turns, _THREAD_BYTES, milliseconds(self._seconds)],
        )

    async def forget(self, conversation: str, at: datetime | None = None) -> None:
        """Begin anew: nothing that was said before `at` (now when None) is remembered, nor merged in again."""
        element = _FORGOTTEN + (at or datetime.now(UTC)).isoformat().encode()
        await self._state.run(_FORGET, [self._key(conversation)], [element, milliseconds(self._seconds)])

    def _key(self, conversation: str) -> str:
        return self._state.key(conversation, "conversation")


def merged(conversation: Conversation, message: Message, thread: Sequence[ThreadMessage]) -> Conversation:
    """The conversation with what its platform shows and the bot did not see: others' posts, and its own forgotten ones.

    Left out: `message` itself, the questions and posts of the turns that are remembered, what was said before the
    conversation was begun anew. The latest remarks are kept, oldest first, within the limits above.
    """
    known = {turn.id for turn in conversation.turns if turn.id} | {message.turn_id}
    replies = {turn.reply.strip() for turn in conversation.turns}
    unseen: dict[str, Remark] = {}
    for post in thread:
        name = turn_id(message.platform, message.conversation, post.id)
        told = post.turn_id in known or (post.author.is_self and post.text.strip() in replies)
        before = conversation.since is not None and post.sent_at <= conversation.since
        if name in known or told or before or not post.text.strip():
            continue
        author = clipped(post.author.name or post.author.id, _NAME)
        unseen[post.id] = Remark(author=author, text=clipped(post.text.strip(), REMARK), said_at=post.sent_at)
    latest = sorted(unseen.values(), key=lambda remark: remark.said_at)[-REMARKS:]
    room, first = ALL_REMARKS, len(latest)
    while first and (room := room - len(latest[first - 1].author) - len(latest[first - 1].text)) >= 0:
        first -= 1
    return replace(conversation, remarks=tuple(latest[first:]))


def _readable(stored: Iterable[bytes], conversation: str) -> Iterable[Turn]:
    for element in stored:
        try:
            turn = decode(Turn, element.rpartition(b"\n")[2])
        except MalformedStateError:
            _tell_malformed(conversation)
            continue
        if turn.asked_at.tzinfo is None:
            _tell_malformed(conversation)
            continue
        yield turn


def _moment(element: bytes, conversation: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(element.removeprefix(_FORGOTTEN).decode())
    except ValueError:
        _tell_malformed(conversation)
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _tell_malformed(conversation: str) -> None:
    # Not the exception: it quotes what was stored.
    MALFORMED.labels("conversation").inc()
    _log.warning("malformed_state", kind="conversation", key=conversation[:200])


def _bounded(turn: Turn) -> Turn:
    return replace(
        turn,
        question=clipped(turn.question, QUESTION),
        reply=clipped(turn.reply, REPLY),
        author=clipped(turn.author, _LABEL),
        sources=tuple(map(_bounded_source, turn.sources[:_SOURCES])),
    )


def _bounded_source(source: Source) -> Source:
    return replace(
        source,
        title=clipped(source.title, _LABEL),
        uri=source.uri if len(source.uri) <= _LONGEST_URI else "",
        heading=clipped(source.heading, _LABEL),
        excerpt=clipped(source.excerpt, EXCERPT),
    )
