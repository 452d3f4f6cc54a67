package hedge

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// Everything at once, on one clock that all read: hedges keep their share and their
// ceiling, all are given back, and the latencies that were learned are the true ones.
func TestRaceEverythingAtOnce(t *testing.T) {
	const inFlight = 5
	h := must.Have(New(Config{Attempts: 2, InFlight: inFlight, Window: time.Second, MinSamples: 20}))
	var clock, calls, hedges, delays atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 10))
			for range 20_000 {
				now := time.Duration(clock.Add(int64(r.IntN(200_000))))
				calls.Add(1)
				f := h.Start(now)
				took := time.Duration(5+r.IntN(100)) * ms
				d, ok := f.Delay()
				if ok {
					delays.Add(1)
					if d < ms || d > 110*ms {
						t.Errorf("a delay of %v", d)
						return
					}
				}
				if ok && took > d {
					if h.Fire(now+d, &f) == Granted {
						hedges.Add(1)
						if n := h.InFlight(); n > inFlight {
							t.Errorf("%d hedges in flight", n)
						}
						h.Done(now+d+time.Duration(r.IntN(20))*ms, &f, false)
						h.Release()
						continue
					}
				}
				h.Done(now+took, &f, true)
				switch r.IntN(100) {
				case 0:
					h.Delay(now)
					h.Counts(now)
				case 1:
					h.Delay(now + time.Second) // a little ahead
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d calls, %d with a delay, %d hedges", calls.Load(), delays.Load(), hedges.Load())
	check.Equal(t, h.InFlight(), 0, "hedges in flight at the end")
	if n := hedges.Load(); n == 0 || float64(n) > 0.1*float64(calls.Load()) {
		t.Errorf("%d hedges for %d calls", n, calls.Load())
	}
	if delays.Load() < calls.Load()/100 { // how many depends on who gets to run
		t.Errorf("only %d of %d calls had a delay", delays.Load(), calls.Load())
	}
}

// Calls that ask in the same moment see each other: together they keep the share.
func TestRaceShare(t *testing.T) {
	for round := range 200 {
		h := must.Have(New(Config{Attempts: 2, Delay: ms, InFlight: -1}))
		f := h.Start(0)
		h.Fire(0, &f) // makes the counters
		flights := make([]Flight, 200)
		for i := range flights {
			flights[i] = h.Start(0)
		}
		var granted atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := g; i < 64; i += 8 {
					if h.Fire(0, &flights[i]) == Granted {
						granted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := granted.Load(); n > 20 {
			t.Fatalf("round %d: %d hedges for 201 calls at once", round, n)
		}
	}
}

// Nothing is lost: successes on all sides add up.
func TestRaceSamplesAddUp(t *testing.T) {
	const goroutines, rounds = 4, 5000
	h := must.Have(New(Config{Attempts: 2, Window: time.Hour}))
	warm(h, 0)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				learnt(h, time.Second, time.Duration(1+(g*rounds+i)%500)*ms, i%5 > 0)
			}
		})
	}
	wg.Wait()
	l := h.learned.Load()
	all := span{l.slot.Load(), slots}
	if ended, cut := l.succeeded.total(all), l.unfinished.total(all); ended != goroutines*rounds*4/5 || cut != goroutines*rounds/5 {
		t.Errorf("%d successes and %d others, want %d and %d", ended, cut, goroutines*rounds*4/5, goroutines*rounds/5)
	}
}
