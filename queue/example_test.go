package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lullgo/lull"
	"github.com/lullgo/lull/backoff"
	"github.com/lullgo/lull/queue"
)

var (
	errDown   = errors.New("connection refused")
	errSchema = errors.New("no amount")
)

// A consumer of orders. One order fails for a while and comes again, another never
// will succeed and becomes a dead letter, which is looked at, and put back.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	m, err := queue.NewMemoryBroker(queue.MemoryBrokerConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, body := range []string{"fine", "unlucky", "broken"} {
		if err := m.Send(ctx, queue.Outgoing{Body: []byte(body)}); err != nil {
			fmt.Println(err)
		}
	}

	policy := queue.Policy()
	policy.Backoff = backoff.Schedule{Kind: backoff.Constant, Jitter: backoff.None, Base: 50 * time.Millisecond} // an example should not take minutes
	payments, err := lull.NewDependency("payments", policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	left := 3
	handle := func(ctx context.Context, m *queue.Message) error {
		switch {
		case string(m.Body) == "broken":
			return lull.Permanent(errSchema)
		case string(m.Body) == "unlucky" && m.Attempt == 1:
			return lull.Transient(errDown)
		}
		return nil
	}
	consumer, err := queue.New("orders", m, payments, handle, queue.Config{Concurrency: 1},
		queue.WithObserver(func(_ context.Context, e queue.Event) {
			if e.Kind != queue.EventSettled {
				return
			}
			fmt.Printf("message %s, attempt %d: %v %q\n", e.ID, e.Attempt, e.Outcome, e.Reason)
			if e.Outcome != queue.Retry {
				left--
			}
			if left == 0 {
				stop()
			}
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := consumer.Run(ctx); err != nil {
		fmt.Println(err)
	}

	letters, err := queue.Scan(m.DeadLetters(), queue.ScanConfig{Idle: time.Minute}) // it ends before: Limit is reached
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := queue.Redrive(context.Background(), letters, m, queue.RedriveConfig{Filter: queue.Filter{Reason: "permanent"}, Limit: 1}, func(s queue.LetterResult) {
		fmt.Printf("%s: %s, %q, after %d attempt\n", s.Letter.Body, s.Letter.Reason, s.Letter.Errors, s.Letter.Attempts)
	})
	fmt.Println(p, err)
	// Output:
	// message 1, attempt 1: ack ""
	// message 2, attempt 1: retry ""
	// message 3, attempt 1: dead-letter "permanent"
	// message 2, attempt 2: ack ""
	// broken: permanent, ["no amount"], after 1 attempt
	// moved 1 of 1 (1 seen) <nil>
}

// How long the broker must keep a message: longer than it can take in the worst case.
func ExampleConfig_WorstCase() {
	var config queue.Config
	m, _ := queue.NewMemoryBroker(queue.MemoryBrokerConfig{})
	fmt.Println("an hour's wait may be asked for:", config.WorstCase(queue.Policy(), m.Capabilities()).Round(time.Minute))
	p := queue.Policy()
	p.Backoff.Cap = 5 * time.Minute
	p.HintLimit = 5 * time.Minute
	orders, err := lull.NewDependency("orders", p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("five minutes' may:", config.WorstCase(orders.Policy(), m.Capabilities()).Round(time.Minute))
	// Output:
	// an hour's wait may be asked for: 13h53m0s
	// five minutes' may: 1h32m0s
}

func ExampleInspect() {
	ctx := context.Background()
	m, _ := queue.NewMemoryBroker(queue.MemoryBrokerConfig{})
	letter := &queue.Envelope{Reason: "schema", OriginalID: "17", Source: "orders", LastFailure: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	m.DeadLetters().Send(ctx, queue.Outgoing{Headers: queue.LetterHeaders(nil, letter), Body: []byte("{}")})

	from, err := queue.Scan(m.DeadLetters(), queue.ScanConfig{Idle: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := queue.Inspect(ctx, from, queue.Filter{OlderThan: time.Minute}, func(l *queue.Letter) (bool, error) {
		fmt.Println(l.OriginalID, l.Source, l.Reason)
		return false, nil // one is enough; true: go on until the broker has had no other letter for Idle
	})
	fmt.Println(p.Matched, err)
	// Output:
	// 17 orders schema
	// 1 <nil>
}

// A dry run lists what would be moved.
func ExampleRedrive() {
	ctx := context.Background()
	m, _ := queue.NewMemoryBroker(queue.MemoryBrokerConfig{})
	for i := range 3 {
		letter := &queue.Envelope{Reason: "attempts_exhausted", OriginalID: fmt.Sprint(i)}
		m.DeadLetters().Send(ctx, queue.Outgoing{Headers: queue.LetterHeaders(nil, letter)})
	}
	for _, dry := range []bool{true, false} {
		from, err := queue.Scan(m.DeadLetters(), queue.ScanConfig{Idle: time.Minute})
		if err != nil {
			fmt.Println(err)
			return
		}
		p, err := queue.Redrive(ctx, from, m, queue.RedriveConfig{DryRun: dry, Rate: math.Inf(1), Limit: 3}, nil)
		fmt.Println(p, err, "in the queue:", m.Len())
	}
	// Output:
	// moved 3 of 3 (3 seen) <nil> in the queue: 0
	// moved 3 of 3 (3 seen) <nil> in the queue: 3
}

// The results that a handler can return beside success and failure.
func ExampleHandler() {
	var handle queue.Handler = func(ctx context.Context, m *queue.Message) error {
		switch m.Headers["kind"] {
		case "early":
			return queue.DeferFor(nil, time.Minute) // not tried, not counted
		case "duplicate":
			return queue.DropMessage(nil)
		case "v1":
			return queue.DeadLetterAs("schema", errors.New("version 1 is not read any more"))
		case "busy":
			return lull.RetryAfter(errors.New("429 Too Many Requests"), 20*time.Second)
		}
		return nil
	}
	fmt.Println(handle(context.Background(), &queue.Message{Headers: queue.Headers{"kind": "v1"}}))
	// Output: version 1 is not read any more
}

// The header with the reason of a dead letter.
func ExampleEnvelope_Encode() {
	e := &queue.Envelope{
		Reason: "attempts_exhausted", Code: "connection_refused", Errors: []string{"dial tcp: connection refused"}, Attempts: 10,
		LastFailure: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Source: "orders", OriginalID: "17",
	}
	fmt.Println(queue.EnvelopeHeader+":", e.Encode())
	// Output:
	// Lull-Dead-Letter: {"v":1,"reason":"attempts_exhausted","code":"connection_refused","attempts":10,"last":"2026-03-04T05:06:07.000Z","source":"orders","id":"17","errors":["dial tcp: connection refused"]}
}
