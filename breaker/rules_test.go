package breaker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// run makes n calls at now, one after the other, that end at once.
func run(b *Breaker, now time.Duration, n int, o Evidence) (admitted int) {
	for range n {
		if tok, ok := b.Start(now); ok {
			b.Done(now, tok, o, nil)
			admitted++
		}
	}
	return admitted
}

// opened is a breaker with the given configuration that has just opened, and
// the time at which its first probe may start.
func opened(t *testing.T, c Config, listeners ...func(Change)) (*Breaker, time.Duration) {
	t.Helper()
	b := must.Have(New(c, listeners...))
	if n := run(b, 0, 1000, Failure); n != max(c.MinCalls, 1) && n != DefaultMinCalls {
		t.Fatalf("%d failures admitted before it opened", n)
	}
	return b, b.RetryAt(0)
}

// probeNow takes a token at a moment at which one is due.
func probeNow(t *testing.T, b *Breaker, now time.Duration) Ticket {
	t.Helper()
	tok, ok := b.Start(now)
	if !ok || !tok.Probe() {
		t.Fatalf("no probe admitted at %v: %v", now, b.State(now))
	}
	return tok
}

func TestRule08Breaker(t *testing.T) {
	t.Run("results of an earlier generation do not count", func(t *testing.T) {
		b := must.Have(New(rated(Config{})))
		stale, _ := b.Start(0)
		alsoStale, _ := b.Start(0)
		run(b, 0, 100, Failure)
		at := b.RetryAt(0)
		if at == 0 {
			t.Fatal("not open")
		}
		b.Done(at, stale, Success, nil)
		check.Equal(t, b.State(at-1), Open, "a success from before the opening")
		tok := probeNow(t, b, at)
		b.Done(at, alsoStale, Success, nil)
		check.Equal(t, b.State(at), HalfOpen, "a success from before the opening, while the probe is out")
		b.Done(at, tok, Success, nil)
		if s := b.State(at); s != Closed {
			t.Fatalf("after the probe's success: %v", s)
		}
		b.Done(at, tok, Failure, nil) // reported twice
		if calls, failures, _ := b.Counts(at); calls != 0 || failures != 0 {
			t.Errorf("after closing: %d calls, %d failures, want a new count", calls, failures)
		}
	})

	t.Run("probes are limited", func(t *testing.T) {
		for _, probes := range []int{1, 3} {
			b, at := opened(t, rated(Config{Probes: probes}))
			check.Equal(t, run(b, at-1, 10, Success), 0, "calls admitted while open")
			var toks []Ticket
			for range 10 {
				if tok, ok := b.Start(at); ok {
					toks = append(toks, tok)
				}
			}
			if len(toks) != probes {
				t.Fatalf("%d of 10 calls admitted while half-open, want %d", len(toks), probes)
			}
			for i, tok := range toks {
				check.Equal(t, b.State(at), HalfOpen, "after %d of %d successes", i, probes)
				b.Done(at, tok, Success, nil)
			}
			check.Equal(t, b.State(at), Closed, "after %d successes in a row", probes)
		}
	})

	t.Run("probes are limited under the lock too", func(t *testing.T) {
		// The gate only spares calls the lock. Two that pass it at the same moment:
		b, at := opened(t, rated(Config{Probes: 2}))
		probeNow(t, b, at)
		probeNow(t, b, at)
		b.gate.Store(math.MinInt64)
		if _, ok := b.Start(at); ok {
			t.Error("a third probe was admitted")
		}
	})

	t.Run("a probe that is never reported, as after a panic, times out", func(t *testing.T) {
		var heard []Change
		b, at := opened(t, rated(Config{OpenJitter: -1}), func(c Change) { heard = append(heard, c) })
		lost := probeNow(t, b, at)
		end := at + DefaultProbeTimeout
		check.Equal(t, b.State(end-1), HalfOpen, "just before")
		if s, r := b.State(end), b.RetryAt(end); s != Open || r != end+2*openFor {
			t.Errorf("timed out: %v until %v, want open until %v", s, r, end+2*openFor)
		}
		check.Equal(t, run(b, end, 10, Success), 0, "timed out: calls admitted")
		b.Done(end, lost, Success, nil) // too late
		check.Equal(t, b.State(end), Open, "after the late report")
		check.Equal(t, run(b, end+2*openFor, 1, Success), 1, "calls admitted in its place")
		want := Change{From: HalfOpen, To: Open, Reason: ProbeTimedOut, At: end, Until: end + 2*openFor, Calls: 1, Failures: 1}
		if len(heard) < 3 || heard[2] != want {
			t.Errorf("heard %v, want %v third", heard, want)
		}
	})

	t.Run("open times after time-outs are spread too", func(t *testing.T) {
		// A probe's time-out is noticed where no randomness is handed in.
		var until time.Duration
		low, high, same := 1.0, 0.0, 0
		r := rand.New(rand.NewPCG(1, 11))
		for range 1000 {
			b := must.Have(New(first(Config{}), func(c Change) { until = c.Until }))
			tok, _ := b.Start(0)
			b.Done(0, tok, Failure, r.Uint64)
			first := float64(until-openFor) / float64(openFor)
			lost := until + DefaultProbeTimeout
			probeNow(t, b, until)
			foreseen := b.RetryAt(lost)
			if run(b, lost, 1, Success) != 0 || until != foreseen {
				t.Fatalf("timed out: open until %v, foreseen %v", until, foreseen)
			}
			x := float64(until-lost-2*openFor) / float64(2*openFor)
			low, high = min(low, x), max(high, x)
			if math.Abs(x-first) < 0.001 {
				same++
			}
		}
		if low > 0.01 || high < 0.49 || same > 20 {
			t.Errorf("spread over %.3f to %.3f of 0 to 0.5, %d of 1000 as lucky as before", low, high, same)
		}
	})

	t.Run("randomness is drawn for an opening only", func(t *testing.T) {
		for _, metrics := range []bool{false, true} {
			openings, draws := 0, 0
			b := must.Have(New(rated(Config{MetricsOnly: metrics}), func(c Change) {
				if c.To == Open {
					openings++
				}
			}))
			for now := time.Duration(0); now < time.Minute; now += 10 * time.Millisecond {
				if tok, ok := b.Start(now); ok {
					b.Done(now, tok, Failure, func() uint64 { draws++; return 1 << 63 })
				}
			}
			if draws != openings || openings < 3 {
				t.Errorf("metrics only %t: %d draws for %d openings", metrics, draws, openings)
			}
		}
	})

	t.Run("open time is jittered and grows", testOpenTimes)

	t.Run("thresholds are exact", testThresholds)

	t.Run("listeners hear in order and outside the lock", testListeners)

	t.Run("a probe that a listener's panic prevented takes no place", func(t *testing.T) {
		b := must.Have(New(rated(Config{Probes: 1}), func(c Change) {
			if c.To == HalfOpen {
				panic("listener")
			}
		}))
		run(b, 0, 100, Failure)
		at := b.RetryAt(0)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not go up")
				}
			}()
			b.Start(at)
		}()
		if s := b.State(at); s != HalfOpen {
			t.Fatalf("the breaker is %v, want half-open", s)
		}
		if _, ok := b.Start(at); !ok {
			t.Error("there is no place for a probe, and none is out")
		}
	})

	t.Run("the caller's own cancellation is neutral", func(t *testing.T) {
		b := must.Have(New(rated(Config{Consecutive: 3, ConsecutiveFor: -1})))
		run(b, 0, 10, Success)
		run(b, 0, 1000, Neutral)
		if calls, failures, _ := b.Counts(0); calls != 10 || failures != 0 {
			t.Errorf("after 10 successes and 1000 neutral calls: %d calls, %d failures", calls, failures)
		}
		run(b, 0, 2, Failure)
		run(b, 0, 1, Neutral)
		run(b, 0, 1, Failure) // the third in a row: the neutral call is not there
		check.Equal(t, b.State(0), Open, "three failures in a row with a neutral call among them")
		at := b.RetryAt(0)
		for range 10 {
			b.Done(at, probeNow(t, b, at), Neutral, nil)
			if s := b.State(at); s != HalfOpen {
				t.Fatalf("after a neutral probe: %v, want half-open", s)
			}
		}
		b.Done(at, probeNow(t, b, at), Evidence(77), nil)
		check.Equal(t, b.State(at), HalfOpen, "after a probe with an unknown outcome")
	})
}

