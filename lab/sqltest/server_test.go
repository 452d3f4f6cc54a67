package sqltest

import (
	"database/sql"
	"testing"

	sqlite "github.com/ncruces/go-sqlite3/driver"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// patient repeats as often as it takes.
var patient = lull.Policy{
	Attempts: 100, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	Backoff: backoff.Schedule{Kind: backoff.Constant, Base: 1e6},
}

func opened(t testing.TB, db *sql.DB) *sql.DB {
	t.Cleanup(func() { db.Close() })
	return db
}

func newDependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	d := must.Have(lull.NewDependency("database", p, append(opts, lull.WithRand(seed.Source(t)))...))
	return d
}

func exec(t testing.TB, db interface {
	Exec(string, ...any) (sql.Result, error)
}, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(q, err)
		}
	}
}

// table makes an empty table, for tests that do not share the server or the name.
func table(t testing.TB, db *sql.DB, name, columns string) {
	t.Helper()
	exec(t, db, "DROP TABLE IF EXISTS "+name, "CREATE TABLE "+name+" ("+columns+")")
}

// openSQLite opens a file of the test's own.
func openSQLite(t testing.TB, options string) *sql.DB {
	t.Helper()
	db := must.Have(sqlite.Open("file:" + t.TempDir() + "/db?" + options))
	return opened(t, db)
}
