package outlier

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// everyChoice runs a test for each way to choose.
func everyChoice(t *testing.T, f func(*testing.T, Choice)) {
	for c := range choices {
		t.Run(c.String(), func(t *testing.T) { f(t, c) })
	}
}

func TestNoEndpoints(t *testing.T) {
	everyChoice(t, func(t *testing.T, c Choice) {
		s := must.Have(New(Config{Choice: c}))
		if e, ok := s.Pick(0, nil, nil); ok || e.Key() != "" {
			t.Errorf("an empty set gave %q", e.Key())
		}
		s.Done(0, Endpoint{}, FiveXX, nil) // has no effect
		s.Update(0, keys(2))
		s.Update(0, nil)
		if e, ok := s.Pick(0, nil, nil); ok {
			t.Errorf("a set that was emptied gave %q", e.Key())
		}
		check.Equal(t, len(s.States(0)), 0, "endpoints")
	})
}

// Of two that are drawn, the one with fewer calls under way; all pairs are drawn
// equally often.
func TestTwoChoices(t *testing.T) {
	const n = 5
	s := must.Have(New(Config{}))
	s.Update(0, keys(n))
	r := rand.New(rand.NewPCG(1, 1))
	// Load them with 0 to n-1 calls.
	for _, st := range s.States(0) {
		want := slices.Index(keys(n), st.Key)
		for have := 0; have < want; {
			if e, _ := s.Pick(0, r.Uint64, nil); e.Key() == st.Key {
				have++
			} else {
				s.Done(0, e, Neutral, nil)
			}
		}
	}
	const rounds = 100_000
	got := map[string]int{}
	for range rounds {
		e, _ := s.Pick(0, r.Uint64, nil)
		got[e.Key()]++
		s.Done(0, e, Neutral, nil)
	}
	// The i-th is taken when it is drawn with one of the n-1-i that are busier.
	for i, key := range keys(n) {
		want := float64(rounds) * float64(n-1-i) / (n * (n - 1) / 2)
		if math.Abs(float64(got[key])-want) > 5*math.Sqrt(want) {
			t.Errorf("%d calls under way: chosen %d times, want about %.0f", i, got[key], want)
		}
	}
}

// Between equals every choice is fair, and each that is drawn may be the first.
func TestEqualsAreChosenEqually(t *testing.T) {
	everyChoice(t, func(t *testing.T, c Choice) {
		for _, tried := range []int{0, 2} {
			s := must.Have(New(Config{Choice: c}))
			s.Update(0, keys(6))
			r := rand.New(rand.NewPCG(1, 1))
			got := map[string]int{}
			rounds := 30_000 / slower
			for range rounds {
				var not Tried
				for _, key := range keys(6)[:tried] {
					not.Add(Endpoint{h: s.byKey[key]})
				}
				e, _ := s.Pick(0, r.Uint64, &not)
				got[e.Key()]++
				s.Done(0, e, Neutral, nil)
			}
			want := float64(rounds) / float64(6-tried)
			for i, key := range keys(6) {
				if i < tried && got[key] != 0 || i >= tried && math.Abs(float64(got[key])-want) > 5*math.Sqrt(want) {
					t.Errorf("%d tried: %s was chosen %d times, want about %.0f", tried, key, got[key], want)
				}
			}
		}
	})
}

func TestLeastLoaded(t *testing.T) {
	s := must.Have(New(Config{Choice: LeastLoaded}))
	s.Update(0, keys(7))
	r := rand.New(rand.NewPCG(1, 1))
	var air []Endpoint
	load := map[string]int{}
	for range 10_000 {
		if len(air) > 0 && r.IntN(2) == 0 || len(air) > 50 {
			i := r.IntN(len(air))
			s.Done(0, air[i], Neutral, nil)
			load[air[i].Key()]--
			air = slices.Delete(air, i, i+1)
			continue
		}
		e, _ := s.Pick(0, r.Uint64, nil)
		for _, key := range keys(7) {
			if load[key] < load[e.Key()] {
				t.Fatalf("chosen one with %d under way, %q has %d", load[e.Key()], key, load[key])
			}
		}
		load[e.Key()]++
		air = append(air, e)
	}
}

