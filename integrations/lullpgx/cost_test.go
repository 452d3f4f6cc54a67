package lullpgx_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullpgx"
	"github.com/lullgo/lull/internal/cost"
)

// The calls of this package, and what a program would do without it.
func costs(t testing.TB) cost.Calls {
	d := newDependency(t, lull.Policy{})
	bare, pool := open(t, url(at(t)), nil, lullpgx.Config{}), open(t, url(at(t)), d, lullpgx.Config{})
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
		"Tx": {
			func(ctx context.Context) error { return pgx.BeginFunc(ctx, bare, func(pgx.Tx) error { return nil }) },
			func(ctx context.Context) error {
				return lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(context.Context, pgx.Tx) error { return nil })
			},
		},
	}
}

// What the calls of this package allocate beyond that. Most of it is the context that bounds the
// attempt: who bounds a call without lull pays for one, too. Speed is printed by the benchmark.
func TestCost(t *testing.T) {
	cost.Check(t, costs(t), map[string]cost.Most{"Exec": {Bare: 9, Bounded: 2}, "Read": {Bare: 9, Bounded: 2}, "Tx": {Bare: 11, Bounded: 4}})
}

func BenchmarkCost(b *testing.B) { cost.Bench(b, costs(b)) }
