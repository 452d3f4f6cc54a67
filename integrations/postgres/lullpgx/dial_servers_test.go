//go:build servers

package lullpgx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/dbserver"
	"github.com/lullgo/lull/internal/must"
)

// While the database is down, dials stay below 1.1 × those of normal operation and two, where a
// statement needs one. The default mode of TLS of pgx alone dials twice.
func TestDialsWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	const statements = 60
	p := dbserver.NewProxy(t, server.Addr(t), 0, 0)
	d := newDependency(t, lull.Policy{})
	pool := open(t, strings.Replace(url(p.Addr()), "disable", "prefer", 1), d, lullpgx.Config{}, func(c *pgxpool.Config) {
		c.AfterRelease = func(*pgx.Conn) bool { return false } // a statement needs a dial, also in normal operation
	})
	calls := func(exec func(ctx context.Context) error) (made, succeeded int) {
		before := p.Dials.Load()
		for range statements {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if exec(ctx) == nil {
				succeeded++
			}
			cancel()
		}
		return int(p.Dials.Load() - before), succeeded
	}
	calling := func(ctx context.Context) error { _, err := lullpgx.Exec(ctx, d, pool, "SELECT 1"); return err }
	plain := func(ctx context.Context) error { _, err := pool.Exec(ctx, "SELECT 1"); return err }
	// The server has no TLS: pgx dials for a connection with it, and then one without.
	normal, ok := calls(calling)
	if ok != statements || normal < statements || normal > 2*statements+2 {
		t.Fatalf("in normal operation %d of %d succeeded, with %d dials", ok, statements, normal)
	}
	p.Down.Store(true)
	down, ok := calls(calling)
	plainDials, _ := calls(plain)
	if most := 1.1*float64(statements) + 2; ok != 0 || float64(down) > most || float64(plainDials) > most {
		t.Errorf("without a database %d of %d statements succeeded; %d and %d dials, want at most %v", ok, statements, down, plainDials, most)
	}
}

// What was in the config before is called, too.
func TestHooksAreKept(t *testing.T) {
	t.Parallel()
	var before, after, validated, refused atomic.Int32
	d := newDependency(t, lull.Policy{})
	pool := open(t, url(server.Addr(t)), d, lullpgx.Config{}, func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { before.Add(1); return nil }
		c.ConnConfig.AfterConnect = func(context.Context, *pgconn.PgConn) error { after.Add(1); return nil }
		c.ConnConfig.ValidateConnect = func(context.Context, *pgconn.PgConn) error { validated.Add(1); return nil }
		refuses := c.ConnConfig.OnPgError
		c.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool { refused.Add(1); return refuses(conn, err) }
	})
	must.Have(lullpgx.Exec(t.Context(), d, pool, "SELECT 1"))
	if _, err := lullpgx.Exec(t.Context(), d, pool, "SELECT 1/0"); err == nil {
		t.Error("it succeeded")
	}
	if before.Load() != 1 || after.Load() != 1 || validated.Load() != 1 || refused.Load() != 1 {
		t.Errorf("BeforeConnect was called %d times, AfterConnect %d times, ValidateConnect %d times, OnPgError %d times", before.Load(), after.Load(), validated.Load(), refused.Load())
	}
}

// The errors of such hooks are those of the dial.
func TestTheErrorsOfHooksAreKept(t *testing.T) {
	t.Parallel()
	own := errors.New("not this one")
	hook := func(context.Context, *pgconn.PgConn) error { return own }
	for name, set := range map[string]func(*pgx.ConnConfig){
		"AfterConnect":    func(c *pgx.ConnConfig) { c.AfterConnect = hook },
		"ValidateConnect": func(c *pgx.ConnConfig) { c.ValidateConnect = hook },
	} {
		pool := open(t, url(server.Addr(t)), newDependency(t, lull.Policy{}), lullpgx.Config{MaxDials: 1}, func(c *pgxpool.Config) { set(c.ConnConfig) })
		for range 2 {
			check.Is(t, pool.Ping(t.Context()), own, "%s", name)
		}
	}
}

