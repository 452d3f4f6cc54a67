package breaker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// fails reports the failure of a call that took so long, and reports whether it was
// admitted.
func fails(b *Breaker, now, took time.Duration) bool {
	tok, ok := b.Start(now - took)
	if ok {
		b.Done(now, tok, Failure, nil)
	}
	return ok
}

func TestStreakThresholds(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name  string
		cfg   Config
		fails []time.Duration // when the failures end
		want  CircuitState
	}{
		{"three over two seconds", Config{}, []time.Duration{0, s, 2 * s}, Open},
		{"three over a little less", Config{}, []time.Duration{0, s, 2*s - 1}, Closed},
		{"two", Config{}, []time.Duration{0, time.Hour}, Closed},
		{"three over two hours", Config{}, []time.Duration{0, time.Hour, 2 * time.Hour}, Open},
		{"many at once", Config{}, make([]time.Duration, 1000), Closed},
		{"one that waits", Config{Consecutive: 2, ConsecutiveFor: s}, []time.Duration{0, s - 1}, Closed},
		{"two over a second", Config{Consecutive: 2, ConsecutiveFor: s}, []time.Duration{0, s}, Open},
		{"no minimum", Config{ConsecutiveFor: -1}, []time.Duration{0, 0, 0}, Open},
		{"two without a minimum", Config{ConsecutiveFor: -1}, []time.Duration{0, 0}, Closed},
		{"one", Config{Consecutive: 1, ConsecutiveFor: -1}, []time.Duration{0}, Open},
		{"one, which cannot span two seconds", Config{Consecutive: 1}, []time.Duration{0}, Closed},
		{"off", Config{Consecutive: -1}, []time.Duration{0, s, 2 * s, time.Hour}, Closed},
		{"a clock that runs backwards", Config{}, []time.Duration{5 * s, 3 * s, 0}, Closed},
		{"the longest time", Config{ConsecutiveFor: math.MaxInt64}, []time.Duration{math.MinInt64 / 2, 0, math.MaxInt64}, Open},
	} {
		b := must.Have(New(c.cfg))
		for i, now := range c.fails {
			if s := b.State(now); i > 0 && s != Closed {
				t.Errorf("%s: %v before failure %d", c.name, s, i)
			}
			fails(b, now, 0)
		}
		check.Equal(t, b.state(), c.want, "%s", c.name)
	}
}

// Failures that begin again within a Window of the closing need a tenth of the
// time to open the breaker if they are three times as many; and as long as a
// success takes.
func TestStreakOfARelapse(t *testing.T) {
	for _, c := range []struct {
		name        string
		cfg         Config
		failures    int           // nine, if zero
		after, last time.Duration // from the closing to the first failure, and on to the last
		want        CircuitState
		probe       time.Duration // how long it took
	}{
		{name: "at once", last: 200 * ms, want: Open},
		{name: "a little too short", last: 200*ms - 1, want: Closed},
		{name: "too few", failures: 8, last: 2*second - 1, want: Closed},
		{name: "few, the whole time", failures: 3, last: 2 * second, want: Open},
		{name: "within the window", after: DefaultWindow - 201*ms, last: 200 * ms, want: Open},
		{name: "judged at the end of the window", after: DefaultWindow - 200*ms, last: 200 * ms, want: Closed},
		{name: "after the window", after: DefaultWindow, last: 2*second - 1, want: Closed},
		{name: "after the window, the whole time", after: DefaultWindow, last: 2 * second, want: Open},
		{name: "of one's own", cfg: Config{Consecutive: 2, ConsecutiveFor: 10 * second, Window: 5 * second}, failures: 6, after: second, last: second, want: Open},
		{name: "of one's own, too few", cfg: Config{Consecutive: 2, ConsecutiveFor: 10 * second, Window: 5 * second}, failures: 5, after: second, last: second, want: Closed},
		{name: "of one's own, too short", cfg: Config{Consecutive: 2, ConsecutiveFor: 10 * second, Window: 5 * second}, failures: 6, after: second, last: second - 1, want: Closed},
		{name: "after a probe that took long", last: 500 * ms, probe: 500 * ms, want: Open},
		{name: "sooner than a success could be back", last: 500*ms - 1, probe: 500 * ms, want: Closed},
		{name: "a success takes longer than the rule", last: 8*second - 1, probe: 8 * second, want: Closed},
		{name: "few, and a success takes longer than the rule", failures: 3, last: 8*second - 1, probe: 8 * second, want: Closed},
		{name: "and than the window", after: 7 * second, last: 8*second - 1, probe: 8 * second, want: Closed},
		{name: "no minimum", cfg: Config{ConsecutiveFor: -1}, failures: 3, probe: 8 * second, want: Open},
	} {
		b := must.Have(New(c.cfg))
		for n := range 3 {
			fails(b, time.Duration(n)*10*second, second)
		}
		at := 20 * second
		if b.state() != Open {
			t.Fatalf("%s: %v after three failures in 20 s", c.name, b.state())
		}
		at = time.Duration(b.gate.Load())
		tok := probeNow(t, b, at)
		at += c.probe
		b.Done(at, tok, Success, nil)
		n := c.failures
		if n == 0 {
			n = 9
		}
		for range n - 1 {
			fails(b, at+c.after, 0)
		}
		fails(b, at+c.after+c.last, second)
		check.Equal(t, b.state(), c.want, "%s", c.name)
	}
}

