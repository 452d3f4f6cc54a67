package lull_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

func update(t testing.TB, d interface{ Update(lull.Policy) error }, p lull.Policy) {
	t.Helper()
	must.Succeed(d.Update(p))
}

// attemptsOfAFailingCall returns how many attempts a call makes that always fails.
func attemptsOfAFailingCall(d *lull.Dependency) int {
	n := 0
	lull.Run(context.Background(), d, func(context.Context) error { n++; return errDown })
	return n
}

func TestUpdateIsForLaterCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Attempts: 3, Budget: plenty, Breaker: breaker.Config{Off: true}})
		n := 0
		lull.Run(t.Context(), d, func(ctx context.Context) error {
			if n++; n == 1 {
				update(t, d, lull.Policy{Attempts: 5, Budget: plenty, Breaker: breaker.Config{Off: true}})
			}
			if a, _ := lull.AttemptFrom(ctx); n > 1 && a.Of != 3 {
				t.Errorf("attempt %d of %d", n, a.Of)
			}
			return errDown
		})
		check.Equal(t, n, 3, "attempts of a call that was under way")
		if n := attemptsOfAFailingCall(d); n != 5 || d.Policy().Attempts != 5 {
			t.Errorf("the next makes %d, want 5; the policy says %d", n, d.Policy().Attempts)
		}
		check.Equal(t, attemptsOfAFailingCall(d.Clone("clone")), 5, "attempts of a clone")
	})
}

func TestUpdateRefusesWhatIsNotValid(t *testing.T) {
	d := newDependency(t, lull.Policy{Attempts: 3})
	err := d.Update(lull.Policy{Attempts: -1, HintLimit: -1})
	var wrong engine.Problems
	if !errors.As(err, &wrong) || len(wrong) != 2 {
		t.Errorf("%v, want two problems", err)
	}
	check.Equal(t, d.Policy().Attempts, 3, "half applied: %+v", d.Policy())
	fleet := d.Fleet(2)
	if err := fleet[1].Update(0, lull.Policy{}); err == nil {
		t.Error("one of a fleet was updated, and with it all")
	}
}

// An open circuit stays open after each change.
func TestUpdateKeepsTheCircuitOpen(t *testing.T) {
	before := lull.Policy{Attempts: 1, Deadline: time.Minute, Budget: plenty, Breaker: breaker.Config{Consecutive: 3, ConsecutiveFor: -1, OpenFor: 10 * time.Second, OpenJitter: -1}}
	for name, change := range map[string]func(*lull.Policy){
		"attempts":           func(p *lull.Policy) { p.Attempts = 4 },
		"budget":             func(p *lull.Policy) { p.Budget = budget.Config{Ratio: 0.5} },
		"a limit":            func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 10} },
		"breaker":            func(p *lull.Policy) { p.Breaker.Consecutive = 50 },
		"breaker's window":   func(p *lull.Policy) { p.Breaker.Window = time.Minute },
		"breaker, by way of": func(p *lull.Policy) { p.Deadline = time.Hour }, // it is the probes' timeout
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDependency(t, before)
			for range 3 {
				attemptsOfAFailingCall(d)
			}
			time.Sleep(4 * time.Second)
			after, old := before, d.Breaker()
			change(&after)
			update(t, d, after)
			if mine := !strings.HasPrefix(name, "breaker"); (d.Breaker() == old) != mine {
				t.Errorf("%s: the same breaker: %v, want %v", name, !mine, mine)
			}
			check.Equal(t, attemptsOfAFailingCall(d), 0, "%s: attempts through an open circuit", name)
			check.Equal(t, d.Breaker().RetryAt(d.Now())-d.Now(), 6*time.Second, "%s: to the next probe", name)
			time.Sleep(6 * time.Second)
			check.Equal(t, attemptsOfAFailingCall(d), 1, "%s: attempts for a probe", name)
			check.Equal(t, d.Breaker().State(d.Now()), breaker.Open, "%s: after a probe that failed", name)
		})
	}
}

