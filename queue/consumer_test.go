package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
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
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/throttle"
)

// An event has how long the handler ran, over all tries of its delivery.
func TestElapsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		r := start(t, m, dependency(t, plain(2)), func(_ context.Context, m *queue.Message) error {
			time.Sleep(2 * time.Second)
			if m.Try == 1 {
				return lull.Transient(errBlip)
			}
			return nil
		}, queue.Config{Quick: 1}).run(t, time.Minute)
		for kind, want := range map[queue.EventKind]time.Duration{queue.EventRetriedHere: 2 * time.Second, queue.EventSettled: 4 * time.Second} {
			for _, e := range r.of(kind) {
				check.Equal(t, e.Elapsed, want, "%v: elapsed", kind)
			}
		}
	})
}

// What the handler returns decides, at each attempt.
func TestOutcomes(t *testing.T) {
	blip := func(*queue.Message) error { return lull.Transient(errBlip) }
	unknown := func(*queue.Message) error { return errBlip }
	for _, c := range []struct {
		name   string
		policy lull.Policy
		err    func(m *queue.Message) error
		want   string
		reason string // of the dead letter
		code   string
	}{
		{"nil", plain(3), func(*queue.Message) error { return nil }, "ack", "", ""},
		{"transient once", plain(3), func(m *queue.Message) error {
			if m.Attempt == 1 {
				return lull.Transient(errBlip)
			}
			return nil
		}, "retry 1s, ack", "", ""},
		{"transient for ever", plain(3), blip,
			"retry 1s, retry 1s, dead-letter attempts_exhausted", "attempts_exhausted", "transient"},
		{"no retries", plain(1), blip,
			"dead-letter attempts_exhausted", "attempts_exhausted", "transient"},
		{"permanent", plain(3), func(*queue.Message) error { return lull.Permanent(errBlip) }, "dead-letter permanent", "permanent", "permanent"},
		{"unknown", plain(3), unknown, "retry 1s, retry 1s, dead-letter attempts_exhausted", "attempts_exhausted", "unclassified"},
		{"a panic, until the deadline", func() lull.Policy {
			p := plain(9)
			p.Deadline, p.AttemptTimeout = 2500*time.Millisecond, time.Second
			return p
		}(), func(*queue.Message) error { panic("a bug") }, "retry 1s, retry 1s, dead-letter deadline", "deadline", "panicked"},
		{"said", plain(3), func(*queue.Message) error { return queue.DeadLetterAs("schema", errBlip) }, "dead-letter schema", "schema", "dead-letter"},
		{"said, wrapped", plain(3), func(*queue.Message) error { return fmt.Errorf("x: %w", queue.DeadLetterAs("schema", nil)) }, "dead-letter schema", "schema", "dead-letter"},
		{"drop", plain(3), func(*queue.Message) error { return queue.DropMessage(nil) }, "drop", "", ""},
		{"deferred twice, and no attempt", plain(1), func() func(*queue.Message) error {
			n := 0
			return func(m *queue.Message) error {
				if n++; n < 3 {
					return queue.DeferFor(errBlip, time.Duration(n)*time.Minute)
				}
				return nil
			}
		}(), "defer 1m0s, defer 2m0s, ack", "", ""},
		{"deferred for less than nothing", plain(1), func() func(*queue.Message) error {
			n := 0
			return func(m *queue.Message) error {
				if n++; n == 1 {
					return queue.DeferFor(nil, -time.Hour)
				}
				return nil
			}
		}(), "defer, ack", "", ""},
		{"overloaded: as late as ever", plain(3), func(m *queue.Message) error {
			if m.Attempt == 1 {
				return &lull.Error{Reason: engine.Overloaded, Verdict: lull.Verdict{Kind: lull.KindOverloaded}}
			}
			return nil
		}, "retry 750ms, ack", "", ""},
		{"a call that gave up is transient", plain(2), func(*queue.Message) error {
			return &lull.Error{Reason: engine.AttemptsExhausted, Attempts: 3, Last: errBlip}
		}, "retry 1s, dead-letter attempts_exhausted", "attempts_exhausted", "attempts_exhausted"},
		{"a call that failed for good is not", plain(2), func(*queue.Message) error {
			return &lull.Error{Reason: engine.Permanent, Verdict: lull.Verdict{Kind: lull.KindPermanent}, Attempts: 1, Last: errBlip}
		}, "dead-letter permanent", "permanent", engine.CodeRetriedBelow},
		{"a call of whose failure nothing is known", plain(2), func(*queue.Message) error {
			return &lull.Error{Reason: engine.Permanent, Attempts: 1, Last: errBlip}
		}, "retry 1s, dead-letter attempts_exhausted", "attempts_exhausted", engine.CodeRetriedBelow},
		{"a call that must not be repeated", plain(2), func(*queue.Message) error {
			return &lull.Error{Reason: engine.NotIdempotent, Verdict: lull.Verdict{Kind: lull.KindTransient}, Attempts: 1, Last: errBlip}
		}, "retry 1s, dead-letter attempts_exhausted", "attempts_exhausted", "not_idempotent"},
		{"a name that does not exist", plain(2), func(*queue.Message) error {
			return &net.DNSError{Name: "ledger", IsNotFound: true}
		}, "retry 1s, dead-letter attempts_exhausted", "attempts_exhausted", "nxdomain"},
		{"the same, and the handler knows better", plain(2), func(*queue.Message) error {
			return lull.Permanent(&net.DNSError{Name: "ledger", IsNotFound: true})
		}, "dead-letter permanent", "permanent", "nxdomain"},
		{"a hint that is too long", plain(5), func(*queue.Message) error { return lull.RetryAfter(errBlip, 31*time.Second) }, "dead-letter hint_too_long", "hint_too_long", "rate_limited"},
		{"the broker's longest delay", plain(2), blip, "retry 300ms, dead-letter attempts_exhausted", "attempts_exhausted", "transient"},
		{"classified, with a hint that is too long", plain(5), unknown, "dead-letter hint_too_long", "hint_too_long", "busy"},
		{"classified as unknown", plain(1), unknown, "dead-letter attempts_exhausted", "attempts_exhausted", "unclassified"},
		{"classified as unknown, with a code", plain(1), unknown, "dead-letter attempts_exhausted", "attempts_exhausted", "mine"},
	} {
		subtest(t, c.name, func(t *testing.T) {
			var mc queue.MemoryBrokerConfig
			config := queue.Config{Concurrency: 1} // or a message that comes again at once could be handled before its deferral is told
			policy, classify := c.policy, queue.Classify
			switch c.name {
			case "overloaded: as late as ever":
				policy.RateLimitedBase = time.Millisecond
			case "the broker's longest delay":
				mc.MaxDelay = 300 * time.Millisecond
			case "classified, with a hint that is too long":
				classify = func(error) lull.Verdict {
					return lull.Verdict{Kind: lull.KindOverloaded, Code: "busy", After: time.Hour}
				}
			case "classified as unknown":
				classify = func(error) lull.Verdict { return lull.Verdict{} }
			case "classified as unknown, with a code":
				classify = func(error) lull.Verdict { return lull.Verdict{Code: "mine"} }
			}
			m := memory(t, mc, "hello")
			r := start(t, m, dependency(t, policy, lull.WithRand(middle)), func(_ context.Context, m *queue.Message) error { return c.err(m) }, config, queue.WithClassifier(classify)).run(t, time.Hour)
			check.Equal(t, r.outcomes(), c.want, "outcomes")
			check.Equal(t, m.Len(), 0, "messages left")
			dead := letters(t, m)
			if c.reason == "" {
				check.Equal(t, len(dead), 0, "dead letters")
			} else if len(dead) != 1 {
				t.Errorf("%d dead letters, want 1", len(dead))
			} else {
				l := dead[0]
				check.Equal(t, l.Reason, c.reason, "reason")
				check.Equal(t, l.Code, c.code, "code")
				check.Equal(t, l.Attempts, strings.Count(c.want, ",")+1, "attempts")
				check.Equal(t, l.Source, "orders", "source")
				check.Equal(t, l.OriginalID, "1", "original id")
				check.Equal(t, string(l.Body), "hello", "body")
				check.Equal(t, l.Headers["kind"], "test", "header")
			}
		})
	}
}

