package sqltest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	sqlite "github.com/ncruces/go-sqlite3/driver"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/must"
)

// onRetry calls a function before a retry.
type onRetry func()

func (f onRetry) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.RetryScheduled {
		f()
	}
}

// SQLite commits each statement of a string.
func TestSQLiteRepeatsNoScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openSQLite(t, "_pragma=busy_timeout(0)")
		db.SetMaxOpenConns(1)
		file := t.TempDir() + "/other"
		exec(t, db, "CREATE TABLE ledger (id INT); ATTACH '"+file+"' AS other; CREATE TABLE other.t (id INT)")
		holder := must.Have(sqlite.Open("file:" + file))
		opened(t, holder)
		for _, x := range []struct {
			query string
			want  error
			rows  int
		}{
			{"INSERT INTO ledger VALUES (1); INSERT INTO other.t VALUES (1)", lull.ErrNotIdempotent, 1},
			{"INSERT INTO other.t VALUES (1)", nil, 1},
		} {
			conn := must.Have(holder.Conn(t.Context()))
			if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			free := sync.OnceFunc(func() {
				conn.ExecContext(context.Background(), "ROLLBACK")
				conn.Close()
			})
			d := newDependency(t, patient, lull.WithObserver(onRetry(free)))
			_, err := lullsql.Exec(t.Context(), d, db, x.query)
			free()
			var n int
			must.Succeed(db.QueryRow("SELECT (SELECT COUNT(*) FROM ledger) + (SELECT COUNT(*) FROM other.t)").Scan(&n))
			if n != x.rows || !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
				t.Errorf("%s: %d rows, %v; want %d, %v", x.query, n, err, x.rows, x.want)
			}
			exec(t, db, "DELETE FROM ledger; DELETE FROM other.t")
		}
	})
}
