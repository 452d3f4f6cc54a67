package outlier

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/stripe"
)

// Everything at once: calls on all sides while the set changes, endpoints fall sick
// and somebody looks on. Afterwards the loads must add up, and all calls be counted.
func TestRaceEverythingAtOnce(t *testing.T) {
	for name, c := range map[string]Config{
		"default": {Interval: 200 * ms, BaseEjection: 50 * ms},
		"envoy":   {Interval: 20 * ms, BaseEjection: 20 * ms, Sweeps: 1, Unconditional: true, Statistic: MeanDeviation, MinHosts: 2, MinCalls: 10, Split: true, MaxEjected: 70},
		"times":   {Interval: 200 * ms, BaseEjection: 50 * ms, Choice: LeastTime, FailurePercent: 60, FailureMinHosts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var changes, out atomic.Int64
			s := must.Have(New(c, func(c Change) {
				changes.Add(1)
				switch c.Kind {
				case Ejected:
					out.Add(1)
				case Returned:
					out.Add(-1)
				}
			}))
			all := keys(10)
			s.Update(0, all)
			var clock, stop atomic.Int64
			var calls, updater sync.WaitGroup
			updater.Go(func() { // the sixth and seventh come and go
				r := rand.New(rand.NewPCG(0, 10))
				for stop.Load() == 0 {
					s.Update(time.Duration(clock.Load()), slices.Delete(slices.Clone(all), 5+r.IntN(2), 7))
					s.Update(time.Duration(clock.Load()), all)
					s.States(time.Duration(clock.Load()))
					runtime.Gosched()
				}
			})
			for g := range 6 {
				calls.Go(func() {
					r := rand.New(rand.NewPCG(uint64(g), 11))
					var mine []Endpoint
					for range 20000 {
						now := time.Duration(clock.Add(int64(r.IntN(20_000))))
						var tried Tried
						e, ok := s.Pick(now, r.Uint64, []*Tried{nil, &tried}[r.IntN(2)])
						if !ok {
							t.Error("no endpoint")
							return
						}
						mine = append(mine, e)
						for len(mine) > 3 || len(mine) > 0 && r.IntN(3) == 0 {
							e := mine[0]
							mine = mine[1:]
							o := Success
							switch sick := now / (100 * ms) % 3; {
							case r.IntN(50) == 0:
								o = Neutral
							case (e.Key() == all[sick] || e.Key() == all[5]) && r.IntN(4) != 0:
								o = anyOf(r, FiveXX, GatewayFailure, LocalOrigin)
							}
							s.Done(now+time.Duration(r.IntN(50_000)), e, o, r.Uint64)
						}
					}
					for _, e := range mine {
						s.Done(time.Duration(clock.Load()), e, Success, r.Uint64)
					}
				})
			}
			calls.Wait()
			stop.Store(1)
			updater.Wait()
			now := time.Duration(clock.Load())
			t.Logf("%d changes in %v", changes.Load(), now)
			if changes.Load() < 20 {
				t.Errorf("%d changes: the test does not stir", changes.Load())
			}
			s.Update(now, all)
			for _, st := range s.States(now) {
				check.Equal(t, st.Load, 0, "%+v: calls under way when all have ended", st)
			}
			sweep(s, now+time.Hour)
			check.Equal(t, len(ejected(s, now+time.Hour)), 0, "ejected after an hour")
			healthy := 0
			for range 1000 {
				if e, ok := s.Pick(now+time.Hour, dice.Uint64, nil); ok && e.Key() != "" {
					healthy++
				}
			}
			check.Equal(t, healthy, 1000, "calls of 1000 that get an endpoint")
		})
	}
}

