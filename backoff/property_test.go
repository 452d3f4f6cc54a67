package backoff

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/seed"
)

// random is a seeded source of uniform bits.
func random(seed uint64) func() uint64 { return rand.New(rand.NewPCG(seed, 0)).Uint64 }

// evenly fails unless the draws fall evenly into ten equal parts of [lo, hi]:
// chi squared with 9 degrees of freedom passes 40 once in 130 000 runs, and the
// seeds are fixed.
func evenly(t *testing.T, name string, draws []time.Duration, lo, hi time.Duration) {
	t.Helper()
	var parts [10]float64
	for _, d := range draws {
		if d < lo || d > hi {
			t.Errorf("%s: %v is outside [%v, %v]", name, d, lo, hi)
			return
		}
		parts[min(9, int(10*float64(d-lo)/float64(hi-lo)))]++
	}
	want, chi := float64(len(draws))/10, 0.
	for _, n := range parts {
		chi += (n - want) * (n - want) / want
	}
	if chi > 40 {
		t.Errorf("%s: draws are not even over [%v, %v]: %v", name, lo, hi, parts)
	}
}

func draw(s Schedule, retry, n int, rnd func() uint64) []time.Duration {
	d := make([]time.Duration, n)
	for i := range d {
		d[i] = s.Delay(retry, 0, rnd)
	}
	return d
}

// With a floor of half the base, clamping would put half of all first retries
// on the floor itself.
func TestNoPileUpAtTheFloor(t *testing.T) {
	const n = 100_000
	s := Schedule{Floor: ms(50)}
	got := draw(s, 1, n, random(1))
	evenly(t, "full jitter above a floor", got, ms(50), ms(100))
	low := 0
	for _, d := range got {
		if d < ms(50)+ms(50)/100 {
			low++
		}
	}
	if low > n/100*2 {
		t.Errorf("%d of %d waits lie in the lowest hundredth of the range, want about %d", low, n, n/100)
	}
}

// Rule 10: the cap holds after jitter, and jitter never vanishes at the cap.
// Retry 40 of these is far past the point where the cap is reached.
func TestRule10CapHoldsAfterJitterAndJitterStays(t *testing.T) {
	const n, retry = 20_000, 40
	for _, c := range []struct {
		s      Schedule
		lo, hi time.Duration
	}{
		{Schedule{Cap: ms(1000)}, 0, ms(1000)},
		{Schedule{}, 0, ms(20000)},
		{Schedule{Cap: ms(1000), Floor: ms(90)}, ms(90), ms(1000)},
		{Schedule{Cap: ms(1000), Jitter: Equal}, ms(500), ms(1000)},
		{Schedule{Cap: ms(1200), Jitter: Proportional}, ms(800), ms(1200)},
		{Schedule{Cap: ms(1000), Kind: Linear}, 0, ms(1000)},
		{Schedule{Cap: ms(1000), Kind: Constant, Base: ms(1000)}, 0, ms(1000)},
		{Schedule{Cap: ms(1200), Kind: Constant, Base: ms(1200), Jitter: Proportional}, ms(800), ms(1200)},
		{Schedule{Base: ms(1000), Cap: ms(1000)}, 0, ms(1000)}, // cap = base
	} {
		if err := c.s.Validate(); err != nil {
			t.Fatalf("%+v: %v", c.s, err)
		}
		name := c.s.Kind.String() + ", " + c.s.Jitter.String()
		evenly(t, name, draw(c.s, retry, n, random(10)), c.lo, c.hi)
		evenly(t, name+", last of all", draw(c.s, math.MaxInt, n, random(11)), c.lo, c.hi)
	}
}

// The share of decorrelated waits that equal
// the cap once the start is forgotten. What is expected comes from the equation of
// the stationary law, not from the code under test. With base 1 and cap c, a wait
// after x is uniform in [1, 3x], so the density g below the cap and the share p
// at the cap obey
//
//	g(y) = ∫ g(x)/(3x-1) dx over x > y/3,  +  p/(3c-1)
//
// For c <= 3 every x counts, g is constant, and p has a closed form; for the
// others the equation was solved numerically.
func TestRule10DecorrelatedShareAtTheCap(t *testing.T) {
	closed := func(c float64) float64 {
		g := 1 / (3*c - 1) / (1 - math.Log((3*c-1)/2)/3) // in units of p
		return 1 / (1 + g*(c-1))
	}
	const n = 300_000
	for _, c := range []struct {
		ratio time.Duration // cap / base
		want  float64
	}{
		{2, closed(2)}, {3, closed(3)}, {5, .5828}, {10, .4832}, {100, .3148}, {200, .2891}, {1000, .2492},
	} {
		s := Schedule{Jitter: Decorrelated, Base: ms(10), Cap: ms(10) * c.ratio}
		rnd := random(uint64(c.ratio))
		var prev time.Duration
		atCap := 0
		for i := range n + 1000 {
			prev = s.Delay(i+1, prev, rnd)
			if prev < s.Base || prev > s.Cap {
				t.Fatalf("%v is outside [%v, %v]", prev, s.Base, s.Cap)
			}
			if prev == s.Cap && i >= 1000 {
				atCap++
			}
		}
		share := float64(atCap) / n
		t.Logf("cap = %4d × base: %.1f %% of waits equal the cap, %.1f %% expected", c.ratio, 100*share, 100*c.want)
		if math.Abs(share-c.want) > .007 {
			t.Errorf("cap = %d × base: share at the cap %.4f, want %.4f", c.ratio, share, c.want)
		}
	}
}

