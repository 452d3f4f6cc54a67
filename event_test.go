package lull_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/seed"
)

// wantTimes compares the times of attempts in the events, and at the end those of the earlier ones
// that failed.
func (l *eventLog) wantTimes(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var got []string
	for _, e := range l.events {
		text := fmt.Sprintf("%v %d by %d took %v elapsed %v", e.Kind, e.Attempt, e.EndedAttempt, e.AttemptTook, e.Elapsed)
		if e.Kind == event.CallEnded {
			text += fmt.Sprintf(" waited %v: %v", e.Waited, e.Reason)
			for a := e.Earlier; a != nil; a = a.Before {
				text += fmt.Sprintf("; %d %v %v took %v waited %v of %v", a.Attempt, a.Verdict.Kind, a.Err, a.Took, a.Slept, a.Delay)
			}
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// Observers learn once which attempt ended, how long it took, and how long the call waited.
// Each call has an end, also one that ends in a wait or in a panic.
func TestObserversLearnTheTimes(t *testing.T) {
	policy := lull.Policy{Attempts: 3, Backoff: backoff.Schedule{Base: 100 * ms, Jitter: backoff.None}, Budget: plenty, Breaker: breaker.Config{Off: true}}
	fail := func(context.Context) error { time.Sleep(30 * ms); return errBlip }
	for name, c := range map[string]struct {
		change func(*lull.Policy)
		do     []func(context.Context) error // one attempt each, and the last for all others
		cancel time.Duration                 // the caller goes
		want   []string
	}{
		"a success": {
			do:   []func(context.Context) error{func(context.Context) error { time.Sleep(30 * ms); return nil }},
			want: []string{"call_ended 1 by 1 took 30ms elapsed 30ms waited 0s: success"},
		},
		"a success that takes no time": {
			do:   []func(context.Context) error{func(context.Context) error { return nil }},
			want: []string{"call_ended 1 by 1 took 1ns elapsed 1ns waited 0s: success"},
		},
		"a success after a retry": {
			do: []func(context.Context) error{fail, func(context.Context) error { time.Sleep(7 * ms); return nil }},
			want: []string{
				"retry_scheduled 1 by 1 took 30ms elapsed 30ms",
				"retry_started 2 by 0 took 0s elapsed 130ms",
				"call_ended 2 by 2 took 7ms elapsed 137ms waited 100ms: success; 1 transient failure 1 took 30ms waited 100ms of 100ms",
			},
		},
		"no success": {
			do: []func(context.Context) error{fail},
			want: []string{
				"retry_scheduled 1 by 1 took 30ms elapsed 30ms",
				"retry_started 2 by 0 took 0s elapsed 130ms",
				"retry_scheduled 2 by 2 took 30ms elapsed 160ms",
				"retry_started 3 by 0 took 0s elapsed 360ms",
				"call_ended 3 by 3 took 30ms elapsed 390ms waited 300ms: attempts_exhausted; 2 transient failure 2 took 30ms waited 200ms of 200ms; 1 transient failure 1 took 30ms waited 100ms of 100ms",
			},
		},
		"a caller that goes in the wait": {
			do: []func(context.Context) error{fail}, cancel: 50 * ms,
			want: []string{
				"retry_scheduled 1 by 1 took 30ms elapsed 30ms",
				"call_ended 1 by 0 took 0s elapsed 50ms waited 20ms: canceled; 1 transient failure 1 took 30ms waited 0s of 100ms",
			},
		},
		"a wait that would not end in time": {
			change: func(p *lull.Policy) { p.Deadline = 120 * ms }, do: []func(context.Context) error{fail},
			want: []string{"call_ended 1 by 1 took 30ms elapsed 30ms waited 0s: deadline"},
		},
		"a panic": {
			do:   []func(context.Context) error{func(context.Context) error { time.Sleep(5 * ms); panic("oh") }},
			want: []string{"call_ended 1 by 1 took 5ms elapsed 5ms waited 0s: panicked"},
		},
		"a panic in a retry": {
			do: []func(context.Context) error{fail, func(context.Context) error { time.Sleep(5 * ms); panic("oh") }},
			want: []string{
				"retry_scheduled 1 by 1 took 30ms elapsed 30ms",
				"retry_started 2 by 0 took 0s elapsed 130ms",
				"call_ended 2 by 2 took 5ms elapsed 135ms waited 100ms: panicked; 1 transient failure 1 took 30ms waited 100ms of 100ms",
			},
		},
		"the end of the goroutine": {
			do:   []func(context.Context) error{func(context.Context) error { time.Sleep(5 * ms); runtime.Goexit(); return nil }},
			want: []string{"call_ended 1 by 1 took 5ms elapsed 5ms waited 0s: panicked"},
		},
		"no room": {
			change: func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 1, MaxWait: 40 * ms} },
			do:     []func(context.Context) error{func(context.Context) error { t.Error("it was made"); return nil }},
			want:   []string{"call_ended 0 by 0 took 0s elapsed 40ms waited 0s: limited"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := policy
				if c.change != nil {
					c.change(&p)
				}
				var o eventLog
				d := newDependency(t, p, lull.WithObserver(&o), lull.WithTiming())
				if d.Limiter() != nil {
					d.Limiter().TryAcquire()
				}
				ctx, cancel := context.WithCancel(t.Context())
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { recover() }()
					n := -1
					lull.Run(ctx, d, func(ctx context.Context) error {
						n++
						if err := c.do[min(n, len(c.do)-1)](ctx); err != nil {
							return lull.Transient(fmt.Errorf("failure %d", n+1))
						}
						return nil
					})
				}()
				<-done
				cancel()
				o.wantTimes(t, c.want...)
			})
		})
	}
}