// A hint is honoured, never cut short, and no attempt comes before it.
func TestHint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(2)
		p.HintLimit = time.Hour
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		var second time.Duration
		began := time.Now()
		start(t, m, dependency(t, p), func(_ context.Context, m *queue.Message) error {
			if m.Attempt == 1 {
				return lull.RetryAfter(errBlip, 20*time.Minute)
			}
			second = time.Since(began)
			return lull.RetryAfter(errBlip, 2*time.Hour) // and this is more than the policy is willing to wait
		}, queue.Config{}).run(t, 3*time.Hour)
		if second < 20*time.Minute || second > 30*time.Minute+time.Second {
			t.Errorf("a hint of 20m was followed after %v", second)
		}
		if dead := letters(t, m); len(dead) != 1 || dead[0].Attempts != 2 {
			t.Errorf("dead letters %+v", dead)
		}
	})
}

// The deadline bounds retries, counted from when the message was first seen; a message
// that comes later gets its attempt.
func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(100)
		p.Deadline = 10 * time.Second
		p.AttemptTimeout = 5 * time.Second
		p.Backoff.Base = 4 * time.Second
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		time.Sleep(time.Hour) // in the queue, where nothing is held against it
		r := start(t, m, dependency(t, p), func(_ context.Context, m *queue.Message) error { return lull.Transient(errBlip) }, queue.Config{})
		time.Sleep(time.Hour)
		synctest.Wait()
		check.Equal(t, r.outcomes(), "retry 4s, retry 4s, dead-letter deadline", "outcomes")
		send(t, m, "again")
		synctest.Wait()
		r.stop(t)
		got := r.outcomes()
		if !strings.HasSuffix(got, "deadline, retry 4s") {
			t.Errorf("outcomes %s", got)
		}
		time.Sleep(time.Hour)
		r = start(t, m, dependency(t, p), func(context.Context, *queue.Message) error { return nil }, queue.Config{}).run(t, time.Second)
		check.Equal(t, r.outcomes(), "ack", "a message that was away past the deadline")
	})
}

func TestPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"panic":  func() { panic(errBlip) },
		"goexit": func() { runtime.Goexit() },
	} {
		subtest(t, name, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{}, "bad", "good")
			p := plain(2)
			p.Breaker = breaker.Config{Consecutive: 1, ConsecutiveFor: -1}
			p.Limit = bulkhead.Config{InFlight: 1} // it leaves its room to the next
			d := dependency(t, p)
			r := start(t, m, d, func(_ context.Context, m *queue.Message) error {
				if string(m.Body) == "bad" {
					f()
				}
				return nil
			}, queue.Config{Concurrency: 1})
			time.Sleep(time.Hour)
			synctest.Wait()
			check.Equal(t, r.outcomes(), "retry 1s, ack, dead-letter panicked", "outcomes")
			check.Equal(t, d.Breaker().State(d.Now()), breaker.Closed, "the breaker") // it learns nothing of bugs
			if dead := letters(t, m); len(dead) != 1 || !strings.Contains(dead[0].Errors[0], "handler") {
				t.Errorf("dead letters %+v", dead)
			} else if name == "panic" && !strings.Contains(strings.Join(dead[0].Errors, "|"), "|blip") {
				t.Errorf("errors %q", dead[0].Errors)
			}
			r.stop(t)
		})
	}
}

