"""The steps of claims and leases, as Lua that Redis and the embedded state run without interruption.

Keys of a lane (one hash tag, the conversation):

    book    hash    name:<digest> → turn id; and of each turn: <id>:names, :message, :at (ms), :claim (the token of the
                    claim that stored it), :attempts, :answer, :withdrawn; of one that has ended :names, :outcome and
                    :by (the token by which its lane was held)
    ended   zset    turn id → when it is forgotten (ms)
    line    list    ids of the turns that have not ended, the one that is being answered first
    lease   string  the holder's token, gone when it expires

`book` and `ended` belong to the conversation, `line` and `lease` to the lane. Replies are lists that begin with a word.
Each script does no harm when a client, seeing a connection break, sends it twice.
"""

from __future__ import annotations

from typing import Final

from bot.ports import Script

_FUNCTIONS: Final = {
    "field": """
local function field(id, name) return redis.call('HGET', book, id .. ':' .. name) end
""",
    # As many at once as are asked for: calls are what a script costs.
    "fields": """
local function fields(id, ...)
  local names = {...}
  for i = 1, #names do names[i] = id .. ':' .. names[i] end
  return unpack(redis.call('HMGET', book, unpack(names)))
end
""",
    "is_held_by": """
local function is_held_by(token) return redis.call('GET', lease) == token end
""",
    # Whether turns wait in the lane and nobody is there to answer them: 1 or 0.
    "idle": """
local function idle() return redis.call('EXISTS', lease) == 0 and redis.call('LLEN', line) > 0 and 1 or 0 end
""",
    "extend": """
local function extend(ms)
  redis.call('PEXPIRE', book, ms)
  redis.call('PEXPIRE', ended, ms)
  redis.call('PEXPIRE', line, ms)
end
""",
    "known_by": """
local function known_by(first)
  local names = {}
  for i = first, #ARGV do names[#names + 1] = 'name:' .. ARGV[i] end
  for _, id in ipairs(#names > 0 and redis.call('HMGET', book, unpack(names)) or names) do
    if id then return id end
  end
  return false
end
""",
    # Stops at 64 names of 24 digits: a bound, where a platform has three.
    "register": """
local function register(id, first)
  local asked = {id .. ':names'}
  for i = first, #ARGV do asked[#asked + 1] = 'name:' .. ARGV[i] end
  local found = redis.call('HMGET', book, unpack(asked))
  local names, new = found[1] or '', {}
  for i = first, #ARGV do
    if #names < 1600 and not found[i - first + 2] then
      new[#new + 1] = 'name:' .. ARGV[i]
      new[#new + 1] = id
      names = names .. ARGV[i] .. ' '
    end
  end
  redis.call('HSET', book, id .. ':names', names, unpack(new))
end
""",
    "finish": """
local function finish(id, outcome, by, ms)
  redis.call('HDEL', book, id .. ':message', id .. ':at', id .. ':claim', id .. ':attempts', id .. ':answer',
    id .. ':withdrawn')
  redis.call('HSET', book, id .. ':outcome', outcome, id .. ':by', by)
  redis.call('ZADD', ended, NOW + ms, id)
end
""",
}


def _script(name: str, body: str) -> Script:
    """With the functions that it calls, and no others: the embedded state compiles a script each time."""
    called = [text for function, text in _FUNCTIONS.items() if f"{function}(" in body]
    if any("field(" in text for text in called) and _FUNCTIONS["field"] not in called:
        called.insert(0, _FUNCTIONS["field"])
    return Script(name=name, text="".join((_KEYS, *called, body)))


_KEYS: Final = "local book, ended, line, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[4]"

CLAIM: Final = _script(
    "turns_claim",
    """
local token, lease_ms, remember_ms, most = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local attempts, id = tonumber(ARGV[5]), ARGV[6]
for _, old in ipairs(redis.call('ZRANGEBYSCORE', ended, '-inf', NOW, 'LIMIT', 0, 20)) do
  for name in string.gmatch(field(old, 'names') or '', '%x+') do redis.call('HDEL', book, 'name:' .. name) end
  redis.call('HDEL', book, old .. ':names', old .. ':outcome', old .. ':by')
  redis.call('ZREM', ended, old)
end
if KEYS[5] then
  redis.call('ZADD', KEYS[5], NOW + tonumber(lease_ms), ARGV[8])
  redis.call('PEXPIRE', KEYS[5], remember_ms)
end
local known, position = known_by(9), 1
if known then
  register(known, 9)
  extend(remember_ms)
  local outcome, claim = fields(known, 'outcome', 'claim')
  if outcome then return {'ended', known, idle(), outcome} end
  if claim ~= token then return {'pending', known, idle()} end
  id = known
else
  local length = redis.call('LLEN', line)
  if most > 0 and length >= most then return {'full', length - 1, idle()} end
  redis.call('HSET', book, id .. ':message', ARGV[7], id .. ':at', NOW, id .. ':claim', token)
  if attempts > 0 then redis.call('HSET', book, id .. ':attempts', attempts) end
  register(id, 9)
  position = redis.call('RPUSH', line, id)
  extend(remember_ms)
end
-- A lease that has expired does not come back to life: somebody else may have had the lane since.
local held = (not known or not field(id, 'attempts')) and redis.call('SET', lease, token, 'NX', 'PX', lease_ms)
for place, other in ipairs(known and redis.call('LRANGE', line, 0, -1) or {}) do
  if other == id then position = place end
end
return {'claimed', id, position, (held or is_held_by(token)) and 1 or 0}
""",
)
"""KEYS: of the lane; and the index of lanes, where it may be in the same step. ARGV: token, lease ms, remember ms, most
in line or 0, attempts so far, turn id, message, lane, digests of the message's names."""

