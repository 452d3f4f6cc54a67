// Command outage has several consumers of one broker live through an outage of the
// service that their handlers call, and prints what each did to the service and to its
// messages: lull's queue.Consumer, watermill with its retry middleware, and a plain
// loop over nats.go that calls Nak.
//
//	go run ./lab/outage
//
// The broker is an embedded NATS server with JetStream on 127.0.0.1, on disk; each
// consumer has a stream, a service and a publisher of its own, and all live through the
// same outage at the same time.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/internal/sleep"
)

// A setting is the outage that all consumers live through.
type setting struct {
	rate     float64       // messages a second
	before   time.Duration // well
	outage   time.Duration // down
	after    time.Duration // well again, and messages still come
	workers  int           // handlers side by side
	patience time.Duration // after the last message, until we give up on a consumer
}

func main() {
	s := setting{rate: 50, before: 5 * time.Second, outage: 30 * time.Second, after: 25 * time.Second, workers: 16, patience: 10 * time.Minute}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	must.Main("outage", 1, func() error {
		results, err := compare(ctx, s, os.Stderr)
		if err != nil {
			return err
		}
		return report(os.Stdout, s, results)
	})
}

type consumer struct {
	name     string
	settings string // its settings, in a line
	// start begins to consume the subject, calling handle for each message, and returns
	// when it is ready. letters is how many dead letters it has made.
	start func(ctx context.Context, at place, handle handler) (letters func() int, stop func())
}

// handler calls the service for the message with that id.
type handler func(ctx context.Context, id string) error

// place is where a consumer finds its messages.
type place struct {
	url     string
	stream  string
	subject string
	workers int
}

// compare has all consumers live through the outage, side by side.
func compare(ctx context.Context, s setting, progress io.Writer) (_ []result, err error) {
	defer must.Catch(&err)
	url, shutdown := startServer()
	defer shutdown()
	results := make([]result, len(consumers))
	errs := make([]error, len(consumers))
	began := time.Now().Add(time.Second) // all begin together
	var wg sync.WaitGroup
	for i, c := range consumers {
		wg.Go(func() { results[i], errs[i] = live(ctx, s, c, url, i, began) })
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return results, errors.Join(errs...)
		case <-time.After(10 * time.Second):
			fmt.Fprintf(progress, "%v\n", time.Since(began).Round(time.Second))
		}
	}
}

func live(ctx context.Context, s setting, c consumer, url string, index int, began time.Time) (_ result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", c.name, err)
		}
	}()
	defer must.Catch(&err)
	at := place{url: url, stream: fmt.Sprintf("S%d", index), subject: fmt.Sprintf("work%d.new", index), workers: s.workers}
	conn, js := connect(url)
	defer conn.Close()
	must.Have(js.CreateStream(ctx, jetstream.StreamConfig{Name: at.stream, Subjects: []string{at.subject}, Retention: jetstream.WorkQueuePolicy}))
	v := &service{downFrom: began.Add(s.before), downUntil: began.Add(s.before + s.outage), times: map[string]int{}, first: map[string]time.Time{}}
	letters, stop := c.start(ctx, at, v.call)
	defer stop()
	total := int(s.rate * (s.before + s.outage + s.after).Seconds())
	for n := range total {
		must.Succeed(sleep.For(ctx, time.Until(began.Add(time.Duration(float64(n)/s.rate*float64(time.Second))))))
		id := fmt.Sprintf("%s-%d", at.stream, n)
		m := nats.NewMsg(at.subject)
		m.Header.Set("_watermill_message_uuid", id) // as watermill's own publisher would
		m.Data = []byte(id)
		must.Have(js.PublishMsg(ctx, m))
	}
	before := int(s.rate * (s.before + s.outage).Seconds())
	for end := time.Now().Add(s.patience); ; must.Succeed(sleep.For(ctx, 50*time.Millisecond)) {
		r := result{consumer: c, messages: total, dead: letters()}
		v.count(&r, before)
		if r.left <= 0 || time.Now().After(end) {
			return r, nil
		}
	}
}

func connect(url string) (*nats.Conn, jetstream.JetStream) {
	conn := must.Have(nats.Connect(url))
	return conn, must.Have(jetstream.New(conn))
}

// A result counts how one consumer's messages ended, and the calls of its service.
type result struct {
	consumer
	messages, attempts, during int
	dead, twice, left          int
	backlog                    time.Duration // from the end of the outage until what came before it was handled
}

func report(out io.Writer, s setting, results []result) error {
	fmt.Fprintf(out, "%g messages a second for %v; the service is down from %v to %v (it refuses at once),\n", s.rate, s.before+s.outage+s.after, s.before, s.before+s.outage)
	fmt.Fprintf(out, "and takes 10 ms otherwise; %d handlers side by side.\n\n", s.workers)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "consumer\tattempts\tin the outage\tdead letters\thandled twice\tnot handled\tcaught up after\t")
	for _, r := range results {
		caught := fmt.Sprintf("%.1f s", r.backlog.Seconds())
		if r.left > 0 {
			caught = "never"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t\n", r.name, r.attempts, r.during, r.dead, r.twice, max(r.left, 0), caught)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d messages each. Caught up: from the end of the outage until the last message that came\n"+
		"before that end was handled (dead letters not counted).\n\n", results[0].messages)
	for _, r := range results {
		fmt.Fprintf(out, "%s: %s\n", r.name, r.settings)
	}
	return nil
}

var consumers = []consumer{
	{"lull", "queue.Policy: ten attempts, waits below 1, 2, 4, ... 256 s, a circuit breaker for the service, a retry budget.", ours},
	{"nats.go, Nak", "MaxDeliver 10, Nak on failure; what was delivered ten times stays in the stream, delivered no more, and is counted as a dead letter.", nak},
	{"watermill", "Retry{MaxRetries: 3, InitialInterval: 100ms}, as in its own example, and PoisonQueue.",
		watermillWith(middleware.Retry{MaxRetries: 3, InitialInterval: 100 * time.Millisecond})},
	{"watermill, ten attempts", "Retry{MaxRetries: 9, InitialInterval: 1s, Multiplier: 2, MaxInterval: 10m, RandomizationFactor: 0.5}, which is as patient as lull's, and PoisonQueue. The message is held all the while, and AckWait is its default of 30 s.",
		watermillWith(middleware.Retry{MaxRetries: 9, InitialInterval: time.Second, Multiplier: 2, MaxInterval: 10 * time.Minute, RandomizationFactor: 0.5})},
}
