package lull_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
)

// kinds is an observer that notes the kinds of events, and does something at one of them.
type kinds struct {
	mu   sync.Mutex
	all  []event.Kind
	at   event.Kind
	do   func()
	once bool
}

func (k *kinds) Observe(_ context.Context, e lull.Event) {
	k.mu.Lock()
	k.all = append(k.all, e.Kind)
	do := e.Kind == k.at && k.do != nil && !k.once
	if do {
		k.once = true
	}
	k.mu.Unlock()
	if do {
		k.do()
	}
}

// Rule 18: the panic of an observer reaches the goroutine of the call's caller, whichever
// goroutine called the observer. Nothing hangs, no lock or permit is held, and the call's end
// is reported last, once.
func TestRule18AnObserverThatPanics(t *testing.T) {
	blip := lull.Transient(errBlip)
	slow := part{100 * ms, nil}
	for _, c := range []struct {
		name   string
		at     event.Kind
		change func(*lull.Policy)
		parts  []part
	}{
		{"a failure, on the caller's goroutine", event.AttemptFailed, nil, []part{{3 * ms, blip}, slow, slow}},
		{"a failure, on a hedge's", event.AttemptFailed, nil, []part{slow, {3 * ms, blip}, slow}},
		{"the last failure but one, on a hedge's", event.AttemptFailed, nil, []part{{20 * ms, lull.RetryAfter(errBlip, 50*ms)}, {3 * ms, lull.RetryAfter(errBlip, 50*ms)}, slow}},
		{"a hedge", event.HedgeStarted, nil, []part{slow, slow, slow}},
		{"a hedge, while the first ends", event.HedgeStarted, nil, []part{{25 * ms, nil}, slow, slow}},
		{"an attempt after a failure", event.HedgeStarted, nil, []part{{3 * ms, blip}, slow, slow}},
		{"a hedge that is refused", event.HedgeRefused, func(p *lull.Policy) { p.Limit.InFlight = 1 }, []part{slow}},
		{"a budget that is exhausted", event.BudgetExhausted, func(p *lull.Policy) { p.Budget = budget.Config{Window: 10 * time.Second, Ratio: 0.001} }, []part{slow}},
		{"the end", event.CallEnded, nil, []part{{3 * ms, nil}}},
		{"the end, by a hedge", event.CallEnded, nil, []part{slow, {3 * ms, nil}}},
		{"the circuit, by the caller's", event.CircuitChanged, nil, []part{{3 * ms, blip}, {3 * ms, blip}, {3 * ms, blip}}},
		{"the circuit, by a hedge", event.CircuitChanged, nil, []part{{12 * ms, blip}, {30 * ms, blip}, {5 * ms, blip}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for goexit := range 2 {
				synctest.Test(t, func(t *testing.T) {
					p := hedging(3)
					p.Limit = bulkhead.Config{InFlight: 10}
					p.Breaker = breaker.Config{Consecutive: 1, ConsecutiveFor: -1}
					if c.change != nil {
						c.change(&p)
					}
					o := &kinds{at: c.at, do: func() { time.Sleep(17 * ms); panic("oh") }}
					if goexit == 1 {
						o.do = runtime.Goexit
					}
					d := newDependency(t, p, lull.WithObserver(o), lull.WithRand(middle))
					s := newScript(c.parts...)
					var fell any
					returned := false
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { fell = recover() }()
						lull.DoHedged(context.Background(), d, s.play)
						returned = true
					}()
					<-done
					if returned || goexit == 0 && fell != "oh" {
						t.Errorf("returned: %v; the caller recovers %v", returned, fell)
					}
					s.ended()
					synctest.Wait()
					if l, h := d.Limiter().InFlight(), d.Hedger().InFlight(); l != 0 || h != 0 {
						t.Errorf("%d places and %d hedges are still out", l, h)
					}
					o.mu.Lock()
					defer o.mu.Unlock()
					ends := 0
					for _, k := range o.all {
						if k == event.CallEnded {
							ends++
						}
					}
					if ends != 1 || o.all[len(o.all)-1] != event.CallEnded {
						t.Errorf("%v, want one end, the last", o.all)
					}
				})
			}
		})
	}
}

