package budget

import (
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
					b.Done(s.now, true, 0, 0)
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