// Rule 12: schedules are pure and shareable. What one caller gets depends on
// nothing but its own arguments, however many others use the same schedule.
func TestRule12SchedulesAreSharedWithoutASideEffect(t *testing.T) {
	const callers, retries = 8, 2000
	for _, s := range []Schedule{{}, {Jitter: Decorrelated}, {Kind: Ethernet}, {Jitter: Proportional, FastFirst: true}} {
		alone := func(seed uint64) (d [retries]time.Duration) {
			rnd := random(seed)
			var prev time.Duration
			for i := range d {
				prev = s.Delay(i%20+1, prev, rnd)
				d[i] = prev
			}
			return d
		}
		var want, got [callers][retries]time.Duration
		for i := range want {
			want[i] = alone(uint64(i))
		}
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = alone(uint64(i)) })
		}
		wg.Wait()
		check.Equal(t, got, want, "%+v: waits of callers side by side, and alone", s)
	}
	// Plain data: it can be compared, and be a key.
	if (map[Schedule]bool{{Cap: 5}: true})[Schedule{Cap: 5}] != true {
		t.Error("equal schedules are different keys")
	}
}

// anyDuration favours the values at which arithmetic breaks.
func anyDuration(r *rand.Rand) time.Duration {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return time.Duration(r.Uint64())
	case 2:
		return longest - time.Duration(r.IntN(3))
	case 3:
		return time.Duration(r.IntN(5) - 2)
	case 4:
		return math.MinInt64
	}
	return time.Duration(1) << r.IntN(63) // and something to be below and above of
}

func anySchedule(r *rand.Rand) Schedule {
	factors := [...]float64{0, 0, 0, 1, 1.5, 2, 3, 1.0001, 1e300, math.MaxFloat64, .5, -1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324}
	return Schedule{
		Kind: Kind(r.IntN(6)), Jitter: Jitter(r.IntN(6)),
		Base: anyDuration(r), Cap: anyDuration(r), Floor: anyDuration(r),
		Factor: factors[r.IntN(len(factors))], FastFirst: r.IntN(4) == 0,
	}
}

// validSchedule is one that Validate must accept, by the words of its fields.
func validSchedule(r *rand.Rand) Schedule {
	s := Schedule{Kind: Kind(r.IntN(3)), Jitter: Jitter(r.IntN(5)), FastFirst: r.IntN(4) == 0}
	s.Base = 1 + time.Duration(r.Int64N(1<<(1+r.IntN(62))))
	s.Cap = s.Base + time.Duration(r.Int64N(int64(longest-s.Base)>>r.IntN(60)+1))
	s.Floor = time.Duration(r.Int64N(int64(s.Base)))
	if s.Jitter == Decorrelated {
		s.Kind = Exponential
	} else if s.Kind == Exponential && r.IntN(2) == 0 {
		s.Factor = 1 + r.ExpFloat64()
	}
	return s
}

func anyRetry(r *rand.Rand) int {
	switch r.IntN(4) {
	case 0:
		return int(r.Uint64())
	case 1:
		return math.MaxInt - r.IntN(2)
	}
	return 1 + r.IntN(70)
}

func TestNoScheduleLeavesItsBounds(t *testing.T) {
	from := seed.Fresh(t)
	r := rand.New(rand.NewPCG(from, 2))
	const n = 100_000
	accepted := 0
	for i := range n {
		valid := i%2 == 0
		s := anySchedule(r)
		if valid {
			s = validSchedule(r)
		}
		err := s.Validate()
		if valid && err != nil {
			t.Fatalf("seed %d: %+v: %v", from, s, err)
		}
		retry, prev := anyRetry(r), anyDuration(r)
		rnd := [...]func() uint64{r.Uint64, r.Uint64, r.Uint64, lowest, highest, nil}[r.IntN(6)]
		d, most, c := s.Delay(retry, prev, rnd), s.Max(retry), s.Ceiling(retry)
		if d < 0 || d > most || c < 0 || c > most {
			t.Fatalf("seed %d: %+v: retry %d, prev %v: Delay %v, Ceiling %v, Max %v", from, s, retry, prev, d, c, most)
		}
		if retry < math.MaxInt && s.Max(retry+1) < most {
			t.Fatalf("seed %d: %+v: Max falls from retry %d to the next", from, s, retry)
		}
		if err != nil {
			continue
		}
		accepted++
		if s.Kind == Immediate || s.Kind == Ethernet || s.FastFirst && retry <= 1 {
			continue
		}
		limit := s.Cap // in the words of its field
		if limit == 0 {
			limit = max(20*time.Second, s.Base)
		}
		if d < s.Floor || d > limit || most > limit {
			t.Fatalf("seed %d: %+v: retry %d: Delay %v, Max %v, want both in [%v, %v]", from, s, retry, d, most, s.Floor, limit)
		}
	}
	if accepted < n/2 {
		t.Errorf("only %d schedules were valid: the test has lost its point", accepted)
	}
}
