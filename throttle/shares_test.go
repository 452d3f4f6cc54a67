package throttle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// bookAlone is the formula of the book and nothing else.
var bookAlone = Config{Mode: Adaptive, MinRequests: 1, Recent: DefaultWindow, ProbeEvery: -1}

// The probability is the book's: max(0, (requests - K × accepts) / (requests + 1)).
func TestRefusalIsTheBooks(t *testing.T) {
	for _, c := range []struct {
		k              float64
		accepts, other int
		want           float64
	}{
		{2, 10, 0, 0},
		{2, 5, 5, 0},        // requests = K × accepts: the cutoff
		{2, 5, 6, 1.0 / 12}, // and one more
		{2, 0, 1, 1.0 / 2},
		{2, 0, 99, 99.0 / 100}, // below one, always
		{2, 10, 90, 80.0 / 101},
		{1.1, 10, 1, 0}, // one refused for ten accepted
		{1.1, 10, 2, 1.0 / 13},
		{1.1, 100, 0, 0},
		{3, 10, 20, 0},
		{3, 10, 50, 30.0 / 61},
		{1000, 1, 999, 0},
		{1000, 1, 1000, 1 / 1002.0},
	} {
		cfg := bookAlone
		cfg.K = c.k
		th := must(t, cfg)
		learns(th, sec, Accepted, c.accepts)
		learns(th, sec, RateLimited, c.other)
		if got := th.State(sec).Refusal; !near(got, c.want) {
			t.Errorf("K %v, %d accepted, %d not: %v, want %v", c.k, c.accepts, c.other, got, c.want)
		}
		// It is also what Ask does, in both directions around it.
		just := func(p float64) func() uint64 {
			return func() uint64 { return uint64(math.Ceil(p*(1<<53))) << 11 }
		}
		if _, ok := th.Ask(sec, just(c.want)); !ok {
			t.Errorf("K %v, %d accepted, %d not: refused by luck of %v", c.k, c.accepts, c.other, c.want)
		}
		if c.want > 0 {
			if _, ok := th.Ask(sec, just(c.want-1e-9)); ok {
				t.Errorf("K %v, %d accepted, %d not: not refused by luck just below %v", c.k, c.accepts, c.other, c.want)
			}
		}
	}
}

func TestWhatCounts(t *testing.T) {
	for o, want := range map[Outcome][2]int64{
		Accepted: {1, 1}, RateLimited: {1, 0}, Unanswered: {1, 0}, Neutral: {0, 0}, Unsent: {0, 0}, 99: {0, 0},
	} {
		th := must(t, Config{Mode: Adaptive})
		th.Learn(0, o)
		if s := th.State(0); s.Requests != want[0] || s.Accepts != want[1] {
			t.Errorf("%v: %+v, want %v", o, s, want)
		}
	}
	// A refused one is a request, by Ask itself; one that passes is not yet.
	th := must(t, bookAlone)
	learns(th, 0, RateLimited, 9)
	if _, ok := th.Ask(0, lucky); !ok || th.State(0).Requests != 9 {
		t.Errorf("passed %t, %+v", ok, th.State(0))
	}
	if wait, ok := th.Ask(0, unlucky); ok || wait != 0 || th.State(0).Requests != 10 {
		t.Errorf("passed %t, wait %v, %+v", ok, wait, th.State(0))
	}
}

// Calls in flight do not count: the first calls of a process, and those of a burst,
// are not refused because none of them has ended.
func TestCallsInFlightAreNotHeldAgainstTheBackend(t *testing.T) {
	th := must(t, Config{Mode: Adaptive})
	for range 10_000 {
		if _, ok := th.Ask(0, unlucky); !ok {
			t.Fatal("refused")
		}
	}
	learns(th, 50*sec, Accepted, 10_000)
	for range 10_000 {
		if _, ok := th.Ask(50*sec, unlucky); !ok {
			t.Fatal("refused")
		}
	}
}

func TestNothingIsRefusedBelowMinRequests(t *testing.T) {
	for _, n := range []int{0, 1, 3, 10, 100} {
		th := must(t, Config{Mode: Adaptive, MinRequests: n, ProbeEvery: -1})
		first := n
		if n == 0 {
			first = DefaultMinRequests
		}
		for i := range first {
			if _, ok := th.Ask(0, unlucky); !ok {
				t.Fatalf("MinRequests %d: refused after %d", n, i)
			}
			th.Learn(0, RateLimited)
		}
		if _, ok := th.Ask(0, unlucky); ok {
			t.Errorf("MinRequests %d: not refused after %d", n, first)
		}
	}
}

