package hedge

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

const ms = time.Millisecond

// lax is a Config that learns from few samples and hedges without bounds.
func lax(c Config) Config {
	c.Attempts, c.Share, c.InFlight = 2, -1, -1
	return c
}

// warm makes the ten successes after which a hedger begins to learn.
func warm(h *Hedger, now time.Duration) {
	for range 10 {
		learnt(h, now, ms, true)
	}
}

// learnt reports one first attempt that ends at now.
func learnt(h *Hedger, now, took time.Duration, success bool) {
	f := h.Start(now - took)
	h.Done(now, &f, success)
}

// population is first attempts: those that succeeded, and those that were cut short.
type population struct{ ended, cut []time.Duration }

func (p population) learn(t *testing.T, percentile float64) time.Duration {
	h := must.Have(New(lax(Config{Percentile: percentile, MinSamples: 1, MinDelay: 1})))
	warm(h, 0)
	for _, d := range p.ended {
		learnt(h, 10*time.Minute, d, true)
	}
	for _, d := range p.cut {
		learnt(h, 10*time.Minute, d, false)
	}
	d, ok := h.Delay(10*time.Minute + time.Second)
	if !ok {
		t.Fatal("nothing learned")
	}
	return d
}

// kaplanMeier is the percentile by the book, over a list, with durations rounded up
// as buckets do: the product over the successes up to x of (1 - successes at x /
// those that had got to x), and one more attempt that outlasts all.
func kaplanMeier(p population, percentile float64) time.Duration {
	var ended, cut []time.Duration
	for _, d := range p.ended {
		ended = append(ended, edge(d))
	}
	for _, d := range p.cut {
		cut = append(cut, edge(d))
	}
	times := slices.Clone(ended)
	slices.Sort(times)
	alive, last := 1.0, time.Duration(0)
	for _, x := range slices.Compact(times) {
		here, risk := 0, 1
		for _, d := range ended {
			if d == x {
				here++
			}
			if d >= x {
				risk++
			}
		}
		for _, d := range cut {
			if d >= x {
				risk++
			}
		}
		alive *= 1 - float64(here)/float64(risk)
		if last = x; alive <= 1-percentile+1e-9 {
			break
		}
	}
	return last
}

func TestPercentileByTheBook(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := randomPopulation(r)
		for _, percentile := range []float64{0.5, 0.9, 0.95, 0.99} {
			if got, want := p.learn(t, percentile), kaplanMeier(p, percentile); got != want {
				t.Errorf("seed %d: p%v of %d successes and %d that were cut short: %v, want %v", seed, 100*percentile, len(p.ended), len(p.cut), got, want)
			}
		}
	}
}

func randomPopulation(r *rand.Rand) (p population) {
	for range 1 + r.IntN(200) {
		p.ended = append(p.ended, time.Duration(r.ExpFloat64()*10e6))
	}
	for range r.IntN(100) {
		p.cut = append(p.cut, time.Duration(r.ExpFloat64()*20e6))
	}
	return p
}

