package outlier

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

const ms = time.Millisecond

type serve = func(key string, now time.Duration, r *rand.Rand) (Evidence, time.Duration)

// failing is a service at which a share of the calls fails.
func failing(share func(key string, now time.Duration) float64, o Evidence, fast, took time.Duration) serve {
	return func(key string, now time.Duration, r *rand.Rand) (Evidence, time.Duration) {
		if r.Float64() < share(key, now) {
			return o, fast
		}
		return Success, took
	}
}

func always(share float64) func(string, time.Duration) float64 {
	return func(string, time.Duration) float64 { return share }
}

// The same with calls that come at random and fail at random, and one in a hundred
// at the others as well.
func TestAnEndpointThatFailsHalfIsOutByChanceToo(t *testing.T) {
	t.Parallel()
	runs := 200 / slower
	for _, c := range []struct {
		n    int
		late float64
	}{{2, 0.02}, {3, 0.005}, {5, 0.005}, {10, 0.005}} {
		late, sum := 0, time.Duration(0)
		for seed := range uint64(runs) {
			begin := 15*time.Second + time.Duration(rand.New(rand.NewPCG(seed, 3)).Int64N(1e10))
			out := 20 * time.Second
			s := must.Have(New(Config{}, func(c Change) {
				if c.Kind == Ejected && c.Key == keys(1)[0] && out == 20*time.Second {
					out = c.At - begin
				}
			}))
			s.Update(0, keys(c.n))
			share := func(key string, now time.Duration) float64 {
				if now >= begin && key == keys(1)[0] {
					return 0.5
				}
				return 0.01
			}
			flight{s, 5 * float64(c.n), 0, begin + 20*time.Second, failing(share, FiveXX, 10*ms, 10*ms), seed}.fly(t)
			sum += out
			if out > DefaultInterval {
				late++
			}
		}
		t.Logf("%d endpoints: out after %v, %d of %d late", c.n, sum/time.Duration(runs), late, runs)
		if float64(late) > c.late*float64(runs) {
			t.Errorf("%d endpoints: %d of %d were out after more than an interval", c.n, late, runs)
		}
	}
}

// One in a hundred calls fails, at all endpoints: nobody is ejected.
func TestRandomErrorsEjectNobody(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 10, 100} {
		for _, perSec := range []float64{0.5, 5, 50} {
			s := must.Have(New(Config{}, func(c Change) { t.Errorf("%d endpoints, %v calls/s each: %v at %v", n, perSec, c, c.At) }))
			s.Update(0, keys(n))
			total := perSec * float64(n)
			length := time.Duration(2e5 / total / float64(slower) * float64(time.Second))
			flight{s, total, 0, length, failing(always(0.01), FiveXX, 5*ms, 5*ms), uint64(n)}.fly(t)
		}
	}
}

// An outage of everything, whether it is felt as errors or as time-outs, ejects
// nobody, so that all are there when it is over.
func TestAnOutageOfAllEjectsNobody(t *testing.T) {
	t.Parallel()
	down := func(_ string, now time.Duration) float64 {
		return float64(b2i(now >= time.Minute && now < 2*time.Minute))
	}
	for _, fast := range []time.Duration{ms, 100 * ms, time.Second, 5 * time.Second} {
		for _, n := range []int{2, 3, 10} {
			for seed := range uint64(max(1, 2/slower)) {
				s := must.Have(New(Config{}, func(c Change) { t.Errorf("failures after %v, %d endpoints, seed %d: %v at %v", fast, n, seed, c, c.At) }))
				s.Update(0, keys(n))
				flight{s, 50 * float64(n), 0, 3 * time.Minute, failing(down, LocalOrigin, fast, 100*ms), seed}.fly(t)
			}
		}
	}
}

// Failures mostly return sooner than successes. What an endpoint that has just come
// (or come back) shows first is therefore its failures, and were it judged by the
// calls that have ended, it would never stay. Calls under way count as ones that
// have not failed.
func TestFailuresThatReturnFirstAreNotHeldAgainstTheNew(t *testing.T) {
	for _, c := range []struct{ share, took float64 }{{0.02, 10}, {0.05, 2}, {0.3, 0.7}, {0.3, 5}} {
		for seed := range uint64(10 / slower) {
			s := must.Have(New(Config{}, func(ch Change) {
				if ch.Key == "new" {
					t.Errorf("%+v, seed %d: %v at %v", c, seed, ch, ch.At)
				}
			}))
			f := flight{s, 300, 0, 30 * time.Second, failing(always(c.share), FiveXX, ms, time.Duration(c.took*float64(time.Second))), seed}
			s.Update(0, keys(3))
			// The calls must go on while the new one comes.
			updated := false
			inner := f.serve
			f.serve = func(key string, now time.Duration, r *rand.Rand) (Evidence, time.Duration) {
				if now > 20*time.Second && !updated {
					updated = true
					s.Update(now, append(keys(3), "new"))
				}
				return inner(key, now, r)
			}
			seen := f.fly(t)
			if n := seen["new"][Success] + seen["new"][FiveXX]; n < 300 {
				t.Errorf("%+v: only %d calls to the new one", c, n)
			}
		}
	}
}

