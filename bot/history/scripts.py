"""The steps of the history, as Lua that Redis and the embedded state run without interruption.

All keys have one hash tag, so that their names may be made inside a script from the prefixes it is given:

    times            zset    entry's id → when it was asked (microseconds, which a double still counts exactly)
    author:<digest>  zset    the same of one person's entries
    given:<digest>   zset    entries that this person has an opinion of → when it was given (ms)
    entry:<id>       hash    entry: JSON; author: digest of who asked; by:<digest>: an opinion, as `ms JSON`

In the embedded state a set or hash stays when its last member has gone, so `unlist` removes it.
"""

from __future__ import annotations

from typing import Final

from bot.ports import Script

_KEYS: Final = """
local times, entry_of, author_of, given_of, days = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local cutoff = (NOW - days) * 1000
local function whole(number) return string.format('%.0f', number) end
local function value(id, field)
  local found = redis.pcall('HGET', entry_of .. id, field)
  return type(found) == 'string' and found
end
local function fields_of(id)
  local fields = redis.pcall('HGETALL', entry_of .. id)
  return fields.err and {} or fields
end
local function unlist(key, id)
  redis.call('ZREM', key, id)
  if redis.call('ZCARD', key) == 0 then redis.call('DEL', key) end
end
local function remove(id)
  local fields = fields_of(id)
  for i = 1, #fields, 2 do
    if fields[i] == 'author' then
      unlist(author_of .. fields[i + 1], id)
    elseif string.sub(fields[i], 1, 3) == 'by:' then
      unlist(given_of .. string.sub(fields[i], 4), id)
    end
  end
  redis.call('DEL', entry_of .. id)
  unlist(times, id)
end
"""

RECORD: Final = Script(
    name="history_record",
    text=_KEYS
    + """
local id, score, author, most, batch = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[9]), tonumber(ARGV[10])
local left = tonumber(score) / 1000 + days - NOW
if left > days then left = days end
if left >= 1 then
  local key, before = entry_of .. id, value(id, 'author')
  if not before then
    redis.call('DEL', key)
  elseif before ~= author then
    unlist(author_of .. before, id)
  end
  redis.call('HSET', key, 'entry', ARGV[8], 'author', author)
  redis.call('PEXPIRE', key, whole(left))
  for _, list in ipairs({times, author_of .. author}) do
    redis.call('ZADD', list, score, id)
    redis.call('PEXPIRE', list, whole(days))
  end
end
local excess = redis.call('ZCARD', times) - most
local first = redis.call('ZRANGE', times, 0, 0, 'WITHSCORES')
if excess <= 0 and first[2] and tonumber(first[2]) > cutoff and value(first[1], 'entry') then return 1 end
local oldest = redis.call('ZRANGE', times, 0, batch - 1, 'WITHSCORES')
for i = 1, #oldest, 2 do
  if (i + 1) / 2 > excess and tonumber(oldest[i + 1]) > cutoff and value(oldest[i], 'entry') then break end
  remove(oldest[i])
end
return 1
""",
)
"""Stores an entry, its opinions kept, and removes the oldest ones that have expired or are too many."""

READ: Final = Script(
    name="history_read",
    text=_KEYS
    + """
local list, down, score, id, hint, count = KEYS[2], ARGV[5] == 'down', tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]),
  tonumber(ARGV[9])
local function compare(rank)  -- the member of this rank with where we are
  local at = redis.call('ZRANGE', list, whole(rank), whole(rank), 'WITHSCORES')
  if not at[1] then return 1 end
  local other = tonumber(at[2])
  if other == score and at[1] == id then return 0 end
  return (other < score or (other == score and at[1] < id)) and -1 or 1
end
local low, high = 0, redis.call('ZCARD', list)
if score then
  if hint >= 0 and compare(hint) == 0 then
    low = hint
  else
    while low < high do
      local middle = math.floor((low + high) / 2)
      if compare(middle) < 0 then low = middle + 1 else high = middle end
    end
  end
  if not down and compare(low) == 0 then low = low + 1 end
elseif down then
  low = high
end
local first, last = low, low + count - 1
if down then first, last = math.max(0, low - count), low - 1 end
local found = last >= first and redis.call('ZRANGE', list, whole(first), whole(last), 'WITHSCORES') or {}
local rows = {}
for i = 1, #found, 2 do
  local alive = tonumber(found[i + 1]) > cutoff
  rows[#rows + 1] = {found[i], found[i + 1], alive and fields_of(found[i]) or {}}
end
return {whole(down and first or first + #rows - 1), rows}
""",
)
"""The next entries of a list from a place on, up or down. `hint` is the place's rank, which others may have moved."""

PRUNE: Final = Script(
    name="history_prune",
    text=_KEYS
    + """
for i = 5, #ARGV, 2 do
  local id, seen, now = ARGV[i], ARGV[i + 1], value(ARGV[i], 'entry')
  local at = redis.call('ZSCORE', KEYS[2], id)
  if not now or now == seen or (at and tonumber(at) <= cutoff) then
    remove(id)
    unlist(KEYS[2], id)
  end
end
return 1
""",
)
"""Removes entries that have expired, or that are still as they were when nobody could read them."""

FEEDBACK: Final = Script(
    name="history_feedback",
    text=_KEYS
    + """
local id, person, most = ARGV[5], ARGV[6], tonumber(ARGV[8])
local at = redis.call('ZSCORE', times, id)
if not at or tonumber(at) <= cutoff or not value(id, 'entry') then return 0 end
local name, fields = 'by:' .. person, fields_of(id)
local count, oldest = 0, nil
for i = 1, #fields, 2 do
  if string.sub(fields[i], 1, 3) == 'by:' and fields[i] ~= name then
    count = count + 1
    if not oldest or fields[i + 1] < oldest[2] then oldest = {fields[i], fields[i + 1]} end
  end
end
if count >= most then
  redis.call('HDEL', entry_of .. id, oldest[1])
  unlist(given_of .. string.sub(oldest[1], 4), id)
end
redis.call('HSET', entry_of .. id, name, whole(NOW) .. ' ' .. ARGV[7])
redis.call('ZADD', given_of .. person, whole(NOW), id)
redis.call('PEXPIRE', given_of .. person, whole(days))
return 1
""",
)
"""Stores a person's opinion in place of an earlier one; of very many, the oldest makes room."""

ERASE: Final = Script(
    name="history_erase",
    text=_KEYS
    + """
local person, batch = ARGV[5], tonumber(ARGV[6])
local asked, given = author_of .. person, given_of .. person
local own, erased = redis.call('ZRANGE', asked, 0, batch - 1, 'WITHSCORES'), 0
for i = 1, #own, 2 do
  if tonumber(own[i + 1]) > cutoff and value(own[i], 'entry') then erased = erased + 1 end
  remove(own[i])
  unlist(asked, own[i])
end
local opinions = redis.call('ZRANGE', given, 0, batch - 1)
for _, id in ipairs(opinions) do
  if value(id, 'entry') then redis.call('HDEL', entry_of .. id, 'by:' .. person) end
  unlist(given, id)
end
return {erased, #own + #opinions}
""",
)
"""Removes some of a person's entries and opinions: how many entries that were, and how much was looked at."""
