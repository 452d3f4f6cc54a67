//go:build servers && unix

package lullredis

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
)

// Redis is frozen while commands are made, so that they time out, and then continues: it carries out
// what it has received. An INCR is not repeated, and counts once at most. A GET is.
func TestNoIncrementTwiceAfterATimeout(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	c, _ := hooked(t, s.addr, lull.Policy{
		Attempts: 3, AttemptTimeout: 100 * time.Millisecond, Timeouts: lull.TimeoutsAlways, Breaker: breaker.Config{Off: true},
		Budget: budget.Config{Unlimited: true}, Backoff: backoff.Schedule{Kind: backoff.Constant, Base: time.Millisecond},
	})
	ctx := t.Context()
	await(t, "connected", func() bool { return c.Ping(ctx).Err() == nil }) // AttemptTimeout is short for a busy machine
	await(t, "connected for pipelines", func() bool {
		return second(c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); return nil })) == nil
	})
	s.Process.Signal(syscall.SIGSTOP)
	attempts := func(err error) int {
		e, ok := errors.AsType[*lull.Error](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		return e.Attempts
	}
	err := c.Incr(ctx, "n").Err()
	if attempts(err) != 1 || !errors.Is(err, lull.ErrNotIdempotent) {
		t.Errorf("INCR: %v", err)
	}
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Get(ctx, "n"); p.Incr(ctx, "m"); return nil })
	if attempts(err) != 1 || !errors.Is(err, lull.ErrNotIdempotent) {
		t.Errorf("a pipeline with INCR: %v", err)
	}
	if err := c.Get(ctx, "n").Err(); attempts(err) != 3 {
		t.Errorf("GET: %v", err)
	}
	if err := c.Incr(Idempotent(ctx), "declared").Err(); attempts(err) != 3 {
		t.Errorf("a declared INCR: %v", err)
	}
	s.Process.Signal(syscall.SIGCONT)
	await(t, "answering", func() bool { return c.Ping(context.WithoutCancel(ctx)).Err() == nil })
	for _, key := range []string{"n", "m"} {
		if n, err := c.Get(ctx, key).Int(); err != nil && err != redis.Nil || n > 1 {
			t.Errorf("%s is %d (%v)", key, n, err)
		}
	}
}
