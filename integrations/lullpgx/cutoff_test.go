package lullpgx_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullpgx"
	"github.com/lullgo/lull/internal/cutofftest"
)

// What ended an attempt that waits for a connection is decided by who ended its context.
func TestWhoCutTheAttemptOff(t *testing.T) {
	cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
		var attempt atomic.Value // dials outlast their calls
		d := newDependency(t, p)
		pool := open(t, url("127.0.0.1:1"), d, lullpgx.Config{}, func(c *pgxpool.Config) {
			c.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return nil, attempt.Load().(func(context.Context) error)(ctx)
			}
		})
		return func(ctx context.Context, f func(context.Context) error) error {
			attempt.Store(f)
			_, err := lullpgx.Exec(ctx, d, pool, "SELECT 1")
			return err
		}
	})
}
