//go:build servers

package lullamqp

import (
	"context"
	"errors"
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
	"github.com/lullgo/lull/internal/seed"
)

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
	d, err := lull.NewDependency("rabbitmq", lull.Policy{}, lull.WithRand(seed.Source(t)))
	must(t, err)
	g, err := redial.New(d, redial.Config{MaxDials: mostDials, Policy: engine.RedialPolicy{
		Start: 100 * time.Millisecond, Spread: 200 * time.Millisecond, Lasting: 100 * time.Millisecond,
		Backoff: backoff.Schedule{Base: 50 * time.Millisecond, Cap: 2 * time.Second},
	}})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	k := &keptUp{node: n}
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for range connections {
		wg.Go(func() {
			if err := redial.Keep(ctx, g, k.dial, k.use); !errors.Is(err, context.Canceled) {
				t.Errorf("Keep ended: %v", err)
			}
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
	must(t, k.Start())
	await(t, "all connections after it was "+what, func() bool { return k.up.Load() == connections })
	peak := k.peak.Load()
	t.Logf("%s: %d connections are back after %d dials, %d in flight at most", what, connections, k.dials.Load()-before, peak)
	if peak > mostDials {
		t.Errorf("%d dials in flight, more than %d", peak, mostDials)
	}
}
