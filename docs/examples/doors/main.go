// Doors is a program that calls one backend through four doors: HTTP, gRPC, Redis's protocol and
// SQL. All of them share one lull.Dependency, so that they pay for retries from one budget and open
// one circuit. It makes calls while the backend is up, then cuts every connection and refuses new
// ones, and prints what each door has done. Retries of all doors together are no more than a tenth
// of the successes, and two.
//
//	go run ./docs/examples/doors
//
// The servers behind the doors are real. HTTP and gRPC run in this process. Redis and PostgreSQL are
// started: their programs must be installed (Debian: redis-server, postgresql).
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/integrations/lullgrpc"
	"github.com/lullgo/lull/integrations/lullredis"
	"github.com/lullgo/lull/integrations/lullsql"
	"github.com/lullgo/lull/lullhttp"
)

func main() {
	log.SetFlags(0)
	if _, err := run(context.Background(), os.Stdout, 100, nil); err != nil {
		log.Fatal(err)
	}
}

// A tally is what one door has done in one phase.
type tally struct{ calls, successes, attempts int }

// Totals are those of all doors, in both phases.
type totals struct{ calls, successes, retries int }

// run makes n calls through each door while the backend is up, and as many while it is down.
// random, if not nil, replaces the source of randomness.
func run(ctx context.Context, out io.Writer, n int, random func() uint64) (totals, error) {
	var t totals
	d, err := lull.NewDependency("backend", lull.Policy{}, lull.WithRand(random))
	if err != nil {
		return t, err
	}
	b, err := start()
	if err != nil {
		return t, err
	}
	defer b.close()
	doors, err := open(b, d)
	if err != nil {
		return t, err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "backend\tdoor\tcalls\tsuccesses\tattempts\t")
	for _, phase := range []string{"up", "down"} {
		if phase == "down" {
			b.outage()
		}
		sums := make([]tally, len(doors))
		for range n {
			for i, door := range doors {
				err := door.call(ctx)
				sums[i].calls++
				switch e, failed := errors.AsType[*lull.Error](err); {
				case err == nil:
					sums[i].successes++
					sums[i].attempts++
				case failed:
					sums[i].attempts += e.Attempts
					t.retries += max(e.Attempts-1, 0) // a call that the breaker refused has made none
				default:
					return t, fmt.Errorf("%s: %w", door.name, err)
				}
			}
		}
		for i, door := range doors {
			s := sums[i]
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t\n", phase, door.name, s.calls, s.successes, s.attempts)
			t.calls += s.calls
			t.successes += s.successes
		}
	}
	w.Flush()
	fmt.Fprintf(out, "\n%d retries in all; a tenth of the %d successes, and two: %d\n", t.retries, t.successes, t.successes/10+2)
	return t, nil
}

type door struct {
	name string
	call func(ctx context.Context) error
}

// open opens the doors. Each is told which dependency it leads to.
func open(b *backend, d *lull.Dependency) ([]door, error) {
	transport, err := lullhttp.New(lull.Policy{}, lullhttp.WithDependencies(func(*http.Request) *lull.Dependency { return d }))
	if err != nil {
		return nil, err
	}
	web := &http.Client{Transport: transport}

	calls, err := lullgrpc.New(lull.Policy{}, lullgrpc.WithIdempotent("/grpc.health.v1.Health/"),
		lullgrpc.WithDependencies(func(context.Context, string, string) *lull.Dependency { return d }))
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+b.at("grpc"), append(calls.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, err
	}
	health := grpc_health_v1.NewHealthClient(conn)

	cache := redis.NewClient(&redis.Options{Addr: b.at("redis"), MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	if err := lullredis.AddTo(cache, d); err != nil {
		return nil, err
	}

	config, err := pgx.ParseConfig(dsn(b.at("sql")))
	if err != nil {
		return nil, err
	}
	connector, err := lullsql.NewConnector(stdlib.GetConnector(*config), d, lullsql.Config{})
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	b.closers = append(b.closers, func() { db.Close(); cache.Close(); conn.Close(); web.CloseIdleConnections() })

	return []door{
		{"HTTP", func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.at("http"), nil)
			if err != nil {
				return err
			}
			resp, err := web.Do(req)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}},
		{"gRPC", func(ctx context.Context) error {
			_, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			return err
		}},
		{"Redis", func(ctx context.Context) error { return cache.Get(ctx, "k").Err() }},
		{"SQL", func(ctx context.Context) error {
			_, err := lullsql.Read(ctx, d, db, func(ctx context.Context, c *sql.Conn) (one int, err error) {
				err = c.QueryRowContext(ctx, "SELECT 1").Scan(&one)
				return one, err
			})
			return err
		}},
	}, nil
}

// A backend has a proxy before each of its servers. All of them fail together.
type backend struct {
	proxies map[string]*proxy
	closers []func()
}

func (b *backend) at(server string) string { return b.proxies[server].l.Addr().String() }

func (b *backend) outage() {
	for _, p := range b.proxies {
		p.outage()
	}
}

func (b *backend) close() {
	b.outage()
	for i := len(b.closers) - 1; i >= 0; i-- {
		b.closers[i]()
	}
}

// proxy passes connections on until the outage.
type proxy struct {
	l     net.Listener
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.DialTimeout("tcp", to, 5*time.Second)
			if err != nil {
				c.Close()
				continue
			}
			go pass(c, s)
			go pass(s, c)
			p.mu.Lock()
			p.conns = append(p.conns, c, s)
			down := p.down
			p.mu.Unlock()
			if down {
				p.outage()
			}
		}
	}()
	return p, nil
}

func pass(from, to net.Conn) {
	io.Copy(to, from)
	from.Close()
	to.Close()
}

// outage closes every connection, and refuses new ones from now on.
func (p *proxy) outage() {
	p.l.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}
