//go:build servers

package lullamqp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

// where holds what another process needs to know.
type where struct {
	URL    string
	Config Config
}

var names atomic.Int64

// declared makes a new queue for the test. It stays until the server ends: deleted too soon, such a
// queue can take all others with it (see docs/queues.md, "If all answers are 541").
func declared(t testing.TB, config Config) Config {
	t.Helper()
	n := rabbit(t)
	if config.Queue == "" {
		config.Queue = fmt.Sprintf("test.%d", names.Add(1))
	}
	c := client(t, n.url())
	declare(t, c, config)
	return config
}

// declare is c.Declare. A server that is busy with other queues may fail to make one (541,
// cluster_not_formed); then declare tries again.
func declare(t testing.TB, c *Client, config Config) {
	t.Helper()
	for ctx := testContext(t); ; time.Sleep(100 * time.Millisecond) {
		err := c.Declare(ctx, config)
		if err == nil {
			return
		}
		if !answered(err, amqp.InternalError) || ctx.Err() != nil {
			t.Error(err)
			return
		}
	}
}

func connect(ctx context.Context, address string) (*queuetest.Connection, error) {
	var w where
	if err := json.Unmarshal([]byte(address), &w); err != nil {
		return nil, err
	}
	c := New(Dial(w.URL))
	q, err := c.Open(ctx, w.Config)
	if err != nil {
		return nil, err
	}
	return &queuetest.Connection{
		Broker: q, Sender: q, Letters: func(ctx context.Context) (queue.DeadLetters, error) { return q.Letters(ctx) },
		Close: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			return c.Close(ctx)
		},
	}, nil
}

func target(t *testing.T) queuetest.Target {
	n := rabbit(t)
	return queuetest.Target{
		Declare: func(t testing.TB, o queuetest.Options) string {
			config := declared(t, Config{DeliveryLimit: o.Attempts + 2})
			text, _ := json.Marshal(where{n.url(), config})
			return string(text)
		},
		Connect: connect,
		Restart: func(t testing.TB) { n.restart(t, n.Stop) },
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	mortal(t, &forConformance)
	queuetest.Run(t, target(t))
}

func TestNothingLost(t *testing.T) {
	t.Parallel()
	mortal(t, &forKills)
	x := target(t)
	x.Messages = 1000 // half as many as by default: it is the work of the server that takes time
	queuetest.NothingLost(t, x)
}
