//go:build servers

package lullpgx_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/cost"
)

// The calls of this package, and what a program would do without it.
func costs(t testing.TB) cost.Calls {
	d := newDependency(t, lull.Policy{})
	bare, pool := open(t, url(server.Addr(t)), nil, lullpgx.Config{}), open(t, url(server.Addr(t)), d, lullpgx.Config{})
	begin := func(ctx context.Context) error { return pgx.BeginFunc(ctx, bare, func(pgx.Tx) error { return nil }) }
	transact := func(ctx context.Context) error {
		return lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(context.Context, pgx.Tx) error { return nil })
	}
	return cost.Calls{
		"Exec": {
			func(ctx context.Context) error { _, err := bare.Exec(ctx, "SELECT"); return err },
			func(ctx context.Context) error { _, err := lullpgx.Exec(ctx, d, pool, "SELECT"); return err },
		},
		"Read": {
			func(ctx context.Context) error {
				return bare.AcquireFunc(ctx, func(c *pgxpool.Conn) error { _, err := c.Exec(ctx, "SELECT"); return err })
			},
			func(ctx context.Context) error {
				_, err := lullpgx.Read(ctx, d, pool, func(ctx context.Context, c *pgxpool.Conn) (int, error) {
					_, err := c.Exec(ctx, "SELECT")
					return 0, err
				})
				return err
			},
		},
		"Tx": {begin, transact},
		"Tx, under a server's context": {
			func(ctx context.Context) error {
				ctx, in := inbound.With(ctx, 1, time.Minute)
				defer in.End()
				return begin(ctx)
			},
			transact,
		},
	}
}

// What the calls of this package allocate beyond that. Most of it is the context that bounds the
// attempt: context.WithTimeout without lull costs as much. The rest is that pgx watches the context of each
// statement, here of BEGIN and COMMIT. Under a context that is not of package context's own
// this takes three allocations for each, and else two for the first. The attempt's is not, since
// lull.Progress extends it. A bare pool pays the same under another context of that kind, a server's,
// and one more, for the transaction of the pool. Speed is printed by the benchmark.
func TestCost(t *testing.T) {
	cost.Check(t, costs(t), map[string]cost.Most{
		"Exec":                         {Bare: 8, Bounded: 1},
		"Read":                         {Bare: 8, Bounded: 1},
		"Tx":                           {Bare: 10, Bounded: 3},
		"Tx, under a server's context": {Bare: -1, Bounded: -1},
	})
}

func BenchmarkCost(b *testing.B) { cost.Bench(b, costs(b)) }