func TestUpdateKeepsTheBudget(t *testing.T) {
	off := breaker.Config{Off: true}
	before := lull.Policy{Attempts: 100, Budget: budget.Config{Stock: 10, Ratio: 0.5}, Breaker: off, Deadline: lull.NoTimeout}
	for name, c := range map[string]struct {
		spend int // attempts beyond the first
		after lull.Policy
		want  float64 // balance
	}{
		"the same":     {7, lull.Policy{Attempts: 99, Budget: before.Budget}, 3},
		"another":      {7, lull.Policy{Attempts: 100, Budget: budget.Config{Stock: 20, Ratio: 0.1}}, 3},
		"a smaller":    {2, lull.Policy{Attempts: 100, Budget: budget.Config{Stock: 5}}, 5},
		"nothing left": {10, lull.Policy{Attempts: 100, Budget: budget.Config{Stock: 20}}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDependency(t, before)
			n := 0
			lull.Run(t.Context(), d, func(context.Context) error {
				if n++; n > c.spend {
					return lull.Permanent(errBlip)
				}
				return errDown
			})
			c.after.Breaker, c.after.Deadline = off, lull.NoTimeout
			old := d.Budget()
			update(t, d, c.after)
			if got := d.Budget().Balance(d.Now()); got != c.want || (d.Budget() == old) != (name == "the same") {
				t.Errorf("%s: %v tokens after the update, want %v; the same budget: %v", name, got, c.want, d.Budget() == old)
			}
			check.Equal(t, attemptsOfAFailingCall(d), int(c.want)+1, "%s: attempts with %v tokens", name, c.want)
		})
	}
}

// An option's budget stays: its function is called once for each dependency.
func TestUpdateKeepsTheOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		var log eventLog
		b, _ := budget.New(budget.Config{Stock: 1})
		d := newDependency(t, lull.Policy{Attempts: 3}, lull.WithBudget(func() budget.Budget { made++; return b }), lull.WithObserver(&log),
			lull.WithBackoff(func(int, time.Duration, func() uint64) time.Duration { return time.Hour }))
		attemptsOfAFailingCall(d)
		events := len(log.events)
		update(t, d, lull.Policy{Attempts: 5, Deadline: lull.NoTimeout, Budget: budget.Config{Stock: 20}})
		for range 11 { // one more
			b.Done(0, true, 0, 0)
		}
		began := time.Now()
		if n := attemptsOfAFailingCall(d); n != 2 || made != 1 || d.Budget() != b {
			t.Errorf("%d attempts, and %d budgets were made", n, made)
		}
		if time.Since(began) != time.Hour || len(log.events) == events {
			t.Errorf("waited %v, %d events", time.Since(began), len(log.events)-events)
		}
	})
}

// Room under a limit is released to the limit that gave it.
func TestUpdateOfALimitWithCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: 2}})
		release := make(chan bool)
		for range 2 {
			go lull.Run(t.Context(), d, func(context.Context) error { <-release; return nil })
		}
		synctest.Wait()
		old := d.Limiter()
		update(t, d, lull.Policy{Attempts: 7, Limit: bulkhead.Config{InFlight: 2}})
		if d.Limiter() != old || old.InFlight() != 2 {
			t.Errorf("a limit that has not changed forgot %d calls", 2-d.Limiter().InFlight())
		}
		update(t, d, lull.Policy{Limit: bulkhead.Config{InFlight: 3}})
		for range 3 {
			go lull.Run(t.Context(), d, func(context.Context) error { <-release; return nil })
		}
		synctest.Wait()
		check.Equal(t, d.Limiter().InFlight(), 3, "in flight under the new limit")
		close(release)
		synctest.Wait()
		if old.InFlight() != 0 || d.Limiter().InFlight() != 0 {
			t.Errorf("%d and %d places are out when all calls have ended", old.InFlight(), d.Limiter().InFlight())
		}
	})
}

func TestUpdateOfEachInARegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := must.Have(lull.NewRegistry(lull.Policy{Attempts: 2, Budget: plenty, Breaker: breaker.Config{Off: true}}, 0, lull.WithRand(seed.Source(t))))
		attempts := map[string]int{"": 3, "a": 4, "b": 5, "bad": -1}
		of := func(key string) lull.Policy {
			n, known := attempts[key]
			if !known {
				n = attempts[""]
			}
			return lull.Policy{Attempts: n, Budget: plenty, Breaker: breaker.Config{Off: true}}
		}
		a := r.Get("a")
		must.Succeed(r.UpdateEach(of))
		for d, want := range map[*lull.Dependency]int{a: 4, r.Get("b"): 5, r.Get("c"): 3, r.Get("bad"): 3} {
			check.Equal(t, attemptsOfAFailingCall(d), want, "%s: attempts", d.Name())
		}
		attempts["a"] = 7
		if err := r.UpdateEach(of); err == nil || attemptsOfAFailingCall(a) != 4 { // bad is there now
			t.Errorf("%v, and a makes %d attempts", err, attemptsOfAFailingCall(a))
		}
		attempts["bad"], attempts[""] = 1, -1
		if err := r.UpdateEach(of); err == nil || attemptsOfAFailingCall(a) != 4 {
			t.Errorf("%v, and a makes %d attempts", err, attemptsOfAFailingCall(a))
		}
		attempts[""] = 6
		if err := r.UpdateEach(of); err != nil || attemptsOfAFailingCall(a) != 7 || attemptsOfAFailingCall(r.Get("d")) != 6 {
			t.Errorf("%v, and a makes %d attempts", err, attemptsOfAFailingCall(a))
		}
		update(t, r, of("b"))
		if err := r.Update(lull.Policy{Attempts: -1}); err == nil || attemptsOfAFailingCall(a) != 5 || attemptsOfAFailingCall(r.Get("e")) != 5 {
			t.Errorf("all are to make 5 attempts, and a makes %d (%v)", attemptsOfAFailingCall(a), err)
		}
	})
}

// The function of UpdateEach is the user's: it may use the registry, and nobody waits for it.
func TestRule18UpdateEachHoldsNoLock(t *testing.T) {
	p := func(n int) lull.Policy {
		return lull.Policy{Attempts: n, Budget: plenty, Breaker: breaker.Config{Off: true}}
	}
	r := must.Have(lull.NewRegistry(p(2), 0, lull.WithRand(seed.Source(t))))
	attempts := func(d *lull.Dependency) int { return d.Policy().Attempts }
	r.Get("kept")
	done := make(chan struct{})
	go func() {
		defer close(done)
		// A key that comes while the policies are asked for has the new one, too.
		if err := r.UpdateEach(func(key string) lull.Policy {
			r.Get("new")
			return p(3)
		}); err != nil {
			t.Error(err)
		}
		for d := range r.All {
			check.Equal(t, attempts(d), 3, "%s: attempts", d.Name())
		}
		// One whose policy is asked for while all change has the latest one.
		asked, late := make(chan struct{}), make(chan struct{})
		first := true
		if err := r.UpdateEach(func(key string) lull.Policy {
			if key == "late" && first {
				first = false
				close(asked)
				<-late
			}
			return p(4)
		}); err != nil {
			t.Error(err)
		}
		got := make(chan *lull.Dependency)
		go func() { got <- r.Get("late") }()
		<-asked
		check.Equal(t, attempts(r.Get("another")), 4, "another: attempts")
		check.Equal(t, r.Update(p(5)), nil, "r.Update(p(5))")
		close(late)
		check.Equal(t, attempts(<-got), 5, "the late one: attempts")
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
}

// While the policy changes all the time, each call ends as its operation does.
func TestUpdateUnderLoad(t *testing.T) {
	policies := []lull.Policy{
		{Budget: plenty},
		{Attempts: 5, Budget: budget.Config{Ratio: 1, Window: time.Second}, Backoff: backoff.Schedule{Kind: backoff.Immediate}},
		{Hedge: hedge.Config{Attempts: 2, Delay: 100 * time.Microsecond}, Budget: plenty},
		{Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true}, AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout},
		{Limit: bulkhead.Config{InFlight: 1000}, Breaker: breaker.Config{Window: time.Minute}},
	}
	d := newDependency(t, policies[0])
	var wg sync.WaitGroup
	var good, bad atomic.Int64
	stop := make(chan struct{})
	var changes atomic.Int64
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				update(t, d, policies[changes.Add(1)%int64(len(policies))])
			}
		}
	})
	const goroutines, each, enough = 8, 12_500, 100
	var calls sync.WaitGroup
	for range goroutines {
		calls.Go(func() {
			for i := 0; i < each || changes.Load() < enough; i++ {
				got, err := lull.DoHedged(context.Background(), d, func(context.Context) (int, error) { return i, nil })
				if err != nil || got != i {
					bad.Add(1)
				} else {
					good.Add(1)
				}
			}
		})
	}
	calls.Wait()
	close(stop)
	wg.Wait()
	check.Equal(t, bad.Load(), 0, "calls that did not succeed, beside %d, in %d changes", good.Load(), changes.Load())
	t.Logf("%d calls in %d changes", good.Load(), changes.Load())
}

