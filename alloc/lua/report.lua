-- report: takes down what a worker says of a member, and brings its next probe forward. It retires
-- nobody: that is for probes to decide.
--
-- KEYS[1]  zset  eligible: member URL -> count
-- KEYS[2]  hash  reports: endpoint -> OK|FAILED|BLOCKED|MS|MS|TARGET=N,TARGET=N: how many said so, when
--                the last one did, when a probe was last brought forward, and by whom it is blocked
-- KEYS[3]  zset  due: endpoint -> when it is to be probed next, ms since the epoch
-- ARGV[1]  member URL
-- ARGV[2]  its endpoint
-- ARGV[3]  ok, failed or blocked
-- ARGV[4]  by which target it is blocked, of [A-Za-z0-9._-]; empty: not told
-- ARGV[5]  now, ms since the epoch
-- ARGV[6]  how long after it was brought forward a probe is not brought forward again, ms
-- Reply:   none (it is no member), counted, or forward (counted, and its probe brought forward)
-- Errors:  WRONGTYPE a key is of another type
--          BADARG    an outcome, a target or a time is none
-- Twice:   counts again, and brings nothing forward again
-- Cost:    O(log(members + known))

local types = {'zset', 'hash', 'zset'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
local which = {ok = 1, failed = 2, blocked = 3}
local now, pause = tonumber(ARGV[5]), tonumber(ARGV[6])
if not which[ARGV[3]] or not now or not pause or #ARGV[4] > 64 or string.find(ARGV[4], '[^%w._-]') then
  return redis.error_reply('BADARG no outcome, target or time')
end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 'none' end

local counts, forward, targets = {0, 0, 0}, 0, {}
local known = redis.call('HGET', KEYS[2], ARGV[2])
if known then
  local ok, failed, blocked, _, brought, list = string.match(known, '^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(.*)$')
  if ok then
    counts, forward = {tonumber(ok), tonumber(failed), tonumber(blocked)}, tonumber(brought)
    for name, n in string.gmatch(list, '([%w._-]+)=(%d+)') do
      targets[#targets + 1] = {name, tonumber(n)}
    end
  end
end

-- Of some hundred, the newer half counts for more: what was said long ago fades.
local function halve(n) return math.floor(n / 2) end
if counts[1] + counts[2] + counts[3] >= 200 then
  counts = {halve(counts[1]), halve(counts[2]), halve(counts[3])}
  local left = {}
  for _, target in ipairs(targets) do
    if target[2] > 1 then left[#left + 1] = {target[1], halve(target[2])} end
  end
  targets = left
end
counts[which[ARGV[3]]] = counts[which[ARGV[3]]] + 1
if ARGV[3] == 'blocked' and ARGV[4] ~= '' then
  local found
  for _, target in ipairs(targets) do
    if target[1] == ARGV[4] then target[2], found = target[2] + 1, true end
  end
  if not found and #targets < 8 then targets[#targets + 1] = {ARGV[4], 1} end
end

local due = redis.call('ZSCORE', KEYS[3], ARGV[2])
local brings = ARGV[3] ~= 'ok' and due and tonumber(due) > now and now - forward >= pause
if brings then forward = now end
local list = {}
for i, target in ipairs(targets) do list[i] = target[1] .. '=' .. string.format('%.0f', target[2]) end
redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f|%.0f|%.0f|%.0f|%.0f|', counts[1], counts[2], counts[3], now, forward)
  .. table.concat(list, ','))
if not brings then return 'counted' end
redis.call('ZADD', KEYS[3], 'XX', ARGV[5], ARGV[2])
return 'forward'
