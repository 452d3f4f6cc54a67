package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue"
)

// Why a lease is lost is in the event, in the words of the broker, beside what the handler returned.
func TestWhyALeaseIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{})}
		b.settle = func(context.Context, *queue.Delivery, queue.Settlement) error {
			return fmt.Errorf("channel closed: %w", queue.ErrLost)
		}
		send(t, b, "hello")
		r := start(t, b, dependency(t, plain(2)), func(context.Context, *queue.Message) error { return lull.Transient(errBlip) }, queue.Config{}).run(t, time.Second)
		events := r.of(queue.EventLeaseLost)
		if len(events) == 0 {
			t.Fatal("no lease was lost")
		}
		if err := events[0].Err; !errors.Is(err, queue.ErrLeaseLost) || !errors.Is(err, errBlip) || !strings.Contains(err.Error(), "channel closed") {
			t.Errorf("%v", err)
		}
	})
}

// Nothing is extended that has been settled, by the heartbeat or by a handler that holds on
// to its message.
func TestNothingIsExtendedAfterItsSettlement(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{}, "hello")}
		var kept *queue.Message
		r := start(t, b, dependency(t, plain(2)), func(ctx context.Context, m *queue.Message) error {
			kept = m
			time.Sleep(12 * time.Second)
			check.Is(t, m.Extend(ctx, time.Hour), nil, "Extend")
			if until, ok := m.LeaseDeadline(); !ok || time.Until(until) != time.Hour {
				t.Errorf("a lease of %v after Extend", time.Until(until))
			}
			time.Sleep(40 * time.Minute) // for which the heartbeat has nothing to do
			return nil
		}, queue.Config{}).run(t, time.Hour)
		check.Equal(t, r.outcomes(), "ack", "outcomes")
		check.Equal(t, b.extends.Load(), 2, "extended") // by the first beat, and Extend
		check.Is(t, kept.Extend(t.Context(), time.Minute), queue.ErrLeaseLost, "Extend after the end")
		check.Equal(t, b.extends.Load(), 2, "extended after the end")
	})
}

// More than was asked for is handled like the rest, when there is room.
func TestMoreThanWasAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{})}
		b.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
			return b.MemoryBroker.Receive(ctx, queue.Want{Max: w.Max + 4, Lease: w.Lease})
		}
		send(t, b, "1", "2", "3", "4", "5", "6", "7", "8")
		var now, most atomic.Int64
		r := start(t, b, dependency(t, plain(2)), func(context.Context, *queue.Message) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return nil
		}, queue.Config{Concurrency: 2}).run(t, 10*time.Second)
		check.Equal(t, r.outcomes(), "ack, ack, ack, ack, ack, ack, ack, ack", "outcomes")
		check.Equal(t, most.Load(), 2, "at a time")
	})
}

// A message that comes after Stop is given back, where that is free.
func TestWhatComesLate(t *testing.T) {
	for counted, want := range map[bool]string{false: "defer", true: "ack"} {
		bubble(t, func(t *testing.T) {
			b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{CountDefers: counted})}
			b.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
				<-ctx.Done()
				return b.MemoryBroker.Receive(context.WithoutCancel(ctx), w)
			}
			send(t, b, "hello")
			r := start(t, b, dependency(t, plain(2)), func(context.Context, *queue.Message) error { return nil }, queue.Config{})
			synctest.Wait()
			r.stop(t)
			check.Equal(t, r.outcomes(), want, "outcomes")
		})
	}
}

// A broker that gives nothing at once is not asked in a loop.
func TestNothingAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{})}
		b.receive = func(context.Context, queue.Want) ([]*queue.Delivery, error) { return nil, nil }
		start(t, b, dependency(t, plain(2)), func(context.Context, *queue.Message) error { return nil }, queue.Config{}).run(t, time.Second)
		if n := b.receives.Load(); n > 101 {
			t.Errorf("%d calls in a second", n)
		}
	})
}

