-- claim: takes up to n due proxies for a while, those that are due longest first.
--
-- A claim moves the due time forward to its end, so that nobody else takes the proxy meanwhile;
-- when the claimer dies, the proxy is due again by itself.
--
-- KEYS[1]  zset  due: endpoint -> when it is to be probed next, ms since the epoch
-- KEYS[2]  hash  record: endpoint -> VERSION|JSON
-- KEYS[3]  zset  named: endpoint -> when something last spoke for it, ms since the epoch
-- KEYS[4]  hash  meta
-- ARGV[1]  now, ms since the epoch
-- ARGV[2]  the claim's end, ms since the epoch, later than now
-- ARGV[3]  how many at most, a whole number from 1 to 500
-- Reply:   endpoint, VERSION|JSON, ... ; an empty string for an endpoint without a record
-- Errors:  POOLLOST  there is no meta
--          WRONGTYPE a key is of another type
--          BADARG    a number is out of range
-- Twice:   takes the next n; what the first run took is not due
-- Cost:    O(log(known) + n)

local types = {'zset', 'hash', 'zset', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if redis.call('EXISTS', KEYS[4]) == 0 then
  return redis.error_reply('POOLLOST the pool has no meta')
end
local now, till, n = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not now or not till or till <= now then
  return redis.error_reply('BADARG the end of the claim is not later than now')
end
if not n or n < 1 or n > 500 or n ~= math.floor(n) then
  return redis.error_reply('BADARG n is not a whole number from 1 to 500')
end

local endpoints = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, n)
if #endpoints == 0 then return {} end
local records = redis.call('HMGET', KEYS[2], unpack(endpoints))

local write, named, reply = {}, {}, {}
for i = 1, #endpoints do
  write[#write + 1] = ARGV[2]
  write[#write + 1] = endpoints[i]
  named[#named + 1] = ARGV[1]
  named[#named + 1] = endpoints[i]
  reply[#reply + 1] = endpoints[i]
  reply[#reply + 1] = records[i] or ''
end
redis.call('ZADD', KEYS[1], 'XX', unpack(write))
-- One that was queued by an older version, or by somebody else, gets a time from which it ages.
redis.call('ZADD', KEYS[3], 'NX', unpack(named))
return reply