// Accepts count for MinRequests too, so that what was spared by a small number is
// judged again when an accept makes it enough.
func TestAcceptsBringTheRequestThatIsEnough(t *testing.T) {
	th := must(t, Config{Mode: Adaptive, K: 1.1, ProbeEvery: -1})
	learns(th, 0, RateLimited, 5)
	for i := range 5 {
		if _, ok := th.Ask(0, unlucky); !ok {
			t.Fatalf("refused after %d", i)
		}
		th.Learn(0, Accepted)
	}
	if _, ok := th.Ask(0, unlucky); ok {
		t.Error("not refused with 5 of 10 accepted")
	}
}

func TestTheWindowExpiresOnRead(t *testing.T) {
	th := must(t, Config{Mode: Adaptive, Recent: DefaultWindow})
	learns(th, sec, RateLimited, 100)
	for _, c := range []struct {
		now  time.Duration
		want int64
	}{{sec, 100}, {119 * sec, 100}, {120*sec - 1, 100}, {120 * sec, 0}, {time.Hour, 0}, {math.MaxInt64, 0}} {
		if got := th.State(c.now).Requests; got != c.want {
			t.Errorf("at %v: %d requests, want %d", c.now, got, c.want)
		}
	}
	if _, ok := th.Ask(120*sec, unlucky); !ok {
		t.Error("refused for what the window has lost")
	}
}

// An attempt is refused only if both the window and its recent part hold too few
// accepts: an outage that is over and a blip refuse nothing.
func TestBothWindowsMustAgree(t *testing.T) {
	refuses := func(th *Throttle, now time.Duration) bool {
		_, ok := th.Ask(now, unlucky)
		return !ok
	}
	over := must(t, Config{Mode: Adaptive, ProbeEvery: -1})
	learns(over, 10*sec, RateLimited, 1000)
	if !refuses(over, 10*sec) {
		t.Error("nothing is refused in an outage")
	}
	learns(over, 30*sec, Accepted, 5)
	if refuses(over, 30*sec) {
		t.Error("refused when all recent requests were accepted")
	}
	if s := over.State(30 * sec); s.Refusal != 0 || s.Requests != 1006 || s.Accepts != 5 {
		t.Errorf("%+v", s)
	}
	book := must(t, Config{Mode: Adaptive, Recent: DefaultWindow, ProbeEvery: -1})
	learns(book, 10*sec, RateLimited, 1000)
	learns(book, 30*sec, Accepted, 5)
	if !refuses(book, 30*sec) {
		t.Error("the book's formula forgot an outage in 20 s")
	}

	blip := must(t, Config{Mode: Adaptive, ProbeEvery: -1})
	learns(blip, 30*sec, Accepted, 1000)
	learns(blip, 60*sec, RateLimited, 1000)
	if refuses(blip, 60*sec) {
		t.Error("refused though half of the window's requests were accepted")
	}
	blip.Learn(60*sec, RateLimited)
	if !refuses(blip, 60*sec) {
		t.Error("not refused with less than half of the window's requests accepted")
	}
}

// The floor: whatever the luck, and with none, an attempt passes at least every
// ProbeEvery. That also bounds what it costs.
func TestProbesPass(t *testing.T) {
	for _, c := range []struct {
		every, want time.Duration
	}{{0, 30 * sec}, {sec, sec}, {7 * sec, 7 * sec}, {time.Hour, time.Hour}} {
		for name, luck := range map[string]func() uint64{"unlucky": unlucky, "middle": nil} {
			th := must(t, Config{Mode: Adaptive, ProbeEvery: c.every})
			learns(th, 0, RateLimited, 100)
			var passed []time.Duration
			for now := time.Duration(0); now <= 3*c.want; now += 100 * time.Millisecond {
				if _, ok := th.Ask(now, luck); ok {
					passed = append(passed, now)
					th.Learn(now, Unanswered)
				}
			}
			if len(passed) != 4 {
				t.Fatalf("ProbeEvery %v, %s: %d attempts passed in %v, want 4", c.every, name, len(passed), 3*c.want)
			}
			for i, at := range passed {
				if at != time.Duration(i)*c.want {
					t.Errorf("ProbeEvery %v, %s: passed at %v", c.every, name, passed)
				}
			}
		}
	}
	// An attempt that passes by chance puts the probe off.
	th := must(t, Config{Mode: Adaptive})
	learns(th, 0, RateLimited, 100)
	th.Ask(0, unlucky) // the first probe
	learns(th, 20*sec, RateLimited, 100)
	if _, ok := th.Ask(20*sec, lucky); !ok {
		t.Fatal("refused by good luck")
	}
	learns(th, 29*sec, RateLimited, 100)
	learns(th, 49*sec, RateLimited, 100)
	for _, c := range []struct {
		now time.Duration
		ok  bool
	}{{30 * sec, false}, {50*sec - 1, false}, {50 * sec, true}, {50 * sec, false}} {
		if _, ok := th.Ask(c.now, unlucky); ok != c.ok {
			t.Errorf("at %v: passed %t, want %t", c.now, ok, c.ok)
		}
	}
	// A clock that is put back does not put the probe off.
	learns(th, 5*sec, RateLimited, 100)
	if _, ok := th.Ask(5*sec, unlucky); !ok {
		t.Error("no probe after the clock was put back")
	}
	// Without probes only chance lets any pass.
	none := must(t, Config{Mode: Adaptive, ProbeEvery: -1})
	learns(none, 0, RateLimited, 100)
	for now := time.Duration(0); now < time.Hour; now += sec {
		if _, ok := none.Ask(now, unlucky); ok {
			t.Fatalf("passed at %v", now)
		}
	}
}

