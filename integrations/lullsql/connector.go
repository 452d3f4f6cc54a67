package lullsql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/sqlcall"
)

// DefaultMaxDials is how many dials a Connector has in flight at most, if Config.MaxDials is zero.
const DefaultMaxDials = 4

// A Config configures a Connector. Its zero value is the recommended one.
type Config struct {
	// MaxDials is the most dials in flight. Others wait for one of them to end. Zero means
	// DefaultMaxDials.
	MaxDials int
}

// NewConnector returns a connector that dials with base under the policy of d, for sql.OpenDB. A dial for [Exec], [Read] or [Tx] on the same d is a part of that call: it is made once, and the
// call decides whether to try again. Any other dial, such as one for a statement of the plain
// sql.DB, is a call of its own with the operation "connect". It is repeated as the policy allows
// and as the budget pays, and refused while the circuit is open. Its error is a [*lull.Error].
//
// No error of a dial is a driver.ErrBadConn, whatever base returns: database/sql would dial twice
// more at once. A dial that has failed is not an attempt that may have had an effect, so even a
// write may be repeated after it.
//
// The connector may be used concurrently. It is an io.Closer if base is one.
func NewConnector(base driver.Connector, d *lull.Dependency, c Config) (driver.Connector, error) {
	switch {
	case base == nil:
		return nil, errors.New("lullsql: NewConnector: base is nil: want a driver's connector")
	case d == nil:
		return nil, errors.New("lullsql: NewConnector: the dependency is nil: make one with lull.NewDependency")
	case c.MaxDials < 0:
		return nil, fmt.Errorf("lullsql: NewConnector: Config.MaxDials is %d: want a positive number, or 0 for the default of %d", c.MaxDials, DefaultMaxDials)
	case c.MaxDials == 0:
		c.MaxDials = DefaultMaxDials
	}
	plain := &connector{base, d, make(chan struct{}, c.MaxDials)}
	if closer, ok := base.(io.Closer); ok {
		return struct {
			*connector
			io.Closer
		}{plain, closer}, nil
	}
	return plain, nil
}

type connector struct {
	base  driver.Connector
	d     *lull.Dependency
	dials chan struct{} // holds one for each dial in flight
}

func (c *connector) Driver() driver.Driver { return c.base.Driver() }

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if sqlcall.InCall(ctx, c.d) {
		return c.dial(ctx)
	}
	var conn driver.Conn
	err := sqlcall.Call(ctx, c.d, engine.Spec{Operation: "connect"}, func(ctx context.Context) (v lull.Verdict, err error) {
		if conn, err = c.dial(ctx); err != nil {
			return judge(nil, err), err
		}
		return sqlcall.Success, nil
	})
	return conn, err
}

// dial dials once, when there is room.
func (c *connector) dial(ctx context.Context) (driver.Conn, error) {
	select {
	case c.dials <- struct{}{}:
	case <-ctx.Done():
		return nil, &sqlcall.DialError{Err: ctx.Err()}
	}
	defer func() { <-c.dials }()
	conn, err := c.base.Connect(ctx)
	if err != nil {
		return nil, &sqlcall.DialError{Err: err}
	}
	return conn, nil
}
