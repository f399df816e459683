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
-- KEYS[6]  hash    meta; emptied_min is the lowest count when the last member went
-- ARGV[1]  now, ms since the epoch
-- ARGV[2]  start policy: a whole number from 0 to 2^52, min, median, max or zero
-- ARGV[3]  restore policy: the same words, or keep or floor
-- ARGV[4]  how long a retired count is remembered, ms
-- ARGV[5]  this host's name, for the events
-- ARGV[6]  how many events are kept, about
-- ARGV[7]  and on, eight for each item, at most 500 items:
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
-- Cost:    O(items * log(members + known)); with median and max some more commands per newcomer

-- Read and refuse.
local types = {'zset', 'hash', 'hash', 'zset', 'stream', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if redis.call('EXISTS', KEYS[6]) == 0 then
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
if (#ARGV - first + 1) % fields ~= 0 or #ARGV - first + 1 > 500 * fields then
  return redis.error_reply('BADARG expected at most 500 items of 8 fields')
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

-- The count of the member at a rank; in an empty pool, what was the lowest when it emptied.
local function count_at(rank)
  local found = redis.call('ZRANGE', KEYS[1], rank, rank, 'WITHSCORES')
  if found[2] then return sound(number(found[2])) end
  return sound(number(redis.call('HGET', KEYS[6], 'emptied_min') or '0') or 0)
end

local function count_by(policy, kept)
  if policy == 'min' then return count_at(0) end
  if policy == 'max' then return count_at(-1) end
  if policy == 'median' then
    local members = redis.call('ZCARD', KEYS[1])
    return count_at(math.max(0, math.floor((members - 1) / 2)))
  end
  if policy == 'zero' then return 0 end
  if policy == 'keep' then return kept end
  if policy == 'floor' then return math.max(kept, count_at(0)) end
  return sound(tonumber(policy))
end

-- The count that an endpoint had when it was retired, unless that is to be forgotten by now.
local function remembered(endpoint)
  local text = redis.call('HGET', KEYS[2], endpoint)
  if not text then return nil, false end
  local count, at = string.match(text, '^(.-)|(%d+)$')
  if not count or not number(count) or tonumber(at) + forget_after <= now then return nil, true end
  return sound(number(count)), true
end

local function tell(change, at, before, after, policy)
  redis.call('XADD', KEYS[5], 'MAXLEN', '~', ARGV[6], '*',
    'at_ms', ARGV[1], 'change', change, 'endpoint', ARGV[at], 'member', ARGV[at + 5],
    'previous', ARGV[at + 6], 'reason', ARGV[at + 7], 'before', before, 'after', after,
    'policy', policy, 'host', ARGV[5])
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
    redis.call('HDEL', KEYS[2], endpoint)
    tell('moved', at, had, whole(count), '')
    return 'moved', had, whole(count), ''
  end
  if has then return 'none', has, has, '' end
  local kept = remembered(endpoint)
  local policy = kept and ARGV[3] or ARGV[2]
  local before, after = kept and whole(kept) or '', whole(count_by(policy, kept))
  redis.call('ZADD', KEYS[1], 'NX', after, member)
  redis.call('HDEL', KEYS[2], endpoint)
  tell('admitted', at, before, after, policy)
  return 'admitted', before, after, policy
end

local function retire(at)
  local endpoint, member = ARGV[at], ARGV[at + 5]
  local has = redis.call('ZSCORE', KEYS[1], member)
  if not has then return 'none', '', '', '' end
  local count = whole(sound(number(has)))
  redis.call('ZREM', KEYS[1], member)
  redis.call('HSET', KEYS[2], endpoint, count .. '|' .. ARGV[1])
  if redis.call('ZCARD', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[6], 'emptied_min', count)
  end
  tell('retired', at, has, '', '')
  return 'retired', has, '', ''
end

-- Write, item by item; from here on nothing is refused but what is stale.
local reply = {}
for at = first, #ARGV, fields do
  local endpoint, json, action = ARGV[at], ARGV[at + 2], ARGV[at + 4]
  local started = tonumber(ARGV[at + 1])
  local version, old = 0, nil
  local record = redis.call('HGET', KEYS[3], endpoint)
  if record then
    local number_text, rest = string.match(record, '^(%d+)|(.*)$')
    version, old = tonumber(number_text or '0'), rest or ''
  end

  local change, before, after, policy = 'none', '', '', ''
  if started < version or (not record and started > 0) then
    -- Somebody settled it later, or forgot it: this one speaks of what is no more.
    change = 'stale'
  else
    if action == 'admit' then
      change, before, after, policy = admit(at)
    elseif action == 'retire' or (action == 'forget' and ARGV[at + 5] ~= '') then
      change, before, after, policy = retire(at)
    end
    if action == 'forget' then
      redis.call('HDEL', KEYS[3], endpoint)
      redis.call('ZREM', KEYS[4], endpoint)
    else
      if json ~= '' or (record and action ~= 'keep') then
        if json == '' then json = old end
        redis.call('HSET', KEYS[3], endpoint, whole(math.max(version, started) + 1) .. '|' .. json)
        record = json
      end
      if record and tonumber(ARGV[at + 3]) > 0 then
        redis.call('ZADD', KEYS[4], ARGV[at + 3], endpoint)
      end
    end
    local kept, there = remembered(endpoint)
    if there and not kept then redis.call('HDEL', KEYS[2], endpoint) end
  end
  reply[#reply + 1] = change
  reply[#reply + 1] = before
  reply[#reply + 1] = after
  reply[#reply + 1] = policy
end
return reply
