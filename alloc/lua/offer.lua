-- offer: puts a source's candidates into record and due, if they are new and there is room, and
-- notes of all, known ones too, that something speaks for them.
--
-- A record without a due time would never be probed again, and one without a named time never
-- forgotten: known ones get what they lack.
--
-- KEYS[1]  hash  record: endpoint -> VERSION|JSON
-- KEYS[2]  zset  due: endpoint -> when it is to be probed next, ms since the epoch
-- KEYS[3]  zset  named: endpoint -> when something last spoke for it, ms since the epoch
-- KEYS[4]  zset  eligible; only counted
-- KEYS[5]  hash  meta
-- ARGV[1]  when a new one is due, ms since the epoch
-- ARGV[2]  now, ms since the epoch
-- ARGV[3]  how many proxies may be known, members aside, a whole number; 0: any number
-- ARGV[4], ARGV[5], then on in pairs: endpoint, 1|JSON; at most 500 pairs
-- Reply:   how many were new; then the places in the batch, from 0, of those that were new and
--          found no room
-- Errors:  POOLLOST  there is no meta
--          WRONGTYPE a key is of another type
--          BADARG    the pairs are odd or too many, or a number is none
-- Twice:   nothing new the second time: records and due times that are there are left alone
-- Cost:    O(pairs * log(known))

local types = {'hash', 'zset', 'zset', 'zset', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if redis.call('EXISTS', KEYS[5]) == 0 then
  return redis.error_reply('POOLLOST the pool has no meta')
end
local most = tonumber(ARGV[3])
if not tonumber(ARGV[1]) or not tonumber(ARGV[2]) or not most or #ARGV % 2 ~= 1 or #ARGV > 1003 then
  return redis.error_reply('BADARG expected two times, a number and at most 500 pairs of endpoint and record')
end

local endpoints = {}
for i = 4, #ARGV, 2 do
  endpoints[#endpoints + 1] = ARGV[i]
end
if #endpoints == 0 then return {0} end
local known = redis.call('HMGET', KEYS[1], unpack(endpoints))
local room = #endpoints
if most > 0 then
  room = most - redis.call('HLEN', KEYS[1]) + redis.call('ZCARD', KEYS[4])
end

local reply = {0}
local records, due, named, seen = {}, {}, {}, {}
local at = 0
for i = 1, #endpoints do
  local endpoint = endpoints[i]
  if not known[i] and not seen[endpoint] and #records / 2 >= room then
    reply[#reply + 1] = i - 1
  else
    if not known[i] and not seen[endpoint] then
      seen[endpoint] = true
      records[#records + 1] = endpoint
      records[#records + 1] = ARGV[2 * i + 3]
    end
    due[at + 1], due[at + 2] = ARGV[1], endpoint
    named[at + 1], named[at + 2] = ARGV[2], endpoint
    at = at + 2
  end
end
if at == 0 then return reply end

if #records > 0 then redis.call('HSET', KEYS[1], unpack(records)) end
redis.call('ZADD', KEYS[2], 'NX', unpack(due))
redis.call('ZADD', KEYS[3], 'GT', unpack(named))
reply[1] = #records / 2
return reply
