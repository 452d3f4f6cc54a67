package lullredis

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/cost"
	"github.com/lullgo/lull/internal/seed"
)

// hookCosts are a command that succeeds without a server.
func hookCosts(t testing.TB) cost.Calls {
	d, err := lull.NewDependency("cache", lull.Policy{}, lull.WithRand(seed.Source(t)))
	if err != nil {
		t.Fatal(err)
	}
	bare := func(context.Context, redis.Cmder) error { return nil }
	h := (&hook{dialer: newDialer(nil), d: d}).ProcessHook(bare)
	cmd := redis.NewStringCmd(t.Context(), "get", "key")
	return cost.Calls{"command": {
		func(ctx context.Context) error { return bare(ctx, cmd) },
		func(ctx context.Context) error { return h(ctx, cmd) },
	}}
}

// The hook costs one allocation for a command that succeeds: the context of the attempt. A time limit
// without lull costs four.
func TestHookCost(t *testing.T) {
	cost.Check(t, hookCosts(t), map[string]cost.Most{"command": {Bare: 1, Bounded: -3}})
}

func BenchmarkHook(b *testing.B) { cost.Bench(b, hookCosts(b)) }
