"""The steps of a job, as Lua that Redis and the embedded state run without interruption.

Keys, all of one tag:

    job       hash    request, host, state, reason, progress, begun, ended, failures, spent, first, cancelled, token
    verdicts  list    a FileVerdict each, in the order of the documents
    lease     string  the token of the attempt that runs; expires when its process dies

Each script does no harm when it runs twice.
"""

from __future__ import annotations

from typing import Final

from bot.ports import Script

CREATE: Final = Script(
    name="jobs_create",
    text="""
local kept = redis.call('EXISTS', KEYS[1])
if kept == 0 then redis.call('HSET', KEYS[1], 'request', ARGV[1], 'state', 'waiting', 'host', ARGV[3]) end
if kept == 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1 - kept
""",
)
BEGIN: Final = Script(
    name="jobs_begin",
    text="""
local job, lease = KEYS[1], KEYS[3]
local state = redis.call('HGET', job, 'state')
if not state then return 'gone' end
if state ~= 'waiting' and state ~= 'running' then return 'over' end
local holder = redis.call('GET', lease)
if holder and holder ~= ARGV[1] then return 'busy' end
if redis.call('HGET', job, 'token') == ARGV[1] then return 'begun' end
redis.call('SET', lease, ARGV[1], 'PX', ARGV[2])
redis.call('HSET', job, 'state', 'running', 'reason', '', 'progress', '', 'token', ARGV[1])
redis.call('HINCRBY', job, 'begun', 1)
if not redis.call('HGET', job, 'first') then redis.call('HSET', job, 'first', NOW) end
redis.call('PEXPIRE', job, ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 'begun'
""",
)
# -1: the attempt was taken over. Else whether somebody cancelled the job. An attempt whose lease ran out, with nobody
# there who took it, goes on. `ARGV[7]` is how many verdicts are kept already: those of a call that was sent twice are
# not kept twice.
SAVE: Final = Script(
    name="jobs_save",
    text="""
local job, verdicts, lease = KEYS[1], KEYS[2], KEYS[3]
local token, ending = ARGV[1], ARGV[8]
if redis.call('HGET', job, 'token') ~= token then return -1 end
local holder = redis.call('GET', lease)
if holder and holder ~= token then return -1 end
redis.call('HSET', job, 'progress', ARGV[4], 'spent', ARGV[5])
if redis.call('LLEN', verdicts) == tonumber(ARGV[7]) then
  for i = 11, #ARGV do redis.call('RPUSH', verdicts, ARGV[i]) end
end
local cancelled = redis.call('HGET', job, 'cancelled') and 1 or 0
if ending == '' then
  redis.call('SET', lease, token, 'PX', ARGV[2])
else
  if ending == 'waiting' and cancelled == 1 then ending = 'cancelled' end
  redis.call('HSET', job, 'state', ending, 'reason', ARGV[9], 'token', '', 'failures', ARGV[10])
  redis.call('HINCRBY', job, 'ended', 1)
  redis.call('DEL', lease)
end
local keep = ARGV[3]
if ending ~= '' and ending ~= 'waiting' then keep = ARGV[6] end
redis.call('PEXPIRE', job, keep)
redis.call('PEXPIRE', verdicts, keep)
return cancelled
""",
)
CANCEL: Final = Script(
    name="jobs_cancel",
    text="""
local job, lease = KEYS[1], KEYS[3]
local state = redis.call('HGET', job, 'state')
if state ~= 'waiting' and state ~= 'running' then return 'over' end
redis.call('HSET', job, 'cancelled', 1)
if redis.call('EXISTS', lease) == 1 then return 'told' end
redis.call('HSET', job, 'state', 'cancelled', 'reason', '', 'progress', '', 'token', '')
redis.call('PEXPIRE', job, ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 'ended'
""",
)
