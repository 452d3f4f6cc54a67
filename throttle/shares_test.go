package throttle

import (
	"math"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// bookAlone is the formula of the book and nothing else.
var bookAlone = Config{Mode: Adaptive, MinRequests: 1, Recent: DefaultWindow, ProbeEvery: -1}

// The draw is asked for only when it decides, and once.
func TestDrawsOnlyWhenItDecides(t *testing.T) {
	th := must.Have(New(bookAlone))
	draws := 0
	count := func() uint64 { draws++; return math.MaxUint64 }
	learns(th, 0, Accepted, 5)
	learns(th, 0, RateLimited, 5)
	th.Start(0, count)
	check.Equal(t, draws, 0, "draws when nothing is refused")
	th.Done(0, RateLimited)
	th.Start(0, count)
	check.Equal(t, draws, 1, "draws")
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
		if got := s.start(r, c.now, func() uint64 { return 0 }); got != c.want {
			t.Errorf("at %v of %v, with a credit of %d: passes %v, want %v", c.now, sec, c.credit, got, c.want)
		}
	}
}
