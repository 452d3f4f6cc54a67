//go:build servers

package natstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	lullnats "github.com/lullgo/lull/integrations/lullnats"
	"github.com/lullgo/lull/queue"
)

// A queue from beginning to end: it is declared, filled, and handled, with a failure and a bad
// message. Then the dead letter is read.
func Example() {
	dir, err := os.MkdirTemp("", "lullnats")
	check(err)
	defer os.RemoveAll(dir)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	check(err)
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(20 * time.Second) {
		check(errors.New("the server is not ready"))
	}
	nc, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1))
	check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	check(err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	policy := queue.Policy()
	policy.Backoff = backoff.Schedule{Base: 10 * time.Millisecond}
	orders := lullnats.Config{Stream: "ORDERS", Consumer: "billing", Subject: "orders.new", Attempts: policy.Attempts}
	check(lullnats.Declare(ctx, js, orders))

	to, err := lullnats.NewSender(js, orders.Stream, "orders.new")
	check(err)
	for _, body := range []string{"fine", "unlucky", "bad"} {
		check(to.Send(ctx, queue.Outgoing{ID: "order-" + body, Body: []byte(body)}))
	}

	b, err := lullnats.Open(ctx, js, orders)
	check(err)
	ledger, err := lull.NewDependency("ledger", policy)
	check(err)
	left := make(chan string, 3)
	consumer, err := queue.New(orders.Stream, b, ledger, func(ctx context.Context, m *queue.Message) error {
		switch string(m.Body) {
		case "unlucky":
			if m.Attempt == 1 {
				return lull.Transient(errors.New("connection reset"))
			}
		case "bad":
			return queue.DeadLetterAs("schema", errors.New("no such field"))
		}
		return nil
	}, queue.Config{Concurrency: 1}, queue.WithObserver(func(_ context.Context, e queue.Event) {
		if e.Kind == queue.EventSettled && e.Outcome != queue.Retry {
			left <- fmt.Sprint(e.Outcome, " at attempt ", e.Attempt)
		}
	}))
	check(err)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- consumer.Run(running) }()
	outcomes := map[string]int{}
	for range 3 {
		outcomes[<-left]++
	}
	stop()
	check(<-done)
	fmt.Println(outcomes)

	from, err := lullnats.Letters(ctx, js, orders)
	check(err)
	_, err = queue.Inspect(ctx, from, queue.Filter{}, func(l *queue.Letter) (bool, error) {
		fmt.Printf("%s: %s %v, at attempt %d\n", l.Body, l.Reason, l.Errors[len(l.Errors)-1:], l.Attempts)
		return true, nil
	})
	check(err)
	// Output:
	// map[ack at attempt 1:1 ack at attempt 2:1 dead-letter at attempt 1:1]
	// bad: schema [no such field], at attempt 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