// A handler three times longer than its lease keeps its message.
func TestLeaseIsExtended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		runs := 0
		p := plain(3)
		p.AttemptTimeout = lull.NoTimeout
		r := start(t, m, dependency(t, p), func(ctx context.Context, m *queue.Message) error {
			runs++
			until, ok := m.LeaseDeadline()
			if left := time.Until(until); !ok || left != 10*time.Second {
				t.Errorf("the lease has %v", left)
			}
			select {
			case <-time.After(30 * time.Second):
			case <-ctx.Done():
				t.Errorf("the context ended: %v", context.Cause(ctx))
			}
			if until, _ := m.LeaseDeadline(); time.Until(until) < 6*time.Second {
				t.Errorf("the lease has %v left", time.Until(until))
			}
			return nil
		}, queue.Config{Lease: 10 * time.Second}).run(t, time.Minute)
		check.Equal(t, runs, 1, "runs")
		check.Equal(t, r.outcomes(), "ack", "outcomes")
	})
}

// If a lease cannot be extended, the handler's context ends a margin before the lease, and
// the attempt counts as one that timed out.
func TestLeaseIsFixed(t *testing.T) {
	for _, c := range []struct {
		name string
		m    queue.MemoryBrokerConfig
		ends time.Duration
	}{
		{"fixed", queue.MemoryBrokerConfig{FixedLeases: true}, 9 * time.Second},
		{"as far as it goes", queue.MemoryBrokerConfig{MaxLease: 25 * time.Second}, 25*time.Second - 800*time.Millisecond},
	} {
		subtest(t, c.name, func(t *testing.T) {
			m := memory(t, c.m, "hello")
			p := plain(2)
			p.AttemptTimeout = lull.NoTimeout
			var ended []time.Duration
			r := start(t, m, dependency(t, p), func(ctx context.Context, m *queue.Message) error {
				began := time.Now()
				_, known := ctx.Deadline()
				check.Equal(t, known, c.m.FixedLeases, "it is known when the context ends")
				<-ctx.Done()
				ended = append(ended, time.Since(began))
				return ctx.Err()
			}, queue.Config{Lease: 10 * time.Second}).run(t, 5*time.Minute)
			check.Equal(t, r.outcomes(), "retry 1s, dead-letter attempts_exhausted", "outcomes")
			for _, d := range ended {
				if d > c.ends+time.Second || d < c.ends-time.Second {
					t.Errorf("the context ended after %v, want about %v", d, c.ends)
				}
			}
		})
	}
}

// A lease that was extended as far as it goes cannot be extended by its handler either.
func TestExtendAsFarAsItGoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{MaxLease: 25 * time.Second}, "hello")
		r := start(t, m, dependency(t, plain(2)), func(ctx context.Context, m *queue.Message) error {
			time.Sleep(5 * time.Second)
			check.Is(t, m.Extend(ctx, time.Minute), nil, "Extend after 5 s of 25")
			time.Sleep(18 * time.Second)
			if err := m.Extend(ctx, time.Minute); err == nil {
				t.Error("after 23 s of 25: there is nothing to extend")
			}
			return nil
		}, queue.Config{Lease: 10 * time.Second}).run(t, time.Minute)
		check.Equal(t, r.outcomes(), "ack", "outcomes")
	})
}

// A lease that became shorter by its extension ends the handler's context in time, too.
func TestLeaseThatGetsShorter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{}, "hello")}
		b.extend = func(ctx context.Context, d *queue.Delivery, _ time.Duration) (time.Time, error) {
			return b.MemoryBroker.Extend(ctx, d, time.Second) // whatever it is asked for
		}
		r := start(t, b, dependency(t, plain(2)), func(ctx context.Context, m *queue.Message) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			if until, _ := m.LeaseDeadline(); !time.Now().Before(until) {
				t.Errorf("the handler's context ended %v after its lease", time.Since(until))
			}
			return nil
		}, queue.Config{Lease: 10 * time.Second}).run(t, time.Minute)
		check.Equal(t, r.outcomes(), "ack", "outcomes")
	})
}

