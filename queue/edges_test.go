package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
)

// What a handler returns when this consumer has ended its context is no failure, whatever it is. Only
// a decision of the handler stands.
func TestInterrupted(t *testing.T) {
	transient := func(error) lull.Verdict { return lull.Verdict{Kind: lull.KindTransient} }
	canceled := func(error) lull.Verdict { return lull.Verdict{Kind: engine.KindCanceled} }
	for name, c := range map[string]struct {
		classify func(error) lull.Verdict
		err      func(context.Context) error
		want     string
	}{
		"context.Canceled":   {transient, func(ctx context.Context) error { return ctx.Err() }, "defer"},
		"its cause":          {transient, func(ctx context.Context) error { return context.Cause(ctx) }, "defer"},
		"a lost lease":       {transient, func(context.Context) error { return fmt.Errorf("stopped: %w", queue.ErrLeaseLost) }, "defer"},
		"classified as such": {canceled, func(context.Context) error { return errBlip }, "defer"},
		"another error":      {transient, func(context.Context) error { return errBlip }, "defer"},
		"an unknown one":     {lull.Classify, func(ctx context.Context) error { return fmt.Errorf("charge: %v", ctx.Err()) }, "defer"},
		"a permanent one":    {lull.Classify, func(context.Context) error { return lull.Permanent(errBlip) }, "defer"},
		"a failed call":      {lull.Classify, func(context.Context) error { return &lull.Error{Reason: engine.Permanent, Attempts: 1, Last: errBlip} }, "defer"},
		"a decision":         {transient, func(context.Context) error { return queue.DropMessage(nil) }, "drop"},
	} {
		subtest(t, name, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{}, "hello")
			r := start(t, m, dependency(t, plain(3)), func(ctx context.Context, _ *queue.Message) error {
				<-ctx.Done()
				return c.err(ctx)
			}, queue.Config{Drain: time.Second}, queue.WithClassifier(c.classify)).run(t, time.Second)
			check.Equal(t, r.outcomes(), c.want, "outcomes")
		})
	}
}

// An error like that of an ended context, although nobody has ended the handler's context, is a
// failure like any other.
func TestNotInterrupted(t *testing.T) {
	for _, err := range []error{context.Canceled, queue.ErrDraining, queue.ErrLeaseLost} {
		bubble(t, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{}, "hello")
			r := start(t, m, dependency(t, plain(2)), func(context.Context, *queue.Message) error { return err },
				queue.Config{}, queue.WithClassifier(func(error) lull.Verdict { return lull.Verdict{Kind: lull.KindTransient} })).run(t, time.Minute)
			check.Equal(t, r.outcomes(), "retry 1s, dead-letter attempts_exhausted", "%v", err)
			check.Equal(t, r.of(queue.EventSettled)[0].Code, "", "code") // the classifier named none
		})
	}
}

// A message for which there is no room comes back after the policy's first wait for that, and
// never at once: a consumer does not spin where a policy has no waits.
func TestNoRoomIsAskedForLater(t *testing.T) {
	for _, c := range []struct{ base, min, max time.Duration }{
		{4 * time.Second, 2 * time.Second, 4 * time.Second},
		{time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T) {
			p := plain(3)
			p.Limit = bulkhead.Config{InFlight: 1}
			p.RateLimitedBase = c.base
			p.Breaker = breaker.Config{} // which is closed, and has no effect here
			p.Backoff = backoff.Schedule{Base: c.base, Cap: time.Minute, Jitter: backoff.Equal}
			m := memory(t, queue.MemoryBrokerConfig{}, "a", "b", "c", "d", "e", "f")
			r := start(t, m, dependency(t, p), func(context.Context, *queue.Message) error {
				time.Sleep(5 * time.Millisecond)
				return nil
			}, queue.Config{Concurrency: 6}).run(t, time.Minute)
			deferred := 0
			for _, e := range r.of(queue.EventSettled) {
				if e.Outcome == queue.Defer {
					deferred++
					if e.After < c.min || e.After > c.max {
						t.Errorf("waits of %v: back after %v, want %v to %v", c.base, e.After, c.min, c.max)
					}
				}
			}
			if deferred < 5 {
				t.Errorf("%d messages found no room, want at least 5", deferred)
			}
			check.Equal(t, m.Len(), 0, "left")
		})
	}
}

