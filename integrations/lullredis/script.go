package lullredis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull/internal/choice"
)

// syncScript is the half of the account that Redis keeps. It runs in one atomic step with Redis' own
// clock. It uses two keys of one hash slot:
//
//	KEYS[1]  hash: p the pool, t when it was last filled (µs), o the tokens that all
//	         instances together hold, and for each instance i:ID its last sync:
//	         number, what it was granted, what it holds since
//	KEYS[2]  sorted set: instances by the time of their last sync
//
// Its invariants: p + o ≤ the pool's size, o is the sum over the records, and no instance holds
// more than its record. Each sync is carried out at most once, however often it arrives: a
// repetition gets the first answer, and an overtaken one does nothing.
const syncScript = `
local pool, seen, id = KEYS[1], KEYS[2], ARGV[1]
local seq, hand, give, want = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local reserve, leave = tonumber(ARGV[6]), ARGV[7] == '1'
local floor, size, alone = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local gap, recent, memory = tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- Records without the set that lets them expire: one key was lost, so both are.
if redis.call('EXISTS', seen) == 0 and redis.call('HLEN', pool) > 3 then redis.call('DEL', pool) end

local function read(record)
  if not record then return nil end
  local a, b, c = string.match(record, '^(%d+) (%d+) (%d+)$')
  return tonumber(a), tonumber(b), tonumber(c)
end

-- Instances not heard of for long are forgotten, with what they held.
local gone = redis.call('ZRANGEBYSCORE', seen, '-inf', now - memory, 'LIMIT', 0, 100)
if #gone > 0 then
  local held = 0
  for _, m in ipairs(gone) do
    local _, _, out = read(redis.call('HGET', pool, 'i:' .. m))
    held = held + (out or 0)
    redis.call('HDEL', pool, 'i:' .. m)
    redis.call('ZREM', seen, m)
  end
  redis.call('HINCRBY', pool, 'o', 0 - held) -- no minus zero
end

local h = redis.call('HMGET', pool, 'p', 't', 'o', 'i:' .. id)
local p, filled, o = tonumber(h[1] or 0), tonumber(h[2] or now), tonumber(h[3] or 0)
local last, granted, out = read(h[4])

local function answer(kind, grant)
  return {kind, seq, grant, math.floor(p * 1000), redis.call('ZCOUNT', seen, now - recent, '+inf'), redis.call('ZCARD', seen), now}
end

if last and seq < last then return answer(2, 0) end
if last and seq == last then
  redis.call('ZADD', seen, now, id)
  return answer(0, granted)
end

-- The floor, but for the part of it that instances allowed themselves while nobody
-- could sync.
local since = math.max(0, now - filled)
local rate = floor
if since > gap then rate = floor * (1 - alone) end
p = math.max(0, math.min(p + rate * since / 1000000, size - o))

-- An instance that Redis does not know (any more) has nothing to hold or to give.
local kind = 0
if not last then
  if seq > 1 then kind = 1 end
  hand, give, out = 0, 0, 0
end
hand = math.min(hand, out)
p = p + math.min(give, out - hand)
o = o - out

if leave then
  redis.call('HDEL', pool, 'i:' .. id)
  redis.call('ZREM', seen, id)
  redis.call('HSET', pool, 'p', p, 't', now, 'o', o)
  redis.call('PEXPIRE', pool, 86400000)
  return answer(kind, 0)
end

local grant = math.max(0, math.min(want, math.floor(p - reserve), math.max(1, math.floor(p / 2))))
p = p - grant
redis.call('ZADD', seen, now, id)
redis.call('HSET', pool, 'p', p, 't', now, 'o', o + hand + grant, 'i:' .. id, string.format('%.0f %.0f %.0f', seq, grant, hand + grant))
redis.call('PEXPIRE', pool, 86400000)
redis.call('PEXPIRE', seen, 86400000)
return answer(kind, grant)
`

// script is syncScript with its digest.
var script = redis.NewScript(syncScript)

// A request is one sync of one dependency, as an instance plans it.
type request struct {
	seq     int64   // 1 for the first of an instance, each one more
	held    int64   // whole tokens held, after give was taken from them
	give    int64   // whole tokens handed back
	want    int64   // whole tokens asked for
	reserve float64 // tokens to be left in the pool
	leave   bool    // the instance ends: forget it
}

// How Redis treated a request.
const (
	carriedOut = iota // now or, if it is a repetition, before
	unknown           // carried out for an instance that Redis did not know: its tokens are void
	overtaken         // not carried out: Redis has seen a later one of this instance
)

type answer struct {
	kind    int64
	seq     int64
	grant   int64         // whole tokens
	pool    float64       // tokens left
	recent  int64         // instances in step
	members int64         // instances remembered, these included
	at      time.Duration // on Redis' clock
}

// keys returns the keys of a dependency's account. The braces put both into one slot of a cluster.
func keys(prefix, name string) []string {
	at := prefix + ":{" + escape.Replace(name) + "}"
	return []string{at + ":pool", at + ":seen"}
}

// escape keeps names from ending the part of the key that decides its slot.
var escape = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// args returns the script's arguments.
func (r request) args(id string, t ledgerSettings) []any {
	return []any{
		id, r.seq, r.held, r.give, r.want, number(r.reserve), flag(r.leave),
		number(t.floor), number(t.pool), number(t.alone),
		gapAfter * t.every.Microseconds(), recentAfter * t.every.Microseconds(), rememberFor.Microseconds(),
	}
}

func flag(yes bool) string { return choice.Either(yes, "1", "0") }

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func parseAnswer(v any) (answer, error) {
	n, rest, ok := integers(v, 7)
	if !ok || len(rest) > 0 {
		return answer{}, fmt.Errorf("the script returned %v: want seven integers", v)
	}
	a := answer{n[0], n[1], n[2], float64(n[3]) / 1000, n[4], n[5], time.Duration(n[6]) * time.Microsecond}
	if a.kind < carriedOut || a.kind > overtaken || a.grant < 0 {
		return answer{}, errors.New("the script returned an answer that makes no sense: is another script's key in its place?")
	}
	return a, nil
}

// integers returns the first n elements of a list that a script has returned, and the rest.
func integers(v any, n int) (all []int64, rest []any, ok bool) {
	list, _ := v.([]any)
	if len(list) < n {
		return nil, nil, false
	}
	for _, e := range list[:n] {
		i, ok := e.(int64)
		if !ok {
			return nil, nil, false
		}
		all = append(all, i)
	}
	return all, list[n:], true
}
