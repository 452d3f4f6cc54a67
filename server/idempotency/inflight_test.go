package idempotency_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/server/idempotency"
)

// begin has h work on req in a goroutine; the result comes when the handler is let go.
func begin(t testing.TB, h http.Handler, req *http.Request) <-chan result {
	done := make(chan result, 1)
	go func() { done <- send(t, h, req) }()
	synctest.Wait()
	return done
}

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, idempotency.Config{RetryAfter: time.Hour})
		c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
			time.Sleep(9 * time.Second)
			w.Write([]byte("done"))
		}}
		h := r.m.Wrap(c)
		first := begin(t, h, request("k"))
		time.Sleep(5*time.Second + time.Millisecond)
		got := send(t, h, request("k"))
		got.is(t, 409, "in-flight")
		// 25 s less 1 ms are left of a lease of 30 s.
		check.Equal(t, got.header.Get("Retry-After"), "25", "Retry-After")
		check.Equal(t, got.header.Get("X-Should-Retry"), "true", "X-Should-Retry")
		// 422 wins over 409.
		send(t, h, requestOf("POST", "/pay", "k", "101")).is(t, 422, "key-reused")
		(<-first).ran(t, 200, "done")
		send(t, h, request("k")).replays(t, 200, "done")
		c.times(t, 1)
		r.saw("refused-in-flight", "refused-reused", "ran", "replayed")
	})
}

// By default nobody is asked to wait for a whole lease: most handlers are faster.
func TestRetryAfterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRig(t, nil, idempotency.Config{}).m.Wrap(&counter{do: func(int, http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }})
		first := begin(t, h, request("k"))
		check.Equal(t, send(t, h, request("k")).header.Get("Retry-After"), "2", "Retry-After")
		<-first
	})
}

// The lease lasts as long as the handler does, not the other way round.
func TestLeaseIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Minute)
			check.Equal(t, r.Context().Err(), nil, "r.Context().Err()")
			w.Write([]byte("slow"))
		}}
		h := newRig(t, nil, idempotency.Config{Resume: true, Retention: time.Minute}).m.Wrap(c)
		first := begin(t, h, request("k"))
		for range 59 {
			time.Sleep(10 * time.Second)
			send(t, h, request("k")).is(t, 409, "in-flight")
		}
		(<-first).ran(t, 200, "slow")
		send(t, h, request("k")).replays(t, 200, "slow")
		time.Sleep(59 * time.Second)
		send(t, h, request("k")).replays(t, 200, "slow")
		time.Sleep(time.Second) // retention counts from the end
		go send(t, h, request("k"))
		synctest.Wait()
		c.times(t, 2)
		time.Sleep(time.Hour)
	})
}

// cutOff is a store that can be reached, but not to extend leases.
func cutOff(s idempotency.Store) *faulty {
	f := newFaulty(s)
	f.fail(f.before, "Extend", hangs)
	return f
}

// An owner that is cut off from the store, and comes back late: its successor was answered
// that the outcome is unknown, and the late owner cannot overwrite what that made.
func TestLateOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryStoreConfig{})
		cut := cutOff(store)
		config := idempotency.Config{Resume: true}
		var causes []error
		late := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done() // a good handler would stop here
			causes = append(causes, context.Cause(r.Context()))
			time.Sleep(10 * time.Second)
			w.Write([]byte("late"))
		}}
		old := newRig(t, cut, config)
		first := begin(t, old.m.Wrap(late), request("k"))

		fresh := newRig(t, store, config)
		var resumed []bool
		next := fresh.m.Wrap(&counter{do: func(n int, w http.ResponseWriter, r *http.Request) {
			resumed = append(resumed, idempotency.KeyedRequestFrom(r.Context()).Resumed)
			w.Write([]byte("successor"))
		}})
		time.Sleep(29 * time.Second)
		send(t, next, request("k")).is(t, 409, "in-flight")
		time.Sleep(2 * time.Second)
		send(t, next, request("k")).ran(t, 200, "successor")
		if len(resumed) != 1 || !resumed[0] {
			t.Errorf("resumed: %v, want one run that is told so", resumed)
		}
		(<-first).ran(t, 200, "late") // its own client hears the truth
		send(t, next, request("k")).replays(t, 200, "successor")
		if len(causes) != 1 || causes[0] != idempotency.ErrLeaseLost {
			t.Errorf("the late owner's context ended with %v, want ErrLeaseLost", causes)
		}
		old.saw("fenced")
	})
}

