-- claim_these: takes those of the given proxies that are due, for a while. See claim.
--
-- KEYS[1]  zset  due: endpoint -> when it is to be probed next, ms since the epoch
-- KEYS[2]  hash  record: endpoint -> VERSION|JSON
-- KEYS[3]  hash  meta
-- ARGV[1]  now, ms since the epoch
-- ARGV[2]  the claim's end, ms since the epoch, later than now
-- ARGV[3]  and on: endpoints, at most 500
-- Reply:   endpoint, VERSION|JSON, ... in the order asked, for those that were due; an empty
--          string for an endpoint without a record
-- Errors:  POOLLOST  there is no meta
--          WRONGTYPE a key is of another type
--          BADARG    a time is out of range, or there are too many endpoints
-- Twice:   takes none; what the first run took is not due
-- Cost:    O(endpoints * log(known))

local types = {'zset', 'hash', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if redis.call('EXISTS', KEYS[3]) == 0 then
  return redis.error_reply('POOLLOST the pool has no meta')
end
local now, till = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now or not till or till <= now then
  return redis.error_reply('BADARG the end of the claim is not later than now')
end
if #ARGV > 502 then
  return redis.error_reply('BADARG more than 500 endpoints')
end

local reply, taken = {}, {}
for i = 3, #ARGV do
  local endpoint = ARGV[i]
  local at = redis.call('ZSCORE', KEYS[1], endpoint)
  if at and tonumber(at) <= now and not taken[endpoint] then
    taken[endpoint] = true
    reply[#reply + 1] = endpoint
    reply[#reply + 1] = redis.call('HGET', KEYS[2], endpoint) or ''
  end
end

for i = 1, #reply, 2 do
  redis.call('ZADD', KEYS[1], 'XX', ARGV[2], reply[i])
end
return reply
