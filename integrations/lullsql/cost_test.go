package lullsql

import (
	"context"
	"database/sql"
	"testing"

	"github.com/lullgo/lull"
)

// The calls of this package, and what a program would do without it.
func costs(t testing.TB) map[string][2]func() error {
	f := &fake{}
	bare := sql.OpenDB(f)
	t.Cleanup(func() { bare.Close() })
	d := newDependency(t, lull.Policy{})
	db := f.open(t, d)
	ctx, cancel := context.WithCancel(context.Background()) // as that of a request
	t.Cleanup(cancel)
	return map[string][2]func() error{
		"Exec": {
			func() error { _, err := bare.ExecContext(ctx, ""); return err },
			func() error { _, err := Exec(ctx, d, db, ""); return err },
		},
		"Read": {
			func() error {
				conn, err := bare.Conn(ctx)
				if err != nil {
					return err
				}
				defer conn.Close()
				_, err = conn.ExecContext(ctx, "")
				return err
			},
			func() error {
				_, err := Read(ctx, d, db, func(ctx context.Context, conn *sql.Conn) (int, error) {
					_, err := conn.ExecContext(ctx, "")
					return 0, err
				})
				return err
			},
		},
		"Tx": {
			func() error {
				tx, err := bare.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				return tx.Commit()
			},
			func() error {
				return Tx(ctx, d, db, nil, func(context.Context, *sql.Tx) error { return nil })
			},
		},
	}
}

// What the calls of this package allocate beyond that. Most of it is the context that bounds the
// attempt, under a caller's that can be cancelled, and what watches it. Speed is printed by the benchmark.
func TestCost(t *testing.T) {
	for name, x := range costs(t) {
		for range 10 {
			x[0]()
			x[1]()
		}
		bare, with := least(x[0]), least(x[1])
		if most := map[string]float64{"Exec": 10, "Read": 8, "Tx": 18}[name]; with > bare+most {
			t.Errorf("%s: %v allocations, where without lull it is %v: want %v more at most", name, with, bare, most)
		}
	}
}

// least returns how many allocations f makes, at the least of five measurements: goroutines that
// end meanwhile make some of their own.
func least(f func() error) float64 {
	n := testing.AllocsPerRun(50, func() { f() })
	for range 4 {
		n = min(n, testing.AllocsPerRun(50, func() { f() }))
	}
	return n
}

func BenchmarkCost(b *testing.B) {
	for name, x := range costs(b) {
		for i, what := range []string{"bare", "lull"} {
			b.Run(name+"/"+what, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x[i]()
				}
			})
		}
	}
}