// A lease that cannot be extended in time cancels the handler before it lapses. Nothing is
// settled after it has lapsed.
func TestLeaseIsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, fails, _ := unreachable(memory(t, queue.MemoryBrokerConfig{}, "hello"))
		fails.Store(true)
		runs := 0
		r := start(t, b, dependency(t, plain(3)), func(ctx context.Context, m *queue.Message) error {
			if runs++; runs > 1 {
				check.Equal(t, m.Attempt, 1, "attempt") // nothing was wrong with it, nor did anything crash
				return nil
			}
			began := time.Now()
			<-ctx.Done()
			if d := time.Since(began); d >= 10*time.Second || d < 8*time.Second {
				t.Errorf("cancelled after %v of a lease of 10s", d)
			}
			check.Is(t, context.Cause(ctx), queue.ErrLeaseLost, "cause")
			time.Sleep(5 * time.Second) // it takes its time, and the message has come again
			return lull.Permanent(errBlip)
		}, queue.Config{Lease: 10 * time.Second}).run(t, time.Minute)
		check.Equal(t, r.outcomes(), "defer 1s, ack", "outcomes")
		check.Equal(t, len(r.of(queue.EventLeaseLost)), 1, "lost")
		check.Equal(t, runs, 2, "runs")
		check.Equal(t, b.DeadLetters().Len(), 0, "dead letters")
	})
}

// A settlement that fails is made again until the lease ends.
func TestSettleIsMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, _, fails := unreachable(memory(t, queue.MemoryBrokerConfig{}, "hello"))
		fails.Store(true)
		runs := 0
		r := start(t, b, dependency(t, plain(3)), func(ctx context.Context, m *queue.Message) error { runs++; return nil }, queue.Config{})
		time.Sleep(20 * time.Second)
		fails.Store(false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		check.Equal(t, r.outcomes(), "ack", "outcomes")
		fails.Store(true)
		send(t, b, "second")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		check.Equal(t, len(r.of(queue.EventSettleFailed)), 1, "failed")
		fails.Store(false)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		check.Equal(t, runs, 2, "runs") // this process knows that it was handled
		check.Equal(t, r.outcomes(), "ack, ack", "outcomes")
		check.Equal(t, b.Len(), 0, "left")
		r.stop(t)
	})
}

// Quick retries are made here, within the lease, and are no attempts.
func TestQuick(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(2)
		p.Backoff.Base = 100 * time.Millisecond
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		var seen []string
		r := start(t, m, dependency(t, p), func(ctx context.Context, m *queue.Message) error {
			seen = append(seen, fmt.Sprint(m.Attempt, ".", m.Try))
			return lull.Transient(errBlip)
		}, queue.Config{Quick: 2}).run(t, time.Minute)
		check.Equal(t, strings.Join(seen, " "), "1.1 1.2 1.3 2.1 2.2 2.3", "runs")
		check.Equal(t, r.outcomes(), "retry 100ms, dead-letter attempts_exhausted", "outcomes")
		check.Equal(t, len(r.of(queue.EventRetriedHere)), 4, "retried here")
	})
}

// No quick retry begins if the lease may end before it.
func TestQuickOnlyWithinTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(2)
		p.AttemptTimeout = 4 * time.Second
		p.Backoff.Base = 100 * time.Millisecond
		m := memory(t, queue.MemoryBrokerConfig{FixedLeases: true}, "hello")
		var seen []string
		start(t, m, dependency(t, p), func(ctx context.Context, m *queue.Message) error {
			seen = append(seen, fmt.Sprint(m.Attempt, ".", m.Try))
			time.Sleep(3 * time.Second)
			return lull.Transient(errBlip)
		}, queue.Config{Quick: 5, Lease: 10 * time.Second}).run(t, time.Minute)
		check.Equal(t, strings.Join(seen, " "), "1.1 1.2 2.1 2.2", "runs") // a third would have 2.8 s of the 4 that it may take
	})
}