// The far endpoint gets as many times fewer calls under way as it is slower.
func TestLeastTime(t *testing.T) {
	share := func(c Choice) float64 {
		s := must.Have(New(Config{Choice: c}))
		s.Update(0, []string{"near", "far"})
		took := map[string]time.Duration{"near": 10 * ms, "far": 80 * ms}
		seen := flight{s, 50, 0, 200 * time.Second, func(key string, _ time.Duration, _ *rand.Rand) (Evidence, time.Duration) {
			return Success, took[key]
		}, 1}.fly(t)
		return float64(seen["far"][Success]) / float64(seen["far"][Success]+seen["near"][Success])
	}
	two, least := share(TwoChoices), share(LeastTime)
	t.Logf("the far one gets %.3f of the calls by two choices, %.3f by least time", two, least)
	if two < 0.1 || least > two/2 {
		t.Errorf("the far one gets %.3f of the calls by two choices, %.3f by least time", two, least)
	}
}

// An endpoint of which no time is known is compared by its load alone.
func TestLeastTimeOfTheUnknown(t *testing.T) {
	known, unknown := &host{}, &host{}
	known.took.Store(math.Float64bits(1))
	for _, c := range [][2]*host{{known, unknown}, {unknown, known}, {unknown, unknown}} {
		if c[0].isBetterThan(c[1], 0, LeastTime) {
			t.Error("one of two with equal loads is better, and the time of both is not known")
		}
	}
	busy, quick := &host{}, &host{}
	busy.word.Store(1 << loadShift)
	if !known.isBetterThan(busy, 0, LeastTime) {
		t.Error("an endpoint without calls is not better than a busy one of which no time is known")
	}
	known.took.Store(math.Float64bits(0.5))
	quick.took.Store(math.Float64bits(0.3))
	if !quick.isBetterThan(known, 0, LeastTime) {
		t.Error("of two with equal loads the quicker one is not better")
	}
	if known.isBetterThan(quick, 0, LeastTime) {
		t.Error("of two with equal loads the slower one is better")
	}
}

// An endpoint that was slow once is tried again after a while: what it was like is
// forgotten by half with each sweep in which it got no call.
func TestLeastTimeForgets(t *testing.T) {
	s := must.Have(New(Config{Choice: LeastTime}))
	s.Update(0, []string{"near", "far"})
	slow := func(now time.Duration) time.Duration {
		if now < 20*time.Second {
			return 2 * time.Second
		}
		return 10 * ms
	}
	late := 0
	flight{s, 20, 0, 60 * time.Second, func(key string, now time.Duration, _ *rand.Rand) (Evidence, time.Duration) {
		if key == "far" && now > 40*time.Second {
			late++
		}
		if key == "far" {
			return Success, slow(now)
		}
		return Success, 10 * ms
	}, 1}.fly(t)
	if late < 100 {
		t.Errorf("once slow, the endpoint gets %d of 400 calls long after", late)
	}
}

// An untried healthy endpoint is always taken if there is one; when there is none,
// the one that was tried longest ago.
func TestTried(t *testing.T) {
	everyChoice(t, func(t *testing.T, c Choice) {
		r := rand.New(rand.NewPCG(2, uint64(c)))
		for range 2000 {
			n := 1 + r.IntN(12)
			s := must.Have(New(Config{Choice: c}))
			s.Update(0, keys(n))
			for range r.IntN(2 * n) {
				s.Pick(0, r.Uint64, nil) // some load
			}
			var tried Tried
			var order []string
			for range 20 {
				e, ok := s.Pick(0, r.Uint64, &tried)
				if !ok {
					t.Fatal("no endpoint")
				}
				if recent := order[max(0, len(order)-min(n-1, len(tried.ids))):]; slices.Contains(recent, e.Key()) {
					t.Fatalf("%d endpoints, tried %q: chosen %q", n, order, e.Key())
				}
				if !tried.Has(e) {
					t.Fatal("the choice was not noted")
				}
				order = append(order, e.Key())
			}
		}
	})
}