// A message that waits to be tried again comes back later if the consumer stops meanwhile.
func TestAWaitEndsWithTheConsumer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		runs := 0
		r := start(t, m, dependency(t, plain(2)), func(context.Context, *queue.Message) error {
			runs++
			return lull.Transient(errBlip)
		}, queue.Config{Quick: 3})
		time.Sleep(500 * time.Millisecond) // half of the wait
		r.stop(t)
		check.Equal(t, runs, 1, "runs")
		check.Equal(t, r.outcomes(), "retry 1s", "outcomes")
	})
}

// A consumer that is to stop makes no attempt again, not even without a wait.
func TestNothingIsTriedAgainOnceStopping(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(2)
		p.Backoff = backoff.Schedule{Base: time.Second, Cap: time.Second} // the shortest wait is drawn
		m := memory(t, queue.MemoryBrokerConfig{})
		const n = 64
		for i := range n {
			send(t, m, fmt.Sprint(i))
		}
		var stopped atomic.Bool
		stop := make(chan struct{})
		var late atomic.Int64
		r := start(t, m, dependency(t, p, lull.WithRand(func() uint64 { return 0 })), func(_ context.Context, m *queue.Message) error {
			if stopped.Load() {
				late.Add(1)
			}
			<-stop
			return lull.Transient(errBlip)
		}, queue.Config{Concurrency: n, Quick: 3})
		time.Sleep(time.Second)
		stopped.Store(true)
		r.cancel()
		synctest.Wait()
		close(stop)
		must.Succeed(<-r.done)
		check.Equal(t, late.Load(), 0, "tried again")
		check.Equal(t, r.Counts().RetriedHere, 0, "retried here")
	})
}

// A quick retry does not begin at the deadline of the message: the time left must be longer
// than its wait.
func TestQuickEndsWithTheDeadline(t *testing.T) {
	for took, want := range map[time.Duration]string{7 * time.Second: "1.1 1.2 2.1", 7*time.Second - 1: "1.1 1.2 2.1 2.2"} {
		bubble(t, func(t *testing.T) {
			p := plain(2)
			p.AttemptTimeout, p.Deadline = 10*time.Second, 10*time.Second
			m := memory(t, queue.MemoryBrokerConfig{}, "hello")
			var seen []string
			start(t, m, dependency(t, p), func(_ context.Context, m *queue.Message) error {
				seen = append(seen, fmt.Sprint(m.Attempt, ".", m.Try))
				if m.Attempt == 2 && m.Try == 1 {
					time.Sleep(took) // it began after 2 s
				}
				return lull.Transient(errBlip)
			}, queue.Config{Quick: 1}).run(t, time.Minute)
			check.Equal(t, strings.Join(seen, " "), want, "%v", took)
		})
	}
}

