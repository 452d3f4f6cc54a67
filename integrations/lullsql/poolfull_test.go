package lullsql

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
)

// The caller's own limit of connections shows nothing of the database: who waits for one in vain opens no circuit. A
// database that makes no connection in the time of a call does.
func TestRule23ThePoolIsFull(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, d *lull.Dependency, db *sql.DB) error{
		"exec": func(ctx context.Context, d *lull.Dependency, db *sql.DB) error {
			_, err := Exec(ctx, d, db, "INSERT INTO t VALUES (1)")
			return err
		},
		"read": func(ctx context.Context, d *lull.Dependency, db *sql.DB) error {
			_, err := Read(ctx, d, db, func(context.Context, *sql.Conn) (int, error) { return 0, nil })
			return err
		},
		"tx": func(ctx context.Context, d *lull.Dependency, db *sql.DB) error {
			return Tx(ctx, d, db, nil, func(context.Context, *sql.Tx) error { return nil })
		},
	} {
		for _, hangs := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newDependency(t, lull.Policy{AttemptTimeout: time.Second, Deadline: 10 * time.Second, Breaker: breaker.Config{Consecutive: 2}})
					var f fake
					if hangs {
						f.dial = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
					}
					db := f.open(t, d)
					db.SetMaxOpenConns(1)
					if !hangs {
						conn, err := db.Conn(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						defer conn.Close()
					}
					for range 5 {
						e, ok := errors.AsType[*lull.Error](call(t.Context(), d, db))
						if !ok || !hangs && (!e.Verdict.CallerSide() || e.Attempts < 2) { // nothing was sent, so it may be repeated
							t.Errorf("%v", e)
						}
					}
					if open := d.Breaker().State(d.Now()) != breaker.Closed; open != hangs {
						t.Errorf("the database hangs: %v; the circuit is open: %v", hangs, open)
					}
				})
			})
		}
	}
}
