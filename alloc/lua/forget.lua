-- forget: drops what is known of proxies that nothing has spoken for in a long time, or lets them
-- live on, as the caller decided from their records. It leaves alone whatever is not as the caller
-- read it any more: settled since, named since, or perhaps being probed at present.
--
-- A member's record is dropped by nobody who has read that it is none: admitting it changed the
-- version. The count that a former member is remembered with is kept apart and ages by itself.
--
-- KEYS[1]  hash  record: endpoint -> VERSION|JSON
-- KEYS[2]  zset  due: endpoint -> when it is to be probed next, ms since the epoch
-- KEYS[3]  zset  named: endpoint -> when something last spoke for it, ms since the epoch
-- KEYS[4]  hash  meta
-- ARGV[1]  now, ms since the epoch
-- ARGV[2]  the latest end of a claim that was made before now, ms since the epoch: one that is due
--          between now and then may be claimed
-- ARGV[3]  and on, four for each proxy, at most 500: endpoint; version of its record as it was read,
--          0 for none; its named time as it was read; 0 to drop it, else the ms since the epoch when
--          something last spoke for it, to live on
-- Reply:   how many were dropped, and how many live on
-- Errors:  POOLLOST  there is no meta
--          WRONGTYPE a key is of another type
--          BADARG    a number is none, or there are too many proxies
-- Twice:   nothing the second time
-- Cost:    O(proxies * log(known))

local types = {'hash', 'zset', 'zset', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if redis.call('EXISTS', KEYS[4]) == 0 then
  return redis.error_reply('POOLLOST the pool has no meta')
end
local now, busy = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now or not busy or #ARGV % 4 ~= 2 or #ARGV > 2002 then
  return redis.error_reply('BADARG expected two times and at most 500 proxies of 4 fields')
end
local endpoints = {}
for i = 3, #ARGV, 4 do
  if not tonumber(ARGV[i + 1]) or not tonumber(ARGV[i + 2]) or not tonumber(ARGV[i + 3]) then
    return redis.error_reply('BADARG a version or a time is no number')
  end
  endpoints[#endpoints + 1] = ARGV[i]
end
if #endpoints == 0 then return {0, 0} end

local records = redis.call('HMGET', KEYS[1], unpack(endpoints))
local due = redis.call('ZMSCORE', KEYS[2], unpack(endpoints))
local named = redis.call('ZMSCORE', KEYS[3], unpack(endpoints))
local drop, live = {}, {}
for i = 1, #endpoints do
  local at = 4 * i - 1
  local version = records[i] and string.match(records[i], '^(%d+)|') or '0'
  local same = tonumber(version) == tonumber(ARGV[at + 1])
    and named[i] and tonumber(named[i]) == tonumber(ARGV[at + 2])
  local till = due[i] and tonumber(due[i])
  if same and ARGV[at + 3] ~= '0' then
    live[#live + 1] = ARGV[at + 3]
    live[#live + 1] = endpoints[i]
  elseif same and not (till and till > now and till <= busy) then
    drop[#drop + 1] = endpoints[i]
  end
end

if #drop > 0 then
  redis.call('HDEL', KEYS[1], unpack(drop))
  redis.call('ZREM', KEYS[2], unpack(drop))
  redis.call('ZREM', KEYS[3], unpack(drop))
end
if #live > 0 then redis.call('ZADD', KEYS[3], 'GT', unpack(live)) end
return {#drop, #live / 2}
