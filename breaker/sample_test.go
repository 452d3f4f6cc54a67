package breaker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// hang has a breaker guard calls that come ten a second and hang for ten seconds, from zero to
// the given time.
func hang(t *testing.T, b *Breaker, until time.Duration) (passed []time.Duration, tokens []Ticket) {
	t.Helper()
	type call struct {
		token Ticket
		ends  time.Duration
	}
	var flying []call
	for now := time.Duration(0); now < until; now += 100 * ms {
		for len(flying) > 0 && flying[0].ends <= now {
			b.Done(flying[0].ends, flying[0].token, Failure, nil)
			flying = flying[1:]
		}
		if tok, ok := b.Start(now); ok {
			flying = append(flying, call{tok, now + 10*second})
			if b.state() != Closed {
				passed, tokens = append(passed, now), append(tokens, tok)
			}
		}
	}
	return passed, tokens
}

// While nothing but hanging probes could show that the dependency is back, one in sixteen of
// the calls that used to come passes, and no more.
func TestSamplesAreASixteenthOfTheCalls(t *testing.T) {
	b := must.Have(New(Config{OpenJitter: -1}))
	passed, _ := hang(t, b, 300*second)
	if n, most := len(passed), 300*10/16+40; n > most || n < most-60 {
		t.Errorf("%d calls passed, want about %d: one in sixteen, and the probes", n, most)
	}
	for i := range passed[1:] {
		if gap := passed[i+1] - passed[i]; gap > 1700*ms {
			t.Errorf("no call passed for %v after %v", gap, passed[i])
		}
	}
}

// A sample that succeeds closes the breaker, whatever hangs. One that was started in another
// outage does not, and one that fails changes nothing.
func TestASampleThatSucceedsCloses(t *testing.T) {
	b := must.Have(New(Config{OpenJitter: -1}))
	_, tokens := hang(t, b, 60*second)
	last, now := tokens[len(tokens)-1], 60*second
	if last.probe != sampled {
		t.Fatal("the last call that passed is no sample")
	}
	before := b.State(now)
	b.Done(now, last, Failure, nil)
	b.Done(now, last, Neutral, nil)
	if got := b.State(now); got != before {
		t.Fatalf("%v after a sample that failed, want %v", got, before)
	}
	b.Done(now, last, Success, nil)
	if got := b.State(now); got != Closed {
		t.Fatalf("%v after a sample that succeeded", got)
	}
	fail := func() {
		for b.State(now) == Closed {
			tok, _ := b.Start(now)
			now += 100 * ms
			b.Done(now, tok, Failure, nil)
		}
	}
	fail()
	b.Done(now, last, Success, nil)
	if got := b.State(now); got == Closed {
		t.Error("a sample of the outage before closed the breaker")
	}
	b.ForceOpen(now)
	if _, ok := b.Start(now + time.Hour); ok {
		t.Error("a sample passed a breaker that is forced open")
	}
}

// Failures that return sooner than successes do not open the breaker before successes of
// calls that started as early could have come.
func TestARowIsJudgedWhenSuccessesCouldHaveCome(t *testing.T) {
	for _, c := range []struct {
		usual, took, want time.Duration
	}{
		{0, 10 * ms, 2 * second},           // unknown
		{500 * ms, 10 * ms, 2 * second},    // soon enough
		{5 * second, 10 * ms, 10 * second}, // successes take longer than the row
		{5 * second, 6 * second, 2 * second},
	} {
		b := must.Have(New(Config{}))
		var first, now time.Duration
		for now = 0; b.State(now) == Closed && now < time.Minute; now += 100 * ms {
			tok, _ := b.Start(now)
			b.DoneWithUsualTime(now+c.took, tok, Failure, c.usual, nil)
			if now == 0 {
				first = c.took
			}
		}
		check.Equal(t, now-100*ms+c.took-first, c.want, "successes take %v, failures %v: open after a row of", c.usual, c.took)
	}
}

// A dependency that hangs fails each call after its time-out, which may be
// longer than the window.
func TestHangOpens(t *testing.T) {
	const window = DefaultWindow
	for _, windows := range []float64{0.01, 0.5, 1, 1.5, 3, 6, 20} {
		timeout := time.Duration(windows * float64(window))
		for _, gap := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond} {
			for _, before := range []time.Duration{0, time.Hour} { // of health
				t.Run(fmt.Sprintf("timeout %v, a call each %v, after %v of health", timeout, gap, before), func(t *testing.T) {
					var opened time.Duration
					b := must.Have(New(rated(Config{}), func(c Change) { opened = c.At }))
					var flying flights
					for now := max(0, before-2*window); opened == 0; now += gap {
						flying.land(b, now, timeout, Failure)
						if tok, _ := b.Start(now); now < before {
							b.Done(now, tok, Success, nil)
						} else {
							flying = append(flying, tok)
						}
						// Half a window of failures is half of what is judged, after health; a
						// window gives even the slow client its twenty calls.
						if limit := before + timeout + window + gap; now > limit {
							t.Fatalf("still closed %v after the hang began", now-before)
						}
					}
					t.Logf("opened %v after the first failure", opened-before-timeout)
				})
			}
		}
	}
}

// By default a hang is noticed when calls have ended in nothing but time-outs for
// two seconds, however many they are, or with the third, if that is later.
func TestHangOpensByDefault(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Millisecond, time.Second, time.Minute} {
		for _, gap := range []time.Duration{time.Millisecond, time.Second, 12 * time.Second} {
			var opened time.Duration
			b := must.Have(New(Config{}, func(c Change) {
				if opened == 0 {
					opened = c.At
				}
			}))
			const healthy = time.Minute
			var flying flights
			for now := time.Duration(0); opened == 0 && now < time.Hour; now += gap {
				flying.land(b, now, timeout, Failure)
				if tok, _ := b.Start(now); now < healthy {
					b.Done(now, tok, Success, nil)
				} else {
					flying = append(flying, tok)
				}
			}
			first := healthy + timeout
			if least, most := first+2*time.Second, first+max(2*time.Second, 2*gap)+2*gap; opened < least || opened > most {
				t.Errorf("timeout %v, a call each %v: opened %v after the hang began, want %v to %v", timeout, gap, opened-healthy, least-healthy, most-healthy)
			}
		}
	}
}

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
		check.Equal(t, time.Duration(exact.gate.Load())-c.age, c.want, "outage of %v, call of %v: open for", c.age, c.took)
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
