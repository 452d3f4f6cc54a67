package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/lullgo/lull/server/idempotency"
)

func (t *tester) endedContext() {
	c := request()
	ended, cancel := context.WithCancel(t.ctx)
	cancel()
	if _, err := t.s.Claim(ended, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Claim with a context that has ended: %v, want context.Canceled", err)
	}
	t.claimed(again(c), false) // so it was not claimed

	d := t.claimed(request(), false)
	for name, err := range map[string]error{
		"Extend":   t.s.Extend(ended, d.Key, d.Token, 0, long),
		"Complete": t.s.Complete(ended, d.Key, d.Token, []byte("x"), long),
		"Release":  t.s.Release(ended, d.Key, d.Token),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %v, want context.Canceled", name, err)
		}
	}
	t.wants(again(d), idempotency.InFlight)
	expired, cancel := context.WithDeadline(t.ctx, time.Now().Add(-time.Second))
	defer cancel()
	if _, err := t.s.Claim(expired, request()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Claim after its deadline: %v, want context.DeadlineExceeded", err)
	}
}

// Contexts that end at any moment leave either what the call makes or what was there,
// and a call that is made again finds out.
func (t *tester) endingContext() {
	for i := range 40 {
		c := request()
		ctx, cancel := context.WithCancel(t.ctx)
		time.AfterFunc(time.Duration(i*(1-i%2))*20*time.Microsecond, cancel) // half of them at once
		a, err := t.s.Claim(ctx, c)
		if err == nil {
			t.check(a, idempotency.Claimed)
		}
		t.claimed(c, false)
		err = t.s.Complete(ctx, c.Key, c.Token, []byte("done"), long)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Complete with a context that ends: %v, want context.Canceled", err)
		}
		t.completes(c, []byte("done"), long)
		t.replays(again(c), []byte("done"))
	}
}
