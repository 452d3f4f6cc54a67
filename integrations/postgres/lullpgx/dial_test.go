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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/breaker"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/integrations/postgres/lullpgx"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/memnet"
	"github.com/lullgo/lull/internal/must"
)

func TestAddToRefuses(t *testing.T) {
	config := must.Have(pgxpool.ParseConfig(url("127.0.0.1:1")))
	d := newDependency(t, lull.Policy{})
	for want, got := range map[string]error{
		"there is no config":     lullpgx.AddTo(nil, d, lullpgx.Config{}),
		"there is no config: ":   lullpgx.AddTo(&pgxpool.Config{}, d, lullpgx.Config{}),
		"the dependency is nil":  lullpgx.AddTo(config, nil, lullpgx.Config{}),
		"Config.MaxDials is -1":  lullpgx.AddTo(config, d, lullpgx.Config{MaxDials: -1}),
		"want a positive number": lullpgx.AddTo(config, d, lullpgx.Config{MaxDials: -1}),
	} {
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
	if config.BeforeConnect != nil {
		t.Error("a refused config was changed")
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

// A dial is in flight until the server has accepted the user, or the connection is closed. At most
// Config.MaxDials are in flight, of calls and of the pool together.
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
				pool := open(t, url("127.0.0.1:1")+"&connect_timeout=5", d, lullpgx.Config{MaxDials: 2}, func(c *pgxpool.Config) {
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
				check.Equal(t, h.most.Load(), 2, "dials in flight")
			})
		})
	}
}

func TestNoDialThroughAnOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
	})
}

// The time of an attempt, and that of the dial, bound a dial until the server has accepted the user.
func TestTheTimeOfADial(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		timeout, connect, want time.Duration
	}{
		"attempt": {time.Second, 20 * time.Second, 2 * time.Second}, // a second of it for the close
		"dial":    {10 * time.Second, 5 * time.Second, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var h held
				var seen connects
				d := newDependency(t, lull.Policy{Attempts: 3, AttemptTimeout: x.timeout}, lull.WithObserver(&seen))
				pool := open(t, url("127.0.0.1:1"), d, lullpgx.Config{}, func(c *pgxpool.Config) {
					c.ConnConfig.DialFunc, c.ConnConfig.ConnectTimeout = h.dial, x.connect
				})
				began := time.Now()
				if pool.Ping(t.Context()) == nil {
					t.Error("it answered")
				}
				check.Equal(t, time.Since(began), x.want, "it took")
				synctest.Wait()
				err, _ := seen.err.Load().([]error)
				if len(err) != 1 || !errors.Is(err[0], context.DeadlineExceeded) || seen.failed.Load() != 1 {
					t.Errorf("%d calls failed: %v", seen.failed.Load(), err)
				}
			})
		})
	}
}

// connects counts calls with the operation connect, by how they ended, and keeps the last error.
type connects struct {
	succeeded, failed, answered, others, refused atomic.Int32
	err                                          atomic.Value
}

func (c *connects) Observe(_ context.Context, e lull.Event) {
	switch {
	case e.Kind != event.CallEnded || e.Operation != "connect":
		return
	case e.Reason == engine.CircuitOpen:
		c.refused.Add(1)
		return
	case e.Verdict.Kind == lull.KindSuccess:
		c.succeeded.Add(1)
		return
	case e.Verdict.Kind == lull.KindTransient:
		c.failed.Add(1)
	case e.Verdict.Kind == lull.KindUnclassified && e.Verdict.Code == "3D000":
		c.answered.Add(1)
	default:
		c.others.Add(1)
	}
	c.err.Store([]error{e.Err})
}

// An error of a hook that was there before is that of the dial, which is not made.
func TestTheErrorOfAHookIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := errors.New("no token")
		pool := open(t, url("127.0.0.1:1"), newDependency(t, lull.Policy{}), lullpgx.Config{}, func(c *pgxpool.Config) {
			c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return own }
			c.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
				t.Error("dialled")
				return nil, own
			}
		})
		check.Is(t, pool.Ping(t.Context()), own, "error")
	})
}

// inMemory lets a pool dial in memory.
func inMemory(c *pgxpool.Config) { c.ConnConfig.DialFunc = memnet.Dial }

// hangsUp returns the address of a server in memory that accepts connections and closes them.
func hangsUp(t *testing.T) string {
	lis := memnet.Listen()
	t.Cleanup(func() { lis.Close() })
	go func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return lis.Addr().String()
}

// A server that accepts connections and hangs up does not work, whoever waits for the dial: each dial of the plain pool
// is a failure with an error, and the circuit opens.
func TestAServerThatHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c connects
		d := newDependency(t, lull.Policy{}, lull.WithObserver(&c))
		pool := open(t, url(hangsUp(t)), d, lullpgx.Config{}, inMemory)
		for range 100 {
			if c.refused.Load() > 0 {
				break
			}
			if pool.Ping(t.Context()) == nil {
				t.Fatal("it answered")
			}
			if synctest.Wait(); d.Breaker().State(d.Now()) == breaker.Closed {
				time.Sleep(100 * time.Millisecond)
			}
		}
		err, _ := c.err.Load().([]error)
		if c.refused.Load() == 0 || c.failed.Load() == 0 || c.answered.Load()+c.others.Load() != 0 || len(err) == 0 || err[0] == nil {
			t.Errorf("%d failed, %d answered, %d others, %d refused: %v", c.failed.Load(), c.answered.Load(), c.others.Load(), c.refused.Load(), err)
		}
	})
}

// A dial that its caller gives up is no such failure.
func TestADialThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lis := memnet.Listen() // its connections are never answered
		defer lis.Close()
		var c connects
		config := must.Have(pgxpool.ParseConfig(url(lis.Addr().String())))
		inMemory(config)
		must.Succeed(lullpgx.AddTo(config, newDependency(t, lull.Policy{}, lull.WithObserver(&c)), lullpgx.Config{}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		one := config.ConnConfig.Copy()
		must.Succeed(config.BeforeConnect(ctx, one))
		if _, err := pgx.ConnectConfig(ctx, one); err == nil {
			t.Error("it answered")
		}
		synctest.Wait()
		if c.others.Load() != 1 || c.failed.Load() != 0 {
			t.Errorf("%d failed, %d others", c.failed.Load(), c.others.Load())
		}
	})
}
