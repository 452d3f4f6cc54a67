//go:build servers

package lullamqp

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/queue"
	"github.com/lullgo/lull/queue/queuetest"
)

// What the comment of the package shows, as it stands there.
func packageComment(ctx context.Context, url string, handler queue.Handler, send func(*Broker)) error {
	client := New(Dial(url)) // such as amqp://user:password@host/vhost
	orders := Config{Queue: "orders"}
	err := client.Declare(ctx, orders) // or Check, where somebody else declares
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	q, err := client.Open(ctx, orders)
	if err != nil {
		return err
	}
	send(q)
	dependency, err := lull.NewDependency("ledger", queue.Policy()) // attempts, and waits up to its Backoff.Cap
	if err != nil {
		return err
	}
	consumer, err := queue.New("orders", q, dependency, handler, queue.Config{})
	if err != nil {
		return err
	}
	err = consumer.Run(ctx)
	return err
}

func TestWhatTheDocsShow(t *testing.T) {
	t.Parallel()
	url := rabbit(t).URL()
	ctx, stop := context.WithCancel(testContext(t))
	handled := ""
	err := packageComment(ctx, url, func(_ context.Context, m *queue.Message) error {
		handled = string(m.Body)
		stop()
		return nil
	}, func(q *Broker) { send(t, q, "a chair") })
	if err != nil || handled != "a chair" {
		t.Errorf("%v, handled %q", err, handled)
	}
}

// The program lull, on a real server.
func TestCommand(t *testing.T) {
	t.Parallel()
	queuetest.Command(t, target(t), func(address string) queuetest.CommandLine {
		var w where
		must.Succeed(json.Unmarshal([]byte(address), &w))
		c := w.Config.WithDefaults()
		return queuetest.CommandLine{Broker: w.URL, Refused: "amqp://127.0.0.1:1/", Dead: c.DeadLetters, To: c.Queue}
	})
}

// lull queue inspect, 21 times, of a queue that another program declared: it takes nothing out of
// it. If looking counts, it refuses, and names where to look up the limit.
func TestRule21CommandInspectsOthersQueues(t *testing.T) {
	if testing.Short() {
		t.Skip("it is not short to build the program")
	}
	t.Parallel()
	url := rabbit(t).url()
	program := queuetest.Program(t)
	ch := raw(t)
	const n = 50
	api := url + "?management=" + management(t).URL
	old := !serverVersion(t).AtLeast(4, 3)
	limited, free := theirs(t, ch, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(20)}, n), theirs(t, ch, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int64(200_000)}, n)
	for range 21 {
		out, err := exec.Command(program, "queue", "inspect", url, limited, "--limit", "1").CombinedOutput()
		if refused := err != nil && strings.Contains(string(out), "that of "+limited+" is 20") && strings.Contains(string(out), "?management="); refused != old {
			t.Fatalf("%v: %s", err, out)
		}
		readable(t, ch, limited, n)
	}
	for _, at := range []string{url, api} {
		if out, err := exec.Command(program, "queue", "inspect", at, free).CombinedOutput(); err != nil || !strings.Contains(string(out), "50 of 50 seen: 50 broker.") {
			t.Errorf("%s: %v: %s", at, err, out)
		}
	}
	if out, err := exec.Command(program, "queue", "inspect", api, limited).CombinedOutput(); old != strings.Contains(string(out), "that of "+limited+" is 20") {
		t.Errorf("%v: %s", err, out)
	}
}
