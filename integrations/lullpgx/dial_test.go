package lullpgx_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/lullpgx"
	"github.com/lullgo/lull/internal/dbserver"
)

func TestAddToRefuses(t *testing.T) {
	config, err := pgxpool.ParseConfig(url("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	d := newDependency(t, lull.Policy{})
	for want, got := range map[string]error{
		"there is no config":     lullpgx.AddTo(nil, d, lullpgx.Config{}),
		"the dependency is nil":  lullpgx.AddTo(config, nil, lullpgx.Config{}),
		"Config.Dials is -1":     lullpgx.AddTo(config, d, lullpgx.Config{Dials: -1}),
		"want a positive number": lullpgx.AddTo(config, d, lullpgx.Config{Dials: -1}),
	} {
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
	if config.BeforeConnect != nil {
		t.Error("a refused config was changed")
	}
}

// While the database is down, dials stay below 1.1 × those of normal operation and two, where a
// statement needs one. pgx alone is counted beside it. Its default mode of TLS dials twice.
func TestDialsWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	const statements = 60
	p := dbserver.NewProxy(t, at(t), 0, 0)
	d := newDependency(t, lull.Policy{})
	prefer := strings.Replace(url(p.Addr()), "disable", "prefer", 1)
	// Each pool counts its own dials: pgx makes some after the statement has returned.
	counted := func(d *lull.Dependency) (*pgxpool.Pool, *atomic.Int64) {
		dials := new(atomic.Int64)
		return open(t, prefer, d, lullpgx.Config{}, func(c *pgxpool.Config) {
			c.AfterRelease = func(*pgx.Conn) bool { return false } // a statement needs a dial, also in normal operation
			dial := c.ConnConfig.DialFunc
			c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return dial(ctx, network, addr)
			}
		}), dials
	}
	bare, bareDials := counted(nil)
	with, withDials := counted(d)
	calls := func(dials *atomic.Int64, exec func(ctx context.Context) error) (made, succeeded int) {
		before := dials.Load()
		for range statements {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if exec(ctx) == nil {
				succeeded++
			}
			cancel()
		}
		return int(dials.Load() - before), succeeded
	}
	alone := func(ctx context.Context) error { _, err := bare.Exec(ctx, "SELECT 1"); return err }
	calling := func(ctx context.Context) error { _, err := lullpgx.Exec(ctx, d, with, "SELECT 1"); return err }
	plain := func(ctx context.Context) error { _, err := with.Exec(ctx, "SELECT 1"); return err }
	// The server has no TLS: pgx dials for a connection with it, and then one without.
	normal, ok := calls(withDials, calling)
	if ok != statements || normal < statements || normal > 2*statements+2 {
		t.Fatalf("in normal operation %d of %d succeeded, with %d dials", ok, statements, normal)
	}
	p.Down.Store(true)
	aloneDials, _ := calls(bareDials, alone)
	down, ok := calls(withDials, calling)
	plainDials, _ := calls(withDials, plain)
	t.Logf("dials for %d statements: normal %d; down: pgx alone %d, lullpgx.Exec %d, then the pool under the policy %d",
		statements, normal, aloneDials, down, plainDials)
	if ok != 0 {
		t.Errorf("%d of %d statements succeeded without a database", ok, statements)
	}
	if most := 1.1*float64(statements) + 2; float64(down) > most || float64(plainDials) > most {
		t.Errorf("%d and %d dials, more than %v", down, plainDials, most)
	}
}

// held is a dialer whose connections are never answered, and take a second to close. It counts them.
type held struct{ now, most atomic.Int32 }

func (h *held) dial(context.Context, string, string) (net.Conn, error) {
	n := h.now.Add(1)
	for m := h.most.Load(); n > m && !h.most.CompareAndSwap(m, n); m = h.most.Load() {
	}
	client, _ := net.Pipe()
	return &heldConn{Conn: client, h: h}, nil
}

type heldConn struct {
	net.Conn
	h      *held
	closed atomic.Bool
}

func (c *heldConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		time.Sleep(time.Second)
		c.h.now.Add(-1)
	}
	return c.Conn.Close()
}

// A dial is in flight until the server has accepted the user, or the connection is closed. So many
// at most are, whether the call dials or the pool does.
func TestDialsInFlight(t *testing.T) {
	t.Parallel()
	for name, exec := range map[string]func(context.Context, *lull.Dependency, *pgxpool.Pool) error{
		"call": func(ctx context.Context, d *lull.Dependency, pool *pgxpool.Pool) error {
			_, err := lullpgx.Exec(ctx, d, pool, "SELECT 1")
			return err
		},
		"pool": func(ctx context.Context, _ *lull.Dependency, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, "SELECT 1")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var h held
				d := newDependency(t, lull.Policy{Attempts: 1})
				pool := open(t, url("127.0.0.1:1")+"&connect_timeout=5", d, lullpgx.Config{Dials: 2}, func(c *pgxpool.Config) {
					c.ConnConfig.DialFunc = h.dial
				})
				var wg sync.WaitGroup
				for i := range 6 {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * time.Second) // the last have time left when the first close
						if exec(t.Context(), d, pool) == nil {
							t.Error("it succeeded without a server")
						}
					})
				}
				wg.Wait()
				if h.most.Load() != 2 {
					t.Errorf("%d dials in flight, want 2", h.most.Load())
				}
			})
		})
	}
}

func TestNoDialThroughAnOpenCircuit(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	d := newDependency(t, lull.Policy{})
	d.Breaker().ForceOpen(d.Now())
	pool := open(t, url("127.0.0.1:1"), d, lullpgx.Config{}, func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, errors.New("dialled")
		}
	})
	_, err := pool.Exec(t.Context(), "SELECT 1")
	if !errors.Is(err, lull.ErrCircuitOpen) || dials.Load() != 0 {
		t.Errorf("%d dials: %v", dials.Load(), err)
	}
}

// What was in the config before is called, too.
func TestHooksAreKept(t *testing.T) {
	t.Parallel()
	var before, after atomic.Int32
	d := newDependency(t, lull.Policy{})
	pool := open(t, url(at(t)), d, lullpgx.Config{}, func(c *pgxpool.Config) {
		c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { before.Add(1); return nil }
		c.ConnConfig.AfterConnect = func(context.Context, *pgconn.PgConn) error { after.Add(1); return nil }
	})
	if _, err := lullpgx.Exec(t.Context(), d, pool, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	if before.Load() == 0 || after.Load() == 0 {
		t.Errorf("BeforeConnect was called %d times, AfterConnect %d times", before.Load(), after.Load())
	}
}

// failures counts the calls that failed.
type failures struct{ n atomic.Int32 }

func (f *failures) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded && e.Verdict.Kind != lull.KindSuccess {
		f.n.Add(1)
	}
}

// A server that has no TLS is well. pgx's default is to dial once more without.
func TestAServerWithoutTLSIsNoFailure(t *testing.T) {
	t.Parallel()
	var f failures
	d := newDependency(t, lull.Policy{}, lull.WithObserver(&f))
	pool := open(t, strings.Replace(url(at(t)), "disable", "prefer", 1), d, lullpgx.Config{})
	exec(t, pool, "SELECT 1")
	if f.n.Load() != 0 {
		t.Errorf("%d calls failed", f.n.Load())
	}
}