// A broker has a sixth of the lease to extend it.
func TestASlowBrokerExtendsInTime(t *testing.T) {
	for takes, want := range map[time.Duration]string{4900 * time.Millisecond: "ack", 5100 * time.Millisecond: "retry 1s, retry 1s, dead-letter attempts_exhausted"} {
		bubble(t, func(t *testing.T) {
			p := plain(3)
			p.AttemptTimeout = lull.NoTimeout
			b := &broker{MemoryBroker: memory(t, queue.MemoryBrokerConfig{}, "hello")}
			b.extend = func(ctx context.Context, d *queue.Delivery, l time.Duration) (time.Time, error) {
				select {
				case <-time.After(takes):
				case <-ctx.Done():
				}
				return b.MemoryBroker.Extend(ctx, d, l)
			}
			r := start(t, b, dependency(t, p), func(ctx context.Context, _ *queue.Message) error {
				select {
				case <-time.After(5 * time.Minute):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}, queue.Config{Lease: 30 * time.Second}).run(t, 6*time.Minute)
			check.Equal(t, r.outcomes(), want, "%v", takes)
		})
	}
}

// A message that no broker has delivered has no lease.
func TestAMessageMadeByHand(t *testing.T) {
	m := &queue.Message{}
	if end, ok := m.LeaseDeadline(); ok || !end.IsZero() {
		t.Errorf("LeaseDeadline: %v, %v", end, ok)
	}
	check.Is(t, m.Extend(t.Context(), time.Minute), queue.ErrLost, "Extend")
}

// What is on hold is given back before its lease ends, by a margin for the settlement.
func TestWhatIsOnHoldIsGivenBackBeforeItsLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(3)
		p.Limit = bulkhead.Config{InFlight: 1}
		d := dependency(t, p)
		other, step := d.State().Start(d.Now(), engine.Spec{})
		if step.Done {
			t.Fatal(step.Reason)
		}
		other.Attempt(d.Now(), middle) // takes all the room there is
		m := memory(t, queue.MemoryBrokerConfig{FixedLeases: true, CountDefers: true}, "hello")
		var settled []time.Duration
		began := time.Now()
		r := start(t, m, d, func(context.Context, *queue.Message) error { return nil }, queue.Config{Lease: 10 * time.Second},
			queue.WithObserver(func(_ context.Context, e queue.Event) {
				if e.Kind == queue.EventSettled {
					settled = append(settled, time.Since(began))
				}
			}))
		time.Sleep(9500 * time.Millisecond)
		synctest.Wait()
		if len(settled) != 1 || settled[0] != 9*time.Second {
			t.Errorf("given back after %v of a lease of 10s with a margin of 1s", settled)
		}
		other.Abandon(d.Now())
		r.stop(t)
	})
}

// Decided finds a handler's decision in its error, however it is wrapped.
func TestDecided(t *testing.T) {
	for _, c := range []struct {
		err  error
		want queue.MessageOutcome
		ok   bool
	}{
		{queue.DeferFor(nil, time.Second), queue.Defer, true},
		{fmt.Errorf("order 7: %w", queue.DropMessage(errBlip)), queue.Drop, true},
		{queue.DeadLetterAs("schema", nil), queue.DeadLetter, true},
		{errBlip, queue.Ack, false},
		{nil, queue.Ack, false},
	} {
		if got, ok := queue.Decided(c.err); got != c.want || ok != c.ok {
			t.Errorf("%v: %v, %v, want %v, %v", c.err, got, ok, c.want, c.ok)
		}
	}
}

func TestNoDelays(t *testing.T) {
	check.Equal(t, memory(t, queue.MemoryBrokerConfig{MaxDelay: -1}).Capabilities().MaxDelay, 0, "longest delay of a broker without delays")
	check.Equal(t, memory(t, queue.MemoryBrokerConfig{}).Capabilities().MaxDelay, 12*time.Hour, "longest delay, as documented")
}

// Unless it is configured, handlers have the 30 seconds that are documented once Run is to stop.
func TestHandlersHaveHalfAMinuteToEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		r := start(t, m, dependency(t, plain(3)), func(ctx context.Context, _ *queue.Message) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, queue.Config{}).run(t, time.Second)
		check.Equal(t, time.Since(r.began), 31*time.Second, "it ran, with what it waited for handlers")
	})
}

// The ID that a handler sees is the one that the message was sent with first: the envelope's,
// if it has been redriven, and else the broker's.
func TestTheIDOfAMessage(t *testing.T) {
	for original, want := range map[string]string{"": "1", "first": "first"} {
		bubble(t, func(t *testing.T) {
			m := memory(t, queue.MemoryBrokerConfig{})
			h := queue.LetterHeaders(nil, &queue.Envelope{OriginalID: original, Redrives: 2})
			must.Succeed(m.Send(t.Context(), queue.Outgoing{Headers: h}))
			got, redrives := "", 0
			start(t, m, dependency(t, plain(1)), func(_ context.Context, m *queue.Message) error {
				got, redrives = m.ID, m.Redrives
				return nil
			}, queue.Config{}).run(t, time.Second)
			check.Equal(t, got, want, "ID")
			check.Equal(t, redrives, 2, "redrives")
		})
	}
}

