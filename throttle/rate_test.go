package throttle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// rateLimitedAt is a throttle that saw so many attempts a second for ten seconds, and
// then a rate-limited answer, at now.
func rateLimitedAt(t *testing.T, c Config, rate int) (th *Throttle, now time.Duration) {
	t.Helper()
	c.Mode = Cubic
	th = must.Have(New(c))
	for i := range 10 * rate {
		now = at(float64(i) / float64(rate))
		if wait, ok := th.Start(now, nil); wait != 0 || !ok {
			t.Fatalf("before any rate-limited answer: wait %v, %t", wait, ok)
		}
		th.Done(now, Accepted)
	}
	now = 10 * sec
	th.Done(now, RateLimited)
	return th, now
}

func TestCubicLimitsFromTheFirstRateLimitedAnswer(t *testing.T) {
	th, now := rateLimitedAt(t, Config{}, 100)
	s := th.State(now)
	if !s.Limiting || math.Abs(s.Sent-100) > 1 || math.Abs(s.Rate-0.7*s.Sent) > 1e-9 {
		t.Fatalf("%+v, want 70 %% of 100/s", s)
	}
	// A second's worth of attempts passes at once, the others as they accrue.
	for i := range 71 {
		wait, ok := th.Start(now, nil)
		want := max(0, at(float64(i+1)/s.Rate-1))
		if !ok || (wait-want).Abs() > 1 {
			t.Fatalf("attempt %d: wait %v, %t, want %v", i, wait, ok, want)
		}
	}
}

// Rate-limited answers alone switch the limit on. Then neither a neutral end nor one that was never
// sent moves the rate; an attempt that went unanswered moves it like one that was accepted.
func TestWhatMovesTheRate(t *testing.T) {
	for o, c := range map[Evidence]struct{ limits, grows, sent bool }{
		Accepted: {false, true, true}, RateLimited: {true, false, true}, Unanswered: {false, true, true},
		Neutral: {false, false, true}, Unsent: {false, false, false}, 77: {false, false, true},
	} {
		th := must.Have(New(Config{Mode: Cubic}))
		for now := time.Duration(0); now < 10*sec; now += sec / 10 {
			th.Done(now, o)
		}
		if s := th.State(10 * sec); s.Limiting != c.limits || (s.Sent > 9) != c.sent {
			t.Errorf("%v: limiting %t, %v sent per second", o, s.Limiting, s.Sent)
		}
		th, now := rateLimitedAt(t, Config{}, 100)
		before := th.State(now).Rate
		th.Done(now+sec/4, o)
		if after := th.State(now + sec/4).Rate; (after > before) != c.grows || after < before {
			t.Errorf("%v: from %v to %v", o, before, after)
		}
	}
}

// What was never sent is not in the rate that is measured afterwards either.
func TestUnsentIsNotMeasured(t *testing.T) {
	th := must.Have(New(Config{Mode: Cubic}))
	th.Start(0, nil)
	learns(th, 0, Unsent, 100)
	th.Done(sec/2, Accepted)
	if got := th.State(sec / 2).Sent; !near(got, 0.8/0.5) {
		t.Errorf("%v per second, want 1.6", got)
	}
}

// Time that goes back and comes again fills the bucket once.
func TestTimeThatComesTwiceFillsOnce(t *testing.T) {
	th, now := rateLimitedAt(t, Config{MaxWait: -1}, 100)
	for range 100 {
		th.Start(now, nil)
	}
	for range 10 {
		if _, ok := th.Start(now-5*sec, nil); ok {
			t.Fatal("passed before its time")
		}
		if _, ok := th.Start(now, nil); ok {
			t.Fatal("passed for time that had passed already")
		}
	}
}

