package breaker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	ms     = time.Millisecond
	second = time.Second
)

// opensAfter is a breaker that opens at the given moment, of an outage of that
// age, with a call that took so long.
func opensAfter(t *testing.T, c Config, age, took time.Duration, rnd func() uint64) *Breaker {
	t.Helper()
	c.Consecutive, c.ConsecutiveFor = 2, max(age, 1)
	b := must(t, c)
	fails(b, 0, took)
	tok, _ := b.Start(age - took)
	b.Done(age, tok, Failure, rnd)
	if age > 0 && b.state() != Open {
		t.Fatalf("not open at %v", age)
	}
	return b
}

func TestOpenTimeFitsTheOutage(t *testing.T) {
	for _, c := range []struct{ age, took, want time.Duration }{
		{5 * second, second, 500 * ms},               // a tenth of the outage
		{5 * second, 50 * ms, 500 * ms},              // ten times the call, just
		{5 * second, 20 * ms, 200 * ms},              // ten times the call
		{5 * second, 1, 10},                          // errors that return at once
		{5 * second, 0, 1},                           // in no time at all
		{9, second, 1},                               // no outage to speak of
		{19, second, 1},                              //
		{20, second, 2},                              //
		{second, 5 * second, 100 * ms},               // a call that is older than the outage
		{100 * second, second, 10 * second},          // both
		{200 * second, 10 * second, 20 * second},     // at the limit of 30 s after jitter
		{time.Hour, time.Hour, 20 * second},          // beyond
		{math.MaxInt64 / 2, 5 * second, 20 * second}, // beyond all
		{math.MaxInt64, math.MaxInt64, 20 * second},  // no overflow
	} {
		low, high := 2.0, -1.0
		r := rand.New(rand.NewPCG(1, 15))
		for range 1000 {
			b := opensAfter(t, Config{}, c.age, c.took, r.Uint64)
			d := time.Duration(b.gate.Load()) - c.age
			if c.age == math.MaxInt64 {
				if d != 0 {
					t.Fatalf("age %v: until %v", c.age, d)
				}
				continue
			}
			x := float64(d-c.want) / float64(c.want)
			low, high = min(low, x), max(high, x)
		}
		if c.age == math.MaxInt64 {
			continue
		}
		if low < 0 || high > 0.5 || c.want >= ms && (low > 0.01 || high < 0.49) {
			t.Errorf("outage of %v, call of %v: open for %v and %.3f to %.3f of it, want 0 to 0.5", c.age, c.took, c.want, low, high)
		}
		exact := opensAfter(t, Config{OpenJitter: -1, OpenMax: 20 * second}, c.age, c.took, r.Uint64)
		if d := time.Duration(exact.gate.Load()) - c.age; d != c.want {
			t.Errorf("outage of %v, call of %v: open for %v, want %v", c.age, c.took, d, c.want)
		}
	}
}

// It grows with the outage while probes fail, by the duration of the probe and
// not of the call that opened the breaker.
func TestOpenTimeGrowsWithTheOutage(t *testing.T) {
	b := opensAfter(t, Config{OpenJitter: -1}, 5*second, second, nil)
	probes := 0
	now := b.RetryAt(5 * second)
	for ; now < time.Hour; probes++ {
		took := []time.Duration{second, 10 * ms, 10 * second}[probes%3]
		tok := probeNow(t, b, now)
		now += min(took, DefaultProbeTimeout-1)
		b.Done(now, tok, Failure, nil)
		want := min(now/10, 10*took, 30*second)
		if took == 10*second {
			want = min(now/10, 30*second) // a little less than its ten seconds
		}
		if d := b.RetryAt(now) - now; d != want {
			t.Fatalf("probe of %v failed after %v of outage: open for %v, want %v", took, now, d, want)
		}
		now = b.RetryAt(now)
	}
	// Closed, and open again: the next outage has its own age.
	at := now
	b.Done(at, probeNow(t, b, at), Success, nil)
	fails(b, at, second)
	fails(b, at+5*second, second)
	if d := b.RetryAt(at+5*second) - at - 5*second; d != 500*ms {
		t.Errorf("the next outage: open for %v, want 500ms", d)
	}
}

