package breaker

import (
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// A breaker that takes over is in the state of the one before, and comes out of it as
// that would have.
func TestInherit(t *testing.T) {
	const s = time.Second
	fail := func(b *Breaker, now time.Duration) {
		if token, ok := b.Start(now); ok {
			b.Done(now, token, Failure, nil)
		}
	}
	from := func(do func(b *Breaker)) *Breaker {
		b := must.Have(New(first(Config{OpenJitter: -1})))
		do(b)
		return b
	}
	for _, c := range []struct {
		name    string
		from    *Breaker
		to      Config
		state   CircuitState // at 3 s
		retryAt time.Duration
	}{
		{"closed", from(func(*Breaker) {}), Config{}, Closed, 3 * s},
		{"open", from(func(b *Breaker) { fail(b, s) }), Config{}, Open, 6 * s},
		{"open for longer than it can be", from(func(b *Breaker) { fail(b, s) }), Config{OpenFor: s, OpenMax: 2 * s}, Open, 5 * s},
		{"open, and the time has passed", from(func(b *Breaker) { fail(b, -3*s) }), Config{}, HalfOpen, 3 * s},
		{"a probe is out", from(func(b *Breaker) { fail(b, -3*s); b.Start(2 * s) }), Config{}, HalfOpen, 3 * s},
		{"forced open", from(func(b *Breaker) { b.ForceOpen(s) }), Config{OpenFor: s, OpenMax: s}, Open, 3 * s},
		{"off", must.Have(New(Config{Off: true})), Config{}, Closed, 3 * s},
		{"none", nil, Config{}, Closed, 3 * s},
	} {
		c.to.OpenJitter = -1
		b := must.Have(New(first(c.to)))
		b.Inherit(3*s, c.from)
		check.Equal(t, b.State(3*s), c.state, "%s", c.name)
		check.Equal(t, max(b.RetryAt(3*s), 3*s), c.retryAt, "%s: a probe may pass at", c.name)
		if _, ok := b.Start(3 * s); ok != (c.state != Open) {
			t.Errorf("%s: a call at 3 s is admitted: %v", c.name, ok)
		}
		if c.state == Open && c.retryAt > 3*s {
			token, ok := b.Start(c.retryAt)
			if !ok || !token.Probe() {
				t.Fatalf("%s: no probe when the open time has passed", c.name)
			}
			b.Done(c.retryAt, token, Success, nil)
			check.Equal(t, b.State(c.retryAt), Closed, "%s: after a probe that succeeded", c.name)
		}
	}
}

// The next open time is as long as it would have been: openings are counted on.
func TestInheritCountsOpenings(t *testing.T) {
	c := first(Config{OpenFor: time.Second, OpenMax: time.Hour, OpenJitter: -1})
	open := func(b *Breaker, now time.Duration, n int) time.Duration {
		for range n {
			token, ok := b.Start(now)
			if !ok {
				t.Fatalf("refused at %v", now)
			}
			b.Done(now, token, Failure, nil)
			now = b.RetryAt(now)
		}
		return now
	}
	whole, part, next := must.Have(New(c)), must.Have(New(c)), must.Have(New(c))
	now := open(part, 0, 3)
	next.Inherit(now, part)
	check.Equal(t, open(next, now, 2), open(whole, 0, 5), "open until")
}

// Calls that were counted are still, if the window is the same.
func TestInheritCounts(t *testing.T) {
	for window, want := range map[time.Duration]int64{10 * time.Second: 7, 20 * time.Second: 0} {
		a := must.Have(New(rated(Config{Window: 10 * time.Second, MinCalls: 100})))
		for range 7 {
			token, _ := a.Start(time.Second)
			a.Done(time.Second, token, Failure, nil)
		}
		b := must.Have(New(rated(Config{Window: window, MinCalls: 100})))
		b.Inherit(time.Second, a)
		if calls, failures, _ := b.Counts(time.Second); calls != want || failures != want {
			t.Errorf("window %v: %d calls and %d failures, want %d", window, calls, failures, want)
		}
	}
}