BEGIN: Final = _script(
    "turns_begin",
    """
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
local tried, message, answer, at, withdrawn = fields(id, 'attempts', 'message', 'answer', 'at', 'withdrawn')
local attempts = (tonumber(tried) or 0) + 1
redis.call('HSET', book, id .. ':attempts', attempts)
redis.call('PEXPIRE', lease, ARGV[2])
-- The first time it was claimed a moment ago.
if attempts > 1 then extend(ARGV[3]) end
return {'turn', id, message, attempts, answer, at, withdrawn}
""",
)
"""ARGV: token, lease ms, remember ms."""

RENEW: Final = _script(
    "turns_renew",
    """
if not is_held_by(ARGV[1]) then return {'lost'} end
redis.call('PEXPIRE', lease, ARGV[2])
extend(ARGV[3])
return {'renewed'}
""",
)
"""ARGV: token, lease ms, remember ms."""

KEEP: Final = _script(
    "turns_keep",
    """
local id = ARGV[2]
if not is_held_by(ARGV[1]) then return {'lost'} end
local at, withdrawn = fields(id, 'at', 'withdrawn')
if not at or withdrawn then return {'withdrawn'} end
redis.call('HSET', book, id .. ':answer', ARGV[3])
return {'kept'}
""",
)
"""ARGV: token, turn id, answer."""

COMPLETE: Final = _script(
    "turns_complete",
    """
local token, id = ARGV[1], ARGV[2]
if not is_held_by(token) then
  -- It may have been done, and the reply was lost.
  return {field(id, 'by') == token and 'emptied' or 'lost'}
end
local names, outcome = fields(id, 'names', 'outcome')
if redis.call('LREM', line, 1, id) > 0 and names and not outcome then
  finish(id, ARGV[3], token, tonumber(ARGV[4]))
end
-- The rest was given its time when it was claimed.
redis.call('PEXPIRE', ended, ARGV[4])
if redis.call('LLEN', line) > 0 then return {'completed'} end
redis.call('DEL', lease)
return {'emptied'}
""",
)
"""ARGV: token, turn id, outcome, remember ms. The last turn of a line lets go of the lane."""

RELEASE: Final = _script(
    "turns_release",
    """
if not is_held_by(ARGV[1]) then return {'lost'} end
redis.call('DEL', lease)
return {'released', redis.call('LLEN', line)}
""",
)
"""ARGV: token."""

TAKE: Final = _script(
    "turns_take",
    """
if redis.call('LLEN', line) == 0 then return {'empty'} end
redis.call('SET', lease, ARGV[1], 'NX', 'PX', ARGV[2])
if not is_held_by(ARGV[1]) then return {'held'} end
extend(ARGV[3])
return {'taken'}
""",
)
"""ARGV: token, lease ms, remember ms."""

LOOK: Final = _script(
    "turns_look",
    """
if redis.call('LLEN', line) == 0 then return {'empty'} end
return {redis.call('EXISTS', lease) == 1 and 'held' or 'abandoned'}
""",
)

SETTLE: Final = _script(
    "turns_settle",
    """
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
  finish(id, outcome, token, remember_ms)
end
extend(remember_ms)
return {'settled', idle()}
""",
)
"""KEYS: of the conversation's lane; line and lease of the turn's own. ARGV: token, lease ms, remember ms, turn id,
message, outcome or nothing, digests of the message's names."""

WITHDRAW: Final = _script(
    "turns_withdraw",
    """
local id = known_by(1)
if not id or not field(id, 'at') then return {'unknown'} end
redis.call('HSET', book, id .. ':withdrawn', 1)
return {field(id, 'answer') and 'late' or 'withdrawn'}
""",
)
"""ARGV: digests of the message's names."""

OUTCOME: Final = _script(
    "turns_outcome",
    """
local id = known_by(1)
return {'outcome', id and field(id, 'outcome') or false}
""",
)
"""ARGV: digests of the message's names."""