// Each opening's time must spread over [d, d(1+j)], d doubling from OpenFor, the
// whole of it within OpenMax, and at the cap as wide as before.
func testOpenTimes(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		cfg  Config
		want [][2]time.Duration // of each opening in a row
	}{
		{Config{OpenFor: openFor}, [][2]time.Duration{{5 * s, 7500 * time.Millisecond}, {10 * s, 15 * s}, {20 * s, 30 * s}, {20 * s, 30 * s}}},
		{Config{OpenFor: openFor, OpenJitter: -1}, [][2]time.Duration{{5 * s, 5 * s}, {10 * s, 10 * s}, {20 * s, 20 * s}, {30 * s, 30 * s}, {30 * s, 30 * s}}},
		{Config{OpenJitter: 1, OpenFor: 8 * s, OpenMax: 20 * s}, [][2]time.Duration{{8 * s, 16 * s}, {10 * s, 20 * s}, {10 * s, 20 * s}}},
		{Config{OpenJitter: 1, OpenFor: 20 * s, OpenMax: 20 * s}, [][2]time.Duration{{10 * s, 20 * s}, {10 * s, 20 * s}}},
		{Config{OpenFor: 40 * s}, [][2]time.Duration{{40 * s, 60 * s}, {53333333333, 80 * s}, {53333333333, 80 * s}}},
	} {
		const rounds = 2000
		low, high := make([]float64, len(c.want)), make([]float64, len(c.want))
		for i := range low {
			low[i] = 1
		}
		r := rand.New(rand.NewPCG(1, 8))
		for range rounds {
			b := must.Have(New(rated(c.cfg)))
			now := time.Duration(0)
			for range DefaultMinCalls {
				tok, _ := b.Start(now)
				b.Done(now, tok, Failure, r.Uint64)
			}
			for i, w := range c.want {
				d := b.RetryAt(now) - now
				if d < w[0]-1 || d > w[1]+1 {
					t.Fatalf("%+v, opening %d: %v, want %v to %v", c.cfg, i, d, w[0], w[1])
				}
				if w[1] > w[0] {
					x := float64(d-w[0]) / float64(w[1]-w[0])
					low[i], high[i] = min(low[i], x), max(high[i], x)
				}
				now += d
				b.Done(now, probeNow(t, b, now), Failure, r.Uint64)
			}
		}
		for i, w := range c.want {
			if w[1] > w[0] && (low[i] > 0.01 || high[i] < 0.99) {
				t.Errorf("%+v, opening %d spreads only over %.3f to %.3f of %v to %v", c.cfg, i, low[i], high[i], w[0], w[1])
			}
		}
	}
	b := must.Have(New(rated(Config{})))
	run(b, 0, 100, Failure)
	check.Equal(t, b.RetryAt(0), 6250*time.Millisecond, "without randomness: open for")
}