// Calls on all sides are all counted, with stripes and without, and when stripes
// begin or end meanwhile.
func TestRaceCountsAddUp(t *testing.T) {
	const goroutines, rounds = 8, 30000
	s := must.Have(New(Config{Off: true, Interval: 1000 * time.Hour, Sweeps: 1}))
	s.Update(0, keys(3))
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 12))
			for i := range rounds {
				e, _ := s.Pick(0, r.Uint64, nil)
				if i%100 == 0 {
					force(s, g%2 == 0)
				}
				s.Done(0, e, Evidence(i%3*2), r.Uint64) // success, gateway failure, neutral
			}
		})
	}
	wg.Wait()
	var calls, failures int64
	for _, st := range s.States(0) {
		calls += st.Calls
		failures += st.Failures
		check.Equal(t, st.Load, 0, "%+v", st)
	}
	if want := int64(goroutines * rounds / 3); calls != 2*want || failures != want {
		t.Errorf("%d calls, %d failures, want %d, %d", calls, failures, 2*want, want)
	}
}

// force begins or ends stripes.
func force(s *Set, striped bool) {
	s.mu.Lock()
	defer s.unlock()
	s.stripes, s.striped, s.dirty = 4, striped, true
}

// Stripes begin when steps are lost, and end when there are few calls.
func TestStripes(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	s := must.Have(New(Config{}))
	s.Update(0, keys(3))
	inUse := func() bool { return s.view.Load().stripes > 0 }
	lose := func(n int) {
		for range n {
			s.contended(s.view.Load(), 0)
		}
	}
	var now time.Duration
	for range 20 { // never many from sweep to sweep
		now += time.Second
		lose(contention - 1)
		sweep(s, now)
	}
	if inUse() {
		t.Fatal("a few lost steps now and then gave stripes")
	}
	before, _ := s.Pick(now, dice.Uint64, nil)
	lose(contention)
	if n := s.view.Load().stripes; n < 2 || n&(n-1) != 0 {
		t.Fatalf("%d stripes", n)
	}
	v := s.view.Load()
	for seat := range stripe.Seat(8) {
		at := seat.Of(int(v.stripes))
		s.contended(v, seat)
		if seat.Of(int(v.stripes)) == at {
			t.Error("the same goroutines share the same stripes")
		}
	}
	lose(contention)
	check.Equal(t, s.view.Load().stripes, v.stripes, "stripes after further contention")
	during, _ := s.Pick(now, dice.Uint64, nil)
	for i := range 11 {
		if !inUse() {
			t.Errorf("no stripes after %d sweeps", i)
		}
		now += time.Second
		sweep(s, now)
	}
	if inUse() {
		t.Error("stripes without calls")
	}
	var load int64
	for _, st := range s.States(now) {
		load += st.Load
	}
	check.Equal(t, load, 2, "calls under way")
	s.Done(now, before, Success, nil)
	s.Done(now, during, Success, nil)
	for _, st := range s.States(now) {
		check.Equal(t, st.Load, 0, "%+v", st)
	}
}

// With many calls, stripes stay.
func TestStripesStayWhileThereAreManyCalls(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	s := must.Have(New(Config{Interval: 10 * ms}))
	s.Update(0, keys(3))
	for range contention {
		s.contended(s.view.Load(), 0)
	}
	var now time.Duration
	for range 50_000 { // 200,000 a second
		now += 5 * time.Microsecond
		e, _ := s.Pick(now, dice.Uint64, nil)
		s.Done(now, e, Success, dice.Uint64)
	}
	if s.view.Load().stripes == 0 {
		t.Error("no stripes")
	}
}

// A row is found once, with the length of the rule, while others make it longer.
func TestRaceARowIsFoundOnce(t *testing.T) {
	const goroutines, rounds = 4, 50_000
	var found atomic.Int64
	c := Config{Unconditional: true, MaxEjected: 100, Limit: RoundUp, Enforce: Enforce{Consecutive: -1}, Statistic: NoStatistic}
	s := must.Have(New(c, func(c Change) {
		found.Add(1)
		if c.Kind != Spared || c.Calls != DefaultConsecutive {
			t.Errorf("%+v", c)
		}
	}))
	s.Update(0, keys(1))
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				e, _ := s.Pick(0, nil, nil)
				s.Done(0, e, FiveXX, nil)
			}
		})
	}
	wg.Wait()
	if n := found.Load(); n == 0 || n > goroutines*rounds/DefaultConsecutive {
		t.Errorf("%d rows in %d failures", n, goroutines*rounds)
	}
}
