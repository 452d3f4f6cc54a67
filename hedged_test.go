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
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
	"github.com/lullgo/lull/internal/check"
)

const ms = time.Millisecond

// hedging is a policy of n attempts, one every 10 ms, that bounds nothing else.
func hedging(n int) lull.Policy {
	return lull.Policy{
		Hedge:   hedge.Config{Attempts: n, Delay: 10 * ms, Share: -1},
		Budget:  budget.Config{Unlimited: true},
		Breaker: breaker.Config{Off: true},
	}
}

// A part describes one attempt: it takes so long, and then returns err. It returns sooner if
// its context ends.
type part struct {
	takes time.Duration
	err   error
}

// script plays the parts in the order in which attempts begin.
type script struct {
	parts    []part
	start    time.Time
	mu       sync.Mutex
	begun    []time.Duration
	canceled int
	running  sync.WaitGroup
}

func newScript(parts ...part) *script { return &script{parts: parts, start: time.Now()} }

func (s *script) play(ctx context.Context) (int, error) {
	s.running.Add(1)
	defer s.running.Done()
	s.mu.Lock()
	n := len(s.begun)
	s.begun = append(s.begun, time.Since(s.start))
	s.mu.Unlock()
	if n >= len(s.parts) {
		panic("an attempt too many")
	}
	p := s.parts[n]
	select {
	case <-time.After(p.takes):
		return n + 1, p.err
	case <-ctx.Done():
		s.mu.Lock()
		s.canceled++
		s.mu.Unlock()
		return 0, ctx.Err()
	}
}

// ended waits for the attempts that run, and returns when each began and how many were cancelled.
func (s *script) ended() (begun []time.Duration, canceled int) {
	synctest.Wait() // each that was started has begun
	s.running.Wait()
	return s.begun, s.canceled
}