// An outage opens the breaker; then nothing is fetched but probes, and when it is over all is
// done without a message lost to attempts that could not succeed.
func TestBreakerPausesTheConsumer(t *testing.T) {
	for _, counted := range []bool{false, true} {
		subtest(t, fmt.Sprint("counted deferrals ", counted), func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{CountDefers: counted})
			for i := range 200 {
				send(t, m, fmt.Sprint(i))
			}
			p := queue.Policy()
			p.Attempts = 4
			d := dependency(t, p)
			var down atomic.Bool
			down.Store(true)
			var attempts atomic.Int64
			r := start(t, m, d, func(_ context.Context, m *queue.Message) error {
				time.Sleep(10 * time.Millisecond)
				if down.Load() {
					attempts.Add(1)
					return lull.Transient(errBlip)
				}
				return nil
			}, queue.Config{Concurrency: 2})
			time.Sleep(time.Minute)
			during := attempts.Load()
			// Two seconds until it opens, two at a time, each 10 ms; then a probe after
			// 1, 2, 4, 8, 16, 30 s or so.
			if during > 410+10 {
				t.Errorf("%d attempts in an outage", during)
			}
			check.Equal(t, attempts.Load() < 420, true, "in the second half")
			down.Store(false)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			check.Equal(t, m.Len(), 0, "left")
			check.Equal(t, len(r.of(queue.EventResumed)), 1, "resumed")
			r.stop(t)
			if n := m.DeadLetters().Len(); n > 0 && !counted {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

// A handler that could do nothing, because something that it calls is known to be down.
func TestBreakerInsideTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(2)
		inner := dependency(t, lull.Policy{})
		inner.Breaker().ForceOpen(inner.Now())
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		last := 0
		r := start(t, m, dependency(t, p), func(ctx context.Context, m *queue.Message) error {
			last = m.Attempt
			return lull.Run(ctx, inner, func(context.Context) error { return nil })
		}, queue.Config{})
		time.Sleep(time.Minute)
		inner.Breaker().ForceClosed(inner.Now())
		time.Sleep(time.Minute)
		synctest.Wait()
		check.Equal(t, last, 1, "attempt")
		check.Equal(t, m.Len(), 0, "left")
		check.Equal(t, m.DeadLetters().Len(), 0, "dead letters")
		r.stop(t)
	})
}

// An empty budget loses no message: it comes back after the policy's longest wait.
func TestNoBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(3)
		p.Budget = budget.Config{Stock: 1}
		p.Backoff = backoff.Schedule{Base: time.Second, Cap: 10 * time.Minute, Factor: 100}
		m := memory(t, queue.MemoryBrokerConfig{}, "a", "b")
		r := start(t, m, dependency(t, p, lull.WithRand(middle)), func(ctx context.Context, m *queue.Message) error {
			if m.Attempt == 1 {
				return lull.Transient(errBlip)
			}
			return nil
		}, queue.Config{Concurrency: 1}).run(t, time.Hour)
		check.Equal(t, r.outcomes(), "retry 500ms, retry 1m15s, ack, ack", "outcomes")
	})
}

// The dependency's limit and throttle hold for messages too.
func TestLimit(t *testing.T) {
	for name, limit := range map[string]bulkhead.Config{"in line": {InFlight: 2, MaxWait: time.Minute}, "refused": {InFlight: 2}} {
		subtest(t, name, func(t *testing.T) {
			p := plain(2)
			p.Limit = limit
			m := memory(t, queue.MemoryBrokerConfig{})
			for i := range 20 {
				send(t, m, fmt.Sprint(i))
			}
			var now, most, attempts atomic.Int64
			start(t, m, dependency(t, p), func(ctx context.Context, m *queue.Message) error {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				attempts.Store(max(attempts.Load(), int64(m.Attempt)))
				time.Sleep(time.Second)
				return nil
			}, queue.Config{}).run(t, 10*time.Minute)
			check.Equal(t, most.Load(), 2, "most at a time")
			check.Equal(t, attempts.Load(), 1, "attempts")
			check.Equal(t, m.Len(), 0, "left")
		})
	}
}

