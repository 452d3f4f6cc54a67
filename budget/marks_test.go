package budget

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// drawing is a source that draws u, 1 to token.
func drawing(u int64) func() uint64 {
	r, _ := bits.Div64(uint64(token-u), token-1, token)
	return func() uint64 { return r }
}

// Over all that can be drawn, the retries are on average no more than was
// earned, and with a try after every deposit exactly that. No luck is involved:
// each random sequence of deposits and tries is played once with each draw.
func TestOverAllDrawsRetriesAreWhatWasEarned(t *testing.T) {
	const grid = token / 100 // what is earned is a multiple, so that 100 draws cover all
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 5))
		per := int64(1 + r.IntN(130))
		eager := seed%2 == 0 // tries after every deposit
		gap := pick(r, 100*time.Millisecond, 2*time.Second, 8*time.Second)
		type step struct {
			now time.Duration
			try bool
		}
		steps := []step{{0, true}}
		var now, tried time.Duration
		for range 60 {
			now += time.Duration(r.Int64N(int64(gap)))
			try := r.IntN(3) == 0
			if !try {
				steps = append(steps, step{now, false})
			}
			// Never a window without a try: after one there is a new draw.
			if try || eager || now-tried > time.Second {
				steps = append(steps, step{now, true})
				tried = now
			}
		}
		var retries, earned int64
		for u := int64(grid); u <= token; u += grid {
			b := mustRatio(t, Config{Ratio: float64(per*grid) / token})
			earned += per * grid // the initial deposit
			for _, s := range steps {
				if !s.try {
					b.End(s.now, true, 0, 0)
					earned += per * grid
					continue
				}
				for b.Withdraw(s.now, Transient, drawing(u)).OK {
					retries++
				}
			}
		}
		if retries*token > earned || eager && retries*token != earned {
			t.Errorf("seed %d, %d %% for a call, tries after each %v: %d retries over all draws, %.2f earned",
				seed, per, eager, retries, float64(earned)/token)
		}
	}
}

// A busy process that fails more than its ratio pays for uses all that it earns.
func TestABusyProcessUsesAllItEarns(t *testing.T) {
	for _, failing := range []float64{0.3, 0.6, 0.7, 0.97} {
		var least, most, retries, earned float64 = math.Inf(1), 0, 0, 0
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, 11))
			b := mustRatio(t, Config{})
			mine, paid := 0.1, 0.0
			for now := time.Duration(0); now < 5*time.Minute; now += 10 * time.Millisecond {
				b.Begin(now)
				ok := r.Float64() >= failing
				for n := 0; !ok && n < 3 && b.Withdraw(now, Transient, r.Uint64).OK; n++ {
					paid++
					ok = r.Float64() >= failing
				}
				if ok {
					mine += 0.1
				}
				b.End(now, ok, 0, 0)
			}
			least, most = min(least, paid/mine), max(most, paid/mine)
			retries, earned = retries+paid, earned+mine
			if paid < 0.97*mine || paid > mine+1 {
				t.Errorf("%.0f %% failing, seed %d: %.0f retries, %.1f earned", 100*failing, seed, paid, mine)
			}
		}
		t.Logf("%2.0f %% failing: %.4f of what was earned, from %.4f to %.4f", 100*failing, retries/earned, least, most)
	}
}

// A quiet process uses on average what it earns, and no more however often it
// tries: each deposit is judged by one mark, not by each try or each window.
func TestAQuietProcessUsesWhatItEarns(t *testing.T) {
	if testing.Short() {
		t.Skip("not short: statistics on one goroutine")
	}
	const processes, windows = 30, 100
	for _, ratio := range []float64{0.01, 0.1, 0.5} {
		lowest, highest := math.Inf(1), 0.0
		for _, gap := range []time.Duration{30 * time.Second, 10 * time.Second, 9500 * time.Millisecond, 8500 * time.Millisecond,
			7 * time.Second, 4500 * time.Millisecond, 3 * time.Second} {
			for _, tries := range []int{1, 3, 10} {
				var sum, squares, earned float64
				r := rand.New(rand.NewPCG(uint64(gap), uint64(tries)))
				for range processes {
					b := mustRatio(t, Config{Ratio: ratio})
					now := time.Duration(r.Int64N(int64(time.Hour)))
					earned += ratio
					retries := 0.0
					for range windows {
						b.End(now, true, 0, 0)
						earned += ratio
						for i := range tries {
							if b.Withdraw(now+gap*time.Duration(i)/time.Duration(tries), Transient, r.Uint64).OK {
								retries++
							}
						}
						now += gap
					}
					sum += retries
					squares += retries * retries
				}
				// A mean over few rare events may hide its variance; that of the
				// fraction left at the end is known.
				_, f := math.Modf((windows + 1) * ratio)
				se := math.Sqrt((squares-sum*sum/processes)*processes/(processes-1) + processes*f*(1-f))
				if math.Abs(sum-earned) > 4*se+1e-6 {
					t.Errorf("ratio %v, a success each %v, %d tries: %.0f retries, earned %.0f ± %.1f", ratio, gap, tries, sum, earned, se)
				}
				lowest, highest = min(lowest, sum/earned), max(highest, sum/earned)
			}
		}
		t.Logf("ratio %v: %.3f to %.3f of what was earned", ratio, lowest, highest)
	}
}
