//go:build servers

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/lullsql"
)

// session is the statement that returns the number of the session, by: is it MariaDB.
var session = map[bool]string{false: "SELECT pg_backend_pid()", true: "SELECT CONNECTION_ID()"}

// What the server itself says to try again is tried again: a transaction whose first run ends so is committed by its
// second one, in the same session if that is of use.
func TestWhatTheServerSaysToRepeat(t *testing.T) {
	type situation struct {
		name string
		// before is run in the first run of the transaction by another session, between read and write.
		read, before, write string
		opts                *sql.TxOptions
		prepare, restore    string // in the session of the first run, before it begins
		elsewhere           bool   // the second run is in another session
	}
	snapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead}
	situations := map[bool][]situation{
		false: {
			{name: "40001", read: "SELECT n FROM %t", before: "UPDATE %t SET n=n+1", write: "UPDATE %t SET n=n+1", opts: snapshot},
			{name: "0A000, a cached plan", prepare: "PREPARE star AS SELECT * FROM %t", read: "SELECT 1", before: "ALTER TABLE %t ADD COLUMN m INT", write: "EXECUTE star", restore: "DEALLOCATE star"},
			{name: "25006", prepare: "SET default_transaction_read_only=on", read: "SELECT n FROM %t", write: "UPDATE %t SET n=1", elsewhere: true},
			{name: "25P03", prepare: "SET idle_in_transaction_session_timeout=50", read: "SELECT n FROM %t", before: "SELECT pg_sleep(1)", write: "UPDATE %t SET n=1", elsewhere: true},
		},
		true: {
			{name: "1020", prepare: "SET innodb_snapshot_isolation=ON", read: "SELECT n FROM %t", before: "UPDATE %t SET n=n+1", write: "UPDATE %t SET n=n+1", opts: snapshot},
			{name: "1412", read: "SELECT COUNT(*) FROM %tb", before: "ALTER TABLE %t ADD COLUMN m INT, ALGORITHM=COPY", write: "SELECT n FROM %t", opts: snapshot},
			{name: "1792", prepare: "SET SESSION TRANSACTION READ ONLY", read: "SELECT n FROM %t", write: "UPDATE %t SET n=1", elsewhere: true},
		},
	}
	each(t, func(t *testing.T, k *kind) {
		maria := k.name == "MariaDB"
		other := opened(t, sql.OpenDB(k.connector(k.at(t))))
		for i, x := range situations[maria] {
			t.Run(x.name, func(t *testing.T) {
				name := fmt.Sprint("again", i)
				if k.deaf {
					if x.name == "25006" {
						return // lib/pq begins a transaction with READ WRITE
					}
					name += "pq"
				}
				table(t, other, name, "n INTEGER")
				table(t, other, name+"b", "n INTEGER")
				in := func(q string) string { return strings.ReplaceAll(q, "%t", name) }
				if _, err := other.Exec("INSERT INTO " + name + " VALUES (0)"); err != nil {
					t.Fatal(err)
				}
				d := newDependency(t, lull.Policy{})
				db := k.open(t, k.at(t), d)
				db.SetMaxOpenConns(1)
				if x.prepare != "" {
					if _, err := db.Exec(in(x.prepare)); err != nil {
						t.Fatal(err)
					}
				}
				var sessions []int
				err := lullsql.Tx(t.Context(), d, db, x.opts, func(ctx context.Context, tx *sql.Tx) error {
					var n, id int
					if err := tx.QueryRowContext(ctx, session[maria]).Scan(&id); err != nil {
						return err
					}
					sessions = append(sessions, id)
					if err := tx.QueryRowContext(ctx, in(x.read)).Scan(&n); err != nil && !errors.Is(err, sql.ErrNoRows) {
						return err
					}
					if len(sessions) == 1 && x.before != "" {
						if _, err := other.Exec(in(x.before)); err != nil {
							t.Error(err)
						}
					}
					if len(sessions) == 2 && x.restore != "" {
						if _, err := tx.ExecContext(ctx, x.restore); err != nil {
							return err
						}
						return nil
					}
					_, err := tx.ExecContext(ctx, in(x.write))
					return err
				})
				if err != nil || len(sessions) != 2 || (sessions[0] != sessions[1]) != x.elsewhere {
					t.Errorf("sessions %d, %v; want two, another one: %t", sessions, err, x.elsewhere)
				}
			})
		}
	})
}

