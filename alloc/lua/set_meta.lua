-- set_meta: sets fields of a pool's meta, if there is a meta: a lost pool must not look like an
-- empty one because somebody noted something about it.
--
-- KEYS[1]  hash  meta
-- ARGV[1], ARGV[2], then on in pairs: field, value; at most 100 pairs
-- Reply:   1
-- Errors:  POOLLOST  there is no meta
--          WRONGTYPE the key is of another type
--          BADARG    the pairs are odd or too many
-- Twice:   the same fields again
-- Cost:    O(pairs)

if redis.call('HLEN', KEYS[1]) == 0 then
  return redis.error_reply('POOLLOST the pool has no meta')
end
if #ARGV == 0 or #ARGV % 2 ~= 0 or #ARGV > 200 then
  return redis.error_reply('BADARG expected 1 to 100 pairs of field and value')
end

redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
