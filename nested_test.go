package lull_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/hedge"
)

var errDown = lull.Transient(errors.New("down"))

// A call that is made for a retry is not retried itself, unless the policy allows it.
func TestCallsForARetryAreNotRetried(t *testing.T) {
	hedging := lull.Policy{Hedge: hedge.Config{Attempts: 3}, Budget: plenty}
	for _, c := range []struct {
		name     string
		policy   lull.Policy
		inbound  int // 0: none
		attempts int
		reason   error
	}{
		{"nobody's", lull.Policy{Attempts: 3, Budget: plenty}, 0, 3, lull.ErrAttemptsExhausted},
		{"a first attempt's", lull.Policy{Attempts: 3, Budget: plenty}, 1, 3, lull.ErrAttemptsExhausted},
		{"a retry's", lull.Policy{Attempts: 3, Budget: plenty}, 2, 1, lull.ErrRetriedAbove},
		{"a fourth attempt's", lull.Policy{Attempts: 3, Budget: plenty}, 4, 1, lull.ErrRetriedAbove},
		{"always", lull.Policy{Attempts: 3, Budget: plenty, Nested: lull.NestedAlways}, 2, 3, lull.ErrAttemptsExhausted},
		{"hedged, a first attempt's", hedging, 1, 3, lull.ErrAttemptsExhausted},
		{"hedged, a retry's", hedging, 2, 1, lull.ErrRetriedAbove},
		{"nonsense", lull.Policy{Attempts: 3, Budget: plenty}, -7, 3, lull.ErrAttemptsExhausted},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDependency(t, c.policy)
			ctx := context.Background()
			if c.inbound != 0 {
				ctx, _ = inbound.With(ctx, c.inbound, 0)
			}
			n := 0
			_, err := lull.DoHedged(ctx, d, func(context.Context) (int, error) { n++; return 0, errDown })
			if n != c.attempts || !errors.Is(err, c.reason) {
				t.Errorf("%s: %d attempts, %v; want %d, %v", c.name, n, err, c.attempts, c.reason)
			}
		})
	}
}

// Work that a retry has started for later is retried, also while the request is still under way.
func TestLaterCallsOfARetryAreRetried(t *testing.T) {
	for _, hedged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := lull.Policy{Attempts: 3, Budget: plenty}
			if hedged {
				p = hedging(3)
			}
			d := newDependency(t, p)
			ctx, in := inbound.With(t.Context(), 2, time.Hour)
			for _, ended := range []bool{false, true} {
				later, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
				n := 0
				_, err := lull.DoHedged(later, d, func(context.Context) (int, error) { n++; return 0, errDown })
				if n != 3 || !errors.Is(err, lull.ErrAttemptsExhausted) {
					t.Errorf("hedged %v, the request has ended: %v: %d attempts, %v", hedged, ended, n, err)
				}
				cancel()
				in.End()
			}
		})
	}
}

func TestCallsForARetryAreNotHedged(t *testing.T) {
	for _, c := range []struct {
		name     string
		inbound  int
		nested   engine.NestedRetries
		attempts int
	}{
		{"a first attempt's", 1, engine.NestedNever, 3},
		{"a retry's", 2, engine.NestedNever, 1},
		{"always", 2, lull.NestedAlways, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := hedging(3)
			p.Nested = c.nested
			ctx, _ := inbound.With(t.Context(), c.inbound, 0)
			var n atomic.Int64
			_, err := lull.DoHedged(ctx, newDependency(t, p), func(ctx context.Context) (int, error) {
				n.Add(1)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				return 0, nil
			})
			if int(n.Load()) != c.attempts || err != nil {
				t.Errorf("%s: %d attempts, want %d (%v)", c.name, n.Load(), c.attempts, err)
			}
		})
	}
}