// For hedged calls, a failure is in an event of its own or in the event of the end, never in
// both.
func TestObserversLearnTheTimesOfHedgedCalls(t *testing.T) {
	blip := lull.Transient(errBlip)
	for name, c := range map[string]struct {
		change func(*lull.Policy)
		parts  []part
		cancel time.Duration
		want   []string
	}{
		"the first wins": {
			parts: []part{{15 * ms, nil}, {time.Second, nil}},
			want: []string{
				"hedge_started 2 by 0 took 0s elapsed 10ms",
				"call_ended 2 by 1 took 15ms elapsed 15ms waited 0s: success",
			},
		},
		"the second wins": {
			parts: []part{{time.Second, nil}, {15 * ms, nil}},
			want: []string{
				"hedge_started 2 by 0 took 0s elapsed 10ms",
				"call_ended 2 by 2 took 15ms elapsed 25ms waited 0s: success",
			},
		},
		"a failure that ends the call": {
			parts: []part{{3 * ms, blip}, {4 * ms, blip}},
			want: []string{
				"attempt_failed 1 by 1 took 3ms elapsed 3ms",
				"hedge_started 2 by 0 took 0s elapsed 3ms",
				"call_ended 2 by 2 took 4ms elapsed 7ms waited 0s: attempts_exhausted; 1 transient blip took 3ms waited 0s of 0s",
			},
		},
		"a failure after which the budget does not pay": {
			change: func(p *lull.Policy) { p.Budget = budget.Config{Stock: 1, Window: time.Hour} },
			parts:  []part{{3 * ms, blip}, {4 * ms, blip}, {time.Second, nil}},
			want: []string{
				"attempt_failed 1 by 1 took 3ms elapsed 3ms",
				"hedge_started 2 by 0 took 0s elapsed 3ms",
				"budget_exhausted 2 by 0 took 0s elapsed 7ms",
				"call_ended 2 by 2 took 4ms elapsed 7ms waited 0s: budget_exhausted; 1 transient blip took 3ms waited 0s of 0s",
			},
		},
		"a hedge for which the budget does not pay": {
			change: func(p *lull.Policy) { p.Budget = budget.Config{Stock: 1, Window: time.Hour} },
			parts:  []part{{35 * ms, nil}, {time.Second, nil}},
			want: []string{
				"hedge_started 2 by 0 took 0s elapsed 10ms",
				"budget_exhausted 2 by 0 took 0s elapsed 20ms",
				"hedge_refused 2 by 0 took 0s elapsed 20ms",
				"call_ended 2 by 1 took 35ms elapsed 35ms waited 0s: success",
			},
		},
		"waits while none is under way": {
			parts: []part{{3 * ms, lull.RetryAfter(blip, 20*ms)}, {4 * ms, nil}},
			want: []string{
				"attempt_failed 1 by 1 took 3ms elapsed 3ms",
				"hedge_started 2 by 0 took 0s elapsed 23ms",
				"call_ended 2 by 2 took 4ms elapsed 27ms waited 20ms: success; 1 rate_limited blip took 3ms waited 0s of 0s",
			},
		},
		"a caller that goes in such a wait": {
			parts: []part{{3 * ms, lull.RetryAfter(blip, 20*ms)}}, cancel: 10 * ms,
			want: []string{
				"attempt_failed 1 by 1 took 3ms elapsed 3ms",
				"call_ended 1 by 0 took 0s elapsed 10ms waited 7ms: canceled; 1 rate_limited blip took 3ms waited 0s of 0s",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging(2)
				p.Backoff = backoff.Schedule{Jitter: backoff.None}
				if c.change != nil {
					p.Hedge.Attempts = 3
					c.change(&p)
				}
				var o eventLog
				d := newDependency(t, p, lull.WithObserver(&o), lull.WithTiming(), lull.WithRand(func() uint64 { return 0 }))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				lull.DoHedged(ctx, d, newScript(c.parts...).play)
				synctest.Wait()
				o.wantTimes(t, c.want...)
			})
		})
	}
}

