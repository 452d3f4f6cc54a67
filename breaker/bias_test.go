//go:build !race

// Simulations of one goroutine: the race detector finds nothing in them and
// takes a minute over it.

package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The setting in which breakers that count completions were found to open on
// error rates far below their threshold: one client, 600 calls a second,
// independent errors that return at once, successes that take 100 ms (all of
// them, or in the mean of an exponential distribution), threshold 50 % of at
// least 20 calls in 10 s, open for 30 s; five minutes, four seeds.
const (
	biasRate    = 600
	biasService = 100 * time.Millisecond
	biasHorizon = 5 * time.Minute
	biasSeeds   = 4
)

var biasRated = Config{Consecutive: -1, FailureRate: 0.5, OpenFor: 30 * time.Second, OpenMax: 30 * time.Second, OpenJitter: -1}

// guard has the part of a breaker that the simulation needs: admit returns the function to
// call when the call ends, or nil.
type guard interface {
	admit(now time.Duration) func(now time.Duration, failed bool)
}

// traffic flies a guard and returns the share of calls that succeeded.
func traffic(seed uint64, errorRate float64, constant bool, g guard) float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	type end struct {
		at   time.Duration
		done func(time.Duration, bool)
	}
	var flying []end // in order
	calls, successes := 0, 0
	var now time.Duration
	for now < biasHorizon {
		now += time.Duration(r.ExpFloat64() * float64(time.Second) / biasRate)
		for len(flying) > 0 && flying[0].at <= now {
			flying[0].done(flying[0].at, false)
			flying = flying[1:]
			successes++
		}
		// Drawn for every call, so that arrivals and errors are the same for every guard.
		failed, service := r.Float64() < errorRate, biasService
		if d := r.ExpFloat64() * float64(biasService); !constant {
			service = time.Duration(d)
		}
		calls++
		done := g.admit(now)
		switch {
		case done == nil:
		case failed:
			done(now, true)
		default:
			e := end{now + service, done}
			i, _ := slices.BinarySearchFunc(flying, e, func(a, b end) int { return int(a.at - b.at) })
			flying = slices.Insert(flying, i, e)
		}
	}
	return float64(successes) / float64(calls-len(flying))
}

type ours struct {
	b      *Breaker
	rnd    func() uint64
	opened int
}

func newOurs(t testing.TB, seed uint64, c Config) *ours {
	o := &ours{rnd: rand.New(rand.NewPCG(seed, 2)).Uint64}
	o.b = must(t, c, func(c Change) {
		if c.From == Closed {
			o.opened++
		}
	})
	return o
}

func (o *ours) admit(now time.Duration) func(time.Duration, bool) {
	tok, ok := o.b.Start(now)
	if !ok {
		return nil
	}
	return func(now time.Duration, failed bool) {
		outcome := Success
		if failed {
			outcome = Failure
		}
		o.b.Done(now, tok, outcome, o.rnd)
	}
}

// completions is the usual breaker, with the same settings: it counts calls
// when they end. It is here to show that the setting distinguishes the two.
type completions struct {
	ends     []time.Duration
	failures []time.Duration
	until    time.Duration
	probing  bool
	gen      int
}

func (c *completions) admit(now time.Duration) func(time.Duration, bool) {
	if now < c.until || c.probing {
		return nil
	}
	gen := c.gen
	if c.until > 0 {
		c.probing = true
		return func(now time.Duration, failed bool) {
			c.probing = false
			if failed {
				c.until = now + 30*time.Second
				return
			}
			c.until = 0
			c.ends, c.failures = nil, nil
			c.gen++
		}
	}
	return func(now time.Duration, failed bool) {
		if gen != c.gen || c.until > 0 {
			return
		}
		old := func(at time.Duration) bool { return at <= now-10*time.Second }
		for len(c.ends) > 0 && old(c.ends[0]) {
			c.ends = c.ends[1:]
		}
		for len(c.failures) > 0 && old(c.failures[0]) {
			c.failures = c.failures[1:]
		}
		c.ends = append(c.ends, now)
		if failed {
			c.failures = append(c.failures, now)
		}
		if failed && len(c.ends) >= 20 && 2*len(c.failures) >= len(c.ends) {
			c.until = now + 30*time.Second
		}
	}
}