// Rule 9: a fast failure never beats a slow success. Attempts end as gRFC A6 has it.
func TestRule09TheFirstSuccessWins(t *testing.T) {
	blip := lull.Transient(errBlip)
	for _, c := range []struct {
		name     string
		parts    []part
		winner   int           // the attempt whose result is the call's; 0: it fails
		took     time.Duration // the call
		begun    []time.Duration
		canceled int
		reason   error // of a call that fails
	}{
		{"a first attempt in time is alone", []part{{9 * ms, nil}}, 1, 9 * ms, []time.Duration{0}, 0, nil},
		{"a hedge wins, the first is cancelled", []part{{time.Second, nil}, {5 * ms, nil}}, 2, 15 * ms, []time.Duration{0, 10 * ms}, 1, nil},
		{"the first wins, the hedge is cancelled", []part{{15 * ms, nil}, {time.Second, nil}}, 1, 15 * ms, []time.Duration{0, 10 * ms}, 1, nil},

		{"a hedge that fails does not beat the first", []part{{100 * ms, nil}, {1 * ms, blip}}, 1, 100 * ms, []time.Duration{0, 10 * ms}, 0, nil},
		{"nor one that is rate-limited", []part{{100 * ms, nil}, {1 * ms, lull.RetryAfter(errBlip, ms)}}, 1, 100 * ms, []time.Duration{0, 10 * ms}, 0, nil},
		{"nor one of an error that nothing is known of", []part{{100 * ms, nil}, {1 * ms, errBlip}}, 1, 100 * ms, []time.Duration{0, 10 * ms}, 0, nil},
		{"a first that fails does not beat the hedge", []part{{11 * ms, blip}, {100 * ms, nil}}, 2, 110 * ms, []time.Duration{0, 10 * ms}, 0, nil},
		{"a permanent failure would meet any attempt", []part{{time.Second, nil}, {5 * ms, lull.Permanent(errBlip)}}, 0, 15 * ms, []time.Duration{0, 10 * ms}, 1, lull.ErrPermanent},

		{"a failure calls the next at once", []part{{3 * ms, blip}, {5 * ms, nil}}, 2, 8 * ms, []time.Duration{0, 3 * ms}, 0, nil},
		{"and later ones follow at the delay", []part{{3 * ms, blip}, {time.Second, nil}, {5 * ms, nil}}, 3, 18 * ms, []time.Duration{0, 3 * ms, 13 * ms}, 1, nil},
		{"so does one beside others", []part{{time.Second, nil}, {2 * ms, blip}, {time.Second, nil}, {ms, nil}}, 4, 23 * ms, []time.Duration{0, 10 * ms, 12 * ms, 22 * ms}, 2, nil},
		{"a hint is waited for", []part{{3 * ms, lull.RetryAfter(errBlip, 40*ms)}, {5 * ms, nil}}, 2, 48 * ms, []time.Duration{0, 43 * ms}, 0, nil},
		{"a hint beside others, too", []part{{time.Second, nil}, {2 * ms, lull.RetryAfter(errBlip, 40*ms)}, {5 * ms, nil}}, 3, 57 * ms, []time.Duration{0, 10 * ms, 52 * ms}, 1, nil},
		{"a hint beyond the limit stops further ones", []part{{100 * ms, nil}, {2 * ms, lull.RetryAfter(errBlip, time.Hour)}, {}}, 1, 100 * ms, []time.Duration{0, 10 * ms}, 0, nil},
		{"and ends the call that has no others", []part{{2 * ms, lull.RetryAfter(errBlip, time.Hour)}}, 0, 2 * ms, []time.Duration{0}, 0, lull.ErrHintTooLong},

		{"all fail", []part{{20 * ms, blip}, {5 * ms, blip}, {5 * ms, blip}, {3 * ms, blip}}, 0, 23 * ms, []time.Duration{0, 10 * ms, 15 * ms, 20 * ms}, 0, lull.ErrAttemptsExhausted},
		{"all are slow", []part{{100 * ms, nil}, {100 * ms, nil}, {100 * ms, nil}, {69 * ms, nil}}, 4, 99 * ms, []time.Duration{0, 10 * ms, 20 * ms, 30 * ms}, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// A draw of zero: hints get no jitter.
				d := newDependency(t, hedging(max(len(c.parts), 2)), lull.WithRand(func() uint64 { return 0 }))
				s := newScript(c.parts...)
				got, err := lull.DoHedged(t.Context(), d, s.play)
				took := time.Since(s.start)
				if c.winner > 0 && err != nil || c.winner == 0 && !errors.Is(err, c.reason) {
					t.Fatalf("after %v: %v, want reason %v", took, err, c.reason)
				}
				begun, canceled := s.ended()
				if c.winner > 0 && got != c.winner || took != c.took || !slices.Equal(begun, c.begun) {
					t.Errorf("attempt %d won after %v, attempts began at %v; want %d, %v, %v", got, took, begun, c.winner, c.took, c.begun)
				}
				check.Equal(t, canceled, c.canceled, "attempts were cancelled")
				synctest.Wait()
				check.Equal(t, d.Hedger().InFlight(), 0, "hedges are still counted as in flight")
			})
		})
	}
}

// "Don't retry" stops further hedges; those in flight continue.
func TestHedgesStopWhenTheServerAsks(t *testing.T) {
	errStop := errors.New("overloaded")
	classify := func(err error) lull.Verdict {
		if err == errStop {
			return lull.Verdict{Kind: lull.KindOverloaded, Code: "503"}
		}
		return lull.Classify(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, hedging(4), lull.WithClassifier(classify))
		s := newScript(part{100 * ms, nil}, part{5 * ms, errStop})
		got, err := lull.DoHedged(t.Context(), d, s.play)
		if begun, _ := s.ended(); got != 1 || err != nil || len(begun) != 2 {
			t.Errorf("attempt %d, %v, after attempts at %v", got, err, begun)
		}
		s = newScript(part{5 * ms, errStop})
		if _, err := lull.DoHedged(t.Context(), d, s.play); !errors.Is(err, lull.ErrOverloaded) || !errors.Is(err, errStop) {
			t.Errorf("the only attempt was told not to retry: %v", err)
		}
		s = newScript(part{20 * ms, lull.Transient(errBlip)}, part{5 * ms, errStop})
		if _, err := lull.DoHedged(t.Context(), d, s.play); !errors.Is(err, lull.ErrOverloaded) || !errors.Is(err, errBlip) {
			t.Errorf("the first failed after a hedge was told not to retry: %v", err)
		}
	})
}

