-- init: makes a pool's meta, if it is missing.
--
-- KEYS[1]  hash  meta
-- ARGV[1]  schema version, a whole number
-- ARGV[2]  now, ms since the epoch
-- Reply:   1 when meta was made, 0 when it was there
-- Errors:  WRONGTYPE the key is of another type
--          SCHEMA    the pool was made under another schema version; the text names it
-- Twice:   0 the second time
-- Cost:    O(1)

local schema = redis.call('HGET', KEYS[1], 'schema')
if schema == ARGV[1] then return 0 end
if schema then
  return redis.error_reply('SCHEMA the pool has schema version ' .. schema .. ', not ' .. ARGV[1])
end

redis.call('HSET', KEYS[1], 'schema', ARGV[1], 'created_ms', ARGV[2])
redis.call('HSETNX', KEYS[1], 'generation', '1')
return 1
