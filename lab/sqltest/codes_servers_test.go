//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
)

// session is the statement that returns the number of the session, by: is it MariaDB.
var session = map[bool]string{false: "SELECT pg_backend_pid()", true: "SELECT CONNECTION_ID()"}

// After a failover the sessions of the pool are those of a server that is read-only now. Each is given up with the first
// write that it refuses, and the write is made on another one. That a program has made a transaction
// read-only is its own failure.
func TestAServerThatHasBecomeReadOnly(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		maria := k.name == "MariaDB"
		direct := opened(t, sql.OpenDB(k.connector(k.server.Addr(t))))
		table(t, direct, "failover", "n INTEGER")
		d := newDependency(t, lull.Policy{})
		db := k.open(t, k.server.Addr(t), d)
		db.SetMaxOpenConns(1)
		id := func() (n int) {
			t.Helper()
			must.Succeed(db.QueryRow(session[maria]).Scan(&n))
			return n
		}
		const insert = "INSERT INTO failover VALUES (1)"
		first := id()
		err := lullsql.Tx(t.Context(), d, db, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, insert)
			return err
		})
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 1 || e.Verdict.Kind != lull.KindPermanent || id() != first {
			t.Errorf("the program's own: %v, in session %d, then %d", err, first, id())
		}
		readOnly := map[bool]string{false: "SET default_transaction_read_only=on", true: "SET SESSION TRANSACTION READ ONLY"}[maria]
		exec(t, db, readOnly)
		if _, err := lullsql.Exec(t.Context(), d, db, insert); err != nil || id() == first {
			t.Errorf("%v, in session %d, then %d", err, first, id())
		}
		exec(t, db, readOnly)
		second := id()
		if _, err := lullsql.Exec(t.Context(), d, db, insert+"; SELECT 1"); err == nil {
			t.Error("a script was repeated")
		}
		if id() == second {
			t.Error("the session is kept")
		}
		var n int
		if err := direct.QueryRow("SELECT COUNT(*) FROM failover").Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// A statement's error that op keeps to itself: PostgreSQL answers COMMIT with a rollback. That is no unknown outcome. Neither
// is a transaction that op has ended itself.
func TestTheCallersOwnCommitErrors(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		direct := opened(t, sql.OpenDB(k.connector(k.server.Addr(t))))
		table(t, direct, "own", "n INTEGER PRIMARY KEY")
		d := newDependency(t, lull.Policy{})
		db := k.open(t, k.server.Addr(t), d)
		const insert = "INSERT INTO own VALUES (1)"
		for _, x := range []struct {
			name string
			op   func(context.Context, *sql.Tx)
			none bool // there is no error, in MariaDB
		}{
			{"an error kept back", func(ctx context.Context, tx *sql.Tx) { tx.ExecContext(ctx, insert); tx.ExecContext(ctx, insert) }, k.name == "MariaDB"},
			{"rolled back by op", func(_ context.Context, tx *sql.Tx) { tx.Rollback() }, false},
			{"committed by op", func(_ context.Context, tx *sql.Tx) { tx.Commit() }, false},
		} {
			runs := 0
			err := lullsql.Tx(t.Context(), d, db, nil, func(ctx context.Context, tx *sql.Tx) error { runs++; x.op(ctx, tx); return nil })
			if errors.Is(err, lullsql.ErrOutcomeUnknown) || (err == nil) != x.none || runs != 1 {
				t.Errorf("%s: %v after %d runs", x.name, err, runs)
			}
		}
	})
}

// A server that accepts connections and hangs up does not work, whoever waits for the dial: each dial of the plain sql.DB
// is a failure, and the circuit opens.
func TestAServerThatHangsUp(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		var f ended
		d := newDependency(t, lull.Policy{Attempts: 1}, lull.WithObserver(&f))
		p := dbserver.NewProxy(t, "127.0.0.1:1", 0, 0)
		p.Down.Store(true)
		db := k.open(t, p.Addr(), d)
		for end := time.Now().Add(time.Minute); f.refused.Load() == 0; {
			if db.Ping() == nil {
				t.Fatal("it answered")
			}
			if time.Now().After(end) {
				t.Fatalf("the circuit is closed after %d failures and %d that do not count", f.failed.Load(), f.others.Load())
			}
		}
		check.Equal(t, f.others.Load(), 0, "dials of others")
	})
}

// ended counts calls that have ended: failures, those that count for nothing, and those that an open circuit refused.
type ended struct{ failed, others, refused atomic.Int32 }

func (c *ended) Observe(_ context.Context, e lull.Event) {
	switch {
	case e.Kind != event.CallEnded:
	case e.Reason == engine.CircuitOpen:
		c.refused.Add(1)
	case e.Verdict.Kind == lull.KindTransient:
		c.failed.Add(1)
	default:
		c.others.Add(1)
	}
}
