package torture

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/seed"
)

// answeredWell are attempts of which the last had a good answer.
func answeredWell(list []Attempt) []Attempt {
	list[len(list)-1].Good = true
	return list
}

// goneOn are attempts of which the one before the last had a good answer.
func goneOn(list []Attempt) []Attempt {
	list[len(list)-2].Good = true
	return list
}

// left are attempts that the client has left, but for the last if it is still open.
func left(open bool, arrived ...time.Duration) []Attempt {
	list := tries(0, arrived...)
	for i := range list {
		list[i].Answered = 0
		if i+1 < len(list) || !open {
			list[i].Gone = list[i].Arrived + time.Second
		}
	}
	return list
}

func unended(at time.Duration) []Finished { return []Finished{{End: at, Ended: "the case is over"}} }

// ranged is a first attempt, and others with those values of Range.
func ranged(values ...string) []Attempt {
	list := tries(0, make([]time.Duration, 1+len(values))...)
	for i, v := range values {
		if v != "" {
			list[i+1].Header = http.Header{"Range": {v}, "If-Range": {`"v1"`}}
		}
	}
	return list
}

func unconditional(list []Attempt) []Attempt {
	for _, a := range list {
		delete(a.Header, "If-Range")
	}
	return list
}

// waiting is many calls that wait so before their retries. Each is good at last, and so is its call.
func waiting(calls int, waits ...time.Duration) Seen {
	s := growing(calls, 0, waits...)
	for i := range calls {
		s.Finished = append(s.Finished, Finished{Call: i, OK: true})
	}
	for i, a := range s.Attempts {
		s.Attempts[i].Good = a.Number == len(waits)+1
	}
	return s
}

// callsOf is so many calls, each of which ends so and has those attempts.
func callsOf(n int, one func(i int) (Finished, []Attempt)) (s Seen) {
	for i := range n {
		end, list := one(i)
		end.Call = i
		s.Finished = append(s.Finished, end)
		for k, a := range list {
			a.Call, a.Number = i, k+1
			s.Attempts = append(s.Attempts, a)
		}
	}
	return s
}

// several is so many calls with so many attempts each, one after the other, of which the first ones succeed.
func several(calls, attempts, ok int) Seen {
	return callsOf(calls, func(i int) (Finished, []Attempt) { return Finished{OK: i < ok}, make([]Attempt, attempts) })
}

// onConnection is the same attempt on a connection each.
func (s Seen) onConnections(of int) Seen {
	for i := range s.Attempts {
		s.Attempts[i].Conn = 1 + i%of
	}
	return s
}

// as is what was seen of a client that does these things at all.
func (s Seen) as(names ...string) Seen {
	for _, name := range names {
		s.traits = s.traits.with(name, nil)
	}
	return s
}

const (
	retries = "status-503"
	hints   = "hint-seconds-503"
	atOnce  = "wait-first"
	hedger  = "hedge-get"
)

// afterOutage is calls that begin after the outage of the recovery cases, of which the first ones succeed.
func afterOutage(calls, ok int) Seen {
	return callsOf(calls, func(i int) (Finished, []Attempt) { return Finished{Start: 7 * time.Second, OK: i < ok}, nil })
}

// crowdOf is so many first attempts and retries just after the outage of the recovery cases. 25 calls are usual then.
func crowdOf(calls, retries int) Seen {
	var s Seen
	for i := range calls + retries {
		number := 1
		if i >= calls {
			number = 2
		}
		s.Attempts = append(s.Attempts, Attempt{Call: i % calls, Number: number, Arrived: 3100 * ms})
	}
	return s
}

// breaking is calls in the last two seconds of volume-breaker, and so many requests.
func breaking(calls, requests int) Seen {
	s := callsOf(calls, func(int) (Finished, []Attempt) { return Finished{Start: 5 * time.Second}, nil })
	s.Attempts = slices.Repeat([]Attempt{{Arrived: 5 * time.Second}}, requests)
	return s
}

// slowCalls is calls that come when the server of hedge-slow has become slow, with so many requests each in ten.
func slowCalls(calls, inTen int) Seen {
	return callsOf(calls, func(i int) (Finished, []Attempt) {
		return Finished{}, slices.Repeat([]Attempt{{Arrived: 3 * time.Second}}, 1+(inTen-10+i%10)/10)
	})
}

// after is what is seen of other calls, and then of these.
func after(before, s Seen) Seen {
	for _, a := range before.Attempts {
		a.Call += 1000
		s.Attempts = append(s.Attempts, a)
	}
	return s
}

// hedgeOf is the slow call of the hedging cases, with so many attempts, the first of which was cancelled or not, and those before it,
// which took so long.
func hedgeOf(usual time.Duration, attempts int, cancelled, ok bool) Seen {
	return callsOf(hedgedCall+1, func(i int) (Finished, []Attempt) {
		if i < hedgedCall {
			return Finished{End: usual, OK: true}, nil
		}
		list := []Attempt{{}, {Arrived: time.Second}}[:attempts]
		if cancelled {
			list[0].Gone = 1100 * ms
		}
		return Finished{OK: ok}, list
	})
}

