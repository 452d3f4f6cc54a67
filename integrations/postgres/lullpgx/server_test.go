package lullpgx_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/seed"
)

func url(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }

func newDependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	d, err := lull.NewDependency("database", p, append(opts, lull.WithRand(seed.Source(t)))...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// open returns a pool under d. Without d it is pgx's own.
func open(t testing.TB, url string, d *lull.Dependency, c lullpgx.Config, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 8
	for _, f := range change {
		f(config)
	}
	if d != nil {
		if err := lullpgx.AddTo(config, d, c); err != nil {
			t.Fatal(err)
		}
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
