package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/budget"
	"github.com/lullgo/lull/driver/inbound"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/lullsql"
)

// patient repeats as often as it takes.
var patient = lull.Policy{
	Attempts: 100, Budget: budget.Config{Unlimited: true}, Breaker: breaker.Config{Off: true},
	Backoff: backoff.Schedule{Kind: backoff.Constant, Base: 1e6},
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
			synctest.Test(t, func(t *testing.T) {
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
		})
	}
}
