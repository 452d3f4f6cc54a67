package outlier

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// docs/mechanisms.md gives these figures.

// How many failures in a row eject a dead endpoint whose n-1 peers are well. With more calls,
// longer rows happen by chance. With more peers, it is clear sooner that a row is not chance.
func TestHowLongARowMustBe(t *testing.T) {
	for _, v := range []struct {
		n, calls int // in the last interval, to all
		want     int64
	}{
		{2, 100, 10}, {2, 1000, 12}, {2, 10_000, 14},
		{3, 100, 8}, {3, 1000, 9}, {3, 10_000, 10},
		{10, 100, 5}, {10, 1000, 6}, {10, 10_000, 7},
	} {
		var c Change
		s := must.Have(New(Config{Choice: RoundRobin, Statistic: NoStatistic}, func(ch Change) { c = ch }))
		s.Update(0, keys(v.n))
		for now := time.Duration(0); now < time.Minute && c.Calls == 0; now += DefaultInterval / time.Duration(v.calls) {
			e, _ := s.Pick(now, middle, nil)
			o := Success
			if now > 2*DefaultInterval && e.Key() == keys(1)[0] {
				o = FiveXX
			}
			s.Done(now, e, o, middle)
		}
		if c.Key != keys(1)[0] || c.Calls != v.want {
			t.Errorf("%d endpoints, %d calls: a row of %d at %q, want %d", v.n, v.calls, c.Calls, c.Key, v.want)
		}
	}
}

// How many calls to each of n endpoints show by its success rate that one fails half
// of them, or three of ten.
func TestHowManyCallsARateTakes(t *testing.T) {
	for _, v := range []struct{ n, half, threeOfTen int }{{2, 20, 40}, {3, 20, 30}, {10, 10, 20}} {
		for failing, want := range map[int]int{5: v.half, 3: v.threeOfTen} {
			got := 0
			for each := 10; each < 100 && got == 0; each += 10 {
				s := must.Have(New(Config{Choice: RoundRobin, Sweeps: 1, Consecutive: -1}, func(Change) { got = each }))
				s.Update(0, keys(v.n))
				fillCalls(t, s, 0, each, map[string]int{keys(1)[0]: each * failing / 10})
				sweep(s, DefaultInterval)
			}
			check.Equal(t, got, want, "%d endpoints, %d of 10 fail: calls each until it is found", v.n, failing)
		}
	}
}

func samples(rates ...float64) (e []sample) {
	for _, r := range rates {
		e = append(e, sample{rate: r, counts: counts{1000, int64(math.Round(1000 * (1 - r)))}})
	}
	slices.SortFunc(e, func(a, b sample) int { return cmp.Compare(a.rate, b.rate) })
	return e
}

func TestEvidence(t *testing.T) {
	for _, c := range []struct {
		own, peers counts
		want       float64
	}{
		{counts{10, 10}, counts{10, 0}, 20 * math.Ln2},
		{counts{3, 3}, counts{9, 0}, 3*math.Log(4) + 9*math.Log(4.0/3)},
		{counts{50, 25}, counts{50, 0}, 50*math.Log(0.5) - 25*math.Log(0.25) - 75*math.Log(0.75)},
		{counts{50, 5}, counts{500, 50}, 0},
		{counts{50, 5}, counts{50, 6}, 0}, // it does better
		{counts{50, 0}, counts{50, 0}, 0},
		{counts{50, 50}, counts{50, 50}, 0},
		{counts{0, 0}, counts{50, 0}, 0},
		{counts{50, 50}, counts{0, 0}, 0},
	} {
		if got := evidence(c.own, c.peers); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v against %v: %v, want %v", c.own, c.peers, got, c.want)
		}
	}
}

// What evidence promises: where both have the same share of failures it exceeds x no
// more often than once in e^x times.
func TestEvidenceIsRareByChance(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	n := 20_000 / slower
	for _, p := range []float64{0.01, 0.1, 0.5} {
		for _, size := range [][2]int64{{50, 50}, {20, 400}, {400, 20}} {
			over := map[int]int{}
			for range n {
				own, peers := binomial(r, size[0], p), binomial(r, size[1], p)
				for x := 1; x <= 6; x++ {
					if evidence(own, peers) > float64(x) {
						over[x]++
					}
				}
			}
			for x, times := range over {
				// Four standard deviations for the counting.
				if most := float64(n) * math.Exp(-float64(x)); float64(times) > most+4*math.Sqrt(most) {
					t.Errorf("p %v, %v calls: more than %d in %d of %d", p, size, x, times, n)
				}
			}
		}
	}
}

// binomial is n calls of which each fails with chance p.
func binomial(r *rand.Rand, n int64, p float64) counts {
	o := counts{calls: n}
	for range n {
		if r.Float64() < p {
			o.failures++
		}
	}
	return o
}

// fillCalls gives each endpoint so many calls, and failures for those that have some,
// within one interval.
func fillCalls(t *testing.T, s *Set, from time.Duration, each int, failures map[string]int) {
	t.Helper()
	for i := range each {
		now := from + time.Duration(i)*9*time.Second/time.Duration(each)
		sweep(s, now)
		for _, st := range s.States(now) {
			if st.Ejected {
				continue
			}
			o := Success
			if f := failures[st.Key]; f > 0 && i*f/each != (i+1)*f/each { // spread evenly
				o = FiveXX
			}
			call(t, s, now, st.Key, o)
		}
	}
}

// Envoy's statistic sees equally sick endpoints as long as they are fewer than
// 1/(1+1.9²) of all, 21.7 %, however sick they are.
func TestTheMeanIsBlindBeyondAFifth(t *testing.T) {
	for n := 5; n <= 60; n++ {
		for sick := 1; sick <= n/2; sick++ {
			var e []sample
			for i := range n {
				e = append(e, sample{counts: counts{100, 80 * int64(b2i(i < sick))}})
			}
			_, threshold := meanThreshold(e, 1.9)
			check.Equal(t, e[0].percent() < threshold, float64(sick)/float64(n) < 1/(1+1.9*1.9), "%d sick of %d: found", sick, n)
		}
	}
}

// The median sees them as long as the healthy are at least as many.
func TestTheMedianSeesUpToHalf(t *testing.T) {
	for n := 2; n <= 60; n++ {
		for sick := 1; sick < n; sick++ {
			rates := make([]float64, n)
			for i := range rates {
				rates[i] = 1 - 0.8*float64(b2i(i < sick))
			}
			median, mad := without(samples(rates...), 0)
			check.Equal(t, 0.2 < median-max(DefaultFactor*normal*mad, DefaultFloor), 2*sick <= n, "%d sick of %d: found", sick, n)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A failure is counted in two steps, and whoever looks between them sees it by half.
func TestResultsThatAreCountedByHalf(t *testing.T) {
	for _, v := range []struct {
		t     tally
		local bool
		want  counts
	}{
		{tally{10, 3, 2}, false, counts{8, 3}},
		{tally{10, 3, 2}, true, counts{10, 2}},
		{tally{1, 2, 0}, false, counts{1, 1}},
		{tally{1, 0, 2}, true, counts{1, 1}},
		{tally{1, 0, 2}, false, counts{0, 0}},
		{tally{-1, -1, 0}, false, counts{0, 0}},
	} {
		check.Equal(t, v.t.of(v.local), v.want, "%+v, local %v", v.t, v.local)
	}
}