func TestBiasFailuresThatReturnSooner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		errors    float64
		constant  bool
		least     float64 // share of the calls that could have succeeded which must
		usualMost float64 // what counting completions does not reach; 0: no claim
	}{
		{0.20, true, 0.97, 0.80},
		{0.30, true, 0.97, 0.20},
		{0.30, false, 0.97, 0.60},
	} {
		var us, usual float64
		opened := 0
		for seed := range uint64(biasSeeds) {
			o := newOurs(t, seed, biasRated)
			us += traffic(seed, c.errors, c.constant, o) / biasSeeds
			usual += traffic(seed, c.errors, c.constant, &completions{}) / biasSeeds
			opened += o.opened
		}
		ideal := 1 - c.errors
		t.Logf("%2.0f %% errors, constant %t: %.1f %% of calls succeed, %.1f %% of the ideal, opened %d times; counting completions %.1f %%, %.1f %% of the ideal",
			100*c.errors, c.constant, 100*us, 100*us/ideal, opened, 100*usual, 100*usual/ideal)
		if us < c.least*ideal {
			t.Errorf("%.0f %% errors: %.3f of calls succeed, want %.3f of %.3f", 100*c.errors, us, c.least, ideal)
		}
		if c.usualMost > 0 && usual > c.usualMost*ideal {
			t.Errorf("%.0f %% errors: counting completions gives %.3f: the setting shows no bias any more", 100*c.errors, usual)
		}
	}
}

func TestBiasMoreErrorsThanTheThresholdOpen(t *testing.T) {
	for seed := range uint64(biasSeeds) {
		o := newOurs(t, seed, biasRated)
		r := rand.New(rand.NewPCG(seed, 3))
		var open time.Duration
		for now := time.Duration(0); now < 10*time.Second && open == 0; now += time.Second / biasRate {
			if done := o.admit(now); done == nil {
				open = now
			} else if r.Float64() < 0.6 {
				done(now, true)
			}
		}
		if open == 0 {
			t.Errorf("seed %d: 60 %% errors for 10 s did not open it", seed)
		}
	}
}

// The default rule in the same setting: what it takes away, and what it does to
// a dependency whose errors are as many as that.
func TestBiasDefault(t *testing.T) {
	t.Parallel()
	for _, errors := range []float64{0.30, 0.90} {
		for _, constant := range []bool{true, false} {
			for seed := range uint64(1) {
				o := newOurs(t, seed, Config{})
				us := traffic(seed, errors, constant, o)
				if all := traffic(seed, errors, constant, nobody{}); us != all || o.opened > 0 {
					t.Errorf("%.0f %% errors, constant %t, seed %d: %.4f of calls succeed of %.4f possible, opened %d times", 100*errors, constant, seed, us, all, o.opened)
				}
			}
		}
	}
}

// nobody guards nothing.
type nobody struct{}

func (nobody) admit(time.Duration) func(time.Duration, bool) { return func(time.Duration, bool) {} }

// A quiet process sees few calls, and three failures in a row are not rare among
// independent ones: p³ at each place in the row. It costs a part of the time that
// the failures themselves took.
func TestBiasQuietProcess(t *testing.T) {
	const (
		gap   = 12 * time.Second
		calls = 1_000_000
		p     = 0.1
	)
	for _, took := range []time.Duration{0, time.Millisecond, time.Second} {
		opened, refused := 0, 0
		b := must(t, Config{}, func(c Change) {
			if c.From == Closed {
				opened++
			}
		})
		r := rand.New(rand.NewPCG(1, 13))
		for i := range calls {
			now := time.Duration(i) * gap
			tok, ok := b.Start(now)
			switch {
			case !ok:
				refused++
			case r.Float64() < p:
				b.Done(now+took, tok, Failure, r.Uint64)
			default:
				b.Done(now+100*time.Millisecond, tok, Success, r.Uint64)
			}
		}
		t.Logf("failures of %v: opened %d times in %d calls, refused %d", took, opened, calls, refused)
		if least, most := int(0.8*p*p*p*calls), int(p*p*p*calls); opened < least || opened > most {
			t.Errorf("failures of %v: opened %d times in %d calls, want %d to %d", took, opened, calls, least, most)
		}
		if refused > 0 {
			t.Errorf("failures of %v: %d calls refused, want none of those 12 s later", took, refused)
		}
	}
}