func testThresholds(t *testing.T) {
	for _, c := range []struct {
		rate                 float64
		min, failures, calls int
		want                 CircuitState
	}{
		{0.5, 200, 99, 200, Closed}, // 49.5 %
		{0.5, 200, 100, 200, Open},
		{0.1, 100, 10, 100, Open}, // the binary 0.1 is above a tenth
		{0.1, 100, 9, 100, Closed},
		{0.7, 10, 7, 10, Open},
		{0.7, 10, 6, 10, Closed},
		{0.29, 100, 29, 100, Open},
		{2.0 / 3, 3, 2, 3, Open},
		{1.0 / 3, 3, 1, 3, Open},
		{0.3333, 10000, 3333, 10000, Open},
		{0.33331, 10000, 3333, 10000, Closed},
		{1, 1000, 999, 1000, Closed},
		{1, 1000, 1000, 1000, Open},
		{1e-300, 10, 1, 10, Open},
		{0.5, 0, 19, 19, Closed}, // the default minimum
		{0.5, 0, 20, 20, Open},
		{0.5, 1, 1, 1, Open},
		{0, 1, 1000, 1000, Closed},
	} {
		b := must.Have(New(Config{Consecutive: -1, FailureRate: c.rate, MinCalls: c.min, OpenFor: openFor}))
		toks := make([]Ticket, c.calls)
		for i := range toks {
			toks[i], _ = b.Start(time.Duration(i)) // all before the first failure
		}
		for _, tok := range toks[:c.failures] {
			b.Done(time.Second, tok, Failure, nil)
		}
		check.Equal(t, b.State(time.Second), c.want, "%d of %d failed, threshold %v of at least %d", c.failures, c.calls, c.rate, c.min)
	}
	for _, c := range []struct {
		slow, calls int
		took        time.Duration
		want        CircuitState
	}{
		{10, 20, time.Second + 1, Open}, {9, 20, time.Second + 1, Closed}, {20, 20, time.Second, Closed}, {19, 19, time.Minute, Closed},
	} {
		for _, o := range []Evidence{Success, Failure} {
			b := must.Have(New(Config{Consecutive: -1, SlowRate: 0.5, SlowCall: time.Second}))
			toks := make([]Ticket, c.calls)
			for i := range toks {
				toks[i], _ = b.Start(0)
			}
			for _, tok := range toks[:c.slow] {
				b.Done(c.took, tok, o, nil)
			}
			check.Equal(t, b.State(c.took), c.want, "%d of %d took %v (%v)", c.slow, c.calls, c.took, o)
		}
	}
	b := must.Have(New(Config{Consecutive: 5, ConsecutiveFor: -1, OpenFor: openFor}))
	for range 100 {
		run(b, 0, 4, Failure)
		run(b, 0, 1, Success)
	}
	check.Equal(t, b.State(0), Closed, "four failures in a row, again and again")
	check.Equal(t, run(b, 0, 10, Failure), 5, "failures in a row until it opens")
}

