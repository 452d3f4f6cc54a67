package lullpgx

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/sqlcall"
	"github.com/lullgo/lull/internal/sqlerr"
)

// ErrOutcomeUnknown is in the error of a transaction whose COMMIT was sent and not answered:
// nobody knows whether its changes were made. It is not repeated. It is lullsql's, too.
var ErrOutcomeUnknown = sqlcall.ErrOutcomeUnknown

// Classify returns the verdict on an error of pgx, and falls back on lull.Classify. NeverSent means
// here that the statement provably had no effect, because it did not reach the server or because
// the server has undone it. Use it with lull.WithClassifier for calls of lull.Do.
func Classify(err error) lull.Verdict {
	var dial *pgconn.ConnectError
	if errors.As(err, &dial) {
		err = &sqlcall.DialError{Err: err}
	}
	return sqlcall.Classify(err)
}

// Exec makes one statement as a call to d. It is repeated only if it provably had no effect: there
// was no connection to send it on, nothing of it was sent, or the server has undone it (a deadlock,
// for example). A statement whose connection broke before the answer may
// have been carried out, and is not repeated.
//
// That the server has undone it is a proof for a single statement that reads or changes rows: one that begins
// with SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES or WITH, with no other one after a semicolon. A CALL, a
// script, DDL, or a statement that was prepared by name may have committed a part before it failed. Such a
// query is repeated only if it was not sent.
//
// What may be carried out twice can be repeated in [Read], what does not commit in [Tx].
// When the call fails the error is a [*lull.Error]. Exec may be called concurrently.
func Exec(ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool, query string, args ...any) (pgconn.CommandTag, error) {
	var out pgconn.CommandTag
	var err error
	spec := engine.Spec{Operation: "exec", NotIdempotent: true}
	r := d.Drive(ctx, spec, func(ctx context.Context) (v lull.Verdict) {
		v, err = onConn(sqlcall.In(ctx, d), pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			out, err = conn.Exec(ctx, query, args...)
			return err
		})
		return sqlcall.Statement(v, err, query, args)
	}, nil, func() error { return err })
	return out, failed(d, spec, r, err)
}

// failed returns the error of a call that ended with r, and its last attempt with err.
func failed(d *lull.Dependency, spec engine.Spec, r engine.Result, err error) error {
	if r.Reason == engine.Success {
		return err
	}
	return d.Error(spec.Operation, r, err)
}

// Read calls op with a connection of pool, as a call to d that may be repeated: op only reads, or
// what it does may be done twice. Op uses the connection and the context that it gets, closes its
// rows before it returns, and does not release the connection. It must not keep either.
// With lull.NotIdempotent the call is repeated only as long as op has not been called.
//
// The error pgx.ErrNoRows is an answer: it is returned as it is, and is no failure. Any other error
// is a [*lull.Error]. lull.Operation names the call; without it the name is "read". Read may be
// called concurrently.
func Read[T any](ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool, op func(context.Context, *pgxpool.Conn) (T, error), opts ...lull.CallOption) (T, error) {
	var out T
	var err error
	spec := engine.Spec{Operation: "read"}
	sqlcall.Apply(opts, &spec)
	r := d.Drive(ctx, spec, func(ctx context.Context) (v lull.Verdict) {
		v, err = onConn(sqlcall.In(ctx, d), pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			out, err = op(ctx, conn)
			return err
		})
		return sqlcall.Several(v, err)
	}, nil, func() error { return err })
	return out, failed(d, spec, r, err)
}

// Tx runs op in a transaction of pool and commits it, as a call to d, as pgx.BeginTxFunc does once.
// The whole transaction is run again if it failed before its COMMIT in a way that another attempt
// may mend, because then it had no effect: the connection broke, the server restarted, another
// transaction was in the way. After the first conflict with another transaction that is at once,
// after others with a wait.
//
// If COMMIT was sent and not answered, the error is [ErrOutcomeUnknown] and nothing is repeated.
// With lull.Idempotent it is repeated: the transaction may be carried out twice.
//
// Op may be called several times. It makes its changes in tx alone, with the context that it gets,
// returns the errors of its statements (wrapped, if it likes), and neither commits nor rolls back.
// An error that op returns of its own ends the call: the transaction is rolled back. So does an
// error of a statement that op kept to itself: the server then rolls back (pgx.ErrTxCommitRollback). So does a write
// under pgx.ReadOnly.
// When the call fails the error is a [*lull.Error]. lull.Operation names the call; without it the
// name is "tx". Tx may be called concurrently.
func Tx(ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool, txOpts pgx.TxOptions, op func(context.Context, pgx.Tx) error, opts ...lull.CallOption) error {
	return sqlcall.Tx(ctx, d, opts, func(ctx context.Context, twice bool) (lull.Verdict, error) {
		return onConn(ctx, pool, func(ctx context.Context, conn *pgxpool.Conn) error {
			return transact(ctx, conn, txOpts, twice, op)
		})
	})
}

func transact(ctx context.Context, conn *pgxpool.Conn, opts pgx.TxOptions, twice bool, op func(context.Context, pgx.Tx) error) error {
	tx, err := conn.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) // after Commit it does nothing; if ctx is over it closes the connection
	if err := op(ctx, tx); err != nil {
		return sqlcall.Own(err, opts.AccessMode == pgx.ReadOnly)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err = tx.Commit(ctx); err != nil && !twice {
		return sqlcall.Unanswered(err, conn.Conn().PgConn().TxStatus() == sqlerr.IdleStatus)
	}
	return err
}

// onConn calls op with a connection and releases it.
func onConn(ctx context.Context, pool *pgxpool.Pool, op func(context.Context, *pgxpool.Conn) error) (lull.Verdict, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		if s := pool.Stat(); err == context.DeadlineExceeded && s.AcquiredConns() >= s.MaxConns() {
			err = sqlcall.PoolFull(err)
		} else {
			err = &sqlcall.DialError{Err: err}
		}
		return sqlcall.Judge(err, nil), err
	}
	defer conn.Release()
	if err := op(ctx, conn); err != nil {
		v := sqlcall.Judge(err, conn.Conn().IsClosed)
		if sqlcall.GiveUp(v, err) {
			conn.Conn().Close(ctx)
		}
		return v, err
	}
	return sqlcall.Success, nil
}