// A request learns when a call for it has failed for good, and not when that was an answer.
func TestARequestLearnsThatItsCallsGaveUp(t *testing.T) {
	refused := errors.New("busy")
	says := lull.WithClassifier(func(err error) lull.Verdict {
		if err == refused {
			return lull.Verdict{Kind: lull.KindOverloaded, Code: "busy"}
		}
		return lull.Classify(err)
	})
	for _, c := range []struct {
		name   string
		policy lull.Policy
		err    error
		want   bool
	}{
		{"success", lull.Policy{}, nil, false},
		{"an answer", lull.Policy{}, io.EOF, false},
		{"retried in vain", lull.Policy{Attempts: 2, Budget: plenty}, errDown, true},
		{"not retried", lull.Policy{Attempts: 1}, errDown, true},
		{"told not to", lull.Policy{}, refused, true},
		{"hedged in vain", lull.Policy{Hedge: hedge.Config{Attempts: 2}, Budget: plenty}, errDown, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, in := inbound.With(context.Background(), 1, 0)
			lull.DoHedged(ctx, newDependency(t, c.policy, says), func(context.Context) (int, error) { return 0, c.err })
			if in.GaveUp() != c.want {
				t.Errorf("%s: %v, want %v", c.name, in.GaveUp(), c.want)
			}
		})
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	ctx, in := inbound.With(gone, 2, 0)
	lull.Run(ctx, newDependency(t, lull.Policy{}), func(context.Context) error { return errDown })
	if in.GaveUp() || inbound.From(ctx) != in || in.Attempt() != 2 {
		t.Errorf("cancelled: %v; attempt %d", in.GaveUp(), in.Attempt())
	}
	if none := inbound.From(gone); none.Attempt() != 1 || none.GaveUp() {
		t.Errorf("no request: attempt %d, gave up: %v", none.Attempt(), none.GaveUp())
	}
}

// The context of a request ends when its caller's time is up, unless the response
// has begun by then.
func TestARequestEndsWithItsCallersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, began := range []bool{false, true} {
			ctx, in := inbound.With(context.Background(), 1, time.Second)
			if until, ok := ctx.Deadline(); !ok || time.Until(until) != time.Second {
				t.Errorf("deadline %v, %v", until.Sub(start), ok)
			}
			child, cancel := context.WithCancel(ctx)
			if began {
				in.Began()
			}
			time.Sleep(999 * time.Millisecond)
			if ctx.Err() != nil || child.Err() != nil {
				t.Errorf("ended early: %v, %v", ctx.Err(), child.Err())
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			if _, bounded := ctx.Deadline(); bounded == began {
				t.Errorf("began: %v, has a deadline: %v", began, bounded)
			}
			want := context.DeadlineExceeded
			if began {
				if ctx.Err() != nil || child.Err() != nil {
					t.Errorf("ended although the response had begun: %v, %v", ctx.Err(), child.Err())
				}
				in.End()
				synctest.Wait()
				want = context.Canceled
			}
			if ctx.Err() != want || child.Err() != want {
				t.Errorf("began: %v: ended by %v, %v; want %v", began, ctx.Err(), child.Err(), want)
			}
			cancel()
		}
		for _, none := range []time.Duration{0, -1} {
			ctx, in := inbound.With(context.Background(), 1, none)
			if _, ok := ctx.Deadline(); ok {
				t.Errorf("%v: has a deadline", none)
			}
			in.End()
		}
		ctx, in := inbound.With(context.Background(), 1, 1<<63-1)
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Errorf("the longest time of all is over after an hour: %v", ctx.Err())
		}
		in.End()
	})
}