// A time at which an attempt was cut short is not a latency. It never makes the
// percentile less, however short it is, and never is the percentile: that is always
// the latency of a success. All that counts of it is how many successes it outlasted.
func TestLosersTimesAreNotLatencies(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := randomPopulation(r)
		const percentile = 0.9
		without := population{ended: p.ended}.learn(t, percentile)
		with := p.learn(t, percentile)
		if with < without {
			t.Errorf("seed %d: %v with losers, %v without", seed, with, without)
		}
		if !slices.ContainsFunc(p.ended, func(d time.Duration) bool { return edge(d) == with }) {
			t.Errorf("seed %d: the percentile %v is the latency of no success", seed, with)
		}
		// Losers that were cut short before the first success do not count at all.
		early := population{ended: p.ended}
		for range 1000 {
			early.cut = append(early.cut, max(slices.Min(p.ended)-time.Duration(r.IntN(1e6))-32*1024, 0))
		}
		if first := edge(slices.Min(p.ended)); edge(early.cut[0]) < first {
			early.cut = slices.DeleteFunc(early.cut, func(d time.Duration) bool { return edge(d) >= first })
			check.Equal(t, early.learn(t, percentile), without, "seed %d: percentile with losers that say nothing", seed)
		}
		// Those that were cut short beyond the percentile count as the time that they would
		// have taken, whatever that is.
		known, told, never := population{ended: slices.Clone(p.ended)}, population{ended: p.ended}, population{ended: p.ended}
		for range r.IntN(min(10, 1+len(p.ended)/20)) {
			cut := without*2 + time.Duration(r.IntN(1e9))
			told.cut = append(told.cut, cut)
			never.cut = append(never.cut, time.Hour)
			known.ended = append(known.ended, cut+time.Duration(r.IntN(1e9)))
		}
		if d := known.learn(t, percentile); d < without*2 {
			if got := told.learn(t, percentile); got != d {
				t.Errorf("seed %d: %v where losers were cut short, %v had they gone on", seed, got, d)
			}
			if got := never.learn(t, percentile); got != d {
				t.Errorf("seed %d: %v where losers were cut short after an hour, %v had they gone on", seed, got, d)
			}
		}
	}
}

// Only the first Done of a call counts.
func TestDoneTwice(t *testing.T) {
	h := must.Have(New(lax(Config{MinSamples: 20})))
	warm(h, 0)
	for range 19 {
		f := h.Start(0)
		for range 5 {
			h.Done(ms, &f, true)
		}
	}
	if d, ok := h.Delay(time.Second); ok {
		t.Errorf("19 successes reported five times each: %v", d)
	}
	learnt(h, time.Second, ms, true)
	if _, ok := h.Delay(2 * time.Second); !ok {
		t.Error("nothing learned after 20")
	}
}

func TestNothingIsKnownBeforeMinSamples(t *testing.T) {
	h := must.Have(New(Config{Attempts: 2}))
	warm(h, 0)
	now := time.Duration(0)
	for i := range 60 {
		now += 10 * ms
		f := h.Start(now)
		if d, ok := f.Delay(); ok {
			t.Fatalf("after %d samples: %v", i, d)
		}
		if why := h.Fire(now, &f); why != Unlearned || f.Reason() != Unlearned {
			t.Fatalf("after %d samples Fire says %v, %v", i, why, f.Reason())
		}
		learnt(h, now, ms, false) // these are not samples
		h.Done(now+5*ms, &f, true)
	}
	f := h.Start(now + time.Second)
	if d, ok := f.Delay(); !ok || d < 5*ms || d > 5200*time.Microsecond {
		t.Errorf("after 60 samples of 5ms: %v, %v", d, ok)
	}
}

// While one goroutine learns the percentile anew the others go by the old one, but
// not if it is too old to be anything.
func TestWhileAnotherLearns(t *testing.T) {
	h := must.Have(New(Config{Attempts: 2}))
	warm(h, 0)
	for range 100 {
		learnt(h, time.Second, 10*ms, true)
	}
	was, _ := h.Delay(2 * time.Second)
	l := h.learned.Load()
	l.mu.Lock()
	if d, ok := h.Delay(3 * time.Second); !ok || d != was {
		t.Errorf("a second later, while another learns: %v, %v, want %v", d, ok, was)
	}
	if d, ok := h.Delay(time.Minute); ok {
		t.Errorf("a minute later, while another learns: %v", d)
	}
	learnt(h, time.Minute, 10*ms, true) // waits for nobody
	l.mu.Unlock()
}

