"""The steps of claims and leases, as Lua that Redis and the embedded state run without interruption.

Keys of a lane (one hash tag, the conversation):

    book    hash    name:<digest> → turn id; and of each turn: <id>:names, :message, :at (ms), :claim (the token of the
                    claim that stored it), :attempts, :answer, :withdrawn; of one that has ended :names and :outcome
    ended   zset    turn id → when it is forgotten (ms)
    line    list    ids of the turns that have not ended, the one that is being answered first
    lease   string  the holder's token, gone when it expires

`book` and `ended` belong to the conversation, `line` and `lease` to the lane. Replies are lists that begin with a word.
Each script does no harm when a client, seeing a connection break, sends it twice.
"""

from __future__ import annotations

from typing import Final

from bot.ports import Script

_LANE: Final = """
local book, ended, line, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local function field(id, name) return redis.call('HGET', book, id .. ':' .. name) end
local function known_by(first)
  for i = first, #ARGV do
    local id = redis.call('HGET', book, 'name:' .. ARGV[i])
    if id then return id end
  end
  return false
end
local function register(id, first)
  local names = field(id, 'names') or ''
  for i = first, #ARGV do
    if #names < 1600 and not redis.call('HGET', book, 'name:' .. ARGV[i]) then
      redis.call('HSET', book, 'name:' .. ARGV[i], id)
      names = names .. ARGV[i] .. ' '
    end
  end
  redis.call('HSET', book, id .. ':names', names)
end
local function extend(ms)
  redis.call('PEXPIRE', book, ms)
  redis.call('PEXPIRE', ended, ms)
  redis.call('PEXPIRE', line, ms)
end
local function finish(id, outcome, ms)
  redis.call('HDEL', book, id .. ':message', id .. ':at', id .. ':claim', id .. ':attempts', id .. ':answer',
    id .. ':withdrawn')
  redis.call('HSET', book, id .. ':outcome', outcome)
  redis.call('ZADD', ended, NOW + ms, id)
end
local function is_held_by(token) return redis.call('GET', lease) == token end
"""
"""`register` stops at 64 names of 24 digits: a bound, where a platform has three."""

CLAIM: Final = Script(
    name="turns_claim",
    text=_LANE
    + """
local token, lease_ms, remember_ms, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local attempts, id = tonumber(ARGV[5]), ARGV[6]
for _, old in ipairs(redis.call('ZRANGEBYSCORE', ended, '-inf', NOW, 'LIMIT', 0, 20)) do
  for name in string.gmatch(field(old, 'names') or '', '%x+') do redis.call('HDEL', book, 'name:' .. name) end
  redis.call('HDEL', book, old .. ':names', old .. ':outcome')
  redis.call('ZREM', ended, old)
end
-- Whether turns wait in the lane and nobody is there to answer them.
local idle = redis.call('EXISTS', lease) == 0 and redis.call('LLEN', line) > 0 and 1 or 0
local known = known_by(8)
if known then
  register(known, 8)
  extend(remember_ms)
  local outcome = field(known, 'outcome')
  if outcome then return {'ended', known, idle, outcome} end
  if field(known, 'claim') ~= token then return {'pending', known, idle} end
  id = known
else
  local length = redis.call('LLEN', line)
  if most > 0 and length >= most then return {'full', length - 1, idle} end
  redis.call('HSET', book, id .. ':message', ARGV[7], id .. ':at', NOW, id .. ':claim', token)
  if attempts > 0 then redis.call('HSET', book, id .. ':attempts', attempts) end
  register(id, 8)
  redis.call('RPUSH', line, id)
  extend(remember_ms)
end
-- A lease that has expired does not come back to life: somebody else may have had the lane since.
if not known or not field(id, 'attempts') then redis.call('SET', lease, token, 'NX', 'PX', lease_ms) end
local position = 1
for place, other in ipairs(redis.call('LRANGE', line, 0, -1)) do
  if other == id then position = place end
end
return {'claimed', id, position, is_held_by(token) and 1 or 0}
""",
)
"""ARGV: token, lease ms, remember ms, most in line or 0, attempts so far, turn id, message, digests of its names."""

BEGIN: Final = Script(
    name="turns_begin",
    text=_LANE
    + """
if not is_held_by(ARGV[1]) then return {'lost'} end
local id = redis.call('LINDEX', line, 0)
while id and field(id, 'outcome') do
  redis.call('LREM', line, 1, id)
  id = redis.call('LINDEX', line, 0)
end
if not id then
  redis.call('DEL', lease)
  return {'empty'}
end
local attempts = (tonumber(field(id, 'attempts')) or 0) + 1
redis.call('HSET', book, id .. ':attempts', attempts)
redis.call('PEXPIRE', lease, ARGV[2])
extend(ARGV[3])
return {'turn', id, field(id, 'message'), attempts, field(id, 'answer'), field(id, 'at'), field(id, 'withdrawn')}
""",
)
"""ARGV: token, lease ms, remember ms."""

