package lullsql

import (
	"context"
	"database/sql"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sqlcall"
)

// ErrOutcomeUnknown is in the error of a transaction whose COMMIT was sent and not answered:
// nobody knows whether its changes were made. It is not repeated.
var ErrOutcomeUnknown = sqlcall.ErrOutcomeUnknown

// Tx runs op in a transaction of db and commits it, as a call to d. The whole transaction is run
// again if it failed before its COMMIT in a way that another attempt may mend, because then it
// had no effect: the connection broke, the server restarted, another transaction was in the way.
// After the first conflict with another transaction that is at once, after others with a wait.
//
// If COMMIT was sent and not answered, the error is [ErrOutcomeUnknown] and nothing is repeated.
// With lull.Idempotent it is repeated: the transaction may be carried out twice.
//
// Op may be called several times. It makes its changes in tx alone, with the context that it gets,
// returns the errors of its statements (wrapped, if it likes), and neither commits nor rolls back.
// An error that op returns of its own ends the call: the transaction is rolled back. When the call
// fails the error is a [*lull.Error]. opts may be nil. lull.Operation names the call; without it
// the name is "tx". Tx may be called concurrently.
func Tx(ctx context.Context, d *lull.Dependency, db *sql.DB, opts *sql.TxOptions, op func(context.Context, *sql.Tx) error, callOpts ...lull.CallOption) error {
	t := transaction{db: db, opts: opts, op: op}
	return sqlcall.Tx(ctx, d, callOpts, t.run)
}

// transaction is one call of Tx.
type transaction struct {
	db   *sql.DB
	opts *sql.TxOptions
	op   func(context.Context, *sql.Tx) error
}

// run runs the transaction once.
func (t *transaction) run(ctx context.Context, twice bool) (lull.Verdict, error) {
	return onConn(ctx, t.db, func(ctx context.Context, conn *sql.Conn) error { return t.on(ctx, conn, twice) })
}

// on runs the transaction on conn.
func (t *transaction) on(ctx context.Context, conn *sql.Conn, twice bool) error {
	tx, err := conn.BeginTx(ctx, t.opts)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := t.op(ctx, tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err = tx.Commit(); err != nil && !twice {
		return sqlcall.Unanswered(err)
	}
	return err
}