func TestMinDelayAndMaxDelay(t *testing.T) {
	for _, c := range []struct {
		c          Config
		took, want time.Duration
	}{
		{Config{}, 100 * time.Microsecond, ms},
		{Config{MinDelay: 20 * ms}, 10 * ms, 20 * ms},
		{Config{MaxDelay: 5 * ms}, 10 * ms, 5 * ms},
		{Config{MaxDelay: 10 * time.Microsecond}, 10 * ms, 10 * time.Microsecond},
		{Config{MinDelay: 1}, 0, 1024},
	} {
		h := must.Have(New(lax(c.c)))
		warm(h, 0)
		for range 100 {
			learnt(h, time.Second, c.took, true)
		}
		if d, ok := h.Delay(2 * time.Second); !ok || d != c.want {
			t.Errorf("%+v: all calls took %v, hedged after %v, want %v", c.c, c.took, d, c.want)
		}
	}
}

// The whole against a list, over random operations: calls that start and end in
// any order, at any distance, also a little backwards.
func TestLearnAgreesWithAList(t *testing.T) {
	t.Parallel()
	learned, seeds := 0, seed.Runs(10)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := []float64{0.5, 0.9, 0.95}[r.IntN(3)]
		minSamples := 1 + r.IntN(40)
		width := []time.Duration{200 * ms, time.Second}[r.IntN(2)] // of a slot
		h := must.Have(New(lax(Config{Percentile: p, MinSamples: minSamples, MinDelay: 1, Window: 6 * width})))
		warm(h, 0)
		type entry struct {
			slot  int
			took  time.Duration
			ended bool
		}
		var list []entry
		slot := 0 // that is counted into
		delay, next := time.Duration(0), time.Duration(math.MinInt64)
		ask := func(now time.Duration) time.Duration {
			if now < next {
				return delay
			}
			slot = max(slot, int(now/width))
			delay, next = 0, now+min(250*ms, width)
			for back := 2; ; back++ {
				var p2 population
				for _, e := range list {
					if e.slot > slot-back {
						if e.ended {
							p2.ended = append(p2.ended, e.took)
						} else {
							p2.cut = append(p2.cut, e.took)
						}
					}
				}
				if len(p2.ended) >= 10*minSamples || back == 6 {
					if len(p2.ended) >= minSamples {
						delay = kaplanMeier(p2, p)
						learned++
					}
					return delay
				}
			}
		}
		now := time.Duration(0)
		for step := range 600 {
			switch r.IntN(100) {
			case 0:
				now += time.Duration(r.Int64N(8e9))
			case 1, 2, 3:
				now = max(0, now-time.Duration(r.IntN(20e6)))
			default:
				now += time.Duration(r.IntN(60e6))
			}
			f := h.Start(now)
			want := ask(now)
			if d, ok := f.Delay(); d != want || ok != (want > 0) {
				t.Fatalf("seed %d step %d: %v, %v; want %v", seed, step, d, ok, want)
			}
			took := time.Duration(r.ExpFloat64() * 10e6)
			ended := r.IntN(5) > 0
			h.Done(now+took, &f, ended)
			slot = max(slot, int((now+took)/width))
			list = append(list, entry{slot, took, ended})
		}
	}
	if learned < 10*seeds {
		t.Errorf("a percentile was learned %d times: the test does not reach it", learned)
	}
}

// Ten successes in eight seconds, and learning begins.
func TestQuietProcessesLearnNothing(t *testing.T) {
	h := must.Have(New(lax(Config{MinSamples: 1})))
	now := time.Duration(0)
	for range 1000 { // nine in every eight seconds
		now += 890 * ms
		learnt(h, now, ms, true)
	}
	if h.learned.Load() != nil {
		t.Error("a process with nine calls in eight seconds remembers them")
	}
	for range 1000 {
		learnt(h, now, ms, false)
	}
	if h.learned.Load() != nil {
		t.Error("failures are taken for successes")
	}
	now += 16 * time.Second
	warm(h, now)
	if h.learned.Load() == nil {
		t.Error("a process with ten calls in eight seconds remembers nothing")
	}
}