func header(list []Attempt, name string, values ...string) []Attempt {
	for i, v := range values {
		list[i].Header = http.Header{name: {v}}
	}
	return list
}

// herds is the six rounds of wait-herd, of which so many come back together.
func herds(together int) Seen {
	return rounds(func(round, i int) int { return i * 100 * min(1, max(0, round+1-together)) })
}

// two is a first call with one attempt, and a second with so many, of which the first came on a connection.
func two(second []Attempt, connection int, end Finished) Seen {
	s := Seen{Attempts: []Attempt{{Number: 1, Conn: 1}}, Finished: []Finished{{OK: true}, end}}
	for i, a := range second {
		a.Call, a.Conn = 1, connection+i
		s.Attempts = append(s.Attempts, a)
	}
	return s
}

// ownKeysOf is two calls with two attempts each, which have these keys.
func ownKeysOf(keys ...string) Seen {
	var s Seen
	for i, key := range keys {
		s.Attempts = append(s.Attempts, Attempt{Call: i / 2, Number: 1 + i%2, Header: http.Header{"Idempotency-Key": {key}}})
	}
	return s
}

// situations are what may be seen of a client: a part of the text of the rule that applies, and the grade in each case that
// has another judge or other rules.
var situations = []struct {
	seen   Seen
	says   string
	grades string
}{
	// statuses, and connections that break
	{Seen{Attempts: answeredWell(tries(0, 0, 100*ms)), Finished: ended(true, 102*ms)}, "takes the 200", "status-503=pass status-500=pass"},
	{Seen{Attempts: tries(0, 0, 100*ms), Finished: ended(false, 102*ms)}, "gives up after it has repeated", "status-503=pass status-500=pass"},
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}.as(retries), "does not repeat it", "status-503=warn status-500=pass status-429=pass"},
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}, "no retries", "status-503=n/a status-500=n/a status-429=n/a"},
	{Seen{Attempts: tries(0, 0), Finished: ended(true, ms)}, "success without a good answer", "status-503=fail status-500=fail status-429=fail"},
	{Seen{Attempts: tries(0, 0, ms), Finished: ended(true, ms)}, "success without a good answer", "status-503=fail status-500=fail status-429=fail"},
	{Seen{Attempts: goneOn(tries(0, 0, ms, 2*ms)), Finished: ended(false, 2*ms)}, "goes on after an attempt was answered", "status-503=fail status-500=fail status-429=fail"},
	{Seen{Attempts: answeredWell(tries(0, 0, ms)), Finished: ended(false, 2*ms)}, "cannot use the 200", "status-503=n/a status-500=n/a status-429=n/a"},
	{Seen{Attempts: tries(0, 0), Finished: unended(24 * time.Second)}, "does not end", "status-503=fail status-500=fail status-429=fail"},
	{waiting(40, 100*ms), "takes the 200", "status-429=pass"},
	{vain(waiting(40, 100*ms)), "gives up after it has repeated", "status-429=pass"},
	{waiting(40, ms), "without a wait", "status-429=warn"},
	{waiting(14, ms), "too few retries", "status-429=n/a"},
	{Seen{Attempts: tries(0, make([]time.Duration, 10)...), Finished: ended(false, time.Second)}, "at most ten attempts", "status-always=pass"},
	{Seen{Attempts: tries(0, make([]time.Duration, 11)...), Finished: ended(false, time.Second)}, "more than ten attempts", "status-always=warn"},
	{Seen{Attempts: tries(0, 0, time.Second), Finished: unended(24 * time.Second)}, "still tries", "status-always=warn"},
	{Seen{Attempts: tries(0, 0), Finished: ended(true, ms)}, "success without", "status-always=fail"},
	{Seen{Attempts: answeredWell(tries(0, 0)), Finished: ended(true, ms)}, "takes the 200", "status-early-hints=pass connection-tls=pass"},
	{Seen{Attempts: answeredWell(tries(0, 0)), Finished: ended(false, ms)}, "reports a failure", "status-early-hints=fail connection-tls=fail"},
	{Seen{Accepted: 1, Finished: ended(false, ms)}, "not told of the certificate", "connection-tls=n/a"},
	{Seen{Attempts: answeredWell(tries(0, 0, 100*ms)), Finished: ended(true, 102*ms)}, "takes the 200", "broken-reset=pass broken-in-status=pass broken-body=pass"},
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}.as(retries), "does not repeat it", "broken-reset=warn broken-in-status=pass"},
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}, "reports the failure", "broken-body=pass"},
	{Seen{Attempts: tries(0, 0, ms), Finished: ended(false, ms)}, "gives up after it has repeated", "broken-body=pass"},
	{Seen{Attempts: tries(0, 0), Finished: ended(true, ms)}, "half an answer", "broken-body=fail"},
	{Seen{Attempts: tries(0, 0, ms), Finished: ended(true, ms)}, "half an answer", "broken-body=fail"},
	{Seen{Attempts: tries(0, 0), Finished: unended(24 * time.Second)}, "does not end", "broken-body=fail"},
	{Seen{Attempts: ranged("bytes=400-"), Finished: ended(true, ms)}, "takes it", "resume-cut=pass"},
	{Seen{Attempts: ranged("bytes=400-"), Finished: ended(true, ms)}, "takes another answer", "resume-changed=fail"},
	{Seen{Attempts: ranged("bytes=400-"), Finished: ended(false, ms)}, "reports a failure", "resume-cut=warn"},
	{Seen{Attempts: ranged("bytes=400-"), Finished: ended(false, ms)}, "reports the failure", "resume-changed=pass"},
	{Seen{Attempts: ranged("bytes=400-", ""), Finished: ended(true, ms)}, "the whole once more", "resume-cut=pass resume-changed=pass"},
	{Seen{Attempts: ranged("bytes=401-"), Finished: ended(true, ms)}, "leaves out bytes", "resume-cut=fail resume-changed=fail"},
	{Seen{Attempts: unconditional(ranged("bytes=400-")), Finished: ended(true, ms)}, "without If-Range", "resume-cut=warn resume-changed=warn"},
	{Seen{Attempts: ranged(""), Finished: ended(true, ms)}, "does not ask for the rest", "resume-cut=n/a resume-changed=n/a"},
	{Seen{Attempts: ranged("bytes=400-"), Finished: unended(24 * time.Second)}, "does not end", "resume-cut=fail resume-changed=fail"},
	{Seen{Accepted: 2, Attempts: answeredWell(tries(0, 0)), Finished: ended(true, ms)}, "takes the 200", "broken-accept-reset=pass"},
	{Seen{Accepted: 2, Finished: ended(false, ms)}, "gives up after it has repeated", "broken-accept-reset=pass"},
	{Seen{Accepted: 2, Attempts: goneOn(tries(0, 0, ms)), Finished: ended(false, ms)}, "goes on after an attempt was answered", "broken-accept-reset=fail"},
	{Seen{Accepted: 2, Attempts: answeredWell(tries(0, 0)), Finished: ended(false, ms)}, "cannot use the 200", "broken-accept-reset=n/a"},
	{Seen{Accepted: 1, Finished: ended(false, ms)}.as(retries), "does not repeat it", "broken-accept-reset=warn"},
	{Seen{Accepted: 1, Finished: ended(false, ms)}, "no retries", "broken-accept-reset=n/a"},
	{Seen{Accepted: 1, Finished: ended(true, ms)}, "success without", "broken-accept-reset=fail"},
	{Seen{Accepted: 1, Finished: unended(24 * time.Second)}, "does not end", "broken-accept-reset=fail"},
	{two(tries(0, 0, ms), 1, Finished{OK: true}), "takes the 200", "broken-idle=pass"},
	{two(tries(0, 0), 1, Finished{}), "reports a failure", "broken-idle=warn"},
	{two(tries(0, 0), 2, Finished{OK: true}), "on a new connection", "broken-idle=n/a once-post-idle=n/a"},
	{two(nil, 1, Finished{}), "no request", "broken-idle=n/a once-post-idle=n/a"},
	{Seen{Finished: ended(false, ms)}, "reports the failure", "broken-refused=pass"},
	{Seen{Finished: unended(24 * time.Second)}, "still tries", "broken-refused=warn"},
	{Seen{Finished: ended(true, ms)}, "success without", "broken-refused=fail"},
	{Seen{Proto2: true, Attempts: answeredWell(tries(0, 0, ms)), Finished: ended(true, ms)}, "takes the 200", "h2-refused=pass h2-refused-post=pass"},
	{Seen{Proto2: true, Attempts: tries(0, 0, ms), Finished: ended(false, ms)}, "gives up after it has repeated", "h2-refused=warn h2-refused-post=warn"},
	{Seen{Proto2: true, Attempts: tries(0, 0), Finished: ended(false, ms)}, "does not repeat it", "h2-refused=warn h2-refused-post=pass"},
	{Seen{Proto2: true, Attempts: goneOn(tries(0, 0, ms, 2*ms)), Finished: ended(false, ms)}, "goes on after an attempt was answered", "h2-refused=fail h2-refused-post=fail"},
	{Seen{Proto2: true, Attempts: answeredWell(tries(0, 0, ms)), Finished: ended(false, ms)}, "cannot use the 200", "h2-refused=n/a h2-refused-post=n/a"},
	{Seen{Proto2: true, Attempts: tries(0, 0), Finished: ended(true, ms)}, "success without", "h2-refused=fail h2-refused-post=fail"},
	{Seen{Proto2: true, Attempts: tries(0, 0), Finished: unended(24 * time.Second)}, "does not end", "h2-refused=fail h2-refused-post=fail once-h2-internal-post=fail"},
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}, "does not speak HTTP/2", "h2-refused=n/a h2-refused-post=n/a once-h2-internal-post=n/a"},
	{Seen{Accepted: 1, Finished: ended(false, ms)}, "no request", "h2-refused=n/a h2-refused-post=n/a once-h2-internal-post=n/a"},
	{Seen{Accepted: 1, Finished: ended(false, ms)}, "does not connect again", "tls-expired=pass"},
	{Seen{Accepted: 2, Finished: ended(false, ms)}, "connects again", "tls-expired=warn"},
	{Seen{Accepted: 1, Attempts: tries(0, 0), Finished: ended(false, ms)}, "sends its request", "tls-expired=fail"},
	{Seen{Accepted: 1, Finished: ended(true, ms)}, "success without", "tls-expired=fail"},
	{Seen{Accepted: 1, Finished: unended(24 * time.Second)}, "does not end", "tls-expired=fail"},

	// what must not be repeated
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}, "sends it once", "once-post-503=pass once-post-408=pass once-400=pass once-401=pass hint-404=pass key-422=pass"},
	{Seen{Attempts: tries(0, 0, ms), Finished: ended(false, ms)}, "sends it again", "once-post-503=fail once-post-408=warn once-400=fail once-401=warn hint-404=warn key-422=fail"},
	{Seen{Attempts: tries(0, 0), Finished: unended(24 * time.Second)}, "does not end", "once-post-503=fail once-post-408=fail once-400=fail once-401=fail hint-404=fail key-422=fail"},
	{Seen{Attempts: keyed("a", "a"), Finished: ended(true, ms)}, "that it made and that all attempts share", "once-post-503=pass once-post-408=pass"},
	{Seen{Attempts: keyed("a", "b"), Finished: ended(true, ms)}, "sends it again", "once-post-503=fail once-post-408=warn"},
	{Seen{Attempts: keyed("a", "a"), Finished: ended(true, ms)}, "sends it again", "key-422=fail"},
	{Seen{Proto2: true, Attempts: tries(0, 0), Finished: ended(false, ms)}, "sends it once", "once-h2-internal-post=pass"},
	{Seen{Proto2: true, Attempts: tries(0, 0, ms), Finished: ended(true, ms)}, "sends it again", "once-h2-internal-post=fail"},
	{two(tries(0, 0), 1, Finished{}), "sends it once", "once-post-idle=pass"},
	{two(tries(0, 0, ms), 1, Finished{OK: true}), "sends it again", "once-post-idle=fail"},
	{two(keyed("a", "a"), 1, Finished{OK: true}), "that it made", "once-post-idle=pass"},
	{two(tries(0, 0), 1, unended(time.Second)[0]), "does not end", "once-post-idle=fail"},
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}.as(retries), "sends it once", "once-should-retry=pass"},
	{Seen{Attempts: tries(0, 0, ms), Finished: ended(true, ms)}.as(retries), "repeats it since it does not read", "once-should-retry=n/a"},
	{Seen{Attempts: tries(0, 0), Finished: ended(false, ms)}, "no retries", "once-should-retry=n/a"},

	// bodies: body-put has 1,000 bytes
	{Seen{Attempts: bodies(strings.Repeat("a", 1000), strings.Repeat("a", 1000))}, "same bytes", "body-put=pass"},
	{Seen{Attempts: bodies(strings.Repeat("a", 1001), strings.Repeat("a", 1001))}, "same bytes", "body-put=pass"},
	{Seen{Attempts: bodies(strings.Repeat("a", 999), strings.Repeat("a", 999))}, "fewer bytes", "body-put=fail"},
	{Seen{Attempts: bodies(strings.Repeat("a", 1000), strings.Repeat("b", 1000))}, "other bytes", "body-put=fail"},
	{Seen{Attempts: header(bodies(strings.Repeat("a", 1000), strings.Repeat("a", 1000)), "Content-Type", "a/b", "c/d")}, "another Content-Type", "body-put=fail"},
	{Seen{Attempts: bodies(strings.Repeat("a", 1000))}, "one attempt", "body-put=n/a"},
	{Seen{Attempts: tries(0, 0, ms)}, "no body to its end", "body-put=n/a"},

	// hints
	{Seen{Attempts: tries(2*time.Second, 0, 2001*ms), Finished: ended(true, 3*time.Second)}, "no earlier than asked", "hint-seconds-503=pass hint-seconds-429=pass hint-date-rfc850=pass hint-ratelimit=pass"},
	{Seen{Attempts: tries(2*time.Second, 0, 2000*ms), Finished: ended(true, 3*time.Second)}, "no earlier than asked", "hint-seconds-503=pass hint-seconds-429=pass hint-date-rfc850=pass hint-ratelimit=pass"}, // a timer that counts milliseconds
	{Seen{Attempts: tries(2*time.Second, 0, 1999*ms), Finished: ended(true, 3*time.Second)}.as(hints), "although it reads a Retry-After", "hint-seconds-429=fail hint-date-rfc850=warn"},
	{Seen{Attempts: tries(2*time.Second, 0, 2500*ms, 3*time.Second), Finished: ended(true, 3*time.Second)}.as(hints), "although it reads a Retry-After", "hint-seconds-429=fail hint-date-rfc850=warn"},
	{Seen{Attempts: tries(2*time.Second, 0, 1999*ms), Finished: ended(true, 3*time.Second)}, "since it reads no Retry-After", "hint-seconds-503=warn hint-seconds-429=n/a hint-date-rfc850=n/a"},
	{Seen{Attempts: tries(2*time.Second, 0, 1999*ms), Finished: ended(true, 3*time.Second)}, "does not read that field", "hint-ratelimit=n/a"},
	{Seen{Attempts: tries(2*time.Second, 0), Finished: ended(false, ms)}, "one attempt", "hint-ratelimit=n/a"},
	{Seen{Attempts: tries(2*time.Second, 0), Finished: ended(false, ms)}.as(retries), "does not come back", "hint-seconds-503=pass hint-seconds-429=pass hint-date-rfc850=pass hint-day=pass hint-past=warn hint-overflow=pass"},
	{Seen{Attempts: tries(2*time.Second, 0), Finished: ended(false, ms)}, "no retries", "hint-seconds-503=n/a hint-seconds-429=n/a hint-date-rfc850=n/a hint-day=n/a hint-past=n/a hint-overflow=n/a"},
	{Seen{Attempts: tries(2*time.Second, 0), Finished: unended(24 * time.Second)}, "still waits", "hint-seconds-503=warn hint-seconds-429=warn hint-date-rfc850=warn hint-day=warn hint-past=fail hint-overflow=warn"},
	{Seen{Attempts: tries(0, 0, 100*ms), Finished: ended(true, time.Second)}, "comes back", "hint-past=pass hint-overflow=pass"},
	{waiting(40, ms).as(hints), "comes back at once", "hint-overflow=fail"},
	{waiting(40, ms).as(hints, atOnce), "comes back", "hint-overflow=pass"},
	{waiting(40, ms), "comes back", "hint-overflow=pass"},
	{Seen{Attempts: tries(0, 0, time.Second), Finished: ended(true, time.Second)}.as(hints), "although it reads a Retry-After", "hint-day=fail"},
	{Seen{Attempts: tries(0, 0, time.Second), Finished: ended(true, time.Second)}, "since it reads no Retry-After", "hint-day=n/a"},
	{Seen{Attempts: answeredWell(tries(0, 0)), Finished: ended(true, ms)}, "takes the 200", "hint-200=pass"},
	{Seen{Attempts: answeredWell(tries(0, 0, ms)), Finished: ended(true, ms)}, "sends it again", "hint-200=fail"},
	{Seen{Attempts: answeredWell(tries(0, 0)), Finished: ended(false, ms)}, "reports a failure", "hint-200=fail"},

	// waits
	{waiting(60, 100*ms), "waits before it repeats", "wait-first=pass"},
	{waiting(60, ms), "without a wait", "wait-first=fail"},
	{waiting(14, ms), "too few retries", "wait-first=n/a wait-broken=n/a wait-growth=n/a wait-cap=n/a wait-jitter=n/a wait-herd=n/a"},
	{waiting(60, ms).as(hedger), "hedges", "wait-first=n/a wait-broken=n/a wait-growth=n/a wait-cap=n/a wait-jitter=n/a wait-herd=n/a"},
	{waiting(60, ms).as(atOnce), "without a wait", "wait-growth=warn wait-cap=warn wait-jitter=warn wait-herd=warn"},
	{waiting(60, 100*ms, 200*ms), "waits before it repeats", "wait-broken=pass"},
	{waiting(60, 50*ms, ms), "waits before it repeats", "wait-broken=pass"},
	{waiting(60, ms, 100*ms), "first retry without a wait", "wait-broken=warn"},
	{waiting(60, ms), "first retry without a wait", "wait-broken=warn"},
	{waiting(60, ms, ms, ms), "repeats it without a wait", "wait-broken=fail"},
	{waiting(100, 100*ms, 120*ms), "waits longer", "wait-growth=pass"},
	{waiting(100, 100*ms, 119*ms), "waits no longer", "wait-growth=warn"},
	{waiting(100, 100*ms), "one retry", "wait-growth=n/a"},
	{capWithin(0.5), "at random", "wait-cap=pass"},
	{capWithin(0), "the same time always", "wait-cap=warn"},
	{waiting(200, time.Second, 2*time.Second, 4*time.Second, 8*time.Second, 16*time.Second), "stopped to grow", "wait-cap=n/a"},
	{waiting(200, time.Second, time.Second, time.Second, time.Second, time.Second), "waits no longer", "wait-cap=n/a"},
	{growing(200, 0.2, time.Second), "at random", "wait-jitter=pass"},
	{waiting(200, time.Second), "the same time always", "wait-jitter=warn"},
	{herds(0), "spreads", "wait-herd=pass"},
	{herds(6), "at the same moment", "wait-herd=warn"},
	{herds(3), "neither", "wait-herd=n/a"},
	{Seen{Accepted: 10, Finished: ended(false, time.Second)}, "at most ten connections", "wait-refused=pass"},
	{Seen{Accepted: 11, Finished: ended(false, time.Second)}, "more than ten connections", "wait-refused=warn"},
	{Seen{Accepted: 4, Finished: unended(24 * time.Second)}, "still tries", "wait-refused=warn"},

	// deadlines: deadline-silent has one second, deadline-share five, deadline-hint four
	{Seen{Attempts: left(false, 0), Finished: ended(false, 5*time.Second)}, "at most four seconds after its time", "deadline-silent=pass"},
	{Seen{Attempts: left(false, 0), Finished: ended(false, 5001*ms)}, "more than four seconds after", "deadline-silent=warn"},
	{Seen{Attempts: left(false, 10*time.Second), Finished: ended(false, 11*time.Second)}, "at most four seconds after its time", "deadline-silent=pass"}, // its process started for ten
	{Seen{Attempts: left(false, 0), Finished: ended(false, 5500*ms)}, "at most a tenth", "deadline-share=pass"},
	{Seen{Attempts: left(false, 0), Finished: ended(false, 5501*ms)}, "more than a tenth", "deadline-share=warn"},
	{Seen{Attempts: left(false, 10*time.Second), Finished: ended(false, 15501*ms)}, "more than a tenth", "deadline-share=warn"},
	{Seen{Attempts: tries(0, 0), Finished: ended(true, time.Second)}, "success without", "deadline-silent=fail deadline-share=fail"},
	{Seen{Attempts: left(true, 0), Finished: unended(24 * time.Second)}, "does not end", "deadline-silent=fail deadline-share=fail deadline-cancel=fail"},
	{Seen{Finished: ended(false, time.Second)}, "no request", "deadline-silent=n/a deadline-share=n/a deadline-cancel=n/a deadline-attempts=n/a deadline-hint=n/a"},
	{Seen{Attempts: left(false, 0), Finished: ended(false, time.Second)}, "cancels the attempt", "deadline-cancel=pass"},
	{Seen{Attempts: left(true, 0), Finished: ended(false, time.Second)}, "leaves an attempt open", "deadline-cancel=fail"},
	{Seen{Attempts: left(false, 0, 1500*ms), Finished: ended(false, time.Second)}, "no attempt after its time", "deadline-attempts=pass"},
	{Seen{Attempts: left(false, 0, 1501*ms), Finished: ended(false, time.Second)}, "makes an attempt after its time", "deadline-attempts=warn"},
	{Seen{Attempts: tries(0, 0, time.Second, 3*time.Second), Finished: ended(false, 3*time.Second)}, "makes an attempt after its time", "deadline-retries=warn"},
	{Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, 3000*ms)}.as(retries, hints), "soon after the answer", "deadline-hint=pass"},
	{Seen{Attempts: tries(30*time.Second, 10*time.Second), Finished: ended(false, 10002*ms)}.as(retries, hints), "soon after the answer", "deadline-hint=pass"},
	{Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, 3001*ms)}.as(retries, hints), "nearly up", "deadline-hint=warn"},
	{Seen{Attempts: tries(30*time.Second, 10*time.Second), Finished: ended(false, 14*time.Second)}.as(retries, hints), "nearly up", "deadline-hint=warn"},
	{Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, 8002*ms)}.as(retries, hints), "more than four seconds after", "deadline-hint=warn"},
	{Seen{Attempts: tries(30*time.Second, 0), Finished: ended(false, ms)}, "no retries", "deadline-hint=n/a"},
	{Seen{Attempts: tries(30*time.Second, 0), Finished: unended(24 * time.Second)}.as(retries, hints), "does not end", "deadline-hint=fail"},
	{Seen{Attempts: tries(30*time.Second, 0, 3*time.Second), Finished: ended(true, 3*time.Second)}.as(retries, hints), "although it reads a Retry-After", "deadline-hint=fail"},
	{Seen{Attempts: tries(30*time.Second, 0, 3*time.Second), Finished: ended(true, 3*time.Second)}.as(retries), "since it reads no Retry-After", "deadline-hint=n/a"},
	{Seen{Attempts: left(false, 0), Finished: ended(false, 10*time.Second)}, "gives up by itself", "deadline-none=pass"},
	{Seen{Attempts: left(true, 0), Finished: unended(24 * time.Second)}, "still waits", "deadline-none=warn"},

	// volume and recovery
	{several(10, 1, 0).as(retries), "at most 1.3 attempts", "volume-outage=pass"},
	{several(10, 2, 0).as(retries), "more than 1.3 attempts", "volume-outage=warn"},
	{several(10, 2, 9).as(retries), "at most twice", "volume-brown-out=pass"},
	{several(10, 3, 9).as(retries), "more than twice", "volume-brown-out=warn"},
	{several(10, 3, 0).as(retries), "at most three attempts", "volume-layers=pass"},
	{several(10, 4, 0).as(retries), "more than three attempts", "volume-layers=warn"},
	{Seen{Attempts: tries(0, 0), Finished: slices.Concat(ended(false, ms), unended(time.Second))}.as(retries), "no call while another waits", "volume-layers=n/a"},
	{several(10, 1, 0), "no retries", "volume-outage=n/a volume-brown-out=n/a volume-layers=n/a recovery-herd=n/a"},
	{breaking(40, 28), "at most seven requests", "volume-breaker=pass"},
	{breaking(40, 29), "no circuit breaker", "volume-breaker=n/a"},
	{breaking(4, 0), "too few calls", "volume-breaker=n/a"},
	{afterOutage(40, 20), "at least half", "recovery-back=pass"},
	{afterOutage(40, 19), "more than half", "recovery-back=fail"},
	{afterOutage(9, 0), "too few calls", "recovery-back=n/a"},
	{crowdOf(25, 50).as(retries), "at most twice as many retries", "recovery-herd=pass"},
	{crowdOf(25, 51).as(retries), "more than twice as many retries", "recovery-herd=warn"},
	{crowdOf(5, 51).as(retries), "more than twice as many retries", "recovery-herd=warn"},
	{crowdOf(60, 117).as(retries), "at most twice as many retries", "recovery-herd=pass"}, // it had no time for calls, either
	{crowdOf(60, 130).as(retries), "more than twice as many retries", "recovery-herd=warn"},

	// hedging
	{hedgeOf(0, 2, true, true), "cancels the one that lost", "hedge-get=pass"},
	{hedgeOf(0, 2, false, true), "leaves an attempt open", "hedge-get=fail"},
	{hedgeOf(0, 2, true, false), "reports a failure", "hedge-get=fail"},
	{hedgeOf(0, 1, false, true), "does not hedge", "hedge-get=n/a hedge-post=n/a hedge-slow=n/a"},
	{hedgeOf(0, 2, true, true), "a second POST", "hedge-post=fail"},
	{hedgeOf(0, 1, false, true).as(hedger), "sends it once", "hedge-post=pass"},
	{slowCalls(20, 15).as(hedger), "at most 1.5 requests", "hedge-slow=pass"},
	{slowCalls(20, 16).as(hedger), "more than 1.5 requests", "hedge-slow=warn"},
	{slowCalls(14, 10).as(hedger), "too few calls", "hedge-slow=n/a"},
	{after(several(100, 2, 100), slowCalls(20, 15)).as(hedger), "at most 1.5 requests", "hedge-slow=pass"}, // hedges before are no sign

	// connections
	{onConnections(1, 1, 1), "one connection for all", "connection-retries=pass"},
	{onConnections(1, 1, 2), "new connections for its retries", "connection-retries=warn"},
	{onConnections(1), "one attempt", "connection-retries=n/a"},
	{several(10, 1, 10).onConnections(5), "at most half as many", "connection-calls=pass"},
	{several(10, 1, 10).onConnections(6), "more than half as many", "connection-calls=warn"},
	{storm(40, 60), "at most half of the retries", "connection-storm=pass"},
	{storm(41, 60), "more than half of the retries", "connection-storm=warn"},
	{storm(30, 40), "at most half of the retries", "connection-storm=pass"},
	{storm(31, 40), "more than half of the retries", "connection-storm=warn"},
	{storm(25, 20), "at most half of the retries", "connection-storm=pass"},
	{storm(26, 20), "more than half of the retries", "connection-storm=warn"},
	{Seen{Accepted: 1, Finished: ended(false, ms)}, "no request", "connection-storm=n/a"},

	// keys
	{Seen{Attempts: keyed("a", "a"), Finished: ended(true, ms)}, "the same key in each attempt", "key-503=pass"},
	{Seen{Attempts: keyed("a", "b"), Finished: ended(true, ms)}, "different keys", "key-503=fail"},
	{Seen{Attempts: keyed("", ""), Finished: ended(true, ms)}, "no key", "key-503=n/a"},
	{Seen{Attempts: keyed("a")[:1], Finished: ended(false, ms)}.as(retries), "sends it once", "key-503=pass"},
	{Seen{Attempts: keyed("a")[:1], Finished: ended(false, ms)}, "no retries", "key-503=n/a"},
	{ownKeysOf("a", "a", "b", "b"), "another in the next call", "key-own=pass"},
	{ownKeysOf("a", "a", "a", "a"), "the same key in two calls", "key-own=fail"},
	{ownKeysOf("a", "b", "c", "c"), "different keys", "key-own=fail"},
	{ownKeysOf("", "", "", ""), "no key", "key-own=n/a"},
	{ownKeysOf("a", "a"), "no request", "key-own=n/a"},
}

