package lullamqp

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/internal/rabbitmq"
	"github.com/lullgo/lull/queue/queuetest"
)

// server is the RabbitMQ of these tests, started when the first of them wants it.
var server struct {
	once sync.Once
	*node
	err error
}

func TestMain(m *testing.M) {
	code := queuetest.Main(m, connect)
	if server.node != nil {
		server.Stop()
		os.RemoveAll(server.Dir)
	}
	os.Exit(code)
}

// rabbit is the server. Without one the test is skipped; with CI set it fails.
func rabbit(t testing.TB) *node {
	t.Helper()
	server.once.Do(func() {
		if server.node, server.err = newNode("1GB"); server.err == nil {
			if server.err = server.Start(); server.err != nil {
				os.RemoveAll(server.Dir)
				server.node = nil
			}
		}
	})
	if errors.Is(server.err, rabbitmq.ErrAbsent) && os.Getenv("CI") == "" {
		t.Skip(server.err)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.node
}

// node is a server that tests start.
type node struct{ *rabbitmq.Server }

// newNode is one that is not started yet. It takes messages until it uses that much memory.
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
	// A level tries again after a second what no queue has taken, such as one that is not there yet while the server
	// starts: see the package comment.
	return &node{s}, s.Set(rabbitmq.HandOn(time.Second))
}

func (n *node) url() string { return n.URL() }

// restart stops the server, with or without warning, and starts it again.
func (n *node) restart(t testing.TB, end func()) {
	t.Helper()
	end()
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
}

// testContext ends a minute from now.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
