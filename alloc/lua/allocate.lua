-- allocate: n times in one call, choose the member with the lowest count and add one to it.
--
-- The answer and the set are exactly those of n runs of the classic script
-- (ZRANGE 0 0, ZINCRBY 1) one after the other, equal counts being decided by the member's bytes.
--
-- KEYS[1]  zset  eligible: member URL -> count
-- KEYS[2]  hash  meta; looked at only when the set is empty
-- ARGV[1]  how many, a whole number from 1 to 500
-- Reply:   what was allocated, in that order, as strings: where all have one count afterwards, the
--          members and then that count; else member, count, member, count, ... and then an empty
--          string. Empty when the pool is empty
-- Errors:  POOLLOST  the set and meta are both gone: the pool was never made, or it was lost
--          WRONGTYPE KEYS[1] is no sorted set
--          BADARG    ARGV[1] is out of range
-- Twice:   allocates again. A caller that does not know whether it ran must not run it again.
-- Cost:    O(log(members) + n); one read and one write, whatever n is, and where n is not 1, two
--          looks at a score or a second read

local n = tonumber(ARGV[1])
if not n or n < 1 or n > 500 or n ~= math.floor(n) then
  return redis.error_reply('BADARG n is not a whole number from 1 to 500')
end

-- Counts that others wrote may be infinite, which not every Lua reads.
local function number(text)
  if text == 'inf' or text == '+inf' then return math.huge end
  if text == '-inf' then return -math.huge end
  return tonumber(text)
end

local function whole(count)
  return count % 1 == 0 and count > -2^52 and count < 2^52
end

-- Read: n picks can touch no more than the n lowest members.
local low
if n > 1 then
  low = redis.call('ZRANGE', KEYS[1], 0, n - 1)
else
  low = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
end
if #low == 0 then
  if redis.call('EXISTS', KEYS[2]) == 0 then
    return redis.error_reply('POOLLOST the pool has neither members nor meta')
  end
  return {}
end

if n == 1 then
  local count = number(low[2])
  if whole(count) then
    local text = string.format('%.0f', count + 1)
    redis.call('ZADD', KEYS[1], 'XX', text, low[1])
    low[2] = text
    return low
  end
else
  -- Mostly the n lowest have one count: then each is picked once, in the order as read. The first
  -- and the last score tell, and cost less than all of them.
  local text = redis.call('ZSCORE', KEYS[1], low[1])
  if #low == n and text == redis.call('ZSCORE', KEYS[1], low[n]) then
    local count = number(text)
    if whole(count) then
      text = string.format('%.0f', count + 1)
      local write = {}
      for i = 1, n do
        write[2 * i - 1], write[2 * i] = text, low[i]
      end
      redis.call('ZADD', KEYS[1], 'XX', unpack(write))
      low[n + 1] = text
      return low
    end
  end
  low = redis.call('ZRANGE', KEYS[1], 0, n - 1, 'WITHSCORES')
end

-- Lua's own < on strings goes by the server's locale, the sorted set by bytes.
local function bytes_less(a, b)
  local shorter = math.min(#a, #b)
  local at = 1
  while at <= shorter do
    local a1, a2, a3, a4 = string.byte(a, at, at + 3)
    local b1, b2, b3, b4 = string.byte(b, at, at + 3)
    if a1 ~= b1 then return a1 < b1 end
    if a2 ~= b2 then return (a2 or -1) < (b2 or -1) end
    if a3 ~= b3 then return (a3 or -1) < (b3 or -1) end
    if a4 ~= b4 then return (a4 or -1) < (b4 or -1) end
    at = at + 4
  end
  return #a < #b
end

-- Two queues, both in order: the members as read, and those that were bumped. Picks come in
-- ascending order, so a bumped member belongs at the end of the second queue. Only where adding
-- one rounds (foreign counts: fractions, beyond 2^53, infinite) can it belong further forward.
local read_member, read_count = {}, {}
local exact = true
local last_text, last_count
for i = 1, #low / 2 do
  local text = low[2 * i]
  if text ~= last_text then -- most have the same
    last_text, last_count = text, number(text)
    exact = exact and whole(last_count)
  end
  read_member[i], read_count[i] = low[2 * i - 1], last_count
end
local bumped_member, bumped_count = {}, {}
local read_at, bumped_at, bumped_end = 1, 1, 0

local changed = {}
local reply = {}
local a, b = read_count[1], nil
for pick = 1, n do
  local member, count
  if a and (not b or a < b or (a == b and bytes_less(read_member[read_at], bumped_member[bumped_at]))) then
    member, count = read_member[read_at], a + 1
    read_at = read_at + 1
    a = read_count[read_at]
  else
    member, count = bumped_member[bumped_at], b + 1
    bumped_at = bumped_at + 1
  end
  local at = bumped_end
  while not exact and at >= bumped_at and (bumped_count[at] > count
      or (bumped_count[at] == count and bytes_less(member, bumped_member[at]))) do
    bumped_member[at + 1], bumped_count[at + 1] = bumped_member[at], bumped_count[at]
    at = at - 1
  end
  bumped_member[at + 1], bumped_count[at + 1] = member, count
  bumped_end = bumped_end + 1
  b = bumped_count[bumped_at]
  changed[member] = count
  reply[2 * pick - 1] = member
  reply[2 * pick] = string.format('%.17g', count)
end

-- Write: in one command. XX, because an allocation never adds a member.
local write = {}
local written, text
for i = 1, read_at - 1 do
  local member = read_member[i]
  local count = changed[member]
  if count ~= written then
    written, text = count, string.format('%.17g', count)
  end
  write[2 * i - 1] = text
  write[2 * i] = member
end
redis.call('ZADD', KEYS[1], 'XX', unpack(write))
reply[2 * n + 1] = ''
return reply
