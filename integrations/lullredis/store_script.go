package lullredis

import "github.com/redis/go-redis/v9"

// An entry is a hash:
//
//	f  fingerprint
//	t  token of the owner
//	l  end of its lease, in ms of Redis' clock
//	r  there if the owner was resumed
//	d  the record; there if the entry is completed
//
// and its forget-at is the key's expiry. Each method of the Store is one script on that
// one key, so it is atomic, and it has Redis' clock.

const clock = `
local c = redis.call('TIME')
local now = c[1] * 1000 + math.floor(c[2] / 1000)
`

// claimScript: ARGV fingerprint, token, lease ms, retention ms, '1' to resume, the caller's
// deadline in ms of Redis' clock, empty for none. It returns state, resumed, remaining ms, now in ms, and the
// record. The state is late if it comes too late to change anything.
var claimScript = redis.NewScript(clock + `
local e = redis.call('HMGET', KEYS[1], 'f', 't', 'l', 'r', 'd')
local fp, token, lease, retention = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local resumed = e[4] and 1 or 0
if e[1] then
  if e[1] ~= fp then return {4, 0, 0, now} end
  if e[5] then return {3, 0, 0, now, e[5]} end
  if e[2] ~= token then
    local left = tonumber(e[3]) - now
    if left > 0 then return {2, 0, left, now} end
    if ARGV[5] ~= '1' then return {5, 0, 0, now} end
    resumed = 1
  end
end
if ARGV[6] ~= '' and now >= tonumber(ARGV[6]) then return {0, 0, 0, now} end
redis.call('HSET', KEYS[1], 'f', fp, 't', token, 'l', now + lease)
if resumed == 1 then redis.call('HSET', KEYS[1], 'r', 1) end
redis.call('PEXPIRE', KEYS[1], retention)
return {1, resumed, 0, now}
`)

// The other scripts return 1, or 0 for a caller that does not own the key.

// extendScript: ARGV token, lease ms, retention ms.
var extendScript = redis.NewScript(clock + `
local e = redis.call('HMGET', KEYS[1], 't', 'd')
if e[1] ~= ARGV[1] or e[2] then return 0 end
redis.call('HSET', KEYS[1], 'l', now + tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`)

// completeScript: ARGV token, record, retention ms.
var completeScript = redis.NewScript(`
local t = redis.call('HGET', KEYS[1], 't')
if t ~= ARGV[1] then return 0 end
if redis.call('HSETNX', KEYS[1], 'd', ARGV[2]) == 1 then
  redis.call('HDEL', KEYS[1], 'l', 'r')
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
`)

// releaseScript: ARGV token.
var releaseScript = redis.NewScript(`
local e = redis.call('HMGET', KEYS[1], 't', 'd')
if e[1] ~= ARGV[1] or e[2] then return 0 end
redis.call('DEL', KEYS[1])
return 1
`)