RENEW: Final = Script(
    name="turns_renew",
    text=_LANE
    + """
if not is_held_by(ARGV[1]) then return {'lost'} end
redis.call('PEXPIRE', lease, ARGV[2])
extend(ARGV[3])
return {'renewed'}
""",
)
"""ARGV: token, lease ms, remember ms."""

KEEP: Final = Script(
    name="turns_keep",
    text=_LANE
    + """
local id = ARGV[2]
if not is_held_by(ARGV[1]) then return {'lost'} end
if not field(id, 'at') or field(id, 'withdrawn') then return {'withdrawn'} end
redis.call('HSET', book, id .. ':answer', ARGV[3])
return {'kept'}
""",
)
"""ARGV: token, turn id, answer."""

COMPLETE: Final = Script(
    name="turns_complete",
    text=_LANE
    + """
local id = ARGV[2]
if not is_held_by(ARGV[1]) then return {'lost'} end
if redis.call('LREM', line, 1, id) > 0 and field(id, 'names') and not field(id, 'outcome') then
  finish(id, ARGV[3], tonumber(ARGV[4]))
end
extend(ARGV[4])
return {'completed'}
""",
)
"""ARGV: token, turn id, outcome, remember ms."""

RELEASE: Final = Script(
    name="turns_release",
    text=_LANE
    + """
if not is_held_by(ARGV[1]) then return {'lost'} end
redis.call('DEL', lease)
return {'released', redis.call('LLEN', line)}
""",
)
"""ARGV: token."""

TAKE: Final = Script(
    name="turns_take",
    text=_LANE
    + """
if redis.call('LLEN', line) == 0 then return {'empty'} end
redis.call('SET', lease, ARGV[1], 'NX', 'PX', ARGV[2])
if not is_held_by(ARGV[1]) then return {'held'} end
extend(ARGV[3])
return {'taken'}
""",
)
"""ARGV: token, lease ms, remember ms."""

LOOK: Final = Script(
    name="turns_look",
    text=_LANE
    + """
if redis.call('LLEN', line) == 0 then return {'empty'} end
return {redis.call('EXISTS', lease) == 1 and 'held' or 'abandoned'}
""",
)

SETTLE: Final = Script(
    name="turns_settle",
    text=_LANE
    + """
local alone_line, alone_lease = KEYS[5], KEYS[6]
local token, remember_ms, id, outcome = ARGV[1], tonumber(ARGV[3]), ARGV[4], ARGV[6]
local known = known_by(7)
if known then
  if field(known, 'outcome') then return {'ended'} end
  if outcome == '' and field(known, 'claim') ~= token then return {'theirs'} end
  id = known
end
-- A claim of ours that we have had no answer to may stand in the line, and hold the lane.
redis.call('LREM', line, 0, id)
if is_held_by(token) then redis.call('DEL', lease) end
register(id, 7)
if outcome == '' then
  redis.call('HSET', book, id .. ':message', ARGV[5], id .. ':at', NOW, id .. ':claim', token, id .. ':attempts', 1)
  if redis.call('LLEN', alone_line) == 0 then redis.call('RPUSH', alone_line, id) end
  redis.call('SET', alone_lease, token, 'NX', 'PX', ARGV[2])
  redis.call('PEXPIRE', alone_line, remember_ms)
else
  redis.call('LREM', alone_line, 0, id)
  if redis.call('GET', alone_lease) == token then redis.call('DEL', alone_lease) end
  finish(id, outcome, remember_ms)
end
extend(remember_ms)
return {'settled', redis.call('EXISTS', lease) == 0 and redis.call('LLEN', line) > 0 and 1 or 0}
""",
)
"""KEYS: of the conversation's lane; line and lease of the turn's own. ARGV: token, lease ms, remember ms, turn id,
message, outcome or nothing, digests of the message's names."""

WITHDRAW: Final = Script(
    name="turns_withdraw",
    text=_LANE
    + """
local id = known_by(1)
if not id or not field(id, 'at') then return {'unknown'} end
redis.call('HSET', book, id .. ':withdrawn', 1)
return {field(id, 'answer') and 'late' or 'withdrawn'}
""",
)
"""ARGV: digests of the message's names."""

OUTCOME: Final = Script(
    name="turns_outcome",
    text=_LANE
    + """
local id = known_by(1)
return {'outcome', id and field(id, 'outcome') or false}
""",
)
"""ARGV: digests of the message's names."""
