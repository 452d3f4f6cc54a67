package lullsql

import (
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/sqlcall"
	"github.com/lullgo/lull/internal/sqlerr"
)

// Classify returns the verdict on an error of database/sql or one of its drivers, and falls back
// on lull.Classify. NeverSent means here that the statement provably had no effect, because it
// did not reach the server or because the server has undone it. Use it with lull.WithClassifier
// for calls of lull.Do.
func Classify(err error) lull.Verdict { return sqlcall.Classify(err) }

// judge returns the verdict on what an attempt on conn ended with.
func judge(conn *sql.Conn, err error) lull.Verdict {
	return sqlcall.VerdictOn(err, func() bool { return broken(conn) })
}

// broken reports whether the connection can no longer be used, as far as its driver knows.
func broken(conn *sql.Conn) (yes bool) {
	if conn == nil {
		return false
	}
	err := conn.Raw(func(c any) error {
		v, ok := c.(driver.Validator)
		yes = ok && !v.IsValid()
		return nil
	})
	return yes || errors.Is(err, sql.ErrConnDone)
}

// idle reports whether the connection is in no transaction, by PostgreSQL's last answer.
func idle(conn *sql.Conn) (yes bool) {
	conn.Raw(func(c any) error {
		yes = sqlerr.Idle(c)
		return nil
	})
	return yes
}