// What was tried stays so when the set changes, and who is new is not taken for it.
func TestTriedSurvivesAnUpdate(t *testing.T) {
	s := must.Have(New(Config{}))
	s.Update(0, []string{"a", "b", "c"})
	var tried Tried
	first, _ := s.Pick(0, dice.Uint64, &tried)
	gone := "b"
	if first.Key() == "b" {
		gone = "a"
	}
	rest := slices.DeleteFunc([]string{"x", "c", "b", "a", "y"}, func(k string) bool { return k == gone })
	s.Update(0, rest)
	for range len(rest) - 1 {
		if e, _ := s.Pick(0, dice.Uint64, &tried); e.Key() == first.Key() {
			t.Fatalf("%q was tried before", e.Key())
		}
	}
	if e, _ := s.Pick(0, dice.Uint64, &tried); e.Key() != first.Key() {
		t.Errorf("when all were tried: %q, want %q, the first", e.Key(), first.Key())
	}
}

func TestTriedIsAValue(t *testing.T) {
	s := must.Have(New(Config{}))
	s.Update(0, keys(12))
	var none, tried Tried
	var all []Endpoint
	for _, key := range keys(12) {
		all = append(all, Endpoint{h: s.byKey[key]})
		tried.Add(all[len(all)-1])
	}
	for i, e := range all {
		if tried.Has(e) != (i >= 4) || none.Has(e) {
			t.Errorf("the %dth of 12: Has is %v", i, tried.Has(e))
		}
	}
	before := tried
	tried.Add(all[6]) // the latest now
	tried.Add(Endpoint{})
	for i, e := range all {
		check.Equal(t, tried.Has(e), i >= 4, "after adding one again, the %dth of 12: Has", i)
	}
	if tried == before || tried.Has(Endpoint{}) {
		t.Error("nothing moved")
	}
	for _, i := range []int{0, 1, 2, 3, 0, 1, 2} {
		tried.Add(all[i])
	}
	for i, e := range all {
		check.Equal(t, tried.Has(e), i < 4 || i == 6 || i >= 9, "after four more, the %dth of 12: Has", i)
	}
}

// Without a source of randomness calls are still made.
func TestNilSource(t *testing.T) {
	everyChoice(t, func(t *testing.T, c Choice) {
		s := must.Have(New(Config{Choice: c}))
		s.Update(0, keys(3))
		var tried Tried
		seen := map[string]bool{}
		for range 3 {
			e, _ := s.Pick(0, nil, &tried)
			seen[e.Key()] = true
			s.Done(0, e, LocalOrigin, nil)
		}
		check.Equal(t, len(seen), 3, "endpoints of three attempts: %v", seen)
	})
}

// After an interval and more without any call nothing is known of anybody.
func TestLeastTimeForgetsAllInAPause(t *testing.T) {
	s := must.Have(New(Config{Choice: LeastTime}))
	s.Update(0, []string{"near", "far"})
	took := map[string]time.Duration{"near": 10 * ms, "far": 2 * time.Second}
	flight{s, 20, 0, 20 * time.Second, func(key string, _ time.Duration, _ *rand.Rand) (Evidence, time.Duration) {
		return Success, took[key]
	}, 1}.fly(t)
	share := func(now time.Duration) (n int) {
		for range 1000 {
			e, _ := s.Pick(now, dice.Uint64, nil)
			n += b2i(e.Key() == "far")
			s.Done(now, e, Neutral, nil)
		}
		return n
	}
	// All calls have ended by then, and the latest have not been forgotten.
	if n := share(25 * time.Second); n > 0 {
		t.Errorf("known to be far: %d of 1000 calls", n)
	}
	if n := share(50 * time.Second); n < 400 || n > 600 {
		t.Errorf("after a pause: %d of 1000 calls, want half", n)
	}
}

// How long successes took is a mean in which each new one weighs an eighth.
func TestTheMeanOfTimes(t *testing.T) {
	var h host
	for _, c := range []struct{ took, mean time.Duration }{{0, 1}, {1, 1}, {801, 101}, {901, 201}, {1, 176}} {
		h.learn(c.took)
		if got := math.Float64frombits(h.took.Load()); got != float64(c.mean) {
			t.Errorf("after one of %v the mean is %v, want %v", c.took, got, c.mean)
		}
	}
}
