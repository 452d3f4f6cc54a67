package lullpgx_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

func url(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }

func newDependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	return must.Have(lull.NewDependency("database", p, append(opts, lull.WithRand(seed.Source(t)))...))
}

// open returns a pool under d. Without d it is pgx's own.
func open(t testing.TB, url string, d *lull.Dependency, c lullpgx.Config, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config := must.Have(pgxpool.ParseConfig(url))
	config.MaxConns = 8
	for _, f := range change {
		f(config)
	}
	if d != nil {
		must.Succeed(lullpgx.AddTo(config, d, c))
	}
	pool := must.Have(pgxpool.NewWithConfig(t.Context(), config))
	t.Cleanup(pool.Close)
	return pool
}
