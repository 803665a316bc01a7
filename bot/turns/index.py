"""The lanes of a platform that may have turns in line, so that those of a process that died are found.

A sorted set, lane → when to look at it next (ms of the state's clock). It lies on another node of a cluster than the
lanes themselves, so that no step can change both. Therefore a lane is entered before anything is written to it, and an
entry is removed only when the lane is found empty a whole lease after it was last entered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.ports import Script

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.ports import State

AT_ONCE: Final = 0.0
"""The score of a lane that others may take now. It says nothing about when the lane was entered."""
_AT_MOST: Final = 1_000
"""Lanes that are looked at in one round."""

_ENTER: Final = Script(
    name="lanes_enter",
    text="""
redis.call('ZADD', KEYS[1], NOW + tonumber(ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
""",
)
"""ARGV: lane, ms until somebody has to look at it, remember ms."""

_DUE: Final = Script(
    name="lanes_due",
    text="""
local due = {}
redis.call('PEXPIRE', KEYS[1], ARGV[2])
for _, lane in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', NOW, 'LIMIT', 0, ARGV[1])) do
  due[#due + 1] = lane
  due[#due + 1] = redis.call('ZSCORE', KEYS[1], lane)
end
return due
""",
)
"""ARGV: at most so many, remember ms. Returns lane, score, lane, score …"""

_LOOKED: Final = Script(
    name="lanes_looked",
    text="""
for i = 1, #ARGV, 3 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then
    local wait = tonumber(ARGV[i + 2])
    if wait < 0 then
      redis.call('ZREM', KEYS[1], ARGV[i])
    else
      redis.call('ZADD', KEYS[1], NOW + wait, ARGV[i])
    end
  end
end
return 1
""",
)
"""ARGV: lane, score at which it was seen, ms until the next look or -1 to remove it; and so on for other lanes.

A lane that was entered again in between has another score, and stays."""


class LaneIndex:
    """The index of all platforms."""

    def __init__(self, state: State, *, lease_ms: int, remember_ms: int) -> None:
        """Keep it in this state."""
        self._state = state
        self._lease_ms = lease_ms
        self._remember_ms = remember_ms

    async def enter(self, platform: str, lane: str) -> None:
        """Have the lane looked at when a lease that begins now would end."""
        await self._state.run(_ENTER, [self.key(platform)], [lane, self._lease_ms, self._remember_ms])

    async def offer(self, platform: str, lane: str) -> None:
        """Have the lane looked at at once."""
        await self._state.zadd(self.key(platform), {lane: AT_ONCE})

    async def entered(self, platform: str) -> list[str]:
        """All lanes that may have turns in line."""
        return [lane.decode() for lane in await self._state.zrange(self.key(platform), 0, -1)]

    async def due(self, platform: str) -> dict[str, float]:
        """The lanes that somebody has to look at, the longest due first, with their scores."""
        reply = await self._state.run(_DUE, [self.key(platform)], [_AT_MOST, self._remember_ms])
        return {bytes(lane).decode(): float(score) for lane, score in zip(reply[::2], reply[1::2], strict=True)}

    async def looked(self, platform: str, waits: Mapping[str, tuple[float, int]]) -> None:
        """Note what was seen: of each lane its score then, and ms until the next look or -1: nothing is there."""
        args = [value for lane, (score, wait) in waits.items() for value in (lane, score, wait)]
        if args:
            await self._state.run(_LOOKED, [self.key(platform)], args)

    def key(self, platform: str) -> str:
        """Of a platform's set."""
        return self._state.key(platform, "lanes")