// The breaker learns of every attempt that failed, also when a retry of it was granted.
func TestBreakerLearnsOfWhatIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(100) // with a budget for all
		p.Breaker = breaker.Config{Consecutive: 5, ConsecutiveFor: -1, OpenFor: time.Hour}
		d := dependency(t, p)
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		n := 0
		r := start(t, m, d, func(context.Context, *queue.Message) error {
			n++
			return lull.Transient(errBlip)
		}, queue.Config{})
		time.Sleep(10 * time.Minute)
		check.Equal(t, d.Breaker().State(d.Now()), breaker.Open, "state")
		r.stop(t)
		check.Equal(t, n, 5, "attempts until it is open")
	})
}

// A Pauser is called once for a pause, and again when that is over, or when it failed.
func TestPauser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &pausing{broker: broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{})}}
		var end atomic.Pointer[time.Time]
		var failing atomic.Bool
		b.pause = func(u time.Time) error {
			if failing.Load() {
				return errBlip
			}
			end.Store(&u)
			return nil
		}
		p := plain(2)
		p.Breaker = breaker.Config{Consecutive: 1, ConsecutiveFor: -1, OpenFor: 10 * time.Second}
		d := dependency(t, p)
		r := start(t, b, d, func(context.Context, *queue.Message) error { return lull.Transient(errBlip) }, queue.Config{Concurrency: 1})
		send(t, b, "a", "b")
		time.Sleep(4 * time.Second)
		check.Equal(t, b.pauses.Load(), 1, "pauses")
		// Jitter of the breaker's open time: 5 to 15 s.
		until := *end.Load()
		if left := time.Until(until); left < time.Second || left > 12*time.Second {
			t.Errorf("paused for another %v", left)
		}
		received := b.receives.Load()
		time.Sleep(time.Until(until) - time.Millisecond)
		check.Equal(t, b.receives.Load(), received, "fetched in the meantime")
		check.Equal(t, b.pauses.Load(), 1, "pauses")
		time.Sleep(time.Minute)
		if n := b.pauses.Load(); n < 2 || n > 10 {
			t.Errorf("%d pauses", n)
		}

		// Forced open: nobody knows until when.
		d.Breaker().ForceOpen(d.Now())
		time.Sleep(time.Second)
		before := b.pauses.Load()
		time.Sleep(time.Minute)
		if n := b.pauses.Load() - before; n < 1 || n > 8 {
			t.Errorf("%d pauses in a minute of which nobody knows the end", n)
		}
		if left := time.Until(*end.Load()); left <= 0 {
			t.Errorf("the pause ended %v ago", -left)
		}

		failing.Store(true)
		before = b.pauses.Load()
		time.Sleep(time.Minute)
		if n := b.pauses.Load() - before; n < 100 || n > 250 {
			t.Errorf("%d calls in a minute of a Pause that fails", n)
		}
		began := time.Now()
		r.stop(t) // while it is paused
		check.Equal(t, time.Since(began), 0, "stopped after")
	})
}

// After Run has returned nothing more is asked of the broker, also not by a settlement
// under way.
func TestNothingAfterRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{})}
		b.settle = func(ctx context.Context, _ *queue.Delivery, _ queue.Settlement) error {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			return errBlip
		}
		send(t, b, "settles", "hangs")
		release := make(chan struct{})
		r := start(t, b, dependency(t, plain(2)), func(ctx context.Context, m *queue.Message) error {
			if string(m.Body) == "hangs" {
				<-release
			}
			return nil
		}, queue.Config{Drain: -1, Lease: time.Hour})
		time.Sleep(time.Second)
		r.cancel()
		check.Is(t, <-r.done, queue.ErrUndrained, "Run")
		synctest.Wait()
		settles, extends := b.settles.Load(), b.extends.Load()
		check.Equal(t, r.InFlight(), 1, "in flight") // the one that hangs
		time.Sleep(2 * time.Hour)
		close(release)
		time.Sleep(time.Hour)
		check.Equal(t, b.settles.Load()-settles, 0, "settlements after Run")
		check.Equal(t, b.extends.Load()-extends, 0, "extensions after Run")
		check.Equal(t, r.InFlight(), 0, "in flight")
		check.Equal(t, r.Counts(), queue.Counts{SettleFailed: 1, LeaseLost: 1}, "of the one that hung")
	})
}

