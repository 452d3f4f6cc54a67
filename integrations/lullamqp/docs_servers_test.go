//go:build servers

package lullamqp

import (
	"context"
	"testing"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/queue"
)

// What the comment of the package shows, as it stands there.
func packageComment(ctx context.Context, url string, dependency *lull.Dependency, handler queue.Handler, send func(*Broker)) error {
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
	d, err := lull.NewDependency("ledger", queue.Policy())
	must(t, err)
	ctx, stop := context.WithCancel(testContext(t))
	handled := ""
	err = packageComment(ctx, url, d, func(_ context.Context, m *queue.Message) error {
		handled = string(m.Body)
		stop()
		return nil
	}, func(q *Broker) { send(t, q, "a chair") })
	if err != nil || handled != "a chair" {
		t.Errorf("%v, handled %q", err, handled)
	}
}
