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
	exec := func(ctx context.Context) error { _, err := Exec(ctx, d, db, ""); return err }
	transact := func(ctx context.Context) error {
		return Tx(ctx, d, db, nil, func(context.Context, *sql.Tx) error { return nil })
	}
	// Without lull, on a connection that is taken for the call.
	bareOnConn := func(ctx context.Context) error {
		conn, err := bare.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.ExecContext(ctx, "")
		return err
	}
	bareTxOnConn := func(ctx context.Context) error {
		conn, err := bare.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		return tx.Commit()
	}
	return cost.Calls{
		"Exec": {
			func(ctx context.Context) error { _, err := bare.ExecContext(ctx, ""); return err },
			exec,
		},
		"Exec, on a connection": {bareOnConn, exec},
		"Read": {
			bareOnConn,
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
			transact,
		},
		"Tx, on a connection": {bareTxOnConn, transact},
	}
}

// What the calls of this package allocate beyond that. Most of it is the context that bounds the
// attempt: context.WithTimeout without lull costs as much. Two more in Exec, and one in Tx, are the
// connection that they take: on an sql.DB, database/sql would repeat the statement itself. A bare client
// that takes one pays for them, too. What is left of Tx is that database/sql derives a context from
// the attempt's: package context allocates one time less if that is one of its own, but such a
// context cannot be extended (lull.Progress). Speed is printed by the benchmark.
func TestCost(t *testing.T) {
	cost.Check(t, costs(t), map[string]cost.Most{
		"Exec":                  {Bare: 7, Bounded: 2},
		"Exec, on a connection": {Bare: 5, Bounded: 0},
		"Read":                  {Bare: 5, Bounded: 0},
		"Tx":                    {Bare: 9, Bounded: 2},
		"Tx, on a connection":   {Bare: 8, Bounded: 1},
	})
}

func BenchmarkCost(b *testing.B) { cost.Bench(b, costs(b)) }
