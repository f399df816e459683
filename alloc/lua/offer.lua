-- offer: puts a source's candidates into record and due, if they are new.
--
-- KEYS[1]  hash  record: endpoint -> VERSION|JSON
-- KEYS[2]  zset  due: endpoint -> when it is to be probed next, ms since the epoch
-- KEYS[3]  hash  meta
-- ARGV[1]  when a new one is due, ms since the epoch
-- ARGV[2], ARGV[3], then on in pairs: endpoint, 1|JSON; at most 500 pairs
-- Reply:   how many were new
-- Errors:  POOLLOST  there is no meta
--          WRONGTYPE a key is of another type
--          BADARG    the pairs are odd or too many, or the time is none
-- Twice:   nothing new the second time: what is there is left alone, its due time too
-- Cost:    O(pairs * log(known))

local types = {'hash', 'zset', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if redis.call('EXISTS', KEYS[3]) == 0 then
  return redis.error_reply('POOLLOST the pool has no meta')
end
if not tonumber(ARGV[1]) or #ARGV % 2 ~= 1 or #ARGV > 1001 then
  return redis.error_reply('BADARG expected a time and at most 500 pairs of endpoint and record')
end

local endpoints = {}
for i = 2, #ARGV, 2 do
  endpoints[#endpoints + 1] = ARGV[i]
end
if #endpoints == 0 then return 0 end
local known = redis.call('HMGET', KEYS[1], unpack(endpoints))

local records, due, seen = {}, {}, {}
for i = 1, #endpoints do
  local endpoint = endpoints[i]
  if not known[i] and not seen[endpoint] then
    seen[endpoint] = true
    records[#records + 1] = endpoint
    records[#records + 1] = ARGV[2 * i + 1]
  end
  -- Also for one that is known: a record without a due time would never be probed again.
  due[#due + 1] = ARGV[1]
  due[#due + 1] = endpoint
end

if #records > 0 then redis.call('HSET', KEYS[1], unpack(records)) end
redis.call('ZADD', KEYS[2], 'NX', unpack(due))
return #records / 2
