//go:build servers

package lullredis

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/bulkhead"
	"github.com/lullgo/lull/event"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
)

func TestMain(m *testing.M) {
	pace.Overlap(16)
	m.Run()
}

// A server is a Redis of the test's own: a child process on a free port of the loopback.
type server struct {
	*exec.Cmd
	addr string
}

// needServer starts a server. Without the program the test is skipped or, if CI is set,
// fails.
func needServer(t testing.TB, args ...string) *server {
	t.Helper()
	return needProgram(t, "redis-server", "install it, on Debian: apt-get install redis-server", args...)
}

// eachProgram runs f with Redis, and with Valkey if it is there.
func eachProgram(t *testing.T, f func(t *testing.T, s *server)) {
	t.Run("Redis", func(t *testing.T) { t.Parallel(); f(t, needServer(t)) })
	if _, err := exec.LookPath("valkey-server"); err != nil {
		t.Log("no valkey-server (on Debian: apt-get install valkey-server): not tried")
		return
	}
	t.Run("Valkey", func(t *testing.T) { t.Parallel(); f(t, needProgram(t, "valkey-server", "")) })
}

func needProgram(t testing.TB, program, install string, args ...string) *server {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no %s: %s", program, install)
		}
		t.Skipf("no %s: %s", program, install)
	}
	for range 5 { // the port may be taken in between
		s, err := startServer(t, path, args...)
		if err == nil {
			return s
		}
		t.Log(err)
	}
	t.Fatalf("%s does not start", program)
	return nil
}

func startServer(t testing.TB, path string, args ...string) (*server, error) {
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	s := &server{addr: addr, Cmd: exec.Command(path, append([]string{"--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", dir, "--logfile", log}, args...)...)}
	if err := s.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	stop := func() {
		s.Process.Kill()
		<-ended
	}
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: time.Second, ContextTimeoutEnabled: true})
	defer c.Close()
	for range 2400 { // a minute
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil { // go-redis writes of refused connections
			conn.Close()
			if c.Ping(context.Background()).Err() == nil && strings.Contains(c.Info(context.Background(), "server").Val(), fmt.Sprintf("process_id:%d\r", s.Process.Pid)) {
				t.Cleanup(stop)
				return s, nil
			}
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log)
			return nil, fmt.Errorf("%s ended: %v\n%s", path, err, text)
		case <-time.After(25 * time.Millisecond):
		}
	}
	stop()
	return nil, fmt.Errorf("%s does not answer", path)
}

// Addr starts a server, for the external tests.
func Addr(t testing.TB) string { return needServer(t).addr }

// freeAddr returns an address at which nobody listens.
func freeAddr(t testing.TB) string {
	t.Helper()
	lis := must.Have(net.Listen("tcp", "127.0.0.1:0"))
	defer lis.Close()
	return lis.Addr().String()
}

// oneNode starts a cluster of one.
func oneNode(t *testing.T) *server {
	t.Helper()
	s := needServer(t, "--cluster-enabled", "yes")
	must.Succeed(do(s.client(t), "CLUSTER ADDSLOTSRANGE 0 16383"))
	await(t, "up", func() bool { return strings.HasPrefix(s.client(t).ClusterInfo(t.Context()).Val(), "cluster_state:ok") })
	return s
}

// client is one for a Fleet.
func (s *server) client(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, PoolSize: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not %s", what)
		}
	}
}

// What go-redis sends to greet a new connection is part of the call that needs it, not a call of its own.
func TestNewConnectionsAreNoCalls(t *testing.T) {
	t.Parallel()
	s := needServer(t)
	must.Succeed(s.client(t).ConfigSet(t.Context(), "requirepass", "secret").Err())
	var made calls
	d := newDependency(t, lull.Policy{Limit: bulkhead.Config{InFlight: 1}}, lull.WithObserver(&made))
	c := under(t, d, redis.Options{Addr: s.addr, Username: "default", Password: "secret", DB: 1, ClientName: "me"})
	must.Succeed(c.Set(t.Context(), "k", "v", 0).Err())
	if !slices.Equal(made.ended, []string{"set"}) {
		t.Errorf("calls of %q, want one of set", made.ended)
	}
}

// calls are the operations of the calls that have ended.
type calls struct {
	mu    sync.Mutex
	ended []string
}

func (c *calls) Observe(_ context.Context, e lull.Event) {
	if e.Kind == event.CallEnded {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = append(c.ended, e.Operation)
	}
}