// One that is rate-limited within FallEvery of the last fall does not lower the rate,
// and puts nothing off; negative, each of them does.
func TestFallEvery(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		after []time.Duration // when further rate-limited answers come
		want  int             // falls, with the first
	}{
		{0, []time.Duration{0, 1, sec / 2, sec - 1}, 1},
		{0, []time.Duration{sec - 1, sec}, 2},
		{0, []time.Duration{sec, sec, 2*sec - 1, 2 * sec}, 3},
		{3 * sec, []time.Duration{sec, 2 * sec, 3 * sec, 4 * sec, 5 * sec, 6 * sec}, 3},
		{-1, []time.Duration{0, 0, 0, 0}, 5},
	} {
		th, now := rateLimitedAt(t, Config{FallEvery: c.every}, 100)
		falls, last := 1, th.rate.Load().max
		for _, d := range c.after {
			before := th.State(now + d).Rate
			th.Done(now+d, RateLimited)
			if after := th.State(now + d).Rate; after < before {
				falls++
				if m := th.rate.Load().max; m > last {
					t.Errorf("every %v: maximum rose from %v to %v", c.every, last, m)
				} else {
					last = m
				}
			}
		}
		check.Equal(t, falls, c.want, "every %v, after %v: falls", c.every, c.after)
	}
}

func TestMaxWait(t *testing.T) {
	for _, c := range []struct {
		max  time.Duration
		want int // attempts that pass at once or wait, of a rate of 70/s with 70 in the bucket
	}{{0, 70 + 140}, {sec, 140}, {sec / 2, 105}, {-1, 70}, {math.MaxInt64, 1000}} {
		th, now := rateLimitedAt(t, Config{MaxWait: c.max}, 100)
		passed := 0
		var longest time.Duration
		for range 1000 {
			next := th.State(now).Wait
			wait, ok := th.Start(now, nil)
			if next != wait {
				t.Fatalf("MaxWait %v: the state has a wait of %v, and an attempt has to wait for %v", c.max, next, wait)
			}
			if ok {
				passed++
				longest = max(longest, wait)
			} else if limit := max(0, th.rules.maxWait); wait <= limit {
				t.Fatalf("MaxWait %v: refused with a wait of %v", c.max, wait)
			}
		}
		if passed < c.want-1 || passed > c.want+1 || longest > max(0, th.rules.maxWait) {
			t.Errorf("MaxWait %v: %d passed, want %d; longest wait %v", c.max, passed, c.want, longest)
		}
	}
}

// An attempt that was to wait and is given up makes its place free for the next one
// who asks, and not for those who wait already.
func TestUnsentGivesThePlaceBack(t *testing.T) {
	th, now := rateLimitedAt(t, Config{MaxWait: time.Hour}, 100)
	for range 100 {
		th.Start(now, nil)
	}
	third, _ := th.Start(now, nil)
	th.Done(now, Unsent)
	if again, ok := th.Start(now, nil); !ok || again != third {
		t.Errorf("wait %v, %t, want the %v that were given up", again, ok, third)
	}
	// No more comes back than the bucket holds.
	learns(th, now, Unsent, 10_000)
	passed := 0
	for range 1000 {
		if wait, ok := th.Start(now, nil); ok && wait == 0 {
			passed++
		}
	}
	if passed != 70 && passed != 69 {
		t.Errorf("%d passed at once, want 70", passed)
	}
	// A refusal takes no place.
	th, now = rateLimitedAt(t, Config{MaxWait: -1}, 100)
	for range 1000 {
		th.Start(now, nil)
	}
	if wait, _ := th.Start(now, nil); wait > sec/50 {
		t.Errorf("after refusals: %v", wait)
	}
}

// The floor: whatever is answered, MinRate attempts per second pass, and attempts
// that come one at a time are never refused.
func TestMinRatePasses(t *testing.T) {
	for _, minRate := range []float64{0, 0.1, 5} {
		for _, maxWait := range []time.Duration{0, -1, 100 * time.Millisecond, time.Minute} {
			th, start := rateLimitedAt(t, Config{MinRate: minRate, MaxWait: maxWait}, 100)
			rate := minRate
			if rate == 0 {
				rate = DefaultMinRate
			}
			// Many callers, every answer rate-limited; the first minute brings the rate down.
			passed, ends := 0, []time.Duration(nil)
			const from, to = 2 * time.Minute, 12 * time.Minute
			for now := start; now < start+to; now += 20 * time.Millisecond {
				for len(ends) > 0 && ends[0] <= now {
					th.Done(now, RateLimited)
					ends = ends[1:]
				}
				if wait, ok := th.Start(now, nil); ok {
					if now >= start+from {
						passed++
					}
					ends = append(ends, now+wait)
				}
			}
			want := rate * (to - from).Seconds()
			if float64(passed) < want-2 || float64(passed) > want+2 {
				t.Errorf("MinRate %v, MaxWait %v: %d attempts passed in ten minutes, want %.0f", minRate, maxWait, passed, want)
			}
		}
		// One caller, who asks when the last attempt has ended.
		th, now := rateLimitedAt(t, Config{MinRate: minRate}, 100)
		for i := range 10_000 {
			wait, ok := th.Start(now, nil)
			if !ok {
				t.Fatalf("MinRate %v: the only caller is refused at attempt %d, wait %v", minRate, i, wait)
			}
			now += wait
			th.Done(now, RateLimited)
		}
	}
}

