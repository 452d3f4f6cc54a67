package lullredis

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/seed"
)

// hookCost returns a command that succeeds without a server.
func hookCost(t testing.TB) func() error {
	d, err := lull.NewDependency("cache", lull.Policy{}, lull.WithRand(seed.Source(t)))
	if err != nil {
		t.Fatal(err)
	}
	h := (&hook{d, make(chan struct{}, MaxDials)}).ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	ctx, cancel := context.WithCancel(context.Background()) // as that of a request
	t.Cleanup(cancel)
	cmd := redis.NewStringCmd(ctx, "get", "key")
	return func() error { return h(ctx, cmd) }
}

// The hook costs one allocation for a command that succeeds: the context of the attempt.
func TestHookCost(t *testing.T) {
	call := hookCost(t)
	if n := testing.AllocsPerRun(1000, func() { call() }); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

func BenchmarkHook(b *testing.B) {
	call := hookCost(b)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}
