package breaker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
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
	b := must.Have(New(c))
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