func TestHedgesAreBounded(t *testing.T) {
	slow := []part{{100 * ms, nil}, {ms, nil}}
	for _, c := range []struct {
		name   string
		change func(*lull.Policy)
		opts   []lull.CallOption
	}{
		{"by the budget", func(p *lull.Policy) { p.Budget = budget.Config{Window: 10 * time.Second, Ratio: 0.001} }, nil},
		{"by the ceiling in flight, with another call's hedge", func(p *lull.Policy) { p.Hedge.InFlight = 1 }, nil},
		{"by the concurrency limit", func(p *lull.Policy) { p.Limit = bulkhead.Config{InFlight: 3} }, nil},
		{"by the share of late calls", func(p *lull.Policy) { p.Hedge.Share = 0.01 }, nil},
		{"by the deadline", func(p *lull.Policy) { p.Hedge.Delay = 90 * ms; p.Deadline = 90 * ms }, nil},
		{"by what may be repeated", func(*lull.Policy) {}, []lull.CallOption{lull.NotIdempotent()}},
		{"by the policy, which does not hedge", func(p *lull.Policy) { p.Hedge.Attempts = 1 }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging(2)
				p.Deadline, p.AttemptTimeout = lull.NoTimeout, lull.NoTimeout
				c.change(&p)
				if p.Deadline > 0 {
					slow = []part{{89 * ms, nil}}
				}
				d := newDependency(t, p, lull.WithRand(middle)) // or the budget pays once in a thousand
				var wg sync.WaitGroup
				other := newScript(part{time.Second, nil}, part{time.Second, nil})
				wg.Go(func() {
					lull.DoHedged(t.Context(), d, func(ctx context.Context) (int, error) {
						if p.Hedge.InFlight == 1 || p.Limit.InFlight > 0 {
							return other.play(ctx) // holds what there is: one hedge, two places
						}
						return 0, nil
					})
				})
				synctest.Wait()
				time.Sleep(20 * ms)
				for range 2 { // what is in stock, where the share of late calls is a bound
					if p.Hedge.Share > 0 {
						lull.DoHedged(t.Context(), d, newScript(part{20 * ms, nil}, part{ms, nil}).play)
					}
				}
				s := newScript(slow...)
				got, err := lull.DoHedged(t.Context(), d, s.play, c.opts...)
				if begun, _ := s.ended(); got != 1 || err != nil || len(begun) != 1 {
					t.Errorf("attempt %d, %v; attempts began at %v, want one", got, err, begun)
				}
				wg.Wait()
			})
		})
	}
}

func TestAHedgedCallEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(25*ms, func() { cancel(cause) })
		s := newScript(part{20 * ms, lull.Transient(errBlip)}, part{time.Second, nil}, part{time.Second, nil})
		d := newDependency(t, hedging(3))
		_, err := lull.DoHedged(ctx, d, s.play)
		if took := time.Since(s.start); !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || took != 25*ms {
			t.Errorf("after %v: %v", took, err)
		}
		if _, canceled := s.ended(); canceled != 2 {
			t.Errorf("%d attempts were cancelled, want both that ran", canceled)
		}
		ctx, stop := context.WithTimeout(t.Context(), 25*ms)
		defer stop()
		s = newScript(part{time.Second, nil}, part{time.Second, nil}, part{time.Second, nil})
		if _, err := lull.DoHedged(ctx, d, s.play); !errors.Is(err, context.DeadlineExceeded) || time.Since(s.start) != 25*ms {
			t.Errorf("after %v: %v", time.Since(s.start), err)
		}
	})
}