// A lease that could not be extended once or twice is extended in time.
func TestExtendIsMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, fails, _ := unreachable(memory(t, queue.MemoryBrokerConfig{}, "hello"))
		r := start(t, b, dependency(t, plain(3)), func(ctx context.Context, m *queue.Message) error {
			select {
			case <-time.After(50 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, queue.Config{})
		for range 2 {
			time.Sleep(9 * time.Second)
			fails.Store(true)
			time.Sleep(7 * time.Second) // fails after 10 s and after 15
			fails.Store(false)
		}
		time.Sleep(time.Minute)
		check.Equal(t, r.outcomes(), "ack", "outcomes")
		r.stop(t)
	})
}

// A wait that is longer than Config.QuickWait is the broker's.
func TestQuickWait(t *testing.T) {
	for _, c := range []struct {
		wait, most time.Duration
		here       int64
	}{
		{time.Second, 0, 2}, {1100 * time.Millisecond, 0, 0}, {time.Second, 999 * time.Millisecond, 0}, {2 * time.Second, 2 * time.Second, 2},
	} {
		bubble(t, func(t *testing.T) {
			p := plain(2)
			p.Backoff.Base = c.wait
			m := memory(t, queue.MemoryBrokerConfig{}, "hello")
			fail := func(context.Context, *queue.Message) error { return lull.Transient(errBlip) }
			r := start(t, m, dependency(t, p), fail, queue.Config{Quick: 1, QuickWait: c.most}).run(t, time.Minute)
			check.Equal(t, r.Counts().RetriedHere, c.here, "%+v: runs here", c)
			check.Equal(t, r.Counts().DeadLettered, 1, "dead letters")
		})
	}
}

// While the breaker is open, what waits in the queue is left there: one message at a time is let through as a probe,
// which is no attempt where deferrals are free.
func TestOnlyProbesAreFetched(t *testing.T) {
	for _, counted := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{CountDefers: counted})
			for i := range 100 {
				send(t, m, fmt.Sprint(i))
			}
			p := queue.Policy()
			p.Attempts = 1000
			var runs, now atomic.Int64
			var open atomic.Bool
			r := start(t, m, dependency(t, p), func(context.Context, *queue.Message) error {
				runs.Add(1)
				if n := now.Add(1); open.Load() && n > 1 {
					t.Errorf("%d at a time through an open breaker", n)
				}
				defer now.Add(-1)
				time.Sleep(50 * time.Millisecond)
				return lull.Transient(errBlip)
			}, queue.Config{Concurrency: 8})
			for r.Counts().Paused == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(time.Second) // those under way end
			open.Store(true)
			before, ran := r.Counts(), runs.Load()
			time.Sleep(10 * time.Minute)
			after, probes := r.Counts(), runs.Load()-ran
			r.stop(t)
			if n := after.Deferred - before.Deferred - probes; !counted && n > 10 {
				t.Errorf("%d messages were fetched and given back; %+v", n, after)
			}
			if probes < 10 || probes > 60 {
				t.Errorf("%d probes in 10 minutes", probes)
			}
			if n := after.Retried - before.Retried; !counted && n != 0 {
				t.Errorf("%d probes were attempts", n)
			}
			check.Equal(t, fmt.Sprint(after.Paused, after.Resumed), "1 0", "pauses, and ends of them")
		})
	}
}

func TestCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "ack", "retry", "defer", "dead", "drop")
		p := plain(2)
		p.Backoff.Base = 10 * time.Millisecond
		deferred := false
		r := start(t, m, dependency(t, p), func(_ context.Context, m *queue.Message) error {
			switch string(m.Body) {
			case "retry":
				if m.Attempt == 1 {
					return lull.Transient(errBlip)
				}
			case "defer":
				if !deferred {
					deferred = true
					return queue.DeferFor(nil, time.Second)
				}
			case "dead":
				return lull.Permanent(errBlip)
			case "drop":
				return queue.DropMessage(nil)
			}
			return nil
		}, queue.Config{Quick: 1}).run(t, time.Minute)
		check.Equal(t, r.Counts(), queue.Counts{Acked: 3, Retried: 1, Deferred: 1, DeadLettered: 1, Dropped: 1, RetriedHere: 1}, "counts")
	})
}

func TestNew(t *testing.T) {
	m := memory(t, queue.MemoryBrokerConfig{})
	d := dependency(t, plain(2))
	h := func(context.Context, *queue.Message) error { return nil }
	hedged := plain(0)
	hedged.Hedge.Attempts = 2
	for want, f := range map[string]func() error{
		"needs a name":       func() error { _, err := queue.New("", m, d, h, queue.Config{}); return err },
		"needs a broker":     func() error { _, err := queue.New("q", nil, d, h, queue.Config{}); return err },
		"needs a dependency": func() error { _, err := queue.New("q", m, nil, h, queue.Config{}); return err },
		"needs a handler":    func() error { _, err := queue.New("q", m, d, nil, queue.Config{}); return err },
		"Batch":              func() error { _, err := queue.New("q", m, d, h, queue.Config{Batch: -1}); return err },
		"Hedge.Attempts":     func() error { _, err := queue.New("q", m, dependency(t, hedged), h, queue.Config{}); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
	if _, err := queue.New("q", m, d, h, queue.Config{}, nil, queue.WithClassifier(nil), queue.WithObserver(nil)); err != nil {
		t.Errorf("options that are nil: %v", err)
	}
}

// A queue in memory is bounded. Its error when it is full is transient.
func TestMemoryIsFull(t *testing.T) {
	m := memory(t, queue.MemoryBrokerConfig{Limit: 2}, "1", "2")
	err := m.Send(t.Context(), queue.Outgoing{})
	if !errors.Is(err, queue.ErrFull) || lull.Classify(err).Kind != lull.KindTransient {
		t.Errorf("%v", err)
	}
	if _, err := queue.NewMemoryBroker(queue.MemoryBrokerConfig{Limit: -1}); err == nil {
		t.Error("a limit of -1")
	}
}

// Errors of calls that were made with lull inside the handler.
func TestClassify(t *testing.T) {
	inner := func(r lull.Reason, v lull.Verdict, attempts int) error {
		return fmt.Errorf("order 1: %w", &lull.Error{Reason: r, Verdict: v, Attempts: attempts, Last: io.EOF})
	}
	for _, c := range []struct {
		err  error
		kind engine.VerdictKind
		code string
	}{
		{inner(engine.AttemptsExhausted, lull.Verdict{Kind: lull.KindTransient}, 3), lull.KindTransient, "attempts_exhausted"},
		{inner(engine.AttemptsExhausted, lull.Verdict{Kind: lull.KindRateLimited}, 3), lull.KindRateLimited, "attempts_exhausted"},
		{inner(engine.BudgetExhausted, lull.Verdict{}, 1), lull.KindTransient, "budget_exhausted"},
		{inner(engine.CircuitOpen, lull.Verdict{}, 0), lull.KindTransient, "circuit_open"},
		{inner(engine.Limited, lull.Verdict{}, 0), lull.KindTransient, "limited"},
		{inner(engine.Deadline, lull.Verdict{}, 1), lull.KindTransient, engine.CodeTimeout},
		{inner(engine.Unanswered, lull.Verdict{}, 1), lull.KindTransient, engine.CodeTimeout},
		{inner(engine.HintTooLong, lull.Verdict{After: time.Minute}, 1), lull.KindRateLimited, "hint_too_long"},
		{inner(engine.Overloaded, lull.Verdict{}, 1), lull.KindOverloaded, engine.Overloaded.String()},
		{inner(engine.Canceled, lull.Verdict{}, 1), lull.KindUnclassified, "canceled"},
		{inner(engine.NotIdempotent, lull.Verdict{Kind: lull.KindTransient}, 1), lull.KindTransient, "not_idempotent"},
		{inner(engine.NotReplayable, lull.Verdict{Kind: lull.KindTransient}, 1), lull.KindTransient, "not_replayable"},
		{inner(engine.Permanent, lull.Verdict{}, 1), lull.KindUnclassified, engine.CodeRetriedBelow},
		{inner(engine.Permanent, lull.Verdict{Kind: lull.KindPermanent, NeverSent: true}, 1), lull.KindUnclassified, engine.CodeRetriedBelow},
		{inner(engine.Permanent, lull.Verdict{Kind: lull.KindPermanent}, 1), lull.KindPermanent, engine.CodeRetriedBelow},
		{lull.Transient(inner(engine.Permanent, lull.Verdict{}, 1)), lull.KindTransient, "transient"},
		{errBlip, lull.KindUnclassified, engine.CodeUnclassified},
		{context.DeadlineExceeded, lull.KindTransient, engine.CodeTimeout},
	} {
		v := queue.Classify(c.err)
		if v.Kind != c.kind || v.Code != c.code {
			t.Errorf("%v: %v %q, want %v %q", c.err, v.Kind, v.Code, c.kind, c.code)
		}
	}
	check.Equal(t, queue.Classify(inner(engine.HintTooLong, lull.Verdict{After: time.Minute}, 1)).After, time.Minute, "the hint")
	for attempts, want := range []bool{true, false, false} { // one that ended before its first attempt has sent nothing
		check.Equal(t, queue.Classify(inner(engine.CircuitOpen, lull.Verdict{}, attempts)).NeverSent, want, "%d attempts: never sent", attempts)
	}
}

// Names are what files and labels have.
func TestNames(t *testing.T) {
	check.Equal(t, fmt.Sprint(queue.Ack, queue.Retry, queue.Defer, queue.DeadLetter, queue.Drop, queue.MessageOutcome(0), queue.MessageOutcome(9)), "ack retry defer dead-letter drop none outcome(9)", "outcomes")
	check.Equal(t, fmt.Sprint(queue.Unordered, queue.PerGroup, queue.Total, queue.Order(9)), "unordered per-group total order(9)", "orders")
	check.Equal(t, fmt.Sprint(queue.EventSettled, queue.EventResumed, queue.EventKind(99)), "settled resumed event(99)", "events")
}

// When Run has returned nothing of it is left: a goroutine that still waited for something
// would be found by the end of the bubble.
func TestNoGoroutineIsLeft(t *testing.T) {
	for name, c := range map[string]queue.MemoryBrokerConfig{"extended": {}, "fixed": {FixedLeases: true}, "counted": {CountDefers: true}} {
		subtest(t, name, func(t *testing.T) {
			m := memory(t, c, "ack", "retry", "defer", "dead", "slow", "panic")
			p := queue.Policy()
			p.Limit.InFlight, p.Limit.MaxWait = 2, time.Hour
			d := dependency(t, p)
			r := start(t, m, d, func(ctx context.Context, m *queue.Message) error {
				switch string(m.Body) {
				case "retry":
					return lull.Transient(errBlip)
				case "defer":
					return queue.DeferFor(nil, time.Minute)
				case "dead":
					return errBlip
				case "slow":
					<-ctx.Done()
					return ctx.Err()
				case "panic":
					panic("x")
				}
				return nil
			}, queue.Config{Quick: 2, Drain: time.Second})
			time.Sleep(10 * time.Second)
			d.Breaker().ForceOpen(d.Now())
			time.Sleep(10 * time.Second)
			r.stop(t)
			check.Equal(t, r.InFlight(), 0, "in flight")
		})
	}
}