// vain is calls that all fail.
func vain(s Seen) Seen {
	for i := range s.Finished {
		s.Finished[i].OK = false
	}
	for i := range s.Attempts {
		s.Attempts[i].Good = false
	}
	return s
}

// family names the cases that have the same judge and the same rules.
func family(c Case) string {
	return fmt.Sprintf("%d %s", reflect.ValueOf(c.judge).Pointer(), c.rules.text())
}

// What is seen decides the grade, and the text says the same. Each rule of each case is shown by a situation.
func TestRules(t *testing.T) {
	cases := map[string]Case{}
	for _, c := range Cases() {
		cases[c.Name] = c
	}
	shown := map[string]bool{}
	for i, x := range situations {
		for _, pair := range strings.Fields(x.grades) {
			name, grade, _ := strings.Cut(pair, "=")
			s := x.seen
			s.Case = cases[name]
			if s.Case.judge == nil {
				t.Fatalf("situation %d: no case is named %q", i, name)
			}
			f := s.finding()
			if !strings.Contains(string(f.outcome), x.says) {
				t.Errorf("situation %d, %s: the client %s (%s), want that it %s", i, name, f.outcome, f.why, x.says)
				continue
			}
			if got := s.graded(); got.Grade != Grade(grade) || got.Why != f.why {
				t.Errorf("%s: a client that %s gets %s (%s), want %s", name, f.outcome, got.Grade, got.Why, grade)
			}
			if verb := map[string]string{"pass": "passes if it ", "warn": "is warned if it ", "fail": "fails if it ", "n/a": "has no grade if it "}[grade]; !clauseHas(s.Case.Right, verb, string(f.outcome)) {
				t.Errorf("%s: the text is %q, and does not say that a client %s%s", name, s.Case.Right, verb, f.outcome)
			}
			shown[family(s.Case)+string(f.outcome)] = true
		}
	}
	for _, c := range Cases() {
		for grade, list := range c.rules {
			for _, o := range list {
				if !shown[family(c)+string(o)] {
					t.Errorf("%s: no situation shows that a client which %s gets %s", c.Name, o, grade)
				}
			}
		}
	}
}

