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
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/redial"
)

// Connections of RabbitMQ's own client, which does not dial again by itself, are kept up by package
// redial while the server is killed. All come back, with few dials in flight. With
// LULL_QUEUETEST_ALL it is stopped, too.
func TestConnectionsAreKeptUp(t *testing.T) {
	if testing.Short() {
		t.Skip("it is not short to end servers")
	}
	t.Parallel()
	n := mortal(t, &forDeaths)
	const connections, most = 20, 3
	d, err := lull.NewDependency("rabbitmq", lull.Policy{}, lull.WithRand(seed.Source(t)))
	if err != nil {
		t.Fatal(err)
	}
	g, err := redial.New(d, redial.Config{Dials: most, Policy: engine.RedialPolicy{
		Start: 100 * time.Millisecond, Spread: 200 * time.Millisecond, Lasting: 100 * time.Millisecond,
		Backoff: backoff.Schedule{Base: 50 * time.Millisecond, Cap: 2 * time.Second},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var up, dials, inFlight, peak atomic.Int64
	dial := func(ctx context.Context) (*amqp.Connection, error) {
		dials.Add(1)
		for m, now := peak.Load(), inFlight.Add(1); now > m && !peak.CompareAndSwap(m, now); m = peak.Load() {
		}
		defer inFlight.Add(-1)
		return amqp.DialConfig(n.url(), amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			// The client waits for the server's greeting for as long as the connection allows.
			return c, c.SetDeadline(time.Now().Add(5 * time.Second))
		}})
	}
	use := func(ctx context.Context, conn *amqp.Connection) error {
		defer conn.Close()
		up.Add(1)
		defer up.Add(-1)
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
	ctx, cancel := context.WithCancel(testContext(t))
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for range connections {
		wg.Go(func() {
			if err := redial.Keep(ctx, g, dial, use); !errors.Is(err, context.Canceled) {
				t.Errorf("Keep ended: %v", err)
			}
		})
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			select {
			case <-ctx.Done():
				t.Fatalf("%s: %d of %d connections are up after %v", what, up.Load(), connections, testPatience)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	wait("at first", func() bool { return up.Load() == connections })
	ends := map[string]func(){"killed": n.Kill}
	if os.Getenv("LULL_QUEUETEST_ALL") != "" { // another start of the server takes long
		ends["stopped"] = n.Stop
	}
	for what, end := range ends {
		before := dials.Load()
		end()
		wait(what, func() bool { return up.Load() == 0 })
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		wait("after it was "+what, func() bool { return up.Load() == connections })
		t.Logf("%s: %d connections are back after %d dials, %d in flight at most", what, connections, dials.Load()-before, peak.Load())
	}
	if peak.Load() > most {
		t.Errorf("%d dials in flight, more than %d", peak.Load(), most)
	}
}