// A call made for a request has no more time than its caller. Its error has that reason.
func TestACallHasNoMoreTimeThanTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, in := inbound.With(context.Background(), 1, 300*time.Millisecond)
		defer in.End()
		start := time.Now()
		_, err := lull.Do(ctx, newDependency(t, lull.Policy{Attempts: 10, Budget: plenty, Breaker: breaker.Config{Off: true}}), func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if took := time.Since(start); took != 300*time.Millisecond || !errors.Is(err, lull.ErrDeadline) {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// Two layers of lull in one program that both retry are reported, once. Calls that only follow each other are not.
func TestRetriesInLayers(t *testing.T) {
	type deps struct{ outer, other, inner *lull.Dependency }
	down := func(context.Context) error { return errDown }
	// masked is the error of the call below in words of its own, so that lull does not know it.
	masked := func(err error) error {
		if err != nil {
			return lull.Transient(errors.New(err.Error()))
		}
		return nil
	}
	// asks is a call to the dependency below, with the error in other words.
	asks := func(below *lull.Dependency, options ...lull.CallOption) func(context.Context) error {
		return func(ctx context.Context) error { return masked(lull.Run(ctx, below, down, options...)) }
	}
	var background sync.WaitGroup
	for name, c := range map[string]struct {
		inner engine.Policy
		calls func(ctx context.Context, d deps)
		want  int
	}{
		"both retry": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner))
		}, 1},
		"both would": {lull.Policy{}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner))
		}, 1},
		"two above": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			for _, above := range []*lull.Dependency{d.outer, d.other} {
				lull.Run(ctx, above, asks(d.inner))
			}
		}, 2},
		"the inner one is hedged": {hedging(3), func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				_, err := lull.DoHedged(ctx, d.inner, func(context.Context) (int, error) { return 0, errDown })
				return masked(err)
			})
		}, 1},
		"the outer one knows the error": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error { return lull.Run(ctx, d.inner, down) })
		}, 0},
		"the inner one does not retry": {lull.Policy{Attempts: 1}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner))
		}, 0},
		"nor for this call": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner, lull.Once()))
		}, 0},
		"the outer one does not": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, asks(d.inner), lull.Once())
		}, 0},
		"nothing fails below": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				lull.Run(ctx, d.inner, succeed)
				return errDown
			})
		}, 0},
		"one after the other": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			for range 3 {
				lull.Run(ctx, d.inner, down)
			}
		}, 0},
		"one after the other, in one attempt": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				for range 3 {
					lull.Run(ctx, d.inner, down)
				}
				return nil
			})
		}, 0},
		"for a retry of another process": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			ctx, in := inbound.With(ctx, 2, 0)
			defer in.End()
			lull.Run(ctx, d.inner, down)
		}, 0},
		"begun for later": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			lull.Run(ctx, d.outer, func(ctx context.Context) error {
				if a, _ := lull.AttemptFrom(ctx); a.Number == 1 {
					return errDown
				}
				background.Go(func() {
					time.Sleep(time.Second)
					lull.Run(context.WithoutCancel(ctx), d.inner, down)
				})
				return nil
			})
			background.Wait()
		}, 0},
		"in a hedge": {lull.Policy{Budget: plenty}, func(ctx context.Context, d deps) {
			h := newDependency(t, hedging(2))
			lull.DoHedged(ctx, h, func(ctx context.Context) (int, error) { return 0, masked(lull.Run(ctx, d.inner, slowly(down))) })
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log eventLog
				retries := lull.Policy{Attempts: 3, Budget: plenty}
				d := deps{
					outer: newDependency(t, retries).Clone("outer"), other: newDependency(t, retries).Clone("other"),
					inner: newDependency(t, c.inner, lull.WithObserver(&log)).Clone("inner"),
				}
				for range 4 {
					c.calls(t.Context(), d)
				}
				synctest.Wait()
				log.events = slices.DeleteFunc(log.events, func(e lull.Event) bool { return e.Kind != event.RetriesInLayers })
				if len(log.events) != c.want {
					t.Fatalf("%d events, want %d: %v", len(log.events), c.want, log.events)
				}
				for i, e := range log.events {
					l := e.Err.(*event.Layers)
					above := []string{"outer", "other"}[i]
					if l.Above.Name != above || l.Below.Name != "inner" || !strings.Contains(l.Above.Off, "Policy.Attempts: 1 of "+above) || !strings.Contains(l.Error(), "Policy.Attempts: 1 of inner") {
						t.Errorf("%+v", l)
					}
				}
			})
		})
	}
}

// slowly is f after a while.
func slowly(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
		return f(ctx)
	}
}