// ending checks that each call has one end, that the end is its last event, and that no
// attempt's end is reported twice.
type ending struct {
	mu    sync.Mutex
	calls map[context.Context][]lull.Event
}

func (o *ending) Observe(ctx context.Context, e lull.Event) {
	runtime.Gosched()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls[ctx] = append(o.calls[ctx], e)
}

type callNumber int // makes the context of each call one of its own

func TestTheEndOfACallIsItsLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := ending{calls: make(map[context.Context][]lull.Event)}
		p := lull.Policy{
			Hedge: hedge.Config{Attempts: 4, Delay: 100 * time.Microsecond, Share: -1, InFlight: -1}, Budget: budget.Config{Unlimited: true},
			Breaker: breaker.Config{Off: true}, Backoff: backoff.Schedule{Base: 100 * time.Microsecond}, Deadline: 20 * ms,
		}
		d := newDependency(t, p, lull.WithObserver(&o))
		const workers, calls = 8, 200
		r := seed.Rand(t)
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for i := range calls {
					ctx := context.WithValue(t.Context(), callNumber(i), i)
					do := func(ctx context.Context) (int, error) {
						time.Sleep(time.Duration(r.IntN(400)) * time.Microsecond)
						if r.IntN(2) == 0 {
							return 0, lull.Transient(errBlip)
						}
						return 0, nil
					}
					if i%2 == 0 {
						lull.DoHedged(ctx, d, do)
					} else {
						lull.Do(ctx, d, do)
					}
				}
			})
		}
		all.Wait()
		time.Sleep(5 * ms) // for events that come too late
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.calls) != workers*calls {
			t.Fatalf("%d calls were observed", len(o.calls))
		}
		for _, events := range o.calls {
			told := make(map[int]bool)
			for i, e := range events {
				if last := i == len(events)-1; (e.Kind == event.CallEnded) != last {
					t.Fatalf("event %d of %d is %v", i+1, len(events), e.Kind)
				}
				if e.EndedAttempt > 0 && told[e.EndedAttempt] {
					t.Fatalf("the end of attempt %d is told twice: %+v", e.EndedAttempt, events)
				}
				if told[e.EndedAttempt] = true; e.EndedAttempt > e.Attempt || (e.EndedAttempt > 0) != (e.AttemptTook > 0) && e.Attempt > 1 {
					t.Fatalf("%+v", e)
				}
			}
		}
	})
}