// What a server answers is seen, also if the connection ends with it. After it was handed out, a connection is not dialled again, though another
// attempt might be accepted.
func TestADialThatIsRefusedIsNotRepeated(t *testing.T) {
	t.Parallel()
	exec(t, open(t, url(server.Addr(t)), nil, lullpgx.Config{}), "DROP ROLE IF EXISTS no_connections; CREATE ROLE no_connections LOGIN CONNECTION LIMIT 0")
	same := func(c net.Conn) net.Conn { return c }
	for name, x := range map[string]struct {
		wrap  func(net.Conn) net.Conn
		hosts int32 // pgx dials one after another
	}{
		"as it is":     {same, 1},
		"with the end": {func(c net.Conn) net.Conn { return withEnd{c} }, 1},
		"two hosts":    {same, 2},
	} {
		var seen connects
		var dials atomic.Int32
		to := strings.Replace(url(strings.Repeat(server.Addr(t)+",", int(x.hosts-1))+server.Addr(t)), "postgres@", "no_connections@", 1)
		pool := open(t, to, newDependency(t, lull.Policy{}, lull.WithObserver(&seen)), lullpgx.Config{MaxDials: 1}, func(c *pgxpool.Config) {
			wrapDials(c, func(conn net.Conn) net.Conn { dials.Add(1); return x.wrap(conn) })
		})
		calls := 5 * x.hosts
		for range 5 {
			if e, ok := errors.AsType[*pgconn.PgError](pool.Ping(t.Context())); !ok || e.Code != "53300" {
				t.Fatalf("%s: %v", name, e)
			}
		}
		for end := time.Now().Add(time.Minute); seen.failed.Load() < calls && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		err, _ := seen.err.Load().([]error)
		if seen.failed.Load() != calls || dials.Load() != calls || len(err) != 1 {
			t.Fatalf("%s: %d dials, %d failed, %d others: %v", name, dials.Load(), seen.failed.Load(), seen.others.Load(), err)
		}
		if e, ok := errors.AsType[*pgconn.PgError](err[0]); !ok || e.Code != "53300" {
			t.Errorf("%s: %v", name, err[0])
		}
	}
}

// withEnd is a connection that reports with what it reads that it has ended.
type withEnd struct{ net.Conn }

func (c withEnd) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// That a server refuses the database is no failure: nothing is known of others.
func TestADialThatIsAnswered(t *testing.T) {
	t.Parallel()
	var c connects
	pool := open(t, strings.Replace(url(server.Addr(t)), "/postgres?", "/nothing?", 1), newDependency(t, lull.Policy{}, lull.WithObserver(&c)), lullpgx.Config{})
	for c.answered.Load() < 100 {
		if pool.Ping(t.Context()) == nil {
			t.Fatal("it answered")
		}
		if c.failed.Load()+c.others.Load()+c.refused.Load() != 0 {
			t.Fatalf("%d failed, %d others, %d refused", c.failed.Load(), c.others.Load(), c.refused.Load())
		}
	}
	err, _ := c.err.Load().([]error)
	if pg, ok := errors.AsType[*pgconn.PgError](errors.Join(err...)); !ok || pg.Code != "3D000" {
		t.Errorf("%v", err)
	}
}

// breaking is a connection whose Close panics as long as bad is set.
type breaking struct {
	net.Conn
	bad *atomic.Bool
}

func (b breaking) Close() error {
	b.Conn.Close()
	if b.bad.Load() {
		panic("close-3141")
	}
	return nil
}

// cutOff closes a connection after it has answered once.
type cutOff struct {
	net.Conn
	reads int
}

func (c *cutOff) Read(p []byte) (int, error) {
	if c.reads++; c.reads > 1 {
		return 0, io.EOF
	}
	return c.Conn.Read(p[:1])
}

// mute is a connection whose answer does not come in time.
type mute struct{ net.Conn }

func (mute) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// unwritable cannot be written to.
type unwritable struct{ net.Conn }

func (unwritable) Write([]byte) (int, error) { return 0, errors.New("broken") }

// A pool dials in a goroutine of its own, and pgx closes in others: nobody could recover there. So the panic of a Close is an error of
// the dial, if the server has not accepted the user. Each dial gives its place back, and the next one is accepted.
func TestAPanicOfClose(t *testing.T) {
	t.Parallel()
	hangsUp := dbserver.NewProxy(t, "127.0.0.1:1", 0, 0)
	hangsUp.Down.Store(true)
	for _, x := range []struct {
		name, addr string
		wrap       func(net.Conn) net.Conn
		change     func(*pgx.ConnConfig)
		alone      bool // pgx's error has another reason: only that of a dial which is a call has the panic, too
	}{
		{name: "hangs up", addr: hangsUp.Addr()},
		{name: "broken later", addr: server.Addr(t), wrap: func(c net.Conn) net.Conn { return &cutOff{Conn: c} }},
		{name: "unwritable", addr: server.Addr(t), wrap: func(c net.Conn) net.Conn { return unwritable{c} }},
		{name: "mute", addr: server.Addr(t), wrap: func(c net.Conn) net.Conn { return mute{c} }, alone: true},
		{name: "refuses", addr: server.Addr(t), change: func(c *pgx.ConnConfig) { c.Database = "nothing" }, alone: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			var bad atomic.Bool
			var dials atomic.Int32
			var seen connects
			d := newDependency(t, lull.Policy{Attempts: 1, Breaker: breaker.Config{Off: true}}, lull.WithObserver(&seen))
			pool := open(t, url(server.Addr(t)), d, lullpgx.Config{MaxDials: 1}, func(c *pgxpool.Config) {
				c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
					if bad.Load() && x.change != nil {
						x.change(c)
					}
					return nil
				}
				dial := c.ConnConfig.DialFunc
				c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if !bad.Load() {
						return dial(ctx, network, addr)
					}
					dials.Add(1)
					conn, err := dial(ctx, network, x.addr)
					if err == nil && x.wrap != nil {
						conn = x.wrap(conn)
					}
					return breaking{conn, &bad}, err
				}
			})
			for caller, exec := range map[string]func() error{
				"call": func() error { _, err := lullpgx.Exec(t.Context(), d, pool, "SELECT 1"); return err },
				"pool": func() error { _, err := pool.Exec(t.Context(), "SELECT 1"); return err },
			} {
				pool.Reset()
				bad.Store(true)
				for range 3 {
					if err := exec(); err == nil || !x.alone && !strings.Contains(err.Error(), "close-3141") {
						t.Errorf("%s: %v", caller, err)
					}
				}
				bad.Store(false)
				check.Is(t, exec(), nil, "%s: afterwards", caller)
			}
			// Only the dials of the pool are calls. None is made to cancel a statement.
			calls := func() int32 { return seen.failed.Load() + seen.answered.Load() + seen.others.Load() }
			for end := time.Now().Add(time.Minute); calls() < 3 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			}
			if err, _ := seen.err.Load().([]error); calls() != 3 || !strings.Contains(fmt.Sprint(err), "close-3141") || dials.Load() != 6 {
				t.Errorf("%d of %d dials of the pool failed: %v", calls(), dials.Load(), err)
			}
		})
	}
}

