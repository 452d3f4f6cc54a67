package breaker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fails reports the failure of a call that took so long, and tells whether it was
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
		want  State
	}{
		{"three over five seconds", Config{}, []time.Duration{0, s, 5 * s}, Open},
		{"three over a little less", Config{}, []time.Duration{0, s, 5*s - 1}, Closed},
		{"two", Config{}, []time.Duration{0, time.Hour}, Closed},
		{"three over two hours", Config{}, []time.Duration{0, time.Hour, 2 * time.Hour}, Open},
		{"many at once", Config{}, make([]time.Duration, 1000), Closed},
		{"one that waits", Config{Consecutive: 2, ConsecutiveFor: s}, []time.Duration{0, s - 1}, Closed},
		{"two over a second", Config{Consecutive: 2, ConsecutiveFor: s}, []time.Duration{0, s}, Open},
		{"no minimum", Config{ConsecutiveFor: -1}, []time.Duration{0, 0, 0}, Open},
		{"two without a minimum", Config{ConsecutiveFor: -1}, []time.Duration{0, 0}, Closed},
		{"one", Config{Consecutive: 1, ConsecutiveFor: -1}, []time.Duration{0}, Open},
		{"one, which cannot span five seconds", Config{Consecutive: 1}, []time.Duration{0}, Closed},
		{"off", Config{Consecutive: -1}, []time.Duration{0, s, 5 * s, time.Hour}, Closed},
		{"a clock that runs backwards", Config{}, []time.Duration{5 * s, 3 * s, 0}, Closed},
		{"the longest time", Config{ConsecutiveFor: math.MaxInt64}, []time.Duration{math.MinInt64 / 2, 0, math.MaxInt64}, Open},
	} {
		b := must(t, c.cfg)
		for i, now := range c.fails {
			if s := b.State(now); i > 0 && s != Closed {
				t.Errorf("%s: %v before failure %d", c.name, s, i)
			}
			fails(b, now, 0)
		}
		if got := b.state(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestStreakOfAnythingBetween(t *testing.T) {
	for _, c := range []struct {
		between Outcome
		want    State
	}{{Success, Closed}, {Neutral, Open}, {Outcome(99), Open}} {
		b := must(t, Config{})
		fails(b, 0, 0)
		fails(b, time.Second, 0)
		run(b, 2*time.Second, 1, c.between)
		fails(b, 5*time.Second, 0)
		fails(b, 6*time.Second, 0)
		if got := b.State(6 * time.Second); got != c.want {
			t.Errorf("%v among failures: %v, want %v", c.between, got, c.want)
		}
		if c.want == Closed {
			fails(b, 10*time.Second, 0) // third in the row that began at 5 s
			if got := b.State(10 * time.Second); got != Open {
				t.Errorf("after a row of its own: %v, want open", got)
			}
		}
	}

	// A neutral call is not the third, and its end does not make the row longer.
	b := must(t, Config{})
	fails(b, 0, 0)
	run(b, 5*time.Second, 1, Neutral)
	fails(b, 5*time.Second, 0)
	if got := b.State(5 * time.Second); got != Closed {
		t.Errorf("two failures and a neutral call: %v, want closed", got)
	}
}

// A row ends with the state in which it began.
func TestStreakBeginsAnewAfterClosing(t *testing.T) {
	b := must(t, Config{})
	for _, now := range []time.Duration{0, time.Second, 5 * time.Second} {
		fails(b, now, time.Second)
	}
	at := b.RetryAt(5 * time.Second)
	b.Done(at, probeNow(t, b, at), Success, nil)
	fails(b, at, 0)
	fails(b, at+time.Second, 0)
	if s := b.State(at + time.Second); s != Closed {
		t.Errorf("two failures after closing: %v, want closed", s)
	}
}

func TestStreakChange(t *testing.T) {
	var heard []Change
	b := must(t, Config{OpenJitter: -1}, func(c Change) { heard = append(heard, c) })
	for now := time.Duration(0); now < 8*time.Second; now += time.Second {
		fails(b, now, 2*time.Second)
	}
	want := []Change{{From: Closed, To: Open, Reason: Consecutive, At: 5 * time.Second, Until: 5500 * time.Millisecond, Calls: 6, Failures: 6}}
	if len(heard) == 0 || heard[0] != want[0] {
		t.Errorf("heard %+v, want %+v first", heard, want)
	}
}

// A breaker that is made at the first failure, and told of the calls before it
// with fresh tokens, is the same as one that was there all the time.
func TestFreshIsLikeHavingBeenThere(t *testing.T) {
	changes := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 14))
		c := Config{Consecutive: 1 + r.IntN(4), ConsecutiveFor: time.Duration(r.IntN(3)-1) * 100 * time.Millisecond, MetricsOnly: r.IntN(4) == 0}
		var early, late []Change
		b := must(t, c, func(c Change) { early = append(early, c) })
		var lazy *Breaker
		type pair struct{ b, lazy Token }
		var flying []pair
		var now time.Duration
		for range 500 {
			now += time.Duration(r.IntN(50)) * time.Millisecond
			if r.IntN(2) == 0 {
				tok, ok := b.Start(now)
				other, also := Fresh(now), true
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
				o := Outcome(r.IntN(3))
				if lazy == nil && o == Failure {
					lazy = must(t, c, func(c Change) { late = append(late, c) })
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
	b := must(t, Config{})
	stale, _ := b.Start(0)
	b.ForceOpen(0)
	b.ForceClosed(0)
	b.Auto(0)
	for i := range 10 {
		b.done(time.Duration(i)*time.Second, stale, Failure, Closed, nil)
	}
	if n := b.streak.Load(); n != 0 {
		t.Errorf("%d stale failures counted", n)
	}
}

// The number of a generation may come round.
func TestGenerationsComeRound(t *testing.T) {
	for before := range uint32(4) { // each state meets the turn
		b := must(t, first(Config{}))
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
			b.Done(at, Token{}, Failure, nil)
			if s := b.State(at); s != Closed {
				t.Errorf("%d before the turn: after a success and stale failures %v, want closed", before, s)
			}
		}
	}
}
