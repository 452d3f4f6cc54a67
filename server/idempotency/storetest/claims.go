package storetest

import (
	"errors"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

func (t *tester) claim() {
	c := request()
	t.fenced(c) // there is nothing yet
	t.claimed(c, false)
	a := t.wants(again(c), idempotency.InFlight)
	if a.Remaining > long || a.Remaining < long-time.Minute {
		t.Errorf("what remains of a lease of %v that has just begun is %v", long, a.Remaining)
	}
	t.wants(resume(c), idempotency.InFlight)
	t.fenced(again(c))
	t.wants(again(c), idempotency.InFlight)

	// The answer was lost, and the owner asks again. Its lease begins anew.
	t.claimed(lasting(c, 2*long, 3*long), false)
	if a := t.wants(again(c), idempotency.InFlight); a.Remaining <= long {
		t.Errorf("a claim that was repeated with a lease of %v leaves %v", 2*long, a.Remaining)
	}
	t.claimed(request(), false) // another key is another key
}

func (t *tester) mismatch() {
	c := t.claimed(request(), false)
	t.wants(other(c), idempotency.Mismatch) // while it is running
	t.wants(resume(other(c)), idempotency.Mismatch)
	t.wants(again(c), idempotency.InFlight)
	t.extends(c, 0, long)
	t.wants(other(c), idempotency.Mismatch) // when its outcome is unknown
	t.wants(resume(other(c)), idempotency.Mismatch)
	t.wants(again(c), idempotency.Unknown)
	t.completes(c, []byte("done"), long)
	t.wants(other(c), idempotency.Mismatch) // when it is done
	same := other(c)
	same.Token = c.Token
	t.wants(same, idempotency.Mismatch)
	t.replays(again(c), []byte("done"))
}

func (t *tester) complete() {
	c := t.claimed(request(), false)
	t.completes(c, []byte("done"), long)
	for range 2 {
		t.replays(again(c), []byte("done"))
		t.replays(c, []byte("done")) // for its owner too
		t.replays(resume(c), []byte("done"))
		t.completes(c, []byte("done twice"), long) // the answer was lost; what is there stays
	}
	if err := t.s.Extend(t.ctx, c.Key, c.Token, long, 2*long); !errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("Extend after Complete: %v, want ErrFenced", err)
	}
	if err := t.s.Release(t.ctx, c.Key, c.Token); !errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("Release after Complete: %v, want ErrFenced", err)
	}
	t.fenced(again(c))
	t.replays(again(c), []byte("done"))
}

func (t *tester) release() {
	c := t.claimed(request(), false)
	t.must("Release", t.s.Release(t.ctx, c.Key, c.Token))
	t.fenced(c)
	d := t.claimed(other(c), false) // the key is new, whatever it was used for
	t.fenced(c)
	t.wants(again(d), idempotency.InFlight)
	t.extends(d, 0, long)
	t.must("Release after the lease", t.s.Release(t.ctx, d.Key, d.Token))
	t.claimed(again(c), false)
}