// Each attempt has its own timeout, and knows its number.
func TestAttemptsOfAHedgedCallHaveContextsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedging(2)
		p.AttemptTimeout = 30 * ms
		p.Timeouts = lull.TimeoutsAlways
		d := newDependency(t, p)
		start := time.Now()
		var mu sync.Mutex
		var seen []string
		lull.DoHedged(t.Context(), d, func(ctx context.Context) (int, error) {
			a, ok := lull.AttemptFrom(ctx)
			until, _ := ctx.Deadline()
			mu.Lock()
			seen = append(seen, fmt.Sprint(a.Number, a.Of, ok, until.Sub(start)))
			mu.Unlock()
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if want := []string{"1 2 true 30ms", "2 2 true 40ms"}; !slices.Equal(seen, want) || time.Since(start) != 40*ms {
			t.Errorf("%q, want %q; it took %v", seen, want, time.Since(start))
		}
	})
}

type closing struct{ closed *atomic.Int64 }

func (c closing) Close() error { c.closed.Add(1); return nil }

// The value of an attempt that succeeds after the end of the call is closed.
func TestValuesOfLosersAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed, made atomic.Int64
		d := newDependency(t, hedging(3))
		_, err := lull.DoHedged(t.Context(), d, func(context.Context) (closing, error) {
			time.Sleep(25 * ms) // ignores its context
			made.Add(1)
			return closing{&closed}, nil
		})
		time.Sleep(time.Second)
		if err != nil || made.Load() != 3 || closed.Load() != 2 {
			t.Errorf("%v; of %d values %d were closed, want all but one of three", err, made.Load(), closed.Load())
		}
	})
}

func TestPanicsInHedgedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		first, second func()
		end           string // what the observers learn
	}{
		"in the first":                     {func() { panic("oh") }, nil, "1 by 1 took 1ns elapsed 1ns waited 0s: panicked"},
		"in the first, beside another":     {func() { time.Sleep(20 * ms); panic("oh") }, func() { time.Sleep(time.Second) }, "2 by 1 took 20ms elapsed 20ms waited 0s: panicked"},
		"in the first, which had lost":     {func() { time.Sleep(30 * ms); panic("oh") }, func() {}, "2 by 1 took 30ms elapsed 30ms waited 0s: panicked"},
		"in a hedge":                       {func() { time.Sleep(time.Second) }, func() { time.Sleep(ms); panic("oh") }, "2 by 2 took 1ms elapsed 11ms waited 0s: panicked"},
		"in a hedge, after the first fell": {nil, func() { time.Sleep(6 * ms); panic("oh") }, "2 by 2 took 6ms elapsed 16ms waited 0s: panicked; 1 transient blip took 15ms waited 0s of 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := hedging(2)
				p.Limit = bulkhead.Config{InFlight: 10}
				p.Deadline = 500 * ms
				var log eventLog
				d := newDependency(t, p, lull.WithObserver(&log), lull.WithTiming())
				var n atomic.Int64
				func() {
					defer func() {
						if got := recover(); got != "oh" {
							t.Errorf("the caller recovers %v", got)
						}
					}()
					lull.DoHedged(t.Context(), d, func(ctx context.Context) (int, error) {
						do := c.first
						if n.Add(1) == 2 {
							do = c.second
						}
						if do == nil {
							time.Sleep(15 * ms)
							return 0, lull.Transient(errBlip)
						}
						do()
						return 0, nil
					})
				}()
				time.Sleep(2 * time.Second)
				if l, h := d.Limiter().InFlight(), d.Hedger().InFlight(); l != 0 || h != 0 {
					t.Errorf("%d places and %d hedges are still out", l, h)
				}
				log.events = log.events[len(log.events)-1:]
				log.wantTimes(t, "call_ended "+c.end)
			})
		})
	}
	t.Run("an attempt that ends its goroutine has failed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int64
			got, err := lull.DoHedged(t.Context(), newDependency(t, hedging(3)), func(context.Context) (int64, error) {
				i := n.Add(1)
				if i == 2 {
					runtime.Goexit()
				}
				time.Sleep(50 * ms)
				return i, nil
			})
			if got != 1 || err != nil || n.Load() != 2 {
				t.Errorf("attempt %d of %d, %v", got, n.Load(), err)
			}
		})
	})
}

