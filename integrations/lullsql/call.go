package lullsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/sqlcall"
)

// Exec makes one statement as a call to d. It is repeated only if it provably had no effect: there
// was no connection to send it on, or the server has undone it (a deadlock, for example). The latter is a
// proof only for a single statement that reads or changes rows. A CALL, a script, or DDL may have
// committed a part: it is repeated only if it was not sent. A driver.ErrBadConn is no proof of that:
// lib/pq returns it for statements that were sent. docs/protocols.md has the rules.
//
// Use [Read] for what may be carried out twice, and [Tx] for what does not commit by itself. When the call fails the error
// is a [*lull.Error]. Exec may be called concurrently.
func Exec(ctx context.Context, d *lull.Dependency, db *sql.DB, query string, args ...any) (sql.Result, error) {
	var out sql.Result
	err := sqlcall.Call(ctx, d, engine.Spec{Operation: "exec", NotIdempotent: true}, func(ctx context.Context) (lull.Verdict, error) {
		ctx = sqlcall.WithCall(ctx, d)
		conn, err := db.Conn(ctx)
		if err != nil {
			err = noConn(db, err)
			return judge(nil, err), err
		}
		defer conn.Close()
		if out, err = conn.ExecContext(ctx, query, args...); err == nil {
			return sqlcall.Success, nil
		}
		v := sqlcall.VerdictOnStatement(judge(conn, err), err, query, args)
		if v.NeverSent {
			if err = sqlcall.CheckRolledBack(ctx, conn, err); errors.Is(err, ErrOutcomeUnknown) {
				return sqlcall.Classify(err), err
			}
		}
		return closeIfUseless(conn, v, err), err
	})
	return out, err
}

// Read calls op with a connection of db, as a call to d that may be repeated: op only reads, or
// what it does may be done twice. Op uses the connection and the context that it gets, closes its
// rows before it returns, and does not close the connection. Op must not keep either.
// With lull.NotIdempotent the call is repeated only as long as op has not been called.
//
// The error sql.ErrNoRows is an answer: it is returned as it is, and is no failure. Any other
// error is a [*lull.Error]. lull.Operation names the call; without it the name is "read". Read may
// be called concurrently.
func Read[T any](ctx context.Context, d *lull.Dependency, db *sql.DB, op func(context.Context, *sql.Conn) (T, error), opts ...lull.CallOption) (T, error) {
	var out T
	spec := engine.Spec{Operation: "read"}
	sqlcall.Apply(opts, &spec)
	err := sqlcall.Call(ctx, d, spec, func(ctx context.Context) (lull.Verdict, error) {
		v, err := onConn(sqlcall.WithCall(ctx, d), db, !spec.NotIdempotent, func(ctx context.Context, conn *sql.Conn) (err error) {
			out, err = op(ctx, conn)
			return err
		})
		return sqlcall.VerdictOnSeveral(v, err), err
	})
	return out, err
}

// deadConns is how many dead connections of the pool an attempt passes over, as database/sql does
// for statements of the sql.DB. After that it dials.
const deadConns = 2

// onConn calls op with a connection. If the connection was dead before anything was sent on it,
// and again is set, onConn calls op with another one. That is no retry: op is to get a connection
// that works.
func onConn(ctx context.Context, db *sql.DB, again bool, op func(context.Context, *sql.Conn) error) (lull.Verdict, error) {
	for dead := 0; ; dead++ {
		conn, err := db.Conn(ctx)
		if err != nil {
			err = noConn(db, err)
			return judge(nil, err), err
		}
		v, err := callWith(ctx, conn, op)
		unsent := v.Kind == lull.KindTransient && v.NeverSent && errors.Is(err, driver.ErrBadConn)
		if dead == deadConns || !again || !unsent || ctx.Err() != nil {
			return v, err
		}
	}
}

// noConn returns the error of a call that got no connection of db. Connections that are being dialled count as in use, but
// the call that dials one gets the error of the dial.
func noConn(db *sql.DB, err error) error {
	if s := db.Stats(); err == context.DeadlineExceeded && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
		return sqlcall.PoolFull(err)
	}
	return sqlcall.NoConn(err)
}

func callWith(ctx context.Context, conn *sql.Conn, op func(context.Context, *sql.Conn) error) (lull.Verdict, error) {
	defer conn.Close()
	if err := op(ctx, conn); err != nil {
		return closeIfUseless(conn, judge(conn, err), err), err
	}
	return sqlcall.Success, nil
}

// closeIfUseless returns v, the verdict on err. It closes conn if the pool should dial another one.
func closeIfUseless(conn *sql.Conn, v lull.Verdict, err error) lull.Verdict {
	if sqlcall.ShouldClose(v, err) {
		conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return v
}
