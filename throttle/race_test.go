package throttle

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/must"
)

// Everything at once, on one clock that all read. What must hold: nothing
// is lost from the counts, and no wait is longer than allowed.
func TestRaceEverythingAtOnce(t *testing.T) {
	for _, c := range []Config{
		{Mode: Adaptive, Window: time.Hour, ProbeEvery: time.Millisecond},
		{Mode: Cubic, MinRate: 1000, MaxWait: 5 * time.Millisecond, Window: sec},
	} {
		th := must.Have(New(c))
		var clock, requests, accepts atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 10))
				for i := range 20_000 {
					now := time.Duration(clock.Add(int64(r.IntN(20_000))))
					wait, ok := th.Start(now, r.Uint64)
					if ok && (wait < 0 || wait > 5*time.Millisecond) {
						t.Errorf("wait %v", wait)
					}
					if !ok {
						requests.Add(1)
						continue
					}
					o := Evidence(r.IntN(6))
					if i%5000 < 2500 {
						o = Accepted
					}
					if o <= Unanswered {
						requests.Add(1)
					}
					if o == Accepted {
						accepts.Add(1)
					}
					th.Done(now, o)
					if r.IntN(100) == 0 {
						th.State(now)
					}
				}
			})
		}
		wg.Wait()
		s := th.State(time.Duration(clock.Load()))
		if c.Mode == Adaptive && (s.Requests != requests.Load() || s.Accepts != accepts.Load()) {
			t.Errorf("%+v, want %d and %d", s, requests.Load(), accepts.Load())
		}
	}
}

// Of those who ask at the same moment one is the probe.
func TestRaceOneProbe(t *testing.T) {
	for range 5000 {
		th := must.Have(New(Config{Mode: Adaptive}))
		learns(th, 0, RateLimited, 20)
		var passed, ready atomic.Int32
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for ready.Add(1); ready.Load() < 2; {
					runtime.Gosched()
				}
				if _, ok := th.Start(0, unlucky); ok {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		if n := passed.Load(); n != 1 {
			t.Fatalf("%d passed, want 1", n)
		}
	}
}

// Cubic hands each place out once.
func TestRaceEachPlaceOnce(t *testing.T) {
	th := must.Have(New(Config{Mode: Cubic, MaxWait: 10 * sec}))
	for i := range 1000 {
		th.Done(at(float64(i)/100), Accepted)
	}
	th.Done(10*sec, RateLimited)
	var mu sync.Mutex
	waits := map[time.Duration]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if wait, ok := th.Start(10*sec, nil); ok {
					mu.Lock()
					waits[wait]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	rate := th.State(10 * sec).Rate
	if n := waits[0]; math.Abs(float64(n)-rate) > 1 {
		t.Errorf("%d go at once, want %v", n, rate)
	}
	if n := len(waits) - 1; math.Abs(float64(n)-10*rate) > 2 {
		t.Errorf("%d wait, want %v", n, 10*rate)
	}
	for wait, n := range waits {
		if wait > 0 && n != 1 {
			t.Errorf("%d wait for %v", n, wait)
		}
	}
}
