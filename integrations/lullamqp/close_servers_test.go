//go:build servers

package lullamqp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/internal/pace"
	"github.com/lullgo/lull/internal/seed"
	"github.com/lullgo/lull/queue"
)

// What a handler has handled before Close does not come again, however many end at once, and
// whatever the consumer did last.
func TestCloseAwaitsAcknowledgements(t *testing.T) {
	t.Parallel()
	const n = 40
	for name, last := range map[string]func(ctx context.Context, q *Broker){
		"stopped":  func(context.Context, *Broker) {},
		"canceled": func(_ context.Context, q *Broker) { q.mu.Lock(); q.stopConsuming(); q.mu.Unlock() },
		"paused":   func(ctx context.Context, q *Broker) { q.Pause(ctx, time.Now().Add(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := declared(t, Config{})
			for round := range 6 {
				waiting := 10 * (round % 2)
				q := opened(t, config)
				for i := range n {
					send(t, q, fmt.Sprint("handled ", i))
				}
				d, err := lull.NewDependency("service", queue.Policy(), lull.WithRand(seed.Source(t)))
				must(t, err)
				ctx, stop := context.WithCancel(testContext(t))
				defer stop()
				began, end := make(chan struct{}, n), make(chan struct{})
				c, err := queue.New("q", q, d, func(context.Context, *queue.Message) error {
					began <- struct{}{}
					<-end
					return nil
				}, queue.Config{Concurrency: n, Drain: time.Minute})
				must(t, err)
				ended := make(chan error, 1)
				go func() { ended <- c.Run(ctx) }()
				for range n {
					<-began
				}
				for i := range waiting {
					send(t, q, fmt.Sprint("waiting ", i))
				}
				last(ctx, q)
				stop()
				close(end)
				must(t, <-ended)
				if err := q.client.Close(testContext(t)); err != nil {
					t.Errorf("round %d: Close: %v", round, err)
				}
				again := opened(t, config)
				for _, d := range receive(t, again, waiting) {
					// One may have been handed out in the moment in which a consumer was cancelled: see cancel.
					if !strings.HasPrefix(string(d.Body), "waiting") || d.Attempt > 2 {
						t.Errorf("round %d: %s comes at attempt %d", round, d.Body, d.Attempt)
					}
					settle(t, again, d, queue.Settlement{Outcome: queue.Ack})
				}
				nothing(t, again, pace.Stretch(500*time.Millisecond))
				if err := again.client.Close(testContext(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// If the server has not got the acknowledgements, Close says that it does not know: whether nobody
// answers, or the connection ends.
func TestCloseReportsWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		config := declared(t, Config{})
		var w wire
		c := New(DialConfig(rabbit(t).url(), amqp.Config{Dial: w.dial}))
		q, err := c.Open(testContext(t), config)
		must(t, err)
		send(t, q, "hello")
		d := receive(t, q, 1)[0]
		w.deaf.Store(true)
		settle(t, q, d, queue.Settlement{Outcome: queue.Ack})
		if cut {
			w.cut()
		}
		ctx, cancel := context.WithTimeout(context.Background(), pace.Stretch(2*time.Second))
		defer cancel()
		err = c.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "may come again") {
			t.Errorf("the connection is cut: %t; Close returns %v", cut, err)
		}
		w.cut()
		again := opened(t, config)
		settle(t, again, receive(t, again, 1)[0], queue.Settlement{Outcome: queue.Ack})
	}
}