// Rule 18: observers are not called under a lock. While an observer takes its time, the attempts
// of its call continue, others may begin, and it may use the dependency.
func TestRule18AnObserverThatTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d *lull.Dependency
		o := &kinds{at: event.HedgeStarted, do: func() {
			d.Update(lull.Policy{Attempts: 2})
			lull.Run(context.Background(), d, succeed)
			time.Sleep(time.Second)
		}}
		d = newDependency(t, hedging(4), lull.WithObserver(o))
		start := time.Now()
		s := newScript(part{time.Minute, nil}, part{50 * ms, nil}, part{time.Minute, nil}, part{time.Minute, nil})
		got, err := lull.DoHedged(t.Context(), d, s.play)
		if took := time.Since(start); got != 2 || err != nil || took != 1010*ms {
			t.Errorf("attempt %d, %v, after %v; want the second, when the observer has returned", got, err, took)
		}
		begun, _ := s.ended()
		check.Slices(t, begun, []time.Duration{0, 20 * ms, 30 * ms, 1010 * ms}, "attempts began at")
		if i := slices.Index(o.all, event.CallEnded); i < 0 { // that of the observer's own call
			t.Error("nothing was observed")
		}
		check.Equal(t, o.all[len(o.all)-1], event.CallEnded, "%v: the last", o.all)
	})
}

// Rule 18: while an observer holds the call up, a panic of an attempt that has lost is raised on
// the caller's goroutine.
func TestRule18APanicOfALoserIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n, hedges atomic.Int64
		d := newDependency(t, hedging(3), lull.WithObserver(observe(func(_ context.Context, e lull.Event) {
			if e.Kind == event.HedgeStarted && hedges.Add(1) == 2 {
				time.Sleep(100 * ms)
			}
		})))
		defer func() {
			if got := recover(); got != "oh" {
				t.Errorf("the caller recovers %v", got)
			}
			time.Sleep(time.Second) // all have ended
		}()
		lull.DoHedged(t.Context(), d, func(context.Context) (int, error) {
			switch n.Add(1) {
			case 1:
				time.Sleep(50 * ms)
			case 2:
				time.Sleep(60 * ms) // it has lost by then, and ignores its context
				panic("oh")
			}
			return 0, nil
		})
		t.Error("it returned")
	})
}

// The time of an observer is not part of the next attempt's timeout.
func TestRule18AnObserverTakesNothingOfAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lull.Policy{Attempts: 3, AttemptTimeout: time.Second, Deadline: lull.NoTimeout, Timeouts: lull.TimeoutsAlways}
		o := &kinds{at: event.RetryStarted, do: func() { time.Sleep(700 * ms) }}
		lull.Run(t.Context(), newDependency(t, p, lull.WithObserver(o)), func(ctx context.Context) error {
			if until, _ := ctx.Deadline(); time.Until(until) != time.Second {
				t.Errorf("an attempt has %v of its second", time.Until(until))
			}
			return lull.Transient(errBlip)
		})
	})
}

// The breaker learns only of the end of a hedged call, also with observers.
func TestBreakerLearnsOfObservedHedgedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging(2)
		p.Breaker = breaker.Config{Consecutive: 2, ConsecutiveFor: -1}
		d := newDependency(t, p, lull.WithObserver(new(kinds)))
		for i, want := range []breaker.CircuitState{breaker.Closed, breaker.Open} {
			blip := lull.Transient(errBlip)
			s := newScript(part{30 * ms, blip}, part{5 * ms, blip})
			lull.DoHedged(t.Context(), d, s.play)
			s.ended()
			check.Equal(t, d.Breaker().State(d.Now()), want, "after %d calls that failed", i+1)
		}
	})
}

