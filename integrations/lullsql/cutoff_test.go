package lullsql

import (
	"context"
	"database/sql"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/cutofftest"
)

// What ended an attempt is decided by who ended its context, in a statement, an operation, a transaction, and in a dial for
// each and for a statement of the plain sql.DB.
func TestWhoCutTheAttemptOff(t *testing.T) {
	for name, c := range map[string]func(ctx context.Context, d *lull.Dependency, db *sql.DB, attempt func(context.Context) error) error{
		"exec": func(ctx context.Context, d *lull.Dependency, db *sql.DB, _ func(context.Context) error) error {
			_, err := Exec(ctx, d, db, "")
			return err
		},
		"read": func(ctx context.Context, d *lull.Dependency, db *sql.DB, attempt func(context.Context) error) error {
			_, err := Read(ctx, d, db, func(ctx context.Context, _ *sql.Conn) (int, error) { return 0, attempt(ctx) })
			return err
		},
		"tx": func(ctx context.Context, d *lull.Dependency, db *sql.DB, attempt func(context.Context) error) error {
			return Tx(ctx, d, db, nil, func(ctx context.Context, _ *sql.Tx) error { return attempt(ctx) })
		},
		"dial": func(ctx context.Context, d *lull.Dependency, db *sql.DB, _ func(context.Context) error) error {
			return db.PingContext(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cutofftest.Test(t, func(t *testing.T, p lull.Policy) cutofftest.Call {
				var f fake
				d := newDependency(t, p)
				db := f.open(t, d)
				return func(ctx context.Context, attempt func(context.Context) error) error {
					switch name {
					case "exec":
						f.exec = func(c *fakeConn) error { return attempt(c.ctx) }
					case "dial":
						f.dial = attempt
					}
					return c(ctx, d, db, attempt)
				}
			})
		})
	}
}
