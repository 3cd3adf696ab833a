/** Encodes an optional text as two arguments, a flag and the text, since scripts have no absent argument. */
export function optional(text: string | undefined): [string, string] {
  return text === undefined ? ['0', ''] : ['1', text];
}

/**
 * Compares and sets a value. Arguments: the expected and the next text, as {@link optional} encodes them; the TTL in
 * milliseconds or an empty text; whether a longer TTL is kept. Returns nothing when done, else a list with the present value.
 */
const compareAndSet = `
local expected = ARGV[1] == '1' and ARGV[2]
local ttl = tonumber(ARGV[5])
local value = redis.call('GET', KEYS[1])
if value ~= expected then return {value} end
if ARGV[3] == '0' then
  redis.call('DEL', KEYS[1])
elseif not ttl then
  redis.call('SET', KEYS[1], ARGV[4])
else
  local left = ARGV[6] == '1' and redis.call('PTTL', KEYS[1]) or -2
  if left == -1 or left > ttl then
    redis.call('SET', KEYS[1], ARGV[4], 'KEEPTTL')
  else
    redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
  end
end
return false
`;

/**
 * Takes from a token bucket, which is stored as its missing tokens and a time. Arguments: most tokens, window in milliseconds,
 * tokens to take, and debt. Returns in one text: tokens granted, milliseconds to wait, tokens left. A number in a reply would
 * lose its fraction, and Lua's own conversion to text all digits after the fourteenth.
 */
const takeTokens = `
local max, window, n, debt = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local used, at = 0, now
local bucket = redis.call('GET', KEYS[1])
if bucket then
  local first, second = string.match(bucket, '^(%S+) (%S+)$')
  first, second = tonumber(first), tonumber(second)
  -- What is no bucket, or could never have been one, is as good as none.
  if first and second and math.abs(first) < 1e15 and math.abs(second) < 1e15 then used, at = first, second end
end
local elapsed = math.max(now - at, 0)
local owed = math.max(used - elapsed * max / window, 0) + debt
local granted = math.min(n, math.max(0, math.floor(max - owed + 1e-6)))
used = owed + granted
local left = max - used
local wait = 0
if granted < n then wait = math.max(0, math.ceil((1 - left) * window / max)) end
local ttl = math.ceil(used * window / max)
if ttl > 0 then
  local kept = string.format('%.17g %.17g', used, now)
  redis.call('SET', KEYS[1], kept, 'PX', string.format('%.0f', math.min(ttl, 1e15)))
else
  redis.call('DEL', KEYS[1])
end
return string.format('%.17g %.17g %.17g', granted, wait, left)
`;

/** The scripts in Lua, each on one key, which run on the server as one atomic step. The library adds a command for each. */
export const scripts = {
  compareAndSet: { numberOfKeys: 1, lua: compareAndSet },
  takeTokens: { numberOfKeys: 1, lua: takeTokens },
};

/** The commands that the library adds. */
export type Scripted = Readonly<Record<keyof typeof scripts, (key: string, ...words: string[]) => Promise<unknown>>>;
