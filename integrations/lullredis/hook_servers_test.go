//go:build servers

package lullredis

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/event"
)

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
