//go:build servers

package lullredis

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/budget"
)

// What the comment of the package shows, as it stands there.
func packageComment(ctx context.Context, addr string, policy lull.Policy) error {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	fleet, err := Open(client, FleetConfig{})
	if err != nil {
		return err
	}
	pays, err := fleet.Budget("payments", Config{Floor: 5})
	if err != nil {
		return err
	}
	d, err := lull.NewDependency("payments", policy, lull.WithBudget(func() budget.Budget { return pays }))
	if err != nil {
		return err
	}
	defer client.Close()
	defer fleet.Close(ctx)
	return lull.Run(ctx, d, func(ctx context.Context) error { return client.Ping(ctx).Err() })
}

// Addr starts a server, for the external tests.
func Addr(t testing.TB) string { return needServer(t).addr }

func TestWhatTheCommentShows(t *testing.T) {
	if err := packageComment(t.Context(), needServer(t).addr, lull.Policy{}); err != nil {
		t.Error(err)
	}
}
