//go:build servers

package natstest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/ports"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

var bg = context.Background()

// running is a server in this process, with its files and its port.
type running struct {
	dir  string
	port int
	deny string // what nobody may publish to; empty: nothing

	mu sync.Mutex
	s  *server.Server
}

// main is the server of the tests that do not restart it.
var main struct {
	once sync.Once
	r    *running
	err  error
}

func TestMain(m *testing.M) {
	pace.Overlap(64) // more than queuetest.Main would: most of the time they wait for leases, and seconds
	code := queuetest.Main(m, connect)
	if main.r != nil {
		main.r.stop()
		os.RemoveAll(main.r.dir)
	}
	os.Exit(code)
}

func launch(dir string) (*running, error) {
	r := &running{dir: dir}
	if err := ports.Free(&r.port); err != nil {
		return nil, err
	}
	return r, r.start()
}

func (r *running) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &server.Options{Host: "127.0.0.1", Port: r.port, JetStream: true, StoreDir: r.dir, NoSigs: true, NoLog: true}
	if r.deny != "" {
		p := &server.SubjectPermission{Allow: []string{">"}, Deny: []string{r.deny}}
		o.Users, o.NoAuthUser = []*server.User{{Username: "all", Password: "all", Permissions: &server.Permissions{Publish: p}}}, "all"
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		s.Shutdown()
		return fmt.Errorf("the server is not ready at port %d", r.port)
	}
	r.s = s
	return nil
}

func (r *running) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.Shutdown()
	r.s.WaitForShutdown()
}

func (r *running) restart(t testing.TB) {
	t.Helper()
	r.stop()
	var err error
	for range 50 { // its port may be held for a moment
		if err = r.start(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(err)
}

func (r *running) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", r.port) }

func shared(t testing.TB) *running {
	t.Helper()
	main.once.Do(func() {
		var dir string
		if dir, main.err = os.MkdirTemp("", "lullnats"); main.err == nil {
			main.r, main.err = launch(dir)
		}
	})
	if main.err != nil {
		t.Fatal(main.err)
	}
	return main.r
}

// own returns a server for one test.
func own(t testing.TB) *running {
	t.Helper()
	r, err := launch(t.TempDir())
	must(t, err)
	t.Cleanup(r.stop)
	return r
}

// dial connects to it, and waits for it patiently like a service.
func dial(url string) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(url, nats.Timeout(30*time.Second), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

func (r *running) js(t testing.TB) jetstream.JetStream {
	t.Helper()
	nc, js, err := dial(r.url())
	must(t, err)
	t.Cleanup(nc.Close)
	return js
}

// address is the argument of worker processes.
type address struct {
	URL    string
	Config lullnats.Config
}

func connect(ctx context.Context, text string) (*queuetest.Connection, error) {
	var a address
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, err
	}
	nc, js, err := dial(a.URL)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*queuetest.Connection, error) {
		nc.Close()
		return nil, err
	}
	b, err := lullnats.Open(ctx, js, a.Config)
	if err != nil {
		return fail(err)
	}
	s, err := lullnats.NewSender(js, a.Config.Stream, a.Config.Subject)
	if err != nil {
		return fail(err)
	}
	return &queuetest.Connection{
		Broker: b, Sender: s,
		Letters: func(ctx context.Context) (queue.DeadLetters, error) { return lullnats.Letters(ctx, js, a.Config) },
		Depth: func(ctx context.Context) (int, error) {
			// Do not compare with the stream's messages: when it is restarted the server may forget
			// to delete a message that was acknowledged. Nobody gets it any more, and the Reaper's
			// sweep finds it.
			worker, err := js.Consumer(ctx, a.Config.Stream, a.Config.Consumer)
			if err != nil {
				return 0, err
			}
			n := int(worker.CachedInfo().NumPending) + worker.CachedInfo().NumAckPending
			if !a.Config.Schedules {
				return n, nil
			}
			st, err := js.Stream(ctx, a.Config.Stream)
			if err != nil {
				return 0, err
			}
			later, err := st.Info(ctx, jetstream.WithSubjectFilter(a.Config.WithDefaults().LaterSubject+".>"))
			if err != nil {
				return 0, err
			}
			return n + len(later.State.Subjects), nil
		},
		Close: func() error { nc.Close(); return nil },
	}, nil
}

var streams atomic.Int64

// fresh returns the config of a queue that does not exist yet.
func fresh(c lullnats.Config) lullnats.Config {
	n := streams.Add(1)
	c.Stream, c.Consumer, c.Subject = fmt.Sprint("Q", n), "worker", cmp.Or(c.Subject, fmt.Sprint("q", n))
	return c
}

// target returns a server of its own, which the suite restarts.
func target(t *testing.T, schedules bool) queuetest.Target {
	r := own(t)
	x := queuetest.Target{
		Declare: func(t testing.TB, o queuetest.Options) string {
			c := fresh(lullnats.Config{Lease: o.Lease, Order: o.Order, Policy: lull.Policy{Attempts: o.Attempts}, Schedules: schedules, Source: "orders"})
			ctx, cancel := context.WithTimeout(bg, time.Minute) // many are made at once
			defer cancel()
			must(t, lullnats.Declare(ctx, r.js(t), c))
			text, err := json.Marshal(address{r.url(), c})
			must(t, err)
			return string(text)
		},
		Connect: connect,
		Restart: r.restart,
		Lease:   1500 * time.Millisecond, // a disk that others write to stands still for longer at times: then checks are repeated
		Orders:  []queue.Order{queue.Unordered, queue.Total},
	}
	if schedules {
		x.Orders = []queue.Order{queue.Unordered}
	}
	return x
}