// An envelope has the first failure of its message: as the broker kept it; else this one, if
// the message came for the first time; else when it was first handed out, if that is known.
func TestTheFirstFailureInTheEnvelope(t *testing.T) {
	for _, c := range []struct {
		name         string
		attempts     int
		failed, seen bool // what the broker keeps
		want         time.Duration
	}{
		{"kept", 2, true, true, 3 * time.Second},
		{"not kept, at the first attempt", 1, false, true, 3 * time.Second},
		{"not kept, at the second", 2, false, true, 0},
		{"not kept, at the second, never seen", 2, false, false, 7 * time.Second},
	} {
		subtest(t, c.name, func(t *testing.T) {
			began := time.Now()
			b := revised(memory(t, queue.MemoryBrokerConfig{}, "hello"), func(d *queue.Delivery) {
				if !c.failed {
					d.FirstFailed = time.Time{}
				}
				if d.FirstSeen = began; !c.seen {
					d.FirstSeen = time.Time{}
				}
			})
			start(t, b, dependency(t, plain(c.attempts)), func(context.Context, *queue.Message) error {
				time.Sleep(3 * time.Second)
				return lull.Transient(errBlip)
			}, queue.Config{}).run(t, time.Minute)
			all := letters(t, b.MemoryBroker)
			if len(all) != 1 {
				t.Fatalf("%d dead letters", len(all))
			}
			check.Equal(t, all[0].FirstFailure.Sub(began), c.want, "first failure")
			last := time.Duration(4*c.attempts-1) * time.Second
			check.Equal(t, all[0].LastFailure.Sub(began), last, "last failure")
		})
	}
}

// If one try of a message has failed and the next is refused, the message comes back as after a
// failure, and not before it may be tried; a dead letter is not delayed.
func TestRefusedAfterATry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plain(2)
		p.Limit = bulkhead.Config{InFlight: 1}
		p.RateLimitedBase = 4 * time.Second // the wait for room
		m := memory(t, queue.MemoryBrokerConfig{}, "hello")
		d := dependency(t, p, lull.WithRand(middle))
		r := start(t, m, d, func(context.Context, *queue.Message) error { return lull.Transient(errBlip) }, queue.Config{Quick: 1})
		for _, want := range []string{"retry 4s", "retry 4s, dead-letter attempts_exhausted"} {
			time.Sleep(500 * time.Millisecond) // halfway from a try to the next
			other, _ := d.State().Start(d.Now(), engine.Spec{})
			if step := other.Attempt(d.Now(), middle); step.Done || step.Full { // takes all the room there is
				t.Fatalf("%+v", step)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			check.Equal(t, r.outcomes(), want, "outcomes")
			other.Abandon(d.Now())
			time.Sleep(3500 * time.Millisecond)
		}
		r.stop(t)
	})
}

// A message that its handler defers for ever has crashed nobody: it has used up its attempts where
// each delivery is one, and does not end elsewhere.
func TestDeferredForEver(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		for _, free := range []bool{true, false} {
			bubble(t, func(t *testing.T) {
				p := queue.Policy()
				p.Attempts = attempts
				m := memory(t, queue.MemoryBrokerConfig{CountDefers: !free}, "x")
				runs := 0
				start(t, m, dependency(t, p), func(context.Context, *queue.Message) error {
					runs++
					return queue.DeferFor(errors.New("not yet"), time.Minute)
				}, queue.Config{}).run(t, time.Hour)
				reason := ""
				for _, l := range letters(t, m) {
					reason = l.Reason
				}
				switch {
				case free && (reason != "" || runs < 50):
					t.Errorf("Attempts %d, free deferrals: %d runs, then a dead letter: %q", attempts, runs, reason)
				case !free && (reason != "attempts_exhausted" || runs != attempts):
					t.Errorf("Attempts %d, each delivery counts: %d runs, then a dead letter: %q", attempts, runs, reason)
				}
			})
		}
	}
}