// A hedged call that is refused has one end.
func TestAHedgedCallThatIsRefusedEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging(2)
		p.Limit = bulkhead.Config{InFlight: 1}
		o := new(kinds)
		d := newDependency(t, p, lull.WithObserver(o))
		d.Limiter().TryAcquire()
		if _, err := lull.DoHedged(t.Context(), d, value); !errors.Is(err, lull.ErrLimited) || fmt.Sprint(o.all) != "[call_ended]" {
			t.Errorf("%v, %v", err, o.all)
		}
	})
}

// balanced is a budget that counts the calls that have begun and not ended.
type balanced struct {
	budget.Budget
	open int
}

func (b *balanced) Start(time.Duration)                           { b.open++ }
func (b *balanced) Done(time.Duration, bool, budget.Receipt, int) { b.open-- }

// Rule 18: if an observer of the breaker panics, the budget still learns of the call, and the
// next call may be a probe.
func TestRule18AnObserverOfTheBreakerThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := true
		o := observe(func(_ context.Context, e lull.Event) {
			if e.Kind == event.CircuitChanged && panics {
				panic("oh")
			}
		})
		account := must.Have(budget.New(plenty))
		pays := &balanced{Budget: account}
		d := newDependency(t, lull.Policy{Attempts: 1, Breaker: breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: time.Second, OpenJitter: -1}}, lull.WithObserver(o), lull.WithBudget(func() budget.Budget { return pays }))
		run := func(op func(context.Context) error) (fell any, err error) {
			defer func() { fell = recover() }()
			return nil, lull.Run(t.Context(), d, op)
		}
		if fell, err := run(func(context.Context) error { return errDown }); fell != "oh" {
			t.Errorf("opened: %v, %v", err, fell)
		}
		time.Sleep(2 * time.Second)
		if fell, err := run(succeed); fell != "oh" {
			t.Errorf("half-open: %v, %v", err, fell)
		}
		panics = false
		if fell, err := run(succeed); err != nil || fell != nil {
			t.Errorf("the next is no probe: %v, %v", err, fell)
		}
		if s := d.Breaker().State(d.Now()); s != breaker.Closed || pays.open != 0 {
			t.Errorf("the breaker is %v, and %d calls are under way to the budget", s, pays.open)
		}
	})
}

// A slow observer that keeps its context gets all events, and no context that has ended, for each
// way in which a call ends.
func TestWhatObserversGetDoesNotEndWithTheCall(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"canceled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"timed out": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		"before": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
	} {
		for result, returned := range map[string]error{"failed": lull.Transient(errBlip), "succeeded": nil} {
			for how, do := range doFunctions[int]() {
				synctest.Test(t, func(t *testing.T) {
					type key struct{}
					var seen []event.Kind
					slow := observe(func(ctx context.Context, e lull.Event) {
						if ctx.Err() != nil || ctx.Value(key{}) != "value" {
							t.Errorf("%s, %s, %s: %v has the context %v", how, name, result, e.Kind, ctx)
						}
						if result == "failed" {
							select { // as one does that waits for room in a queue
							case <-time.After(time.Minute):
							case <-ctx.Done():
								t.Errorf("%s, %s: the context of %v has ended", how, name, e.Kind)
							}
						}
						seen = append(seen, e.Kind)
					})
					ctx, cancel := end(context.WithValue(t.Context(), key{}, "value"))
					defer cancel()
					d := newDependency(t, hedging(2), lull.WithObserver(slow))
					do(ctx, d, func(ctx context.Context) (int, error) {
						<-ctx.Done()
						return 0, returned
					})
					if len(seen) == 0 || seen[len(seen)-1] != event.CallEnded {
						t.Errorf("%s, %s, %s: %v", how, name, result, seen)
					}
				})
			}
		}
	}
}

type observe func(context.Context, lull.Event)

func (f observe) Observe(ctx context.Context, e lull.Event) { f(ctx, e) }
