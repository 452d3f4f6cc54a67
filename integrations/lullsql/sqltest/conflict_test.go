package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/inbound"
	"github.com/lullgo/lull/integrations/lullsql"
)

// patient repeats as often as it takes.
var patient = lull.Policy{
	Attempts: 100, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	Backoff: backoff.Schedule{Kind: backoff.Constant, Base: 1e6},
}

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
		s := k.run(t)
		db := opened(t, sql.OpenDB(k.connector(s.Addr())))
		table(t, db, "counter", "n INTEGER")
		if _, err := db.Exec("INSERT INTO counter VALUES (0)"); err != nil {
			t.Fatal(err)
		}
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
		if _, err := db.Exec("INSERT INTO counter VALUES (0)"); err != nil {
			t.Fatal(err)
		}
		count(t, db, nil, "SELECT n FROM counter", "UPDATE counter SET n = ?")
	})
}

// retries counts the retries for which a call has waited.
type retries struct {
	mu sync.Mutex
	n  int
}

func (r *retries) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.RetryScheduled {
		r.mu.Lock()
		r.n++
		r.mu.Unlock()
	}
}

// After its first conflict a transaction is run again at once, inside the same attempt, if the
// budget pays. After the second one the call waits.
func TestTheFirstConflictIsRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name      string
		policy    lull.Policy
		nested    bool
		conflicts int
		runs      int
		waits     int
		why       error
	}{
		{"one", lull.Policy{}, false, 1, 2, 0, nil},
		{"two", lull.Policy{}, false, 2, 3, 1, nil},
		{"no retries", lull.Policy{Attempts: 1}, false, 1, 1, 0, lull.ErrAttemptsExhausted},
		{"for a retry", lull.Policy{}, true, 1, 1, 0, lull.ErrRetriedAbove},
		{"without end", lull.Policy{}, false, 100, 3, 1, lull.ErrBudgetExhausted}, // two are in stock
	} {
		t.Run(x.name, func(t *testing.T) {
			db := openSQLite(t, "_txlock=deferred&_pragma=busy_timeout(0)")
			table(t, db, "t", "n INTEGER")
			other, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			var waits retries
			d := newDependency(t, x.policy, lull.WithObserver(&waits))
			ctx := t.Context()
			if x.nested {
				ctx, _ = inbound.With(ctx, 2, 0)
			}
			runs := 0
			err = lullsql.Tx(ctx, d, db, nil, func(ctx context.Context, tx *sql.Tx) error {
				if runs++; runs <= x.conflicts { // another one writes meanwhile
					if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
						t.Fatal(err)
					}
					defer other.ExecContext(t.Context(), "ROLLBACK")
				}
				_, err := tx.ExecContext(ctx, "INSERT INTO t VALUES (1)")
				return err
			})
			if runs != x.runs || waits.n != x.waits || !errors.Is(err, x.why) {
				t.Errorf("%d runs with %d waits, and %v; want %d, %d, %v", runs, waits.n, err, x.runs, x.waits, x.why)
			}
		})
	}
}