// Chance alone lets about one attempt pass in every Recent, whatever the rate, and
// so never comes to nothing.
func TestChanceLetsOnePassInEveryRecent(t *testing.T) {
	for _, gap := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, sec} {
		th := must(t, Config{Mode: Adaptive, ProbeEvery: -1})
		r := rand.New(rand.NewPCG(1, 2))
		learns(th, 0, RateLimited, 1000)
		passed := 0
		const hours = 1
		for now := time.Duration(0); now < hours*time.Hour; now += gap {
			if _, ok := th.Ask(now, r.Uint64); ok {
				passed++
				th.Learn(now, RateLimited)
			}
		}
		if every := (hours * time.Hour / time.Duration(passed)).Seconds(); every < 8 || every > 13 {
			t.Errorf("a request every %v: one passed in %.1f s, want about 10", gap, every)
		}
	}
}

// Independent errors, fewer than K allows, refuse nothing.
func TestErrorsAmongAcceptsRefuseNothing(t *testing.T) {
	for _, share := range []float64{0.01, 0.1, 0.2, 0.3} {
		refused, calls := 0, 0
		for seed := range uint64(20) {
			th := must(t, Config{Mode: Adaptive})
			r := rand.New(rand.NewPCG(seed, 3))
			for now := time.Duration(0); now < 10*time.Minute; now += 100 * time.Millisecond {
				calls++
				if _, ok := th.Ask(now, r.Uint64); !ok {
					refused++
				} else if r.Float64() < share {
					th.Learn(now, RateLimited)
				} else {
					th.Learn(now, Accepted)
				}
			}
		}
		if float64(refused) > 0.0005*float64(calls) {
			t.Errorf("%v errors: %d of %d refused", share, refused, calls)
		}
	}
}

// The draw is asked for only when it decides, and once.
func TestDrawsOnlyWhenItDecides(t *testing.T) {
	th := must(t, bookAlone)
	draws := 0
	count := func() uint64 { draws++; return math.MaxUint64 }
	learns(th, 0, Accepted, 5)
	learns(th, 0, RateLimited, 5)
	if th.Ask(0, count); draws != 0 {
		t.Errorf("%d draws when nothing is refused", draws)
	}
	th.Learn(0, RateLimited)
	if th.Ask(0, count); draws != 1 {
		t.Errorf("%d draws, want 1", draws)
	}
}

// What was found to be well is relied upon before a time and for so many requests, and no longer.
func TestCalmEnds(t *testing.T) {
	r := &rules{slot: sec, recent: slots, minRequests: 1, k: 2, probeEvery: -1}
	for _, c := range []struct {
		now    time.Duration
		credit int64
		want   bool
	}{
		{sec - 1, 1, true}, {sec - 1, 0, false}, {sec - 1, -1, false}, {sec, 1, false},
	} {
		s := newShares()
		for range 100 {
			s.count(r, c.now, false) // nothing is accepted
		}
		s.acceptUntil.Store(int64(sec))
		s.credit.Store(c.credit)
		if got := s.ask(r, c.now, func() uint64 { return 0 }); got != c.want {
			t.Errorf("at %v of %v, with a credit of %d: passes %v, want %v", c.now, sec, c.credit, got, c.want)
		}
	}
}