func testListeners(t *testing.T) {
	// Every method from within a listener; a change caused there comes after the
	// one that is being delivered, for every listener.
	var b *Breaker
	var one, two []string
	b = must.Have(New(rated(Config{}), func(c Change) {
		one = append(one, c.To.String())
		b.State(c.At)
		b.RetryAt(c.At)
		b.Counts(c.At)
		if c.To == Open && c.Reason == FailureRate {
			b.ForceClosed(c.At)
			b.Auto(c.At)
			tok, _ := b.Start(c.At)
			b.Done(c.At, tok, Failure, nil)
			b.ForceOpen(c.At)
		}
	}, func(c Change) { two = append(two, c.To.String()) }))
	run(b, 0, 100, Failure)
	want := []string{"open", "closed", "open"}
	if !slices.Equal(one, want) || !slices.Equal(two, want) {
		t.Errorf("listeners heard %v and %v, want %v", one, two, want)
	}
}

func TestRule08ProbesUnderLoad(t *testing.T) {
	for _, probes := range []int{1, 3} {
		t.Run(fmt.Sprint(probes), func(t *testing.T) {
			b, at := opened(t, rated(Config{Probes: probes}))
			var wg sync.WaitGroup
			admitted := make([]int, 8)
			for g := range admitted {
				wg.Go(func() {
					for range 1000 {
						if _, ok := b.Start(at); ok {
							admitted[g]++
						}
					}
				})
			}
			wg.Wait()
			sum := 0
			for _, n := range admitted {
				sum += n
			}
			check.Equal(t, sum, probes, "probes admitted at once")
		})
	}
}

// What lies a window back counts for nothing, though nobody called meanwhile.
func TestRule11WindowsExpireOnRead(t *testing.T) {
	for _, idle := range []time.Duration{DefaultWindow, 3 * DefaultWindow, 8 * DefaultWindow, 1000 * DefaultWindow} {
		b := must.Have(New(rated(Config{})))
		run(b, 0, 19, Failure)
		if calls, failures, _ := b.Counts(0); calls != 19 || failures != 19 {
			t.Fatalf("Counts %d, %d, want 19, 19", calls, failures)
		}
		if calls, failures, slow := b.Counts(idle); calls != 0 || failures != 0 || slow != 0 {
			t.Errorf("after %v: Counts %d, %d, %d, want none", idle, calls, failures, slow)
		}
		run(b, idle, 19, Failure)
		check.Equal(t, b.State(idle), Closed, "19 failures, %v of nothing, 19 failures", idle)
		run(b, idle, 1, Failure)
		check.Equal(t, b.State(idle), Open, "after the twentieth")
	}
}

// The open time and a probe's time pass unobserved as well.
func TestRule11StatesExpireOnRead(t *testing.T) {
	b, at := opened(t, rated(Config{}))
	if s, r := b.State(at-1), b.RetryAt(at-1); s != Open || r != at {
		t.Errorf("just before: %v, %v", s, r)
	}
	if s, r := b.State(at), b.RetryAt(at); s != HalfOpen || r != 0 {
		t.Errorf("at the end of the open time: %v, %v, want half-open, 0", s, r)
	}
	check.Equal(t, b.state(), Open, "a reading made a transition")
}
