//go:build servers

package natstest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// What the comment of package lullnats shows, as it stands there.
func packageComment(ctx context.Context, js jetstream.JetStream, policy lull.Policy, ledger *lull.Dependency, handle queue.Handler, report func(error)) error {
	orders := lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.>", Policy: policy}
	err := lullnats.Declare(ctx, js, orders) // or Check, where others declare
	if err != nil {
		return err
	}
	b, err := lullnats.Open(ctx, js, orders)
	if err != nil {
		return err
	}
	consumer, err := queue.New("ORDERS", b, ledger, handle, queue.Config{})
	if err != nil {
		return err
	}
	if _, err := js.Publish(ctx, "orders.new", []byte("a chair")); err != nil {
		return err
	}
	reaper, err := lullnats.NewReaper(ctx, js, orders)
	if err != nil {
		return err
	}
	go reaper.Run(ctx, time.Minute, report)
	err = consumer.Run(ctx)
	return err
}

func TestWhatTheDocsShow(t *testing.T) {
	t.Parallel()
	policy := queue.Policy()
	ledger, err := lull.NewDependency("ledger", policy)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	handled := ""
	err = packageComment(ctx, own(t).js(t), policy, ledger, func(_ context.Context, m *queue.Message) error {
		handled = string(m.Body)
		stop()
		return nil
	}, func(err error) { t.Log(err) })
	if err != nil || handled != "a chair" {
		t.Errorf("%v, handled %q", err, handled)
	}
}
