-- repair: puts counts that are no whole numbers from 0 to 2^52 to the pool's lowest sound count.
--
-- The caller finds suspects with ZSCAN; the script looks at each again, since it may have been
-- put right, removed or rewritten meanwhile.
--
-- KEYS[1]  zset  eligible: member URL -> count
-- KEYS[2]  hash  meta; its emptied_min is used where no member has a sound count
-- ARGV[1]  and on: members that are suspected, at most 500
-- Reply:   member, count before, count after, ... for those that were put right; counts as strings
-- Errors:  WRONGTYPE a key is of another type
--          BADARG    there are too many members
-- Twice:   nothing the second time
-- Cost:    O(members given * log(members)), and a walk over the unsound counts between 0 and the
--          lowest sound one: fractions, of which an honest pool has none

local types = {'zset', 'hash'}
for i = 1, #types do
  local is = redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= types[i] then
    return redis.error_reply('WRONGTYPE key ' .. KEYS[i] .. ' is a ' .. is .. ', not a ' .. types[i])
  end
end
if #ARGV > 500 then
  return redis.error_reply('BADARG more than 500 members')
end

local function number(text)
  if text == 'inf' or text == '+inf' then return math.huge end
  if text == '-inf' then return -math.huge end
  return tonumber(text)
end
local highest = 4503599627370496
local function sound(count)
  return count >= 0 and count <= highest and count == math.floor(count)
end

local function lowest_sound()
  local skip = 0
  while true do
    local page = redis.call('ZRANGEBYSCORE', KEYS[1], 0, '4503599627370496',
      'WITHSCORES', 'LIMIT', skip, 100)
    if #page == 0 then break end
    for i = 2, #page, 2 do
      local count = number(page[i])
      if sound(count) then return count end
    end
    skip = skip + 100
  end
  return number(redis.call('HGET', KEYS[2], 'emptied_min') or '0') or 0
end

local unsound = {}
for i = 1, #ARGV do
  local text = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if text and not sound(number(text)) then
    unsound[#unsound + 1] = {ARGV[i], text}
  end
end
if #unsound == 0 then return {} end
local lowest = string.format('%.17g', lowest_sound())

local reply = {}
for i = 1, #unsound do
  redis.call('ZADD', KEYS[1], 'XX', lowest, unsound[i][1])
  reply[#reply + 1] = unsound[i][1]
  reply[#reply + 1] = unsound[i][2]
  reply[#reply + 1] = lowest
end
return reply