// A DialFunc that panics, or ends its goroutine, does so in the goroutine that dials. It gives its place back.
func TestAPanicOfTheDialFunc(t *testing.T) {
	t.Parallel()
	config := must.Have(pgxpool.ParseConfig(url(server.Addr(t))))
	var next atomic.Pointer[func()]
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if f := next.Swap(nil); f != nil {
			(*f)()
		}
		return dial(ctx, network, addr)
	}
	d := newDependency(t, lull.Policy{Attempts: 1})
	must.Succeed(lullpgx.AddTo(config, d, lullpgx.Config{MaxDials: 1}))
	connect := func(ctx context.Context) (panicked any, err error) {
		err = errors.New("it did not return")
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { panicked = recover() }()
			one := config.ConnConfig.Copy()
			if failed := config.BeforeConnect(ctx, one); failed != nil {
				err = failed
				return
			}
			conn, failed := pgx.ConnectConfig(ctx, one)
			if err = failed; err == nil {
				conn.Close(ctx)
			}
		}()
		<-done
		return panicked, err
	}
	own := func(ctx context.Context) (any, error) { return connect(ctx) }
	call := func(ctx context.Context) (panicked any, err error) {
		lull.Run(ctx, d, func(ctx context.Context) error { panicked, err = connect(ctx); return nil })
		return panicked, err
	}
	for name, dial := range map[string]func(context.Context) (any, error){"own": own, "call": call} {
		for _, x := range []struct {
			f    func()
			want any
		}{{func() { panic("dial") }, "dial"}, {runtime.Goexit, nil}} {
			next.Store(&x.f)
			if panicked, err := dial(t.Context()); err == nil || panicked != x.want {
				t.Errorf("%s: panicked with %v, want %v: %v", name, panicked, x.want, err)
			}
			if panicked, err := dial(t.Context()); panicked != nil || err != nil {
				t.Errorf("%s: afterwards %v %v", name, panicked, err)
			}
		}
	}
}

// A server that has no TLS is well. pgx's default is to dial once more without.
func TestAServerWithoutTLSIsNoFailure(t *testing.T) {
	t.Parallel()
	var c connects
	d := newDependency(t, lull.Policy{}, lull.WithObserver(&c))
	pool := open(t, strings.Replace(url(server.Addr(t)), "disable", "prefer", 1), d, lullpgx.Config{})
	exec(t, pool, "SELECT 1")
	check.Equal(t, c.failed.Load()+c.answered.Load()+c.others.Load(), 0, "calls that failed")
}

// To cancel a statement pgx dials as well. That is no call.
func TestACancelledStatementIsNoConnect(t *testing.T) {
	t.Parallel()
	var c connects
	var dials, closed atomic.Int32
	pool := open(t, url(server.Addr(t)), newDependency(t, lull.Policy{}, lull.WithObserver(&c)), lullpgx.Config{}, func(config *pgxpool.Config) {
		wrapDials(config, func(conn net.Conn) net.Conn { dials.Add(1); return &closing{conn, &closed} })
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	conn := must.Have(pool.Acquire(t.Context()))
	if _, err := conn.Exec(ctx, "SELECT pg_sleep(60)"); err == nil {
		t.Error("it was not cancelled")
	}
	conn.Release()
	for end := time.Now().Add(time.Minute); dials.Load() < 2 || closed.Load() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d dials, %d closed", dials.Load(), closed.Load())
		}
	}
	pool.Close() // of its connections all are closed now
	check.Equal(t, c.succeeded.Load()+c.failed.Load()+c.answered.Load()+c.others.Load()+c.refused.Load(), 1, "calls")
}

// closing counts the connections that are closed.
type closing struct {
	net.Conn
	closed *atomic.Int32
}

func (c *closing) Close() error { c.closed.Add(1); return c.Conn.Close() }
