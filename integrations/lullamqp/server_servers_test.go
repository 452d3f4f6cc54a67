//go:build servers

package lullamqp

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/rabbitmq"
	"github.com/lullgo/lull/queue/queuetest"
)

// A lazy is a RabbitMQ that is started when the first test needs it.
type lazy struct {
	once sync.Once
	*node
	err error
	has sync.Mutex // of the test that may end it, if it has such
}

// Most tests share a server, and leave it running. Tests that end their server have others, one
// test at a time.
var (
	server                              lazy
	forConformance, forKills, forDeaths lazy
	mortals                             sync.Map // from the names of such tests to their servers
)

func TestMain(m *testing.M) {
	pace.Overlap(20) // fewer than queuetest.Main would: the servers work more than the tests wait
	code := queuetest.Main(m, connect)
	for _, s := range []*lazy{&server, &forConformance, &forKills, &forDeaths} {
		if s.node != nil {
			s.Kill()
			os.RemoveAll(s.Dir)
		}
	}
	os.Exit(code)
}

// rabbit returns the test's server. Without one the test is skipped; with CI set it fails.
func rabbit(t testing.TB) *node {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if n, ok := mortals.Load(name); ok {
		return n.(*node)
	}
	return server.need(t)
}

// mortal makes s the server of the test and its subtests, which may end it.
func mortal(t *testing.T, s *lazy) *node {
	t.Helper()
	s.has.Lock()
	t.Cleanup(s.has.Unlock)
	n := s.need(t)
	mortals.Store(t.Name(), n)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("since its last start RabbitMQ has written:\n%s", n.Log)
		}
	})
	return n
}

func (s *lazy) need(t testing.TB) *node {
	t.Helper()
	s.start()
	there(t, s.err)
	return s.node
}

// start starts it, unless that was done before.
func (s *lazy) start() {
	s.once.Do(func() {
		if s.node, s.err = newNode("1GB"); s.err == nil && s == &server {
			s.err = s.Manage()
		}
		if s.err == nil {
			s.err = s.Start()
		}
		if s.err != nil && s.node != nil {
			os.RemoveAll(s.Dir)
			s.node = nil
		}
	})
}

// there skips the test if RabbitMQ is not installed. With CI set it fails, as it does for any other err.
func there(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, rabbitmq.ErrAbsent) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	must.Succeed(err)
}

// node is a server that tests start.
type node struct{ *rabbitmq.Server }

// newNode returns a server that is not started yet. It takes messages until it uses that much
// memory.
func newNode(memory string) (*node, error) {
	s, err := rabbitmq.New(memory, func(url string) error {
		conn, err := amqp.DialConfig(url, amqp.Config{})
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	// A level tries again after a second if no queue has taken its message, for example because the
	// queue has not started yet: see docs/queues.md.
	return &node{s}, s.Set(rabbitmq.HandOn(time.Second))
}

func (n *node) url() string { return n.URL() }

// restart stops the server, with or without warning, and starts it again.
func (n *node) restart(t testing.TB, end func()) {
	t.Helper()
	end()
	must.Succeed(n.Start())
}

// testPatience is how long a test waits for something, beside many others on a busy machine.
const testPatience = 3 * time.Minute

// testContext returns a context that ends after testPatience.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	t.Cleanup(cancel)
	return ctx
}