// When the rate falls those who wait keep their times, and who comes next waits for
// the last of them and one turn at the new rate: a debt in attempts would shut
// everybody out for as long as the old rate was higher.
func TestAFallDoesNotShutOut(t *testing.T) {
	th, now := rateLimitedAt(t, Config{MaxWait: 10 * sec, FallEvery: -1}, 1000)
	var last time.Duration
	for {
		wait, ok := th.Start(now, nil)
		if !ok {
			break
		}
		last = wait
	}
	if last < 9*sec {
		t.Fatalf("the last wait is %v", last)
	}
	learns(th, now, RateLimited, 100)
	if s := th.State(now); s.Rate != DefaultMinRate {
		t.Fatalf("%+v", s)
	}
	wait, ok := th.Start(now, nil)
	if want := last + 2*sec; ok || (wait-want).Abs() > 10*time.Millisecond {
		t.Errorf("wait %v, %t, want %v and a refusal", wait, ok, want)
	}
	if wait, ok := th.Start(now+last, nil); !ok || (wait-2*sec).Abs() > 10*time.Millisecond {
		t.Errorf("when the last has gone: wait %v, %t, want 2 s", wait, ok)
	}
}

// A Window after the last rate-limited answer attempts pass freely again, until the
// next. The SDKs never do.
func TestTheLimitIsForgotten(t *testing.T) {
	for _, window := range []time.Duration{0, sec, time.Hour, math.MaxInt64} {
		th, start := rateLimitedAt(t, Config{Window: window, MaxWait: -1}, 10)
		if window == 0 {
			window = DefaultWindow
		}
		if window == math.MaxInt64 {
			if s := th.State(math.MaxInt64 - 1); !s.Limiting {
				t.Errorf("%+v at the end of time", s)
			}
			continue
		}
		if s := th.State(start + window - 1); !s.Limiting || s.Rate == 0 {
			t.Errorf("%v: %+v", window-1, s)
		}
		if s := th.State(start + window); s.Limiting || s.Rate != 0 {
			t.Errorf("%v: %+v", window, s)
		}
		for range 1000 {
			if wait, ok := th.Start(start+window, nil); wait != 0 || !ok {
				t.Fatalf("%v: wait %v, %t", window, wait, ok)
			}
		}
		// Whoever learns of it first forgets it as well.
		th, start = rateLimitedAt(t, Config{Window: window, MaxWait: -1}, 10)
		th.Done(start+window, Accepted)
		if th.rate.Load().limiting.Load() {
			t.Errorf("%v: still limiting after an accept", window)
		}
		// The next rate-limited answer is a first one: the measured rate is the maximum.
		th.Done(start+window, RateLimited)
		if s := th.State(start + window); !s.Limiting {
			t.Errorf("%v: %+v after another rate-limited answer", window, s)
		}
	}
}

// slowLimiter is the limiter of the SDKs as they write it down, in seconds: botocore
// retries/{adaptive,throttling,bucket}.py, aws-sdk-go-v2 aws/retry/adaptive_ratelimit.go.
// Its bucket is full when it is switched on.
type slowLimiter struct {
	on                             bool
	fill, capacity, tokens         float64
	refilled, lastMax, rateLimited float64
	measured, slot, count          float64
}

func (l *slowLimiter) refill(t float64) {
	l.tokens = min(l.capacity, l.tokens+(t-l.refilled)*l.fill)
	l.refilled = t
}