func TestThrottle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(1000)
		p.Throttle = throttle.Config{Mode: throttle.Cubic}
		m := memory(t, queue.MemoryBrokerConfig{})
		for i := range 50 {
			send(t, m, fmt.Sprint(i))
		}
		n := 0
		start(t, m, dependency(t, p), func(ctx context.Context, m *queue.Message) error {
			if n++; n%3 == 0 {
				return lull.RetryAfter(errBlip, 0)
			}
			return nil
		}, queue.Config{Concurrency: 1}).run(t, 2*time.Hour)
		check.Equal(t, m.Len(), 0, "left")
		check.Equal(t, m.DeadLetters().Len(), 0, "dead letters")
	})
}

// Concurrency is bounded, and no more is fetched than can be handled.
func TestConcurrency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{})
		for i := range 50 {
			send(t, m, fmt.Sprint(i))
		}
		var now, most atomic.Int64
		var r *running
		started := make(chan struct{})
		r = start(t, m, dependency(t, plain(2)), func(context.Context, *queue.Message) error {
			<-started
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			if n := r.InFlight(); n > 7 {
				t.Errorf("%d in flight", n)
			}
			return nil
		}, queue.Config{Concurrency: 7})
		close(started)
		time.Sleep(7*time.Second + 500*time.Millisecond)
		synctest.Wait()
		check.Equal(t, most.Load(), 7, "most")
		check.Equal(t, m.Len(), 1, "left after 7 rounds")
		r.stop(t)
		check.Equal(t, m.Len(), 0, "left")
	})
}

// A consumer that is told to stop lets handlers end, then ends them. What was not handled
// goes back at once, at the same attempt.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "quick", "slow", "later")
		r := start(t, m, dependency(t, plain(2)), func(ctx context.Context, m *queue.Message) error {
			if string(m.Body) == "quick" {
				time.Sleep(5 * time.Second)
				return ctx.Err()
			}
			<-ctx.Done()
			check.Equal(t, context.Cause(ctx), queue.ErrDraining, "cause")
			return fmt.Errorf("interrupted: %w", ctx.Err())
		}, queue.Config{Concurrency: 2, Drain: 10 * time.Second}).run(t, time.Second)
		check.Equal(t, time.Since(r.began), 11*time.Second, "it ran, with what it waited for handlers")
		check.Equal(t, r.outcomes(), "ack, defer", "outcomes")
		got, err := m.Receive(t.Context(), queue.Want{Max: 10, Lease: time.Minute})
		if err != nil || len(got) != 2 || got[0].Attempt != 1 || got[1].Attempt != 1 {
			t.Errorf("left %v, %v", got, err)
		}
	})
}

func TestHandlerThatDoesNotEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "stuck")
		release := make(chan struct{})
		r := start(t, m, dependency(t, plain(2)), func(ctx context.Context, m *queue.Message) error {
			<-release
			return nil
		}, queue.Config{Drain: -1})
		time.Sleep(time.Second)
		r.cancel()
		check.Is(t, <-r.done, queue.ErrUndrained, "Run")
		time.Sleep(time.Minute)
		got, err := m.Receive(t.Context(), queue.Want{Max: 10, Lease: time.Minute})
		if err != nil || len(got) != 1 || got[0].Attempt != 2 {
			t.Errorf("its message: %v, %v", got, err)
		}
		close(release)
		synctest.Wait()
		check.Equal(t, m.Len(), 1, "out") // nothing was acknowledged any more
	})
}

