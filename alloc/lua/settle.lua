-- settle: applies a batch of verdicts: admits, retires, moves, forgets; updates the record and the
-- next due time. Refuses, one by one, what started from an older record than there is now.
--
-- The start and restore policies are decided here, from the set as it is at that moment: each
-- item sees what those before it did.
--
-- KEYS[1]  zset    eligible: member URL -> count
-- KEYS[2]  hash    retired: endpoint -> COUNT|MS, the count it had and when it went
-- KEYS[3]  hash    record: endpoint -> VERSION|JSON; the JSON is stored unread
-- KEYS[4]  zset    due: endpoint -> when it is to be probed next, ms since the epoch
-- KEYS[5]  stream  events: every change of the set
-- KEYS[6]  zset    named: endpoint -> when something last spoke for it; what is forgotten leaves it
-- KEYS[7]  hash    meta; emptied_min is the lowest count when the last member went
-- KEYS[8]  hash    reports: endpoint -> what workers said of it; of one that goes, dropped
-- ARGV[1]  now, ms since the epoch
-- ARGV[2]  start policy: a whole number from 0 to 2^52, min, median, max or zero
-- ARGV[3]  restore policy: the same words, or keep or floor
-- ARGV[4]  how long a retired count is remembered, ms
-- ARGV[5]  this host's name, for the events
-- ARGV[6]  how many events are kept, about
-- ARGV[7]  and on, eight for each item, at most 50 items:
--          endpoint; version of the record that it started from (0: there was none); new JSON
--          (empty: leave it); next due time in ms (0: leave it); keep, admit, retire or forget;
--          member URL (empty for keep); the URL it was a member under before (admit; empty: none);
--          reason, for the event
-- Reply:   four for each item: stale, none, admitted, retired or moved; count before; count after;
--          the policy that was applied (empty: none). Counts as strings, empty where there is none
-- Errors:  POOLLOST  there is no meta
--          WRONGTYPE a key is of another type
--          BADARG    a policy, a number or an action is none, or there are too many items
-- Twice:   what the first run changed is stale; what it only kept is kept again
-- Cost:    O(items * log(members + known)); three commands for one that is admitted or retired, some
--          more by median and max, none for one that is kept