// Do does not run an operation beside itself: under a policy that hedges its
// attempts follow one another.
func TestDoNeverHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, hedging(3))
		s := newScript(part{100 * ms, lull.Transient(errBlip)}, part{100 * ms, nil})
		got, err := lull.Do(t.Context(), d, s.play)
		if got != 2 || err != nil || s.begun[1] < 100*ms {
			t.Errorf("attempt %d, %v, after attempts at %v", got, err, s.begun)
		}
	})
}

func TestHedgedCallsAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l eventLog
		p := hedging(3)
		p.Hedge.InFlight = 1
		d := newDependency(t, p, lull.WithObserver(&l))
		s := newScript(part{50 * ms, nil}, part{30 * ms, lull.Transient(errBlip)}, part{time.Second, nil})
		lull.DoHedged(t.Context(), d, s.play)
		var got []string
		for _, e := range l.events {
			got = append(got, fmt.Sprintf("%v %d/%d %v %v %v", e.Kind, e.Attempt, e.MaxAttempts, e.Elapsed, e.Reason, e.Err))
		}
		want := []string{
			"hedge_started 2/3 10ms success <nil>",
			"hedge_refused 2/3 20ms too_many_hedges <nil>",
			"attempt_failed 2/3 40ms success blip",
			"hedge_refused 2/3 40ms too_many_hedges <nil>", // once refused, a call is not hedged any more
			"call_ended 2/3 50ms success <nil>",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%q\nwant\n%q", got, want)
		}
	})
}

func TestWhatAHedgeThatDoesNotFireAllocates(t *testing.T) {
	op := func(context.Context) (int, error) { return 1, nil }
	for name, c := range map[string]struct{ timeout, deadline time.Duration }{
		"the zero policy's timeouts": {},
		"no timeouts":                {lull.NoTimeout, lull.NoTimeout},
	} {
		p := lull.Policy{AttemptTimeout: c.timeout, Deadline: c.deadline, Hedge: hedge.Config{Attempts: 2, Delay: time.Hour}}
		if p.Deadline == 0 {
			p.Hedge.Delay = time.Second
		}
		d := newDependency(t, p)
		p.Hedge = hedge.Config{}
		alone := newDependency(t, p)
		without := testing.AllocsPerRun(1000, func() { lull.Do(context.Background(), alone, op) })
		with := testing.AllocsPerRun(1000, func() { lull.DoHedged(context.Background(), d, op) })
		t.Logf("%s: %v allocations, %v without hedging", name, with, without)
		if with > without+1 {
			t.Errorf("%s: %v allocations, %v without hedging", name, with, without)
		}
	}
}

// A hedge whose delay ends after the largest time is never sent.
func TestAHedgeThatIsNeverDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDependency(t, lull.Policy{AttemptTimeout: lull.NoTimeout, Deadline: lull.NoTimeout, Hedge: hedge.Config{Attempts: 2, Delay: 1<<63 - 2}})
		time.Sleep(time.Second) // so that now + Delay is beyond all time
		var n atomic.Int32
		lull.DoHedged(context.Background(), d, func(context.Context) (int, error) {
			n.Add(1)
			time.Sleep(time.Hour)
			return 0, nil
		})
		check.Equal(t, n.Load(), 1, "attempts")
	})
}

// The first slow calls of a process are hedged, while hedges are in stock. If all calls are slow,
// later ones are not hedged, and the event has the reason.
func TestTheFirstSlowCallsAreHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused []lull.Reason
		d := newDependency(t, lull.Policy{Hedge: hedge.Config{Attempts: 2, Delay: 20 * ms}}, lull.WithObserver(observe(func(_ context.Context, e lull.Event) {
			if e.Kind == event.HedgeRefused {
				refused = append(refused, e.Reason)
			}
		})))
		for i, want := range []time.Duration{25 * ms, 25 * ms, time.Second, time.Second} {
			s := newScript(part{time.Second, nil}, part{5 * ms, nil})
			if _, err := lull.DoHedged(t.Context(), d, s.play); err != nil || time.Since(s.start) != want {
				t.Errorf("call %d: %v after %v, want %v", i+1, err, time.Since(s.start), want)
			}
		}
		check.Slices(t, refused, []lull.Reason{engine.TooManyLate, engine.TooManyLate}, "refused for")
	})
}