// Right after a restart nothing but failures has come back, for three windows.
func TestBiasVerySlowSuccesses(t *testing.T) {
	verySlowSuccesses(t, rated(Config{}))
	verySlowSuccesses(t, Config{ConsecutiveFor: 4 * DefaultWindow}) // more than they take
}

func verySlowSuccesses(t *testing.T, c Config) {
	for seed := range uint64(biasSeeds) {
		const service = 3 * DefaultWindow
		b := must(t, c)
		r := rand.New(rand.NewPCG(seed, 4))
		var flying flights
		for now := time.Duration(0); now < 12*DefaultWindow; now += 10 * time.Millisecond {
			flying.land(b, now, service, Success)
			tok, ok := b.Start(now)
			if !ok {
				t.Fatalf("seed %d: opened by 5 %% of failures before %v", seed, now)
			}
			if r.Float64() < 0.05 {
				b.Done(now, tok, Failure, nil)
			} else {
				flying = append(flying, tok)
			}
		}
	}
}

// A hundred calls at once after an hour of nothing, twenty of which fail: at
// once, after a second, or after a time-out of one to six windows, when
// everything else has long been answered and traffic has gone.
func TestBiasBurstAfterIdle(t *testing.T) {
	for _, fail := range []time.Duration{0, time.Second, DefaultWindow, 3 * DefaultWindow, 6 * DefaultWindow} {
		for seed := range uint64(50) {
			b := must(t, rated(Config{}))
			r := rand.New(rand.NewPCG(seed, 5))
			now := time.Hour + time.Duration(r.Int64N(int64(time.Minute)))
			var toks []Token
			for range 100 {
				tok, _ := b.Start(now)
				toks = append(toks, tok)
				now += time.Duration(r.Int64N(int64(time.Millisecond)))
			}
			r.Shuffle(len(toks), func(i, j int) { toks[i], toks[j] = toks[j], toks[i] })
			for _, tok := range toks[:80] {
				if fail > 100*time.Millisecond {
					b.Done(now+100*time.Millisecond, tok, Success, nil)
				}
			}
			slices.SortFunc(toks[80:], func(a, b Token) int { return int(a.start - b.start) })
			for _, tok := range toks[80:] {
				b.Done(now+fail, tok, Failure, nil)
			}
			if s := b.State(now + fail); s != Closed {
				t.Fatalf("seed %d: 20 of 100 calls failed after %v: %v", seed, fail, s)
			}
		}
	}
}

// The same failures made one after the other: here the first twenty calls are
// all there is to go by, and ten failures among them are bad luck (p = 0.3 %).
func TestBiasBurstOneByOne(t *testing.T) {
	const bursts = 2000
	opened := 0
	r := rand.New(rand.NewPCG(1, 6))
	for range bursts {
		b := must(t, rated(Config{}))
		for range 100 {
			if tok, ok := b.Start(0); ok && r.Float64() < 0.2 {
				b.Done(0, tok, Failure, nil)
			}
		}
		if b.State(0) != Closed {
			opened++
		}
	}
	t.Logf("%d of %d bursts opened it", opened, bursts)
	if opened > bursts/100 {
		t.Errorf("%d of %d bursts with 20 %% of instant failures opened it, want 1 %% at most", opened, bursts)
	}
}
