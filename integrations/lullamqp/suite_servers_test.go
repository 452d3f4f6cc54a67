//go:build servers

package lullamqp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/engine"
	"github.com/lullgo/lull/integrations/redial"
	"github.com/lullgo/lull/internal/check"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/seed"
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

// A server dies, once for both: see deathsMixNothingUp and keptUp. With LULL_QUEUETEST_ALL it is stopped, too.
func TestRule21ServerDies(t *testing.T) {
	t.Parallel()
	n := mortal(t, &forDeaths)
	k := keepUp(t, n)
	back := deathsMixNothingUp(t)
	k.restart(t, "killed", n.Kill)
	back()
	if os.Getenv("LULL_QUEUETEST_ALL") != "" { // another start of the server takes long
		k.restart(t, "stopped", n.Stop)
	}
}

// keptUp are connections of RabbitMQ's own client, which does not dial again by itself. Package
// redial keeps them up while the server restarts. All come back, with few dials in flight.
type keptUp struct {
	*node
	up, dials, inFlight, peak atomic.Int64
}

const connections, mostDials = 20, 3

// keepUp makes the connections, which are kept up until the test ends.
func keepUp(t *testing.T, n *node) *keptUp {
	d := must.Have(lull.NewDependency("rabbitmq", lull.Policy{}, lull.WithRand(seed.Source(t))))
	g, err := redial.New(d, redial.Config{MaxDials: mostDials, Policy: engine.RedialPolicy{
		Start: 100 * time.Millisecond, Spread: 200 * time.Millisecond, Lasting: 100 * time.Millisecond,
		Backoff: backoff.Schedule{Base: 50 * time.Millisecond, Cap: 2 * time.Second},
	}})
	must.Succeed(err)
	ctx, cancel := context.WithCancel(context.Background())
	k := &keptUp{node: n}
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for range connections {
		wg.Go(func() {
			check.Is(t, redial.Keep(ctx, g, k.dial, k.use), context.Canceled, "Keep ended")
		})
	}
	await(t, "all connections", func() bool { return k.up.Load() == connections })
	return k
}

func (k *keptUp) dial(ctx context.Context) (*amqp.Connection, error) {
	k.dials.Add(1)
	for m, now := k.peak.Load(), k.inFlight.Add(1); now > m && !k.peak.CompareAndSwap(m, now); m = k.peak.Load() {
	}
	defer k.inFlight.Add(-1)
	return amqp.DialConfig(k.url(), amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		// The client waits for the server's greeting for as long as the connection allows.
		return c, c.SetDeadline(time.Now().Add(5 * time.Second))
	}})
}

func (k *keptUp) use(ctx context.Context, conn *amqp.Connection) error {
	defer conn.Close()
	k.up.Add(1)
	defer k.up.Add(-1)
	select {
	case err := <-conn.NotifyClose(make(chan *amqp.Error, 1)):
		if err == nil {
			return nil
		}
		return lull.Transient(err) // CONNECTION_FORCED is planned, a broken connection is not
	case <-ctx.Done():
		return ctx.Err()
	}
}

// restart ends the server, and starts it again when all connections are down. It returns when all are up.
func (k *keptUp) restart(t *testing.T, what string, end func()) {
	t.Helper()
	before := k.dials.Load()
	end()
	await(t, "all connections are down", func() bool { return k.up.Load() == 0 })
	must.Succeed(k.Start())
	await(t, "all connections after it was "+what, func() bool { return k.up.Load() == connections })
	peak := k.peak.Load()
	t.Logf("%s: %d connections are back after %d dials, %d in flight at most", what, connections, k.dials.Load()-before, peak)
	if peak > mostDials {
		t.Errorf("%d dials in flight, more than %d", peak, mostDials)
	}
}