// If the store reports that another has taken over, the handler's context ends at once.
func TestFencedOwnerIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory(t, idempotency.MemoryStoreConfig{})
		cut := cutOff(store)
		r := newRig(t, cut, idempotency.Config{})
		var cause error
		var at time.Duration
		began := time.Now()
		h := r.m.Wrap(&counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
				cause, at = context.Cause(r.Context()), time.Since(began)
			case <-time.After(time.Hour):
			}
		}})
		first := begin(t, h, request("k"))
		time.Sleep(35 * time.Second)
		// Nobody who only asks can take over, so the first one is left in peace.
		send(t, newRig(t, store, idempotency.Config{}).m.Wrap(&counter{}), request("k")).is(t, 409, "outcome-unknown")
		// Another, with the same store, is configured to resume.
		send(t, newRig(t, store, idempotency.Config{Resume: true}).m.Wrap(&counter{}), request("k")).ran(t, 201, "receipt 1")
		cut.fail(cut.before, "Extend", nil)
		<-first
		if cause != idempotency.ErrFenced || at > 51*time.Second {
			t.Errorf("the context of an owner that was fenced ended with %v after %v, want ErrFenced at the next extension", cause, at)
		}
		r.saw("fenced")
	})
}

// The store is away for less than a lease, long after the handler has begun: nothing is
// lost.
func TestShortOutageDoesNotStopTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
		h := newRig(t, cut, idempotency.Config{Resume: true}).m.Wrap(&counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
			time.Sleep(95 * time.Second)
			cut.fail(cut.before, "Extend", hangs)
			time.Sleep(18 * time.Second)
			cut.fail(cut.before, "Extend", nil)
			time.Sleep(time.Minute)
			check.Equal(t, context.Cause(r.Context()), nil, "why the handler was stopped")
		}})
		first := begin(t, h, request("k"))
		for range 16 {
			time.Sleep(10 * time.Second)
			send(t, h, request("k")).is(t, 409, "in-flight")
		}
		(<-first).ran(t, 200, "")
	})
}

// A lease is extended every third of its length, and every sixth while that fails. It runs from the moment when it is asked for,
// and so does the time until it is extended again.
func TestWhenALeaseIsExtended(t *testing.T) {
	for name, x := range map[string]struct {
		meets fault
		works time.Duration
		want  int
	}{
		"at once": {nil, 29 * time.Second, 2},                                                                     // after 10 s and 20
		"fails":   {down, 29 * time.Second, 4},                                                                    // after 10 s, 15, 20 and 25
		"slow":    {func(context.Context) error { time.Sleep(4 * time.Second); return nil }, 39 * time.Second, 3}, // begun after 10 s, 20 and 30
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newFaulty(newMemory(t, idempotency.MemoryStoreConfig{}))
			store.fail(store.before, "Extend", x.meets)
			h := newRig(t, store, idempotency.Config{}).m.Wrap(&counter{do: func(int, http.ResponseWriter, *http.Request) { time.Sleep(x.works) }})
			send(t, h, request("k"))
			check.Equal(t, store.called("Extend"), x.want, "%s: extensions in %v of a lease of 30 s", name, x.works)
		})
	}
}

// Without Resume nobody takes over: an owner that was cut off for longer than its lease
// completes as usual.
func TestSlowOwnerCompletesAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := cutOff(newMemory(t, idempotency.MemoryStoreConfig{}))
		c := &counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute)
			check.Equal(t, r.Context().Err(), nil, "r.Context().Err()")
			w.Write([]byte("slow"))
		}}
		h := newRig(t, cut, idempotency.Config{}).m.Wrap(c)
		first := begin(t, h, request("k"))
		time.Sleep(31 * time.Second)
		send(t, h, request("k")).is(t, 409, "outcome-unknown")
		(<-first).ran(t, 200, "slow")
		send(t, h, request("k")).replays(t, 200, "slow")
		c.times(t, 1)
	})
}

func TestFollowClient(t *testing.T) {
	for _, follow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			h := newRig(t, nil, idempotency.Config{FollowClient: follow}).m.Wrap(&counter{do: func(_ int, w http.ResponseWriter, r *http.Request) {
				select {
				case <-r.Context().Done():
					ended = true
				case <-time.After(time.Second):
				}
				w.Write([]byte("done"))
			}})
			ctx, cancel := context.WithCancel(context.Background())
			first := begin(t, h, request("k").WithContext(ctx))
			cancel()
			<-first
			check.Equal(t, ended, follow, "FollowClient %v: the handler's context ended", follow)
			// The outcome is stored either way.
			send(t, h, request("k")).replays(t, 200, "done")

			// A deadline is the server's own, and holds either way.
			ctx, cancel = context.WithTimeout(context.Background(), time.Second/2)
			defer cancel()
			ended = false
			<-begin(t, h, request("l").WithContext(ctx))
			if !ended {
				t.Errorf("FollowClient %v: the deadline of the request does not reach the handler", follow)
			}
		})
	}
}
