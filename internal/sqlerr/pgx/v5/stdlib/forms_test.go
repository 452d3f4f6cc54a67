// Package stdlib has types with the forms of pgx's connections for database/sql, which package sqlerr recognises by
// the path of their package. Pgx's own is tested in lullsql/sqltest.
package stdlib

import (
	"testing"

	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/sqlerr"
)

// conn has pgx's form.
type (
	conn   struct{ status byte }
	pgx    struct{ status byte }
	pgConn struct{ status byte }
)

func (c *conn) Conn() *pgx         { return &pgx{c.status} }
func (c *pgx) PgConn() *pgConn     { return &pgConn{c.status} }
func (c *pgConn) TxStatus() byte   { return c.status }
func (text) TxStatus() string      { return "I" }
func (failing) Conn() (*pgx, bool) { return &pgx{'I'}, true }
func (argument) Conn(int) *pgx     { return &pgx{'I'} }
func (both) Conn(int) (*pgx, bool) { return &pgx{'I'}, true }
func (nothing) Conn()              {}
func (shorter) Conn() *pgConn      { return &pgConn{'I'} }
func (words) Conn() wordsPgx       { return wordsPgx{} }
func (wordsPgx) PgConn() text      { return text{} }

// Forms that pgx may get.
type (
	text     struct{}
	failing  struct{}
	argument struct{}
	both     struct{}
	nothing  struct{}
	shorter  struct{}
	words    struct{}
	wordsPgx struct{}
	none     struct{}
)

// What a connection says that it is in is believed, and a form that is not known says nothing.
func TestIdle(t *testing.T) {
	for status, want := range map[byte]bool{'I': true, 'T': false, 'E': false, 0: false} {
		check.Equal(t, sqlerr.Idle(&conn{status}), want, "%c", status)
	}
	for _, c := range []any{(*conn)(nil), failing{}, argument{}, both{}, nothing{}, shorter{}, words{}, none{}, &none{}, pgConn{'I'}} {
		if sqlerr.Idle(c) {
			t.Errorf("%T is idle", c)
		}
	}
}

// MySQLError has the name of go-sql-driver's error, and not its form.
type MySQLError string

func (e MySQLError) Error() string { return string(e) }

func TestAnotherMySQLError(t *testing.T) {
	for _, err := range []error{MySQLError("1213"), new(MySQLError)} {
		if c, known := sqlerr.Classify(err); known {
			t.Errorf("%T: %+v", err, c)
		}
	}
}
