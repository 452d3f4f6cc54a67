package lullsql

import (
	"context"
	"database/sql"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/cost"
)

// The calls of this package, and what a program would do without it.
func costs(t testing.TB) cost.Calls {
	f := &fake{}
	bare := sql.OpenDB(f)
	t.Cleanup(func() { bare.Close() })
	d := newDependency(t, lull.Policy{})
	db := f.open(t, d)
	return cost.Calls{
		"Exec": {
			func(ctx context.Context) error { _, err := bare.ExecContext(ctx, ""); return err },
			func(ctx context.Context) error { _, err := Exec(ctx, d, db, ""); return err },
		},
		"Read": {
			func(ctx context.Context) error {
				conn, err := bare.Conn(ctx)
				if err != nil {
					return err
				}
				defer conn.Close()
				_, err = conn.ExecContext(ctx, "")
				return err
			},
			func(ctx context.Context) error {
				_, err := Read(ctx, d, db, func(ctx context.Context, conn *sql.Conn) (int, error) {
					_, err := conn.ExecContext(ctx, "")
					return 0, err
				})
				return err
			},
		},
		"Tx": {
			func(ctx context.Context) error {
				tx, err := bare.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				return tx.Commit()
			},
			func(ctx context.Context) error {
				return Tx(ctx, d, db, nil, func(context.Context, *sql.Tx) error { return nil })
			},
		},
	}
}

// What the calls of this package allocate beyond that. Most of it is the context that bounds the
// attempt: who bounds a call without lull pays for one, too. Speed is printed by the benchmark.
func TestCost(t *testing.T) {
	cost.Check(t, costs(t), map[string]cost.Most{"Exec": {Bare: 8, Bounded: 3}, "Read": {Bare: 6, Bounded: 1}, "Tx": {Bare: 10, Bounded: 3}})
}

func BenchmarkCost(b *testing.B) { cost.Bench(b, costs(b)) }