// After a failover the sessions of the pool are those of a server that is read-only now. Each is given up with the first
// write that it refuses, and the write is made on another one. That a program has made a transaction
// read-only is its own failure.
func TestAServerThatHasBecomeReadOnly(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		maria := k.name == "MariaDB"
		direct := opened(t, sql.OpenDB(k.connector(k.at(t))))
		name := "failover"
		if k.deaf {
			name += "pq"
		}
		table(t, direct, name, "n INTEGER")
		d := newDependency(t, lull.Policy{})
		db := k.open(t, k.at(t), d)
		db.SetMaxOpenConns(1)
		id := func() (n int) {
			t.Helper()
			if err := db.QueryRow(session[maria]).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		insert := "INSERT INTO " + name + " VALUES (1)"
		first := id()
		err := lullsql.Tx(t.Context(), d, db, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, insert)
			return err
		})
		if e, ok := errors.AsType[*lull.Error](err); !ok || e.Attempts != 1 || e.Verdict.Kind != lull.KindPermanent || id() != first {
			t.Errorf("the program's own: %v, in session %d, then %d", err, first, id())
		}
		readOnly := map[bool]string{false: "SET default_transaction_read_only=on", true: "SET SESSION TRANSACTION READ ONLY"}[maria]
		if _, err := db.Exec(readOnly); err != nil {
			t.Fatal(err)
		}
		if _, err := lullsql.Exec(t.Context(), d, db, insert); err != nil || id() == first {
			t.Errorf("%v, in session %d, then %d", err, first, id())
		}
		if _, err := db.Exec(readOnly); err != nil {
			t.Fatal(err)
		}
		second := id()
		if _, err := lullsql.Exec(t.Context(), d, db, insert+"; SELECT 1"); err == nil {
			t.Error("a script was repeated")
		}
		if !maria && id() == second { // MariaDB has not taken the script
			t.Error("the session is kept")
		}
		var n int
		if err := direct.QueryRow("SELECT COUNT(*) FROM " + name).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

// MariaDB refuses writes with 1290 while it is read_only, except for administrators.
func TestReadOnlyMariaDB(t *testing.T) {
	t.Parallel()
	k := kinds[len(kinds)-1]
	s := k.run(t)
	root := opened(t, sql.OpenDB(k.connector(s.Addr())))
	exec := func(q string) {
		t.Helper()
		if _, err := root.Exec(q); err != nil {
			t.Fatal(q, err)
		}
	}
	for _, q := range []string{"CREATE DATABASE app", "CREATE TABLE app.t (n INT)", "CREATE USER u@'127.0.0.1'", "GRANT ALL ON app.* TO u@'127.0.0.1'", "SET GLOBAL read_only=ON"} {
		exec(q)
	}
	d := newDependency(t, lull.Policy{}, lull.WithObserver(onRetry(func() { exec("SET GLOBAL read_only=OFF") })))
	c, err := lullsql.NewConnector(mariaDB(s.Addr(), "u", "app"), d, lullsql.Config{})
	if err != nil {
		t.Fatal(err)
	}
	db := opened(t, sql.OpenDB(c))
	var before, after int
	if err := db.QueryRow(session[true]).Scan(&before); err != nil {
		t.Fatal(err)
	}
	_, err = lullsql.Exec(t.Context(), d, db, "INSERT INTO t VALUES (1)")
	if err2 := db.QueryRow(session[true]).Scan(&after); err != nil || err2 != nil || before == after {
		t.Errorf("%v, %v, in session %d, then %d", err, err2, before, after)
	}
}

// A statement's error that op keeps to itself: PostgreSQL answers COMMIT with a rollback. That is no unknown outcome. Neither
// is a transaction that op has ended itself.
func TestTheCallersOwnCommitErrors(t *testing.T) {
	each(t, func(t *testing.T, k *kind) {
		direct := opened(t, sql.OpenDB(k.connector(k.at(t))))
		name := "own"
		if k.deaf {
			name += "pq"
		}
		table(t, direct, name, "n INTEGER PRIMARY KEY")
		d := newDependency(t, lull.Policy{})
		db := k.open(t, k.at(t), d)
		insert := "INSERT INTO " + name + " VALUES (1)"
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
		db := k.open(t, hangingUp(t), d)
		for end := time.Now().Add(time.Minute); f.refused.Load() == 0; {
			if db.Ping() == nil {
				t.Fatal("it answered")
			}
			if time.Now().After(end) {
				t.Fatalf("the circuit is closed after %d failures and %d that do not count", f.failed.Load(), f.others.Load())
			}
		}
		if f.others.Load() != 0 {
			t.Errorf("%d dials count for nothing", f.others.Load())
		}
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

// hangingUp returns the address of a server that closes each connection.
func hangingUp(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}