-- Read and refuse.
local types = {'zset', 'hash', 'hash', 'zset', 'stream', 'zset', 'hash', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if redis.call('EXISTS', KEYS[7]) == 0 then
  return redis.error_reply('POOLLOST the pool has no meta')
end
local now, forget_after = tonumber(ARGV[1]), tonumber(ARGV[4])
if not now or not forget_after or not tonumber(ARGV[6]) then
  return redis.error_reply('BADARG a time or a length is no number')
end
local start_words = {min = true, median = true, max = true, zero = true}
local restore_words = {min = true, median = true, max = true, zero = true, keep = true, floor = true}
if not start_words[ARGV[2]] and not string.match(ARGV[2], '^%d+$') then
  return redis.error_reply('BADARG unknown start policy')
end
if not restore_words[ARGV[3]] and not string.match(ARGV[3], '^%d+$') then
  return redis.error_reply('BADARG unknown restore policy')
end
local first, fields = 7, 8
if (#ARGV - first + 1) % fields ~= 0 or #ARGV - first + 1 > 50 * fields then
  return redis.error_reply('BADARG expected at most 50 items of 8 fields')
end
local actions = {keep = true, admit = true, retire = true, forget = true}
for at = first, #ARGV, fields do
  local action = ARGV[at + 4]
  if ARGV[at] == '' or not tonumber(ARGV[at + 1]) or not tonumber(ARGV[at + 3]) or not actions[action] then
    return redis.error_reply('BADARG an item has no endpoint, version, due time or action')
  end
  if ARGV[at + 5] == '' and (action == 'admit' or action == 'retire') then
    return redis.error_reply('BADARG an item admits or retires no member')
  end
end

-- What is known of the batch's endpoints; kept up while the items are worked through, and written
-- at the end in few commands. Of a retired count: false when it is there but to be forgotten.
local endpoints = {}
for at = first, #ARGV, fields do
  endpoints[#endpoints + 1] = ARGV[at]
end
if #endpoints == 0 then return {} end
local records = redis.call('HMGET', KEYS[3], unpack(endpoints))
local counts = redis.call('HMGET', KEYS[2], unpack(endpoints))

local highest = 4503599627370496
local function number(text)
  if text == 'inf' or text == '+inf' then return math.huge end
  if text == '-inf' then return -math.huge end
  return tonumber(text)
end
local function whole(count)
  return string.format('%.0f', count)
end
-- What is given to a newcomer is a sound count, even where others have left an unsound one.
local function sound(count)
  return math.floor(math.max(0, math.min(highest, count)))
end

local version, json, kept = {}, {}, {}
for i = 1, #endpoints do
  local endpoint = endpoints[i]
  if records[i] then
    local digits, rest = string.match(records[i], '^(%d+)|(.*)$')
    version[endpoint], json[endpoint] = tonumber(digits or '0'), rest or ''
  end
  if counts[i] then
    local count, at = string.match(counts[i], '^(.-)|(%d+)$')
    local fresh = count and number(count) and tonumber(at) + forget_after > now
    kept[endpoint] = fresh and sound(number(count)) or false
  end
end
local changed_record, changed_due, changed_kept, forgotten, left = {}, {}, {}, {}, {}

-- The count of the member at a rank; in an empty pool, what was the lowest when it emptied.
local function count_at(rank)
  local found = redis.call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')
  if found[2] then return sound(number(found[2])) end
  return sound(number(redis.call('HGET', KEYS[7], 'emptied_min') or '0') or 0)
end

-- The lowest count: read once, and again when a member left or the first one came: what an empty
-- pool remembers is nobody's count, and the first member's may be larger.
local lowest_count
local function lowest()
  if lowest_count then return lowest_count end
  local count = count_at(0)
  if redis.call('ZCARD', KEYS[1]) > 0 then lowest_count = count end
  return count
end

local function count_by(policy, kept_count)
  if policy == 'min' then return lowest() end
  if policy == 'max' then return count_at(-1) end
  if policy == 'median' then
    local members = redis.call('ZCARD', KEYS[1])
    return count_at(math.max(0, math.floor((members - 1) / 2)))
  end
  if policy == 'zero' then return 0 end
  if policy == 'keep' then return kept_count end
  if policy == 'floor' then return math.max(kept_count, lowest()) end
  return sound(tonumber(policy))
end

local function tell(change, at, before, after, policy)
  redis.call('XADD', KEYS[5], 'MAXLEN', '~', ARGV[6], '*',
    'at_ms', ARGV[1], 'change', change, 'endpoint', ARGV[at], 'member', ARGV[at + 5],
    'previous', ARGV[at + 6], 'reason', ARGV[at + 7], 'before', before, 'after', after,
    'policy', policy, 'host', ARGV[5])
end

local function forget_count(endpoint)
  if kept[endpoint] ~= nil then
    kept[endpoint], changed_kept[endpoint] = nil, true
  end
end

local function admit(at)
  local endpoint, member, previous = ARGV[at], ARGV[at + 5], ARGV[at + 6]
  local has = redis.call('ZSCORE', KEYS[1], member)
  local had = previous ~= '' and previous ~= member and redis.call('ZSCORE', KEYS[1], previous)
  if had then
    local count = sound(number(had))
    if has then count = math.max(count, sound(number(has))) end
    redis.call('ZREM', KEYS[1], previous)
    redis.call('ZADD', KEYS[1], has and 'XX' or 'NX', whole(count), member)
    lowest_count = nil
    forget_count(endpoint)
    tell('moved', at, had, whole(count), '')
    return 'moved', had, whole(count), ''
  end
  if has then return 'none', has, has, '' end
  local kept_count = kept[endpoint]
  local policy = kept_count and ARGV[3] or ARGV[2]
  local count = count_by(policy, kept_count)
  local before, after = kept_count and whole(kept_count) or '', whole(count)
  redis.call('ZADD', KEYS[1], 'NX', after, member)
  if lowest_count then lowest_count = math.min(lowest_count, count) end
  forget_count(endpoint)
  tell('admitted', at, before, after, policy)
  return 'admitted', before, after, policy
end

local function retire(at)
  local endpoint, member = ARGV[at], ARGV[at + 5]
  local has = redis.call('ZSCORE', KEYS[1], member)
  if not has then return 'none', '', '', '' end
  local count = sound(number(has))
  redis.call('ZREM', KEYS[1], member)
  lowest_count = nil
  kept[endpoint], changed_kept[endpoint] = count, true
  left[#left + 1] = endpoint
  if redis.call('ZCARD', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[7], 'emptied_min', whole(count))
  end
  tell('retired', at, has, '', '')
  return 'retired', has, '', ''
end

-- Write: the set and the events item by item. From here on nothing is refused but what is stale.
local reply = {}
for at = first, #ARGV, fields do
  local endpoint, action = ARGV[at], ARGV[at + 4]
  local started = tonumber(ARGV[at + 1])
  local change, before, after, policy = 'none', '', '', ''
  if started < (version[endpoint] or 0) or (not version[endpoint] and started > 0) then
    -- Somebody settled it later, or forgot it: this one speaks of what is no more.
    change = 'stale'
  else
    if action == 'admit' then
      change, before, after, policy = admit(at)
    elseif action == 'retire' or (action == 'forget' and ARGV[at + 5] ~= '') then
      change, before, after, policy = retire(at)
    end
    if action == 'forget' then
      version[endpoint], json[endpoint] = nil, nil
      changed_record[endpoint], changed_due[endpoint] = true, false
      forgotten[endpoint] = true
    else
      if ARGV[at + 2] ~= '' then json[endpoint] = ARGV[at + 2] end
      if json[endpoint] and (ARGV[at + 2] ~= '' or action ~= 'keep') then
        version[endpoint] = math.max(version[endpoint] or 0, started) + 1
        changed_record[endpoint] = true
      end
      if json[endpoint] and tonumber(ARGV[at + 3]) > 0 then
        changed_due[endpoint] = ARGV[at + 3]
      end
    end
    if kept[endpoint] == false then forget_count(endpoint) end
  end
  reply[#reply + 1] = change
  reply[#reply + 1] = before
  reply[#reply + 1] = after
  reply[#reply + 1] = policy
end

-- Write: the rest at once.
local function write(command, key, list)
  if #list > 0 then redis.call(command, key, unpack(list)) end
end
local set, gone = {}, {}
for endpoint in pairs(changed_record) do
  if version[endpoint] then
    set[#set + 1] = endpoint
    set[#set + 1] = whole(version[endpoint]) .. '|' .. json[endpoint]
  else
    gone[#gone + 1] = endpoint
  end
end
write('HSET', KEYS[3], set)
write('HDEL', KEYS[3], gone)
set, gone = {}, {}
for endpoint, due in pairs(changed_due) do
  if due then
    set[#set + 1] = due
    set[#set + 1] = endpoint
  else
    gone[#gone + 1] = endpoint
  end
end
write('ZADD', KEYS[4], set)
write('ZREM', KEYS[4], gone)
set, gone = {}, {}
for endpoint in pairs(changed_kept) do
  if kept[endpoint] then
    set[#set + 1] = endpoint
    set[#set + 1] = whole(kept[endpoint]) .. '|' .. ARGV[1]
  else
    gone[#gone + 1] = endpoint
  end
end
write('HSET', KEYS[2], set)
write('HDEL', KEYS[2], gone)
set, gone = {}, {}
for endpoint in pairs(forgotten) do gone[#gone + 1] = endpoint end
write('ZREM', KEYS[6], gone)
write('HDEL', KEYS[8], left)
return reply