// Time-outs of a second: how soon the end of an outage is noticed, and how many
// probes it takes.
func TestOpenTimeNoticesTheEnd(t *testing.T) {
	for _, outage := range []time.Duration{30 * second, 2 * time.Minute, 10 * time.Minute} {
		b := opensAfter(t, Config{OpenMax: time.Hour}, 2*second, second, nil)
		r := rand.New(rand.NewPCG(1, 16))
		probes := 0
		now := b.RetryAt(2 * second)
		for ; now < outage; probes++ {
			tok := probeNow(t, b, now)
			now += second
			b.Done(now, tok, Failure, r.Uint64)
			now = b.RetryAt(now)
		}
		if late := now - outage; late > min(outage*3/20, 15*second)+second {
			t.Errorf("outage of %v: noticed %v after its end", outage, late)
		}
		t.Logf("outage of %v: %d probes, end noticed %v after it", outage, probes, now-outage)
		if most := int(outage/(10*second)) + 15; probes > most {
			t.Errorf("outage of %v: %d probes, want %d at most", outage, probes, most)
		}
	}
}

// A probe that is lost has taken its time.
func TestOpenTimeAfterALostProbe(t *testing.T) {
	for _, c := range []struct{ timeout, want time.Duration }{{second, 10 * second}, {100 * ms, second}, {1, 10}} {
		b := opensAfter(t, Config{ProbeTimeout: c.timeout, OpenJitter: -1}, 5*second, second, nil)
		const at = 200 * second
		probeNow(t, b, at)
		lost := at + c.timeout
		foreseen := b.RetryAt(lost)
		if tok, ok := b.Start(lost); ok && tok.probe != sampled || b.RetryAt(lost) != foreseen || foreseen-lost != c.want {
			t.Errorf("probe lost after %v: open until %v, foreseen %v, want %v after %v", c.timeout, b.RetryAt(lost), foreseen, c.want, lost)
		}
	}
}

// A rate looks back over a window, and so old is the outage that it finds; one
// that comes back within a window of its end is the same.
func TestOpenTimeOfRates(t *testing.T) {
	c := Config{Consecutive: -1, FailureRate: 0.5, MinCalls: 2, OpenJitter: -1}
	for _, now := range []time.Duration{-time.Hour, 0, second} { // young, and by any epoch
		b := must(t, c)
		fails(b, now, second)
		fails(b, now, second)
		if d := time.Duration(b.gate.Load()) - now; d != DefaultWindow/10 {
			t.Errorf("new, at %v: open for %v, want a tenth of the window", now, d)
		}
	}
	b := must(t, c)
	fails(b, time.Hour, second)
	fails(b, time.Hour, second)
	now := time.Hour
	if d := b.RetryAt(now) - now; d != DefaultWindow/10 {
		t.Errorf("first: open for %v, want a tenth of the window", d)
	}
	now += 2 * second
	b.Done(now+second, probeNow(t, b, now), Failure, nil)
	now += second
	if d := b.RetryAt(now) - now; d != (DefaultWindow+3*second)/10 {
		t.Errorf("after a failed probe: open for %v, want %v", d, (DefaultWindow+3*second)/10)
	}
	now += 2 * second
	b.Done(now, probeNow(t, b, now), Success, nil)
	closed := now
	for _, after := range []time.Duration{DefaultWindow - 1, DefaultWindow} {
		now = closed + after
		fails(b, now, second)
		fails(b, now, second)
		want := DefaultWindow / 10
		if after < DefaultWindow {
			want = (now - time.Hour + DefaultWindow) / 10
		}
		if d := b.RetryAt(now) - now; d != want {
			t.Errorf("%v after closing: open for %v, want %v", after, d, want)
		}
		now = b.RetryAt(now)
		b.Done(now, probeNow(t, b, now), Success, nil)
		closed = now
	}
}

// What happened while it was forced is no part of an outage.
func TestOpenTimeAfterForce(t *testing.T) {
	b := must(t, Config{OpenJitter: -1})
	b.ForceOpen(0)
	b.Auto(time.Hour)
	b.Done(time.Hour+second, probeNow(t, b, time.Hour), Failure, nil)
	if d := b.RetryAt(time.Hour+second) - time.Hour - second; d != second/10 {
		t.Errorf("open for %v, want 100ms", d)
	}
}

// Errors that return in no time: each call is a probe or is refused, and no call
// loops.
func TestOpenTimeOfInstantFailures(t *testing.T) {
	b := opensAfter(t, Config{}, 5*second, 0, nil)
	admitted := 0
	for i := range 10_000 {
		now := 5*second + time.Duration(i)*ms
		if tok, ok := b.Start(now); ok {
			admitted++
			b.Done(now, tok, Failure, nil)
			if s, at := b.State(now), b.RetryAt(now); s != Open || at != now+1 {
				t.Fatalf("%v until %v at %v", s, at, now)
			}
		}
	}
	if admitted < 9_999 {
		t.Errorf("%d of 10000 calls were admitted, want all but the first", admitted)
	}
	end := 20 * second
	b.Done(end, probeNow(t, b, end), Success, nil)
	if s := b.State(end); s != Closed {
		t.Errorf("after a success: %v", s)
	}
}
