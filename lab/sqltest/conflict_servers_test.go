//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/lullgo/lull/integrations/lullsql"
)

// Several workers add to the same counter, each in a transaction that reads it and then writes
// what it has computed. They are in each other's way all the time, and no addition is lost.
func TestConflicts(t *testing.T) {
	const workers, additions = 4, 25
	count := func(t *testing.T, db *sql.DB, opts *sql.TxOptions, get, set string) {
		d := newDependency(t, patient)
		runs := 0
		var mu sync.Mutex
		var wg, read sync.WaitGroup
		read.Add(2) // the first two transactions read before either writes
		for range workers {
			wg.Go(func() {
				for range additions {
					err := lullsql.Tx(t.Context(), d, db, opts, func(ctx context.Context, tx *sql.Tx) error {
						mu.Lock()
						runs++
						first := runs <= 2
						mu.Unlock()
						if !first { // or a writer that waits keeps the second of them from reading
							read.Wait()
						}
						var n int
						err := tx.QueryRowContext(ctx, get).Scan(&n)
						if first {
							read.Done()
							read.Wait()
						}
						if err != nil {
							return err
						}
						_, err = tx.ExecContext(ctx, set, n+1)
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		var n int
		if err := db.QueryRow("SELECT n FROM counter").Scan(&n); err != nil || n != workers*additions {
			t.Errorf("the counter is %d after %d additions (%v)", n, workers*additions, err)
		}
		t.Logf("%d additions took %d transactions", workers*additions, runs)
		if runs == workers*additions {
			t.Error("there was no conflict: the test shows nothing")
		}
	}
	each(t, func(t *testing.T, k *kind) {
		s := k.server.Own(t)
		db := opened(t, sql.OpenDB(k.connector(s.Addr())))
		table(t, db, "counter", "n INTEGER")
		exec(t, db, "INSERT INTO counter VALUES (0)")
		set := "UPDATE counter SET n = $1"
		if k.name == "MariaDB" {
			set = "UPDATE counter SET n = ?"
		}
		count(t, db, &sql.TxOptions{Isolation: sql.LevelSerializable}, "SELECT n FROM counter", set)
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db := openSQLite(t, "_txlock=deferred&_pragma=busy_timeout(0)&_pragma=journal_mode(WAL)")
		table(t, db, "counter", "n INTEGER")
		exec(t, db, "INSERT INTO counter VALUES (0)")
		count(t, db, nil, "SELECT n FROM counter", "UPDATE counter SET n = ?")
	})
}