// moody is m, whose Receive fails while an error is set.
func moody(m *queue.MemoryBroker) (b *broker, fails *atomic.Pointer[error]) {
	b, fails = &broker{MemoryBroker: m}, &atomic.Pointer[error]{}
	fails.Store(&errBlip)
	b.receive = func(ctx context.Context, w queue.Want) ([]*queue.Delivery, error) {
		if err := fails.Load(); err != nil {
			return nil, *err
		}
		return m.Receive(ctx, w)
	}
	return b, fails
}

// After a failed Receive the consumer waits as in its policy, from 50 ms to 10 s.
func TestReceiveWaitsAsThePolicyAsks(t *testing.T) {
	for _, c := range []struct {
		policy backoff.Schedule
		want   []time.Duration
	}{
		{backoff.Schedule{Jitter: backoff.None, Base: 300 * time.Millisecond, Cap: time.Second}, []time.Duration{300e6, 600e6, 1e9, 1e9}},
		{backoff.Schedule{Jitter: backoff.None, Base: 4 * time.Second, Cap: 10 * time.Minute}, []time.Duration{4e9, 8e9, 10e9, 10e9}},
		{backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: time.Minute, Floor: 0}, []time.Duration{10e9, 10e9}},
		{backoff.Schedule{Jitter: backoff.None, Base: time.Minute, Cap: time.Hour, Floor: 30 * time.Second}, []time.Duration{10e9, 10e9}},
		{backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None}, []time.Duration{50e6, 50e6}},
	} {
		bubble(t, func(t *testing.T) {
			b, fails := moody(memory(t, queue.MemoryBrokerConfig{}))
			p := plain(2)
			p.Backoff = c.policy
			r := start(t, b, dependency(t, p), func(context.Context, *queue.Message) error { return nil }, queue.Config{})
			time.Sleep(time.Minute)
			synctest.Wait()
			for i, e := range r.of(queue.EventReceiveFailed)[:len(c.want)] {
				check.Equal(t, e.After, c.want[i], "%+v: wait %d", c.policy, i+1)
			}
			fails.Store(nil)
			send(t, b, "fetched at last")
			time.Sleep(time.Minute)
			fails.Store(&errBlip)
			send(t, b, "for what waits in Receive")
			synctest.Wait()
			failures := r.of(queue.EventReceiveFailed)
			check.Equal(t, failures[len(failures)-1].After, c.want[0], "%+v: the first wait after a success", c.policy)
			r.stop(t)
		})
	}
}

func TestReceiveFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, fails := moody(memory(t, queue.MemoryBrokerConfig{}, "hello"))
		r := start(t, b, dependency(t, plain(2)), func(context.Context, *queue.Message) error { return nil }, queue.Config{})
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := b.receives.Load(); n < 60 || n > 61 { // a second each
			t.Errorf("%d calls in a minute of failures", n)
		}
		check.Equal(t, int64(len(r.of(queue.EventReceiveFailed))), b.receives.Load(), "events")
		fails.Store(nil)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		check.Equal(t, b.Len(), 0, "left")
		gone := lull.Permanent(errors.New("no such queue"))
		fails.Store(&gone)
		send(t, b, "for the receive under way")
		check.Is(t, <-r.done, gone, "Run")
		check.Equal(t, b.Len(), 0, "left")
		if err := r.Run(t.Context()); err == nil {
			t.Error("Run twice")
		}
	})
}

// Calls inside the handler are retried at the first attempt only.
func TestNestedCallsAreNotMultiplied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		inner := dependency(t, plain(3))
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		calls := map[int]int{}
		start(t, m, dependency(t, plain(3)), func(ctx context.Context, m *queue.Message) error {
			return lull.Run(ctx, inner, func(context.Context) error {
				calls[m.Attempt]++
				return lull.Transient(errBlip)
			})
		}, queue.Config{}).run(t, time.Minute)
		check.Equal(t, fmt.Sprint(calls), "map[1:3 2:1 3:1]", "calls")
	})
}
