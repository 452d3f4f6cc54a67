package outlier

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// Updates that change nothing cost no memory and forget nothing.
func TestUpdateWithTheSame(t *testing.T) {
	s := must.Have(New(Config{}))
	k := keys(50)
	s.Update(0, k)
	e, _ := s.Pick(0, dice.Uint64, nil)
	if n := testing.AllocsPerRun(100, func() { s.Update(0, k) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if st := status(t, s, 0, e.Key()); st.Load != 1 {
		t.Errorf("%+v", st)
	}
}

// A failure that is counted just before its endpoint goes finds it gone when it looks
// at the row.
func TestARowOfOneThatIsGone(t *testing.T) {
	s := must.Have(New(Config{Choice: RoundRobin, Consecutive: 30, MaxEjected: 100}, func(c Change) { t.Error(c) }))
	s.Update(0, []string{"a", "b", "c"})
	h := s.byKey["a"]
	calls(t, s, 0, "a", 29, FiveXX)
	calls(t, s, 0, "b", 1000, Success)
	s.Update(0, []string{"b", "c"})
	s.failed(0, h, FiveXX, middle)
	if s.ejected != 0 || h.ejected {
		t.Error("one that is gone was ejected")
	}
}

// Quiet time begins at the epoch at the earliest: an endpoint that an Update has taken
// back before it has not been well for ever.
func TestShrinkingBeforeTheEpoch(t *testing.T) {
	for _, before := range []time.Duration{-time.Hour, math.MinInt64} {
		for quiet, want := range map[time.Duration]time.Duration{time.Second: 2 * DefaultBaseEjection, DefaultInterval: DefaultBaseEjection} {
			s := must.Have(New(Config{Unconditional: true, Jitter: -1}))
			s.Update(0, keys(4))
			for _, key := range keys(2) {
				calls(t, s, 0, key, 5, FiveXX)
			}
			s.Update(before, keys(2)) // one has to come back
			if got := ejected(s, 0); !slices.Equal(got, keys(2)[1:]) {
				t.Fatalf("ejected %v", got)
			}
			s.Update(before, append(keys(4)[2:], keys(1)[0]))
			sweep(s, quiet)
			calls(t, s, quiet, keys(1)[0], 5, FiveXX)
			if got := status(t, s, quiet, keys(1)[0]).Until - quiet; got != want {
				t.Errorf("back at %v, ejected at %v for %v, want %v", before, quiet, got, want)
			}
		}
	}
}
