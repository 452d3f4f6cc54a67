package sqltest

import (
	"database/sql"
	"testing"

	sqlite "github.com/ncruces/go-sqlite3/driver"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/seed"
)

func opened(t testing.TB, db *sql.DB) *sql.DB {
	t.Cleanup(func() { db.Close() })
	return db
}

func newDependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	d, err := lull.NewDependency("database", p, append(opts, lull.WithRand(seed.Source(t)))...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// table makes an empty table, for tests that do not share the server or the name.
func table(t testing.TB, db *sql.DB, name, columns string) {
	t.Helper()
	for _, q := range []string{"DROP TABLE IF EXISTS " + name, "CREATE TABLE " + name + " (" + columns + ")"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
}

// openSQLite opens a file of the test's own.
func openSQLite(t testing.TB, options string) *sql.DB {
	t.Helper()
	db, err := sqlite.Open("file:" + t.TempDir() + "/db?" + options)
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, db)
}