// A breaker that is made at the first failure, and gets the calls before it
// with late tickets, is the same as one that was there all the time.
func TestALateBreakerIsLikeOneThatWasThere(t *testing.T) {
	changes := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 14))
		c := Config{Consecutive: 1 + r.IntN(4), ConsecutiveFor: time.Duration(r.IntN(3)-1) * 100 * time.Millisecond, MetricsOnly: r.IntN(4) == 0}
		var early, late []Change
		b := must.Have(New(c, func(c Change) { early = append(early, c) }))
		var lazy *Breaker
		type pair struct{ b, lazy Ticket }
		var flying []pair
		var now time.Duration
		for range 500 {
			now += time.Duration(r.IntN(50)) * time.Millisecond
			if r.IntN(2) == 0 {
				tok, ok := b.Start(now)
				other, also := LateTicket(now), true
				if lazy != nil {
					other, also = lazy.Start(now)
				}
				if ok != also || ok && tok != other {
					t.Fatalf("seed %d: admitted %t and %t, with %+v and %+v", seed, ok, also, tok, other)
				}
				if ok {
					flying = append(flying, pair{tok, other})
				}
			} else if len(flying) > 0 {
				i := r.IntN(len(flying))
				p := flying[i]
				flying = slices.Delete(flying, i, i+1)
				o := Evidence(r.IntN(3))
				if lazy == nil && o == Failure {
					lazy = must.Have(New(c, func(c Change) { late = append(late, c) }))
				}
				b.Done(now, p.b, o, nil)
				if lazy != nil {
					lazy.Done(now, p.lazy, o, nil)
				}
			}
		}
		if !slices.Equal(early, late) {
			t.Fatalf("seed %d: changes %v and %v", seed, early, late)
		}
		changes += len(early)
	}
	if changes < 1000 {
		t.Errorf("only %d changes: the test does not stir", changes)
	}
}

// A failure that finds the breaker closed, but not any more under the lock.
func TestStreakUnderTheLock(t *testing.T) {
	b := must.Have(New(Config{}))
	stale, _ := b.Start(0)
	b.ForceOpen(0)
	b.ForceClosed(0)
	b.Auto(0)
	for i := range 10 {
		b.done(time.Duration(i)*time.Second, stale, Failure, Closed, 0, nil)
	}
	check.Equal(t, b.streak.Load(), 0, "stale failures counted")
}

// The number of a generation may come round.
func TestGenerationsComeRound(t *testing.T) {
	for before := range uint32(4) { // each state meets the turn
		b := must.Have(New(first(Config{})))
		b.word.Store(closedIn(math.MaxUint32 - before))
		stale, _ := b.Start(0)
		for range 2 {
			fails(b, 0, 0)
			at := b.RetryAt(0)
			if at == 0 {
				t.Fatalf("%d before the turn: not open: word %d", before, b.word.Load())
			}
			b.Done(at, probeNow(t, b, at), Success, nil)
			b.Done(at, stale, Failure, nil)
			b.Done(at, Ticket{}, Failure, nil)
			check.Equal(t, b.State(at), Closed, "%d before the turn: after a success and stale failures", before)
		}
	}
}