// clauseHas reports whether an outcome is in the clause of a grade.
func clauseHas(text, verb, outcome string) bool {
	for clause := range strings.SplitSeq(text, "; ") {
		if rest, ok := strings.CutPrefix(clause, verb); ok {
			return slices.Contains(strings.Split(rest, ", or "), outcome)
		}
	}
	return false
}

// No outcome has two grades, and none is without one, whatever is seen.
func TestEachOutcomeHasOneGrade(t *testing.T) {
	rnd := seed.Rand(t)
	cases := Cases()
	for _, c := range cases {
		grades := map[outcome]int{}
		for _, list := range c.rules {
			for _, o := range list {
				grades[o]++
				if grades[o] > 1 || strings.ContainsAny(string(o), ";") || strings.Contains(string(o), ", or ") {
					t.Errorf("%s: %q is there twice, or has a mark of the text in it", c.Name, o)
				}
			}
		}
	}
	for range 300 {
		s := anySeen(rnd)
		for _, c := range cases {
			seen := s
			seen.Case = c
			if c.Name == hints {
				seen.hints = obeyed(&seen)
			}
			seen.verdict(seen.traits) // panics where there is no rule
		}
	}
}

// anySeen is what may be seen of some client.
func anySeen(rnd *rand.Rand) Seen {
	chance := func() bool { return rnd.IntN(2) == 0 }
	at := func() time.Duration { return time.Duration(rnd.IntN(8000)) * ms }
	s := Seen{Accepted: 1 + rnd.IntN(60), Proto2: chance(), Took: at(), Late: at() / 1000,
		traits: traits{retries: chance(), hints: chance(), atOnce: chance(), hedges: chance()}}
	calls := 1 + rnd.IntN(3)
	if chance() {
		calls = hedgedCall + 1 + rnd.IntN(100)
	}
	for i := range calls {
		arrived := at()
		for n := range rnd.IntN(14) {
			a := Attempt{Call: i, Number: n + 1, Conn: 1 + rnd.IntN(3), Arrived: arrived, Good: rnd.IntN(4) == 0, Length: int64(rnd.IntN(3) * 1000), Whole: chance(), Sum: "ab"[rnd.IntN(2):]}
			switch rnd.IntN(3) {
			case 0:
				a.Gone = arrived + at()/10
			case 1:
				a.Answered = arrived + ms
				a.NotBefore = a.Answered + at()
			}
			if chance() {
				a.Header = http.Header{"Idempotency-Key": {"ab"[rnd.IntN(2):]}, "Range": {"bytes=" + strconv.Itoa(399+rnd.IntN(3)) + "-"}, "If-Range": {"ab"[rnd.IntN(3):]}}
			}
			s.Attempts = append(s.Attempts, a)
			arrived += at() / 4
		}
		f := Finished{Call: i, OK: chance(), Start: at(), End: at()}
		if rnd.IntN(6) == 0 {
			f.Ended = "the case is over"
		}
		s.Finished = append(s.Finished, f)
	}
	return s
}