func (l *slowLimiter) acquire(t float64) bool {
	if !l.on {
		return true
	}
	if l.refill(t); l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

func (l *slowLimiter) update(t float64, rateLimited bool) {
	l.count++
	if slot := math.Floor(t*2) / 2; slot > l.slot {
		l.measured = l.count/(slot-l.slot)*0.8 + l.measured*0.2
		l.count, l.slot = 0, slot
	}
	var rate float64
	if rateLimited {
		use := l.measured
		if l.on {
			use = min(use, l.fill)
		}
		l.lastMax, l.rateLimited, rate = use, t, use*0.7
	} else {
		k := math.Pow(l.lastMax*(1-0.7)/0.4, 1./3)
		rate = 0.4*math.Pow(t-l.rateLimited-k, 3) + l.lastMax
	}
	rate = min(rate, 2*l.measured)
	l.refill(t)
	l.fill = max(rate, 0.5)
	l.capacity = max(rate, 1)
	l.tokens = min(l.tokens, l.capacity)
	if rateLimited && !l.on {
		l.on, l.tokens = true, l.capacity
	}
}

func TestCubicAgreesWithTheSDKs(t *testing.T) {
	passed, refused := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		th := must.Have(New(Config{Mode: Cubic, Window: math.MaxInt64, MaxWait: -1, FallEvery: -1}))
		th.Start(0, nil)
		var slow slowLimiter
		gap, bad := r.ExpFloat64(), r.Float64()
		now := 0.0
		for step := range 1000 {
			if r.IntN(50) == 0 {
				gap, bad = math.Pow(10, -3*r.Float64()), r.Float64()*float64(r.IntN(2))
			}
			now += gap * r.ExpFloat64()
			d := at(now)
			now = d.Seconds()
			wait, got := th.Start(d, nil)
			if want := slow.acquire(now); got != want {
				if math.Abs(slow.tokens-1) < 1e-6 {
					break // a matter of rounding
				}
				t.Fatalf("seed %d, step %d, at %v: %v, %t, want %t with %v tokens", seed, step, d, wait, got, want, slow.tokens)
			}
			if !got {
				refused++
				if want := (1 - slow.tokens) / slow.fill; math.Abs(wait.Seconds()-want) > 1e-6 {
					t.Fatalf("seed %d, step %d, at %v: wait %v, want %v s", seed, step, d, wait, want)
				}
				continue
			}
			passed++
			rateLimited := r.Float64() < bad
			slow.update(now, rateLimited)
			if rateLimited {
				th.Done(d, RateLimited)
			} else {
				th.Done(d, []Evidence{Accepted, Unanswered}[r.IntN(2)])
			}
			s := th.State(d)
			if !near(s.Sent, slow.measured) || s.Limiting != slow.on || slow.on && !near(s.Rate, slow.fill) {
				t.Fatalf("seed %d, step %d, at %v: %+v, want %+v", seed, step, d, s, slow)
			}
		}
	}
	if passed < 50_000 || refused < 20_000 {
		t.Errorf("the model was hardly put to the test: %d passed, %d refused", passed, refused)
	}
}

// Whatever happens, attempts are sent in the order in which they asked, none waits
// for longer than MaxWait, and who asks while others wait comes one turn after the
// last of them.
func TestWaitsAreInOrder(t *testing.T) {
	waits := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		maxWait := time.Duration(r.Int64N(int64(20 * sec)))
		th := must.Have(New(Config{Mode: Cubic, MaxWait: maxWait, FallEvery: time.Duration(r.IntN(2)) * -1}))
		var now, last time.Duration
		bad := r.Float64()
		for step := range 2000 {
			now += time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
			rate := th.State(now).Rate
			if wait, ok := th.Start(now, nil); ok {
				goes := now + wait
				if goes < last-1 || wait > maxWait && maxWait > 0 {
					t.Fatalf("seed %d, step %d: sent at %v after %v, wait %v", seed, step, goes, last, wait)
				}
				if wait > 0 && last > now {
					waits++
					if turn := (goes - last).Seconds(); math.Abs(turn-1/rate) > 1e-6 {
						t.Fatalf("seed %d, step %d: %v s after the last, want one turn of %v", seed, step, turn, 1/rate)
					}
				}
				last = max(last, goes)
			}
			if r.IntN(2) == 0 {
				o := Accepted
				if r.Float64() < bad {
					o = RateLimited
				}
				th.Done(now, o)
			}
		}
	}
	if waits < 10_000 {
		t.Errorf("%d waits behind others", waits)
	}
}
