package lullpgx

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/internal/sqlcall"
)

// DefaultMaxDials is how many dials a pool has in flight at most, if Config.MaxDials is zero.
const DefaultMaxDials = 4

// A Config configures the dials of a pool. Its zero value is the recommended one.
type Config struct {
	// MaxDials is the most dials in flight, from the first packet until the server has accepted the
	// user. Others wait for one of them to end. Zero means DefaultMaxDials.
	MaxDials int
}

// AddTo puts the dials of the pools made of config under the policy of d. Call it before
// pgxpool.NewWithConfig, once, after all other changes of config: it sets BeforeConnect, and keeps
// the one that was there.
//
// lullsql.NewConnector describes which dials are calls of their own; so are dials in the background. If the connection was
// made and the server then does not accept the user, or closes it without an answer, the call has failed and is not repeated.
// If the Close of such a connection panics, that is an error of the dial: a pool dials in a goroutine of its own, where nobody
// could recover.
func AddTo(config *pgxpool.Config, d *lull.Dependency, c Config) error {
	switch {
	case config == nil || config.ConnConfig == nil:
		return errors.New("lullpgx: AddTo: there is no config: make one with pgxpool.ParseConfig")
	case d == nil:
		return errors.New("lullpgx: AddTo: the dependency is nil: make one with lull.NewDependency")
	case c.MaxDials < 0:
		return fmt.Errorf("lullpgx: AddTo: Config.MaxDials is %d: want a positive number, or 0 for the default of %d", c.MaxDials, DefaultMaxDials)
	case c.MaxDials == 0:
		c.MaxDials = DefaultMaxDials
	}
	dials := make(chan struct{}, c.MaxDials)
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		if before != nil {
			if err := before(ctx, c); err != nil {
				return err
			}
		}
		k := &connectionAttempt{d: d, dials: dials, base: c.DialFunc, failed: map[string]error{}}
		c.DialFunc = k.dial
		validate, after := c.ValidateConnect, c.AfterConnect
		c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			k.lastConn().end(true) // the server has accepted the user
			if validate == nil {
				return nil
			}
			return validate(ctx, conn)
		}
		c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			k.established.Store(true)
			if after == nil {
				return nil
			}
			return after(ctx, conn)
		}
		refuses := c.OnPgError
		c.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
			if !k.established.Load() {
				k.lastConn().refusal.Store(err)
			}
			return refuses == nil || refuses(conn, err)
		}
		return nil
	}
	return nil
}

// A connectionAttempt makes one connection of a pool. It dials one address after another.
type connectionAttempt struct {
	d     *lull.Dependency
	dials chan struct{} // holds one for each dial in flight
	base  pgconn.DialFunc

	established atomic.Bool // what is dialled from now on cancels a statement

	mu     sync.Mutex
	failed map[string]error // why an address could not be reached
	latest *dialledConn
}

var (
	// errNoAnswer: the server closed the connection without an answer, so the dial failed.
	errNoAnswer = errors.New("the connection was closed before the server accepted the user")
	errNoDial   = errors.New("lullpgx: the DialFunc ended its goroutine")
)

// dial dials addr as a part of the call that needs it, or as a call of its own.
func (k *connectionAttempt) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if network == refusedNetwork {
		return nil, errNoAnswer
	}
	if k.established.Load() {
		return k.base(ctx, network, addr)
	}
	k.mu.Lock()
	err := k.failed[addr]
	k.mu.Unlock()
	if err != nil { // a moment ago, for another mode of TLS
		return nil, err
	}
	var conn *dialledConn
	if sqlcall.InCall(ctx, k.d) {
		conn, err = k.dialOnce(ctx, network, addr)
	} else {
		conn, err = k.dialAsCall(ctx, network, addr)
	}
	if err != nil {
		k.fail(addr, err)
		return nil, err
	}
	return conn, nil
}

func (k *connectionAttempt) fail(addr string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed[addr] = err
}

// dialAsCall dials as a call of its own. The call continues, in its goroutine, until the server has accepted
// the user or the connection is closed. After a connection was handed out nothing is repeated.
//
// Pgx ends ctx when a dial has failed. The call ends with ctx only while the dial continues.
func (k *connectionAttempt) dialAsCall(ctx context.Context, network, addr string) (*dialledConn, error) {
	made := make(chan *dialledConn, 1)
	failed := make(chan error, 1)
	var panicked any // in the DialFunc, or an observer: it goes up where this is called
	own, cancel := detached(ctx)
	leave := func() { // its own deadline ends it otherwise
		if ctx.Err() == context.Canceled {
			cancel()
		}
	}
	stop := context.AfterFunc(ctx, leave)
	go func() {
		defer cancel()
		var err error
		handedOut, result := false, errNoDial
		defer func() {
			if !handedOut {
				panicked = recover()
				failed <- result
			}
		}()
		spec := engine.Spec{Operation: "connect", NotIdempotent: true} // but a dial that failed was never sent
		r := k.d.Drive(own, spec, func(ctx context.Context) lull.Verdict {
			var conn *dialledConn
			if conn, err = k.dialOnce(ctx, network, addr); err != nil {
				return sqlcall.VerdictOn(err, nil)
			}
			conn.release = func() { leave(); stop() }
			handedOut = true
			made <- conn
			select {
			case <-conn.ended:
			case <-ctx.Done():
				conn.end(false)
			}
			var v lull.Verdict
			v, err = conn.verdict(ctx)
			return v
		}, nil, func() error { return err })
		if !handedOut {
			result = k.d.Error(spec.Operation, r, err)
		}
	}()
	select {
	case conn := <-made:
		return conn, nil
	case err := <-failed:
		if panicked != nil {
			panic(panicked)
		}
		return nil, err
	}
}