// A dead endpoint is found by the row of its failures, in a quiet service too.
func TestADeadEndpointIsFoundByItsRow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		n      int
		perSec float64 // to each
		fast   time.Duration
		within time.Duration
	}{
		{"busy", 3, 300, ms, 500 * ms},
		{"busy, two", 2, 300, ms, 500 * ms},
		{"a few", 3, 5, ms, 5 * time.Second},
		{"quiet", 3, 0.2, ms, 100 * time.Second},
		{"quiet, many", 20, 0.2, ms, 70 * time.Second},
		{"time-outs", 2, 5, time.Second, 15 * time.Second},
		{"long time-outs", 3, 10, 10 * time.Second, 30 * time.Second},
	} {
		for seed := range uint64(max(1, 8/slower)) {
			begin := time.Minute
			out := time.Hour
			s := must.Have(New(Config{}, func(ch Change) {
				if ch.Key != keys(1)[0] {
					t.Errorf("%s, seed %d: %v at %v", c.name, seed, ch, ch.At)
				} else if ch.Kind == Ejected {
					out = min(out, ch.At-begin)
				}
			}))
			s.Update(0, keys(c.n))
			share := func(key string, now time.Duration) float64 {
				return float64(b2i(now >= begin && key == keys(1)[0]))
			}
			flight{s, c.perSec * float64(c.n), 0, begin + 2*c.within, failing(share, LocalOrigin, c.fast, 20*ms), seed}.fly(t)
			if out > c.within {
				t.Errorf("%s, seed %d: out after %v, want %v at most", c.name, seed, out, c.within)
			}
		}
	}
}

// Of ten endpoints some fail most of their calls, and the others a few. Up to half
// are found, all of them, and never one that is well; the more are sick, and the
// more the others differ by chance, the longer it takes. docs/mechanisms.md gives
// these figures.
func TestUpToHalfAreFound(t *testing.T) {
	const n, each, share = 10, 5, 0.6
	for _, well := range []float64{0.01, 0.1} {
		for _, sick := range []int{1, 2, 4, 5} {
			runs, sum, byRow := max(1, 10/slower), time.Duration(0), 0
			for seed := range uint64(runs) {
				out := fallSick(t, n, sick, each, share, well, seed)
				check.Equal(t, len(out), sick, "%v of the others' calls fail, seed %d: sick ones that are out", well, seed)
				for _, c := range out {
					sum += c.At
					byRow += b2i(c.Reason == Consecutive)
				}
			}
			t.Logf("%d sick, %v of the others' calls fail: out after %.1f s, %d of %d by their row", sick, well, (sum / time.Duration(runs*sick)).Seconds(), byRow, runs*sick)
		}
	}
}

// fallSick flies a minute in which the first so many of n endpoints fail that share
// of their calls, after 20 s in which they did as well as the others. It returns when
// each was out for the first time, counted from then. Only they may be ejected.
func fallSick(t *testing.T, n, sick int, each, share, well float64, seed uint64) map[string]Change {
	t.Helper()
	const begin = 20 * time.Second
	out := map[string]Change{}
	s := must.Have(New(Config{}, func(c Change) {
		if _, again := out[c.Key]; c.Kind == Ejected && !again {
			c.At -= begin
			out[c.Key] = c
		}
	}))
	s.Update(0, keys(n))
	is := map[string]bool{}
	for _, key := range keys(sick) {
		is[key] = true
	}
	flight{s, each * float64(n), 0, begin + time.Minute, failing(func(key string, now time.Duration) float64 {
		if is[key] && now >= begin {
			return share
		}
		return well
	}, FiveXX, 10*ms, 10*ms), seed}.fly(t)
	for key, c := range out {
		if !is[key] || c.At < 0 {
			t.Errorf("%d of %d sick, seed %d: %v at %v, but it was well", sick, n, seed, c, c.At)
		}
	}
	return out
}

// A landing is the end of a call that is under way.
type landing struct {
	at time.Duration
	e  Endpoint
	o  Evidence
}

type landings []landing

func (l landings) Len() int           { return len(l) }
func (l landings) Less(i, j int) bool { return l[i].at < l[j].at }
func (l landings) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *landings) Push(x any)        { *l = append(*l, x.(landing)) }
func (l *landings) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// A flight is calls that arrive at random (Poisson), at so many a second, from one
// time to another. Each endpoint answers as serve returns.
type flight struct {
	set      *Set
	perSec   float64
	from, to time.Duration
	serve    func(key string, now time.Duration, r *rand.Rand) (Evidence, time.Duration)
	seed     uint64
}

// fly returns how many calls ended each way, for each endpoint, and all together
// under the empty key.
func (f flight) fly(t testing.TB) map[string]map[Evidence]int {
	t.Helper()
	r := rand.New(rand.NewPCG(f.seed, 11))
	var air landings
	seen := map[string]map[Evidence]int{"": {}}
	land := func(until time.Duration) {
		for len(air) > 0 && air[0].at <= until {
			l := heap.Pop(&air).(landing)
			f.set.Done(l.at, l.e, l.o, r.Uint64)
			if seen[l.e.Key()] == nil {
				seen[l.e.Key()] = map[Evidence]int{}
			}
			seen[l.e.Key()][l.o]++
			seen[""][l.o]++
		}
	}
	gap := float64(time.Second) / f.perSec
	for now := f.from; now < f.to; now += time.Duration(r.ExpFloat64() * gap) {
		land(now)
		e, ok := f.set.Pick(now, r.Uint64, nil)
		if !ok {
			t.Fatal("no endpoint")
		}
		o, took := f.serve(e.Key(), now, r)
		heap.Push(&air, landing{now + took, e, o})
	}
	land(f.to + time.Hour)
	return seen
}
