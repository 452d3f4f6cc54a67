package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

func (t *tester) transactions() {
	s, ok := t.s.(idempotency.Transactor)
	if !ok {
		return
	}
	transact := func(c idempotency.Claim, want idempotency.KeyState, run func(resumed bool) ([]byte, bool)) {
		t.Helper()
		ran := 0
		a, err := s.Transact(t.ctx, c, func(_ context.Context, resumed bool) ([]byte, bool) {
			ran++
			return run(resumed)
		})
		if err != nil || a.State != want {
			t.Fatalf("Transact: %v, %v, want %v", a.State, err, want)
		}
		if claimed := want == idempotency.Claimed; ran != 0 && !claimed || ran != 1 && claimed {
			t.Fatalf("with an answer of %v, run was called %d times", want, ran)
		}
	}
	never := func(bool) ([]byte, bool) { return nil, true }

	c := request()
	transact(c, idempotency.Claimed, func(resumed bool) ([]byte, bool) {
		if resumed {
			t.Error("a new key is resumed")
		}
		// While it runs, others learn that and do not wait.
		begun := time.Now()
		if a, err := t.s.Claim(t.ctx, again(c)); err != nil || a.State != idempotency.InFlight { // Remaining may be zero
			t.Errorf("Claim while a transaction runs: %v, %v, want in-flight", a.State, err)
		}
		if waited := time.Since(begun); waited > 30*time.Second {
			t.Errorf("a claim waited %v for a transaction", waited)
		}
		b := again(c)
		if a, err := s.Transact(t.ctx, b, func(context.Context, bool) ([]byte, bool) {
			t.Error("two run at once")
			return nil, false
		}); err != nil || a.State != idempotency.InFlight {
			t.Errorf("Transact while another runs: %v, %v, want in-flight", a.State, err)
		}
		return []byte("done"), true
	})
	t.replays(again(c), []byte("done"))
	transact(again(c), idempotency.Replay, never)
	transact(other(c), idempotency.Mismatch, never)

	d := request() // rolled back
	transact(d, idempotency.Claimed, func(bool) ([]byte, bool) { return []byte("no"), false })
	t.fenced(d)
	transact(other(d), idempotency.Claimed, func(resumed bool) ([]byte, bool) { return []byte("yes"), true })
	t.wants(d, idempotency.Mismatch)

	e := request() // panics
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("a panic of run came up as %v", v)
			}
		}()
		s.Transact(t.ctx, e, func(context.Context, bool) ([]byte, bool) { panic("boom") })
	}()
	t.fenced(e)
	t.claimed(again(e), false)

	f := t.claimed(request(), false) // taken over, and given back
	transact(again(f), idempotency.InFlight, never)
	t.extends(f, 0, long)
	transact(again(f), idempotency.Unknown, never)
	transact(resume(f), idempotency.Claimed, func(resumed bool) ([]byte, bool) {
		if !resumed {
			t.Error("taken over, and not told so")
		}
		return nil, false
	})
	t.wants(again(f), idempotency.Unknown)
	transact(resume(f), idempotency.Claimed, func(bool) ([]byte, bool) { return []byte("resumed"), true })
	t.replays(again(f), []byte("resumed"))
	t.fenced(again(f))

	g := request() // a context that has ended
	ended, cancel := context.WithCancel(t.ctx)
	cancel()
	if _, err := s.Transact(ended, g, func(context.Context, bool) ([]byte, bool) {
		t.Error("run is called though the context has ended")
		return nil, false
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("Transact with a context that has ended: %v, want context.Canceled", err)
	}
	t.claimed(again(g), false)

	h := lasting(request(), short, short) // its record is kept for its own time
	transact(h, idempotency.Claimed, func(bool) ([]byte, bool) { return []byte("short"), true })
	time.Sleep(past)
	transact(other(h), idempotency.Claimed, func(resumed bool) ([]byte, bool) { return nil, !resumed })

	t.onlyOneRuns(min(t.o.Concurrent, 50), func(mine idempotency.Claim, ran func()) (idempotency.ClaimResult, error) {
		return s.Transact(t.ctx, mine, func(context.Context, bool) ([]byte, bool) {
			ran()
			time.Sleep(10 * time.Millisecond)
			return []byte("one"), true
		})
	})
}