// detached returns a context with the values and the deadline of ctx that does not end when ctx is cancelled.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	at, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, at)
}

// verdict returns the verdict on a dial that has ended, and its error.
func (c *dialledConn) verdict(ctx context.Context) (lull.Verdict, error) {
	if c.accepted.Load() || c.noTLS.Load() {
		return sqlcall.Success, nil
	}
	if err := ctx.Err(); err != nil {
		return lull.Classify(err), c.withPanic(err)
	}
	if err := c.refusal.Load(); err != nil {
		v := Classify(err)
		v.NeverSent = false // pgx does not wait for another dial
		return v, c.withPanic(err)
	}
	return lull.Verdict{Kind: lull.KindTransient, Code: "connection_lost"}, c.withPanic(errNoAnswer)
}

// dialOnce dials once, when there is room.
func (k *connectionAttempt) dialOnce(ctx context.Context, network, addr string) (*dialledConn, error) {
	select {
	case k.dials <- struct{}{}:
	case <-ctx.Done():
		return nil, &sqlcall.DialError{Err: ctx.Err()}
	}
	var conn *dialledConn
	defer func() {
		if conn == nil { // it failed, or panicked
			<-k.dials
		}
	}()
	base, err := k.base(ctx, network, addr)
	if err != nil {
		return nil, &sqlcall.DialError{Err: err}
	}
	conn = &dialledConn{Conn: base, k: k, addr: addr, ended: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = conn
	return conn, nil
}

// lastConn returns the last connection, for which pgx calls its hooks.
func (k *connectionAttempt) lastConn() *dialledConn {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.latest
}

// dialledConn is a connection. Its dial ends when the server accepts the user, or when it is closed.
type dialledConn struct {
	net.Conn
	k       *connectionAttempt
	addr    string
	once    sync.Once // closes Conn
	release func()    // after it, the call no longer ends with the dial's context

	answered atomic.Bool                    // the server has sent something
	noTLS    atomic.Bool                    // and said only that it has no TLS: pgx dials again without
	accepted atomic.Bool                    // set before ended is closed
	refusal  atomic.Pointer[pgconn.PgError] // why the server does not accept the user
	ending   atomic.Bool
	panicked any           // what Close panicked with, before ended is closed
	ended    chan struct{} // closed when the dial has ended
}

func (c *dialledConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && (!c.answered.Load() || c.noTLS.Load()) {
		c.noTLS.Store(n == 1 && p[0] == 'N' && !c.answered.Load())
		c.answered.Store(true)
	}
	return n, c.closeIfLost(n, err)
}

func (c *dialledConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.closeIfLost(n, err)
}

// closeIfLost returns the error of a Read or Write of n bytes that ended with err. It closes a connection that is broken and
// was not accepted. Pgx would close it next, and drop the error of Close.
func (c *dialledConn) closeIfLost(n int, err error) error {
	if err == nil || n > 0 || c.ending.Load() {
		return err
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return err
	}
	c.end(false)
	return c.withPanic(err)
}

// withPanic returns err, the error of a dial, and in it the panic of Close, if there was one.
func (c *dialledConn) withPanic(err error) error {
	if c.panicked == nil {
		return err
	}
	return fmt.Errorf("%w; the Close of the connection panicked: %v", err, c.panicked)
}

// Close closes the connection, once. If it was accepted, a panic of its Close is not recovered.
func (c *dialledConn) Close() error {
	c.end(false)
	err := net.ErrClosed
	c.once.Do(func() { err = c.Conn.Close() })
	return err
}

// end ends the dial, once, and returns when it has ended. A connection that was not accepted is
// closed before another dial may begin. If its Close panics it counts as closed.
func (c *dialledConn) end(accepted bool) {
	if !c.ending.CompareAndSwap(false, true) {
		<-c.ended
		return
	}
	if c.release != nil {
		c.release()
	}
	c.accepted.Store(accepted)
	defer close(c.ended)
	defer func() { <-c.k.dials }()
	if !accepted {
		if !c.answered.Load() {
			c.k.fail(c.addr, &sqlcall.DialError{Err: errNoAnswer})
		}
		defer func() { c.panicked = recover() }()
		c.once.Do(func() { c.Conn.Close() })
	}
}

// refusedNetwork is the network of a server that has not accepted the user.
const refusedNetwork = "not accepted"

type noAddr struct{ net.Addr }

func (noAddr) Network() string { return refusedNetwork }

// RemoteAddr returns the address of the server. After a lost dial it has the network refusedNetwork, so that pgx does not
// dial there once more to cancel a statement.
func (c *dialledConn) RemoteAddr() net.Addr {
	if c.ending.Load() && !c.accepted.Load() {
		return noAddr{c.Conn.RemoteAddr()}
	}
	return c.Conn.RemoteAddr()
}

// NetConn returns the connection below, as that of a tls.Conn.
func (c *dialledConn) NetConn() net.Conn { return c.Conn }
