//go:build servers

package lullredis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/event"
)

// What Redis answers is returned as it is.
func TestHookAnswers(t *testing.T) {
	t.Parallel()
	c := under(t, newDependency(t, lull.Policy{}), redis.Options{Addr: needServer(t).addr})
	ctx := t.Context()
	if err := c.Get(ctx, "none").Err(); err != redis.Nil {
		t.Errorf("a key that is not there: %v", err)
	}
	if err := c.Set(ctx, "s", "x", 0).Err(); err != nil {
		t.Error(err)
	}
	if err := c.LPush(ctx, "s", 1).Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") || errors.As(err, new(*lull.Error)) {
		t.Errorf("a list that is none: %v", err)
	}
	pipe := c.Pipeline()
	get, none := pipe.Get(ctx, "s"), pipe.Get(ctx, "none")
	if _, err := pipe.Exec(ctx); err != redis.Nil || get.Val() != "x" || none.Err() != redis.Nil {
		t.Errorf("a pipeline: %v, %v, %v", err, get, none)
	}
	if n, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "n"); p.Incr(ctx, "n"); return nil }); err != nil || len(n) != 2 || c.Get(ctx, "n").Val() != "2" {
		t.Errorf("a transaction: %v, %v", n, err)
	}
}

// What go-redis sends to greet a new connection is part of the call that needs it, not a call of its own.
func TestNewConnectionsAreNoCalls(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	must(t, s.client(t).ConfigSet(t.Context(), "requirepass", "secret").Err())
	var made calls
	d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: 1}}, lull.WithObserver(&made))
	c := under(t, d, redis.Options{Addr: s.addr, Username: "default", Password: "secret", DB: 1, ClientName: "me"})
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(made.ended, []string{"set"}) {
		t.Errorf("calls of %q, want one of set", made.ended)
	}
}

// calls are the operations of the calls that have ended.
type calls struct {
	mu    sync.Mutex
	ended []string
}

func (c *calls) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = append(c.ended, e.Operation)
	}
}
