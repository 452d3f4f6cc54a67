package lullsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
)

// fake is a driver that does what a test scripts. What real drivers do is tested in sqltest.
type fake struct {
	dial   func(ctx context.Context) error
	exec   func(c *fakeConn) error
	begin  func() error
	commit func(c *fakeConn) error
	query  func(query string) (driver.Rows, error)
	dials  int
	closed bool
}

func (f *fake) Driver() driver.Driver { return nil }
func (f *fake) Close() error          { f.closed = true; return nil }

func (f *fake) Connect(ctx context.Context) (driver.Conn, error) {
	f.dials++
	if f.dial != nil {
		if err := f.dial(ctx); err != nil {
			return nil, err
		}
	}
	return &fakeConn{f: f}, nil
}

type fakeConn struct {
	f      *fake
	ctx    context.Context // of the statement
	broken bool
}

func (c *fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not scripted") }
func (c *fakeConn) Close() error                        { return nil }
func (c *fakeConn) IsValid() bool                       { return !c.broken }

func (c *fakeConn) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	c.ctx = ctx
	if c.f.exec != nil {
		if err := c.f.exec(c); err != nil {
			return nil, err
		}
	}
	return driver.RowsAffected(1), nil
}

func (c *fakeConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if c.f.query == nil {
		return nil, errors.New("not scripted")
	}
	return c.f.query(query)
}

func (c *fakeConn) Begin() (driver.Tx, error) {
	if c.f.begin != nil {
		if err := c.f.begin(); err != nil {
			return nil, err
		}
	}
	return fakeTx{c}, nil
}

type fakeTx struct{ c *fakeConn }

func (t fakeTx) Rollback() error { return nil }
func (t fakeTx) Commit() error {
	if t.c.f.commit != nil {
		return t.c.f.commit(t.c)
	}
	return nil
}

func newDependency(t testing.TB, p lull.Policy, opts ...lull.Option) *lull.Dependency {
	t.Helper()
	return must.Have(lull.NewDependency("db", p, append(opts, lull.WithRand(seed.Source(t)))...))
}

// open opens f under d.
func (f *fake) open(t testing.TB, d *lull.Dependency) *sql.DB {
	t.Helper()
	c := must.Have(NewConnector(f, d, Config{}))
	db := sql.OpenDB(c)
	t.Cleanup(func() { db.Close() })
	return db
}