// A call under way that times out sees that calls under a newer policy are answered.
func TestUpdateDoesNotHideAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lull.Policy{Attempts: 2, AttemptTimeout: 100 * ms, Budget: plenty, Breaker: breaker.Config{Off: true}}
		d := newDependency(t, p)
		slow := make(chan error)
		go func() {
			n := 0
			slow <- lull.Run(t.Context(), d, func(ctx context.Context) error {
				if n++; n == 1 {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
		}()
		time.Sleep(20 * ms)
		p.Attempts = 3
		must.Succeed(d.Update(p))
		time.Sleep(30 * ms)
		must.Succeed(lull.Run(t.Context(), d, func(context.Context) error { return nil }))
		check.Equal(t, <-slow, nil, "the slow call")
	})
}

// A new key allocates what it needs itself, not a copy of the others. The oldest leave, and of
// many equally old ones only as many as must.
func TestRegistryTakesAFloodOfKeys(t *testing.T) {
	r := must.Have(lull.NewRegistry(lull.Policy{}, 0))
	const defaultSize = 1024
	keys := make([]string, 5*defaultSize)
	for i := range keys {
		keys[i] = fmt.Sprint("host", i)
	}
	old, flood := keys[:defaultSize], keys[defaultSize:]
	for range 2 { // the second time all of them are equally old
		for _, key := range old {
			r.Get(key)
		}
	}
	r.Get(flood[0])
	check.Equal(t, r.Len(), defaultSize*7/8+1, "dependencies left")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, key := range flood {
		r.Get(key)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / uint64(len(flood)); each > 2000 {
		t.Errorf("a new key allocates %d bytes among %d others", each, r.Len())
	}
}

func TestBadRegistries(t *testing.T) {
	if _, err := lull.NewRegistry(lull.Policy{}, -1); err == nil || !strings.Contains(err.Error(), "size is -1: want") {
		t.Errorf("error %v", err)
	}
	var problems engine.Problems
	if _, err := lull.NewRegistry(lull.Policy{Attempts: -1}, 0); !errors.As(err, &problems) {
		t.Errorf("error %v", err)
	}
	if _, err := lull.NewDependency("", lull.Policy{}); err == nil || !strings.Contains(err.Error(), "name") {
		t.Errorf("a dependency without a name: %v", err)
	}
}

func BenchmarkRegistryNewKeys(b *testing.B) {
	r, _ := lull.NewRegistry(lull.Policy{}, 0)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprint("host", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Get(keys[i%len(keys)])
	}
}

func BenchmarkRegistryGet(b *testing.B) {
	r, _ := lull.NewRegistry(lull.Policy{}, 0)
	r.Get("one")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.Get("one")
		}
	})
}
