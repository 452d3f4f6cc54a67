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
// nobody knows whether its changes were made. It is not repeated. lullsql has the same error.
var ErrOutcomeUnknown = sqlcall.ErrOutcomeUnknown

// Classify returns the verdict on an error of pgx, and falls back on lull.Classify. NeverSent means
// here that the statement provably had no effect, because it did not reach the server or because
// the server has undone it. Use it with lull.WithClassifier for calls of lull.Do.
func Classify(err error) lull.Verdict {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = &sqlcall.DialError{Err: err}
	}
	return sqlcall.Classify(err)
}

// Exec makes one statement as a call to d, by the rules of lullsql.Exec. They hold for a statement that was prepared by name,
// too.
//
// When the call fails the error is a [*lull.Error]. Exec may be called concurrently.
func Exec(ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool, query string, args ...any) (pgconn.CommandTag, error) {
	var out pgconn.CommandTag
	err := sqlcall.Call(ctx, d, engine.Spec{Operation: "exec", NotIdempotent: true}, func(ctx context.Context) (lull.Verdict, error) {
		v, err := onConn(sqlcall.WithCall(ctx, d), pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			out, err = conn.Exec(ctx, query, args...)
			return err
		})
		return sqlcall.VerdictOnStatement(v, err, query, args), err
	})
	return out, err
}

// Read calls op with a connection of pool, as a call to d that may be repeated, as lullsql.Read does. Op does not
// release the connection.
//
// The error pgx.ErrNoRows is an answer: it is returned as it is, and is no failure. Any other error
// is a [*lull.Error]. Read may be called concurrently.
func Read[T any](ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool, op func(context.Context, *pgxpool.Conn) (T, error), opts ...lull.CallOption) (T, error) {
	var out T
	spec := engine.Spec{Operation: "read"}
	sqlcall.Apply(opts, &spec)
	err := sqlcall.Call(ctx, d, spec, func(ctx context.Context) (lull.Verdict, error) {
		v, err := onConn(sqlcall.WithCall(ctx, d), pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			out, err = op(ctx, conn)
			return err
		})
		return sqlcall.VerdictOnSeveral(v, err), err
	})
	return out, err
}

// Tx runs op in a transaction of pool and commits it, as a call to d. It does what pgx.BeginTxFunc does, and repeats that by
// the rules of lullsql.Tx. If op does not return the error of a statement, the call ends with pgx.ErrTxCommitRollback. A write
// under pgx.ReadOnly ends it, too.
//
// When the call fails the error is a [*lull.Error], with [ErrOutcomeUnknown] in it if COMMIT was sent and not answered.
// Tx may be called concurrently.
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
		return sqlcall.OfCaller(err, opts.AccessMode == pgx.ReadOnly)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err = tx.Commit(ctx); err != nil && !twice {
		return sqlcall.CommitError(err, conn.Conn().PgConn().TxStatus() == sqlerr.IdleStatus)
	}
	return err
}

func onConn(ctx context.Context, pool *pgxpool.Pool, op func(context.Context, *pgxpool.Conn) error) (lull.Verdict, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		if s := pool.Stat(); err == context.DeadlineExceeded && s.AcquiredConns() >= s.MaxConns() {
			err = sqlcall.PoolFull(err)
		} else {
			err = &sqlcall.DialError{Err: err}
		}
		return sqlcall.VerdictOn(err, nil), err
	}
	defer conn.Release()
	if err := op(ctx, conn); err != nil {
		v := sqlcall.VerdictOn(err, conn.Conn().IsClosed)
		if sqlcall.ShouldClose(v, err) {
			conn.Conn().Close(ctx)
		}
		return v, err
	}
	return sqlcall.Success, nil
}
