package lullsql

import (
	"context"
	"database/sql"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sqlcall"
)

// ErrOutcomeUnknown is in the error of a transaction whose COMMIT was sent and not answered, or which was
// rolled back by a server that keeps the changes of some of its tables: nobody knows whether its
// changes were made. It is not repeated.
var ErrOutcomeUnknown = sqlcall.ErrOutcomeUnknown

// Tx runs op in a transaction of db and commits it, as a call to d. The whole transaction is run
// again if it failed before its COMMIT in a way that another attempt may mend, because then it
// had no effect: the connection broke, the server restarted, another transaction was in the way.
// After the first conflict with another transaction it is run again at once, after later ones with a
// wait. With lull.Once it is not run again.
//
// If COMMIT was sent and not answered, or MySQL or MariaDB could not roll back all tables, the error is
// [ErrOutcomeUnknown] and nothing is repeated. With lull.Idempotent the transaction is repeated: it may be carried out twice.
//
// Op may be called several times. It makes its changes in tx alone, with the context that it gets,
// returns the errors of its statements (they may be wrapped), and neither commits nor rolls back, nor contains what commits
// by itself (DDL in MySQL, MariaDB and Oracle). The call ends with an error of op's own, with a write under
// sql.TxOptions.ReadOnly, and, if PostgreSQL rolls back, with a statement's error that op did not return. When the call
// fails the error is a [*lull.Error]. opts may be nil. lull.Operation names the call; without it
// the name is "tx". Tx may be called concurrently.
func Tx(ctx context.Context, d *lull.Dependency, db *sql.DB, opts *sql.TxOptions, op func(context.Context, *sql.Tx) error, callOpts ...lull.CallOption) error {
	return sqlcall.Tx(ctx, d, callOpts, func(ctx context.Context, twice bool) (lull.Verdict, error) {
		return onConn(ctx, db, true, func(ctx context.Context, conn *sql.Conn) error {
			err := transact(ctx, conn, opts, twice, op)
			if err == nil || twice {
				return err
			}
			return sqlcall.CheckRolledBack(ctx, conn, err)
		})
	})
}

func transact(ctx context.Context, conn *sql.Conn, opts *sql.TxOptions, twice bool, op func(context.Context, *sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := op(ctx, tx); err != nil {
		return sqlcall.OfCaller(err, opts != nil && opts.ReadOnly)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err = tx.Commit(); err != nil && !twice {
		return sqlcall.CommitError(err, idle(conn))
	}
	return err
}
