package hot

import "github.com/redis/go-redis/v9"

// rememberSource writes one fact unless it has to give way, and returns what was
// there, or an empty string (a nil would cost the client an error per fact). KEYS: the fact's key. ARGV: value, PX in milliseconds, and the
// highest first-seen that can be true, in microseconds.
//
// Check and write are one script because between a GET and a SET another process
// could write the tombstone that the SET would then bury: for a moment, or for
// the rest of the window, a closed row would look live. It names one key, so it
// runs in Redis Cluster. A value of another type (WRONGTYPE) is foreign, and SET
// replaces any type.
//
// A user who may call the script and not what is in it gets an error of which
// Redis 7.0 names no command, and of a GET one that looks like no value: the
// script asks (ACL_CHECK_CMD, since 7.0) and answers as for a command.
//
// Positions are one higher than in the package documentation: Lua counts from 1.
const rememberSource = `
local function seen(v)
  local a, b, c, d, e, f, g, h = string.byte(v, 5, 12)
  return ((((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g) * 256 + h
end
local function failed(reply, ...)
  if redis.acl_check_cmd and not redis.acl_check_cmd(...) then
    return redis.error_reply("NOPERM this user may call the script, but not " .. select(1, ...) .. " on key " .. KEYS[1] .. " in it")
  end
  return reply
end
local new = ARGV[1]
local was = redis.pcall('GET', KEYS[1])
if type(was) == 'table' and was.err and string.sub(was.err, 1, 9) ~= 'WRONGTYPE' then
  return failed(was, 'GET', KEYS[1])
elseif type(was) ~= 'string' then
  was = ''
elseif #was == #new and string.byte(was, 1) == string.byte(new, 1) and seen(was) <= tonumber(ARGV[3]) then
  if seen(was) > seen(new) then
    return was
  end
  local closed = string.byte(was, 2) % 2 == 1
  if closed and string.byte(new, 2) % 2 == 0 and string.sub(was, 4, 44) == string.sub(new, 4, 44) then
    return was
  end
end
local set = redis.pcall('SET', KEYS[1], new, 'PX', ARGV[2])
if set.err then
  return failed(set, 'SET', KEYS[1], new, 'PX', ARGV[2])
end
return was
`

func newRememberScript() *redis.Script { return redis.NewScript(rememberSource) }
