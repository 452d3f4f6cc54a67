package lullpgx_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullpgx"
)

// The calls of this package, and what a program would do without it.
func costs(t testing.TB) map[string][2]func() error {
	d := newDependency(t, lull.Policy{})
	bare, pool := open(t, url(at(t)), nil, lullpgx.Config{}), open(t, url(at(t)), d, lullpgx.Config{})
	ctx, cancel := context.WithCancel(context.Background()) // as that of a request
	t.Cleanup(cancel)
	return map[string][2]func() error{
		"Exec": {
			func() error { _, err := bare.Exec(ctx, "SELECT"); return err },
			func() error { _, err := lullpgx.Exec(ctx, d, pool, "SELECT"); return err },
		},
		"Read": {
			func() error {
				return bare.AcquireFunc(ctx, func(c *pgxpool.Conn) error { _, err := c.Exec(ctx, "SELECT"); return err })
			},
			func() error {
				_, err := lullpgx.Read(ctx, d, pool, func(ctx context.Context, c *pgxpool.Conn) (int, error) {
					_, err := c.Exec(ctx, "SELECT")
					return 0, err
				})
				return err
			},
		},
		"Tx": {
			func() error { return pgx.BeginFunc(ctx, bare, func(pgx.Tx) error { return nil }) },
			func() error {
				return lullpgx.Tx(ctx, d, pool, pgx.TxOptions{}, func(context.Context, pgx.Tx) error { return nil })
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
		if most := map[string]float64{"Exec": 14, "Read": 14, "Tx": 19}[name]; with > bare+most {
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
